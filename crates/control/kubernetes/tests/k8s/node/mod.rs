//! A node for tests: it registers itself, runs the pods that are bound to it as processes of this machine, each in a root and at an address of
//! its own. And it does to pods what happens to them: kills and freezes their processes, cuts them off, fills their disks, and dies.
//!
//! `site.rs` is what nodes share, `network.rs` the addresses of pods, `services.rs` those of services, `hosts.rs` the names of both, `volume.rs` disks,
//! `image.rs` what pods run in. `pod.rs` is a pod's life, `container.rs` its process, `probe.rs` what is asked of it, `status.rs` what is said of it. A pod that
//! asks for what is not known here fails the test that made it.

mod container;
mod hosts;
mod image;
mod network;
mod pod;
mod probe;
mod services;
mod site;
mod status;
mod volume;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use container::Process;
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use network::Link;
use parking_lot::Mutex;
use serde_json::json;
use site::Ground;
use tokio::sync::watch;
use tokio::task::JoinSet;
use types::Clock;

use crate::plane::{Cluster, NAMESPACE_TAINT};

pub(crate) use site::Site;

/// Between two signs of life. A node that gives none for eight seconds counts as lost.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// A node that runs.
pub(crate) struct Node {
    shared: Arc<Shared>,
    site: Arc<Site>,
    /// Ended with it.
    tasks: JoinSet<()>,
}

/// What the lives of its pods share.
struct Shared {
    name: String,
    ground: Arc<Ground>,
    /// Of the pods that are here, by their uids.
    living: Mutex<HashMap<String, Living>>,
    is_connected: watch::Sender<bool>,
}

/// A pod that is here.
struct Living {
    name: String,
    link: Link,
    /// While it runs.
    process: Option<Process>,
}

impl Node {
    /// The only node of the cluster's namespace; `None`, and one line, where this machine cannot be one.
    pub(crate) async fn start(cluster: &Cluster) -> Option<Node> {
        let site = Site::open(cluster).await?;
        Some(Node::join(&site, "node").await)
    }

    /// One more node of a site.
    pub(crate) async fn join(site: &Arc<Site>, name: &str) -> Node {
        let ground = Arc::clone(&site.ground);
        let shared = Arc::new(Shared {
            name: format!("{}-{name}", ground.namespace),
            ground,
            living: Mutex::default(),
            is_connected: watch::Sender::new(true),
        });
        shared.register().await;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).stay_alive());
        tasks.spawn(Arc::clone(&shared).run_pods());
        Node { shared, site: Arc::clone(site), tasks }
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// Whether the pod's process runs here.
    pub(crate) fn runs(&self, pod: &str) -> bool {
        self.shared.find(pod, |living| living.process.is_some()).unwrap_or(false)
    }

    /// Sends a signal to a pod's process.
    pub(crate) fn signal(&self, pod: &str, signal: &str) {
        self.shared.process(pod).signal(signal);
    }

    /// Runs a program in a pod, as `kubectl exec` does.
    pub(crate) async fn exec(&self, pod: &str, command: &[&str]) -> Output {
        self.shared.process(pod).exec(command).await
    }

    /// Nothing comes to the pod any more, nor from it, also not what its node asks it.
    pub(crate) fn cut_pod(&self, pod: &str) {
        self.shared.find(pod, |living| living.link.cut()).expect("the pod is here");
    }

    /// Its pods are cut off, and it is itself: what is told of them does not arrive here, nor there what they do.
    pub(crate) fn cut(&self) {
        self.shared.is_connected.send_replace(false);
        self.shared.living.lock().values().for_each(|living| living.link.cut());
    }

    /// It hears again, and is heard.
    pub(crate) fn heal(&self) {
        self.shared.living.lock().values().for_each(|living| living.link.heal());
        self.shared.is_connected.send_replace(true);
    }

    /// It loses its power, with all that runs on it, and nobody hears of that. Its object, whose name this is, stays until somebody deletes it.
    pub(crate) async fn die(mut self) -> String {
        self.cut();
        self.tasks.shutdown().await;
        // The lives of its pods end at the same time.
        while 1 < Arc::strong_count(&self.shared) {
            tokio::task::yield_now().await;
        }
        self.shared.name.clone()
    }
}

/// Says that a node will not come back, as a cloud does that has taken it away.
pub(crate) async fn forget(cluster: &Cluster, node: &str) {
    let nodes: Api<NodeObject> = Api::all(cluster.client.clone());
    nodes.delete(node, &DeleteParams::default()).await.expect("an administrator may");
}

impl Shared {
    /// Waits until the API server can be reached.
    async fn connected(&self) {
        let mut is_connected = self.is_connected.subscribe();
        is_connected.wait_for(|is_connected| *is_connected).await.expect("its sender is here");
    }

    /// Looks at the pod of this name that has come last.
    fn find<T>(&self, pod: &str, look: impl Fn(&Living) -> T) -> Option<T> {
        let living = self.living.lock();
        let named = living.values().filter(|living| living.name == pod);
        named.max_by_key(|living| living.link.number()).map(look)
    }

    fn process(&self, pod: &str) -> Process {
        self.find(pod, |living| living.process.clone()).flatten().expect("the pod runs here")
    }

    /// Whether a pod's process runs, and which one that is.
    fn runs(&self, uid: &str, process: Option<Process>) {
        self.living.lock().get_mut(uid).expect("it is here").process = process;
    }

    async fn register(&self) {
        let ground = &self.ground;
        let nodes: Api<NodeObject> = Api::all(ground.client.clone());
        let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "100", "ephemeral-storage": "100Gi" });
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Test", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let node: NodeObject = serde_json::from_value(json!({
            "metadata": {
                "name": self.name,
                "labels": {
                    "kubernetes.io/hostname": self.name,
                    "kubernetes.io/os": "linux",
                    NAMESPACE_TAINT: ground.namespace,
                    // Of a zone in which most nodes are lost Kubernetes evicts nothing, and those of earlier tests are.
                    "topology.kubernetes.io/zone": ground.namespace,
                },
            },
            "spec": { "taints": [{ "key": NAMESPACE_TAINT, "value": ground.namespace, "effect": "NoSchedule" }] },
        }))
        .expect("it is a node");
        nodes.create(&PostParams::default(), &node).await.expect("an administrator may");
        let status = json!({ "status": { "capacity": room, "allocatable": room, "conditions": [ready] } });
        nodes.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(&status)).await.expect("it was made");
    }

    /// Renews the node's lease.
    async fn stay_alive(self: Arc<Self>) {
        let leases: Api<Lease> = Api::namespaced(self.ground.client.clone(), "kube-node-lease");
        loop {
            self.connected().await;
            let now = k8s_openapi::jiff::Timestamp::from_microsecond(self.ground.clock.now_us()).expect("it is a time");
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": self.name },
                "spec": { "holderIdentity": self.name, "leaseDurationSeconds": 8, "renewTime": format!("{now:.6}") },
            });
            let force = PatchParams::apply("test-node").force();
            leases.patch(&self.name, &force, &Patch::Apply(&lease)).await.expect("the API server answers");
            self.ground.clock.sleep(RENEW_EVERY).await;
        }
    }

    /// Lets the pods that are bound to the node live, and end when they are told to.
    async fn run_pods(self: Arc<Self>) {
        let pods: Api<Pod> = Api::namespaced(self.ground.client.clone(), &self.ground.namespace);
        let own = watcher::Config::default().fields(&format!("spec.nodeName={}", self.name));
        let mut lives = JoinSet::new();
        // How long each may take to end, once it is to.
        let mut orders: HashMap<String, watch::Sender<Option<Duration>>> = HashMap::new();
        let mut events = watcher(pods, own).boxed();
        while let Some(event) = events.next().await {
            self.connected().await;
            let (pod, is_gone) = match event.expect("the API server can be watched") {
                Event::Apply(pod) | Event::InitApply(pod) => (pod, false),
                Event::Delete(pod) => (pod, true),
                Event::Init | Event::InitDone => continue,
            };
            let uid = pod.uid().expect("it is there");
            if is_gone || pod.metadata.deletion_timestamp.is_some() {
                // One that was deleted by force has no time.
                let grace = pod.metadata.deletion_grace_period_seconds.filter(|_| !is_gone).unwrap_or(0).unsigned_abs();
                if let Some(life) = orders.get(&uid) {
                    life.send_replace(Some(Duration::from_secs(grace)));
                }
                if is_gone {
                    orders.remove(&uid);
                }
                continue;
            }
            orders.entry(uid).or_insert_with(|| {
                let (order, ordered) = watch::channel(None);
                lives.spawn(pod::live(Arc::clone(&self), pod, ordered));
                order
            });
        }
    }
}

/// The binary beside this test's own, or the one `KILN_BIN` names.
pub(crate) fn program() -> Option<PathBuf> {
    let beside = || {
        let own = std::env::current_exe().ok()?;
        Some(own.parent()?.parent()?.join("kiln"))
    };
    let program = std::env::var_os("KILN_BIN").map(PathBuf::from).or_else(beside)?;
    program.exists().then_some(program)
}

/// A file below the root of the project.
fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(path)
}

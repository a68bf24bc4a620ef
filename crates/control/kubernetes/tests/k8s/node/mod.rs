//! Kubernetes node for tests: registers itself and runs the pods that are bound to it as processes of this machine.
//!
//! Each pod has its own root and its own address. The node can also inject faults: it kills and freezes processes, cuts
//! pods or itself off the network, fills disks, and dies. A pod that uses an unsupported feature fails its test.
//!
//! - `site.rs`: the parts that the nodes of a test share.
//! - `network.rs`: addresses of pods.
//! - `services.rs`: addresses of services.
//! - `hosts.rs`: host names of pods and services.
//! - `volume.rs`: volumes.
//! - `image.rs`: the container image.
//! - `pod.rs`: the life cycle of a pod.
//! - `container.rs`: the process of a pod.
//! - `probe.rs`: the probes of a container.
//! - `status.rs`: the status of a pod.

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

/// Interval of lease renewals. A node that does not renew its lease for 8 seconds counts as lost.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// Running node.
pub(crate) struct Node {
    shared: Arc<Shared>,
    site: Arc<Site>,
    /// Tasks of the node, aborted on drop.
    tasks: JoinSet<()>,
}

/// State that the node shares with the tasks of its pods.
struct Shared {
    name: String,
    ground: Arc<Ground>,
    /// Pods on this node, by uid.
    living: Mutex<HashMap<String, Living>>,
    is_connected: watch::Sender<bool>,
}

/// Pod on this node.
struct Living {
    name: String,
    link: Link,
    /// Process of its container, while it runs.
    process: Option<Process>,
}

impl Node {
    /// Starts the only node of the cluster's namespace. If this machine cannot run one, prints a line and returns
    /// `None`.
    pub(crate) async fn start(cluster: &Cluster) -> Option<Node> {
        let site = Site::open(cluster).await?;
        Some(Node::join(&site, "node").await)
    }

    /// Starts a node of a site.
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

    /// Returns whether the pod's process runs on this node.
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

    /// Cuts a pod off the network, including the probes of its node.
    pub(crate) fn cut_pod(&self, pod: &str) {
        self.shared.find(pod, |living| living.link.cut()).expect("the pod is here");
    }

    /// Cuts the node and its pods off the network, so that neither hears from the API server or can reach it.
    pub(crate) fn cut(&self) {
        self.shared.is_connected.send_replace(false);
        self.shared.living.lock().values().for_each(|living| living.link.cut());
    }

    /// Reconnects the node and its pods.
    pub(crate) fn heal(&self) {
        self.shared.living.lock().values().for_each(|living| living.link.heal());
        self.shared.is_connected.send_replace(true);
    }

    /// Ends the node and all its pods without notice, like a power failure. Its Node object stays until it is deleted;
    /// returns its name.
    pub(crate) async fn die(mut self) -> String {
        self.cut();
        self.tasks.shutdown().await;
        // Wait for the tasks of its pods, which end at the same time.
        while 1 < Arc::strong_count(&self.shared) {
            tokio::task::yield_now().await;
        }
        self.shared.name.clone()
    }
}

/// Deletes the object of a dead node, as a cloud provider does.
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

    /// Calls `look` with the newest pod of this name.
    fn find<T>(&self, pod: &str, look: impl Fn(&Living) -> T) -> Option<T> {
        let living = self.living.lock();
        let named = living.values().filter(|living| living.name == pod);
        named.max_by_key(|living| living.link.number()).map(look)
    }

    fn process(&self, pod: &str) -> Process {
        self.find(pod, |living| living.process.clone()).flatten().expect("the pod runs here")
    }

    /// Sets the process of a pod, or `None` when it has ended.
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
                    // Kubernetes evicts nothing in a zone with mostly lost nodes, and nodes of earlier tests are lost.
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

    /// Renews the node's lease periodically.
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

    /// Runs the pods that are bound to the node, and ends those that are deleted.
    async fn run_pods(self: Arc<Self>) {
        let pods: Api<Pod> = Api::namespaced(self.ground.client.clone(), &self.ground.namespace);
        let own = watcher::Config::default().fields(&format!("spec.nodeName={}", self.name));
        let mut lives = JoinSet::new();
        // Grace periods of the pods that are being deleted.
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
                // A pod that was deleted by force has no grace period.
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

/// Returns the path of the `kiln` binary: the one in `KILN_BIN`, or the one beside this test's binary.
pub(crate) fn program() -> Option<PathBuf> {
    let beside = || {
        let own = std::env::current_exe().ok()?;
        Some(own.parent()?.parent()?.join("kiln"))
    };
    let program = std::env::var_os("KILN_BIN").map(PathBuf::from).or_else(beside)?;
    program.exists().then_some(program)
}

/// Returns the path of a file below the root of the repository.
fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(path)
}

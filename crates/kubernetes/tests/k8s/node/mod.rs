//! A node for tests: it registers itself, runs the pods that are bound to it as processes of this machine, each in a root and at an address of
//! its own, and provides volumes as folders. And it does to pods what happens to them: kills and freezes their processes.
//!
//! `pod.rs` is a pod's life, `container.rs` its process, `image.rs` what it runs in, `probe.rs` what is asked of it, `network.rs` its address, `hosts.rs` names of those, `volume.rs` its folders,
//! `status.rs` what is said of it. A pod that asks for what is not known here fails the test that made it.

mod container;
mod hosts;
mod image;
mod network;
mod pod;
mod probe;
mod status;
mod volume;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use types::{Clock, SystemClock};

use crate::plane::Cluster;
use crate::road::Road;
use container::Process;
use hosts::Hosts;
use image::Image;
use network::Bridge;
use pod::Order;

/// Between two signs of life. A node that gives none for eight seconds counts as lost.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// A node that runs.
pub(crate) struct Node {
    shared: Arc<Shared>,
    /// Ended with it.
    _tasks: JoinSet<()>,
}

/// What the lives of its pods share.
struct Shared {
    client: Client,
    name: String,
    namespace: String,
    image: Image,
    folder: TempDir,
    bridge: Bridge,
    /// The names of pods, as their cluster's DNS would have them.
    hosts: Hosts,
    /// The way of pods to the API server.
    road: Road,
    clock: SystemClock,
    /// Of the pods that run, by name.
    processes: Mutex<HashMap<String, Process>>,
}

impl Node {
    /// A node for the pods of the cluster's namespace; `None`, and one line, where this machine cannot be one.
    pub(crate) async fn start(cluster: &Cluster) -> Option<Node> {
        let (Some(program), Some(bridge)) = (program(), Bridge::open()) else {
            eprintln!(
                "skipped: pods need root, the program `ip`, and `cargo build --workspace --bins`, or a kiln that KILN_BIN names"
            );
            return None;
        };
        let folder = TempDir::with_prefix("kiln-node-").expect("a temporary folder can be made");
        let road = Road::at((bridge.address(), 0).into(), cluster.api_server()).await;
        let shared = Arc::new(Shared {
            client: cluster.client.clone(),
            name: format!("node-{}", cluster.namespace),
            namespace: cluster.namespace.clone(),
            image: Image::of(&program, folder.path()),
            hosts: Hosts::in_folder(folder.path()),
            road,
            folder,
            bridge,
            clock: SystemClock::new(),
            processes: Mutex::default(),
        });
        shared.register().await;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).stay_alive());
        tasks.spawn(volume::provide(Arc::clone(&shared)));
        tasks.spawn(Arc::clone(&shared).run_pods());
        Some(Node { shared, _tasks: tasks })
    }

    /// Sends a signal to a pod's process.
    pub(crate) fn signal(&self, pod: &str, signal: &str) {
        self.shared.process(pod).signal(signal);
    }

    /// Runs a program in a pod, as `kubectl exec` does.
    pub(crate) async fn exec(&self, pod: &str, command: &[&str]) -> Output {
        self.shared.process(pod).exec(command).await
    }

    /// A way of pods to somebody who listens on this machine.
    pub(crate) async fn way_to(&self, listener: std::net::SocketAddr) -> Road {
        Road::at((self.shared.bridge.address(), 0).into(), listener).await
    }

    /// What a pod has written.
    pub(crate) fn log(&self, pod: &str) -> String {
        std::fs::read_to_string(self.shared.log(pod)).unwrap_or_default()
    }
}

impl Shared {
    fn process(&self, pod: &str) -> Process {
        self.processes.lock().get(pod).cloned().expect("the pod runs")
    }

    /// Where a pod finds the API server.
    fn api_server_variables(&self) -> [String; 2] {
        let address = self.road.address;
        [format!("KUBERNETES_SERVICE_HOST={}", address.ip()), format!("KUBERNETES_SERVICE_PORT={}", address.port())]
    }

    fn log(&self, pod: &str) -> PathBuf {
        self.folder.path().join(format!("{pod}.log"))
    }

    async fn register(&self) {
        let nodes: Api<NodeObject> = Api::all(self.client.clone());
        let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "100", "ephemeral-storage": "100Gi" });
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Test", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let node: NodeObject = serde_json::from_value(json!({
            "metadata": { "name": self.name, "labels": { "kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux" } },
        }))
        .expect("it is a node");
        nodes.create(&PostParams::default(), &node).await.expect("an administrator may");
        let status = json!({ "status": { "capacity": room, "allocatable": room, "conditions": [ready] } });
        nodes.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(&status)).await.expect("it was made");
    }

    /// Renews the node's lease.
    async fn stay_alive(self: Arc<Self>) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        loop {
            let now = k8s_openapi::jiff::Timestamp::from_microsecond(self.clock.now_us()).expect("it is a time");
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": self.name },
                "spec": { "holderIdentity": self.name, "leaseDurationSeconds": 8, "renewTime": format!("{now:.6}") },
            });
            let force = PatchParams::apply("test-node").force();
            leases.patch(&self.name, &force, &Patch::Apply(&lease)).await.expect("the API server answers");
            self.clock.sleep(RENEW_EVERY).await;
        }
    }

    /// Lets the pods of the namespace that are bound to the node live, and end when they are told to. Those of other tests stay pending, as they
    /// expect.
    async fn run_pods(self: Arc<Self>) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let own = watcher::Config::default().fields(&format!("spec.nodeName={}", self.name));
        let mut lives = JoinSet::new();
        let mut orders: HashMap<String, mpsc::Sender<Order>> = HashMap::new();
        let mut events = watcher(pods, own).boxed();
        while let Some(event) = events.next().await {
            let (Event::Apply(pod) | Event::InitApply(pod)) = event.expect("the API server can be watched") else {
                continue;
            };
            let uid = pod.uid().expect("it is there");
            if pod.metadata.deletion_timestamp.is_some() {
                let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0).unsigned_abs();
                if let Some(life) = orders.remove(&uid) {
                    // One that has ended already needs no order.
                    let _ = life.try_send(Order::End { grace: Duration::from_secs(grace) });
                }
                continue;
            }
            orders.entry(uid).or_insert_with(|| {
                let (order, ordered) = mpsc::channel(1);
                lives.spawn(pod::live(Arc::clone(&self), pod, ordered));
                order
            });
        }
    }
}

/// The binary beside this test's own, or the one `KILN_BIN` names.
fn program() -> Option<PathBuf> {
    let beside = || {
        let own = std::env::current_exe().ok()?;
        Some(own.parent()?.parent()?.join("kiln"))
    };
    let program = std::env::var_os("KILN_BIN").map(PathBuf::from).or_else(beside)?;
    program.exists().then_some(program)
}

/// A file below the root of the project.
fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

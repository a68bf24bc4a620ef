//! Instance for tests with the control plane of Kubernetes, an operator and simulated nodes: these report pods as
//! running, let their workers join by their tokens, and remove pods when their workers have ended.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::{
    Actor, Author, Change, ClusterEvent, ClusterId, ReconcileSettings, Resources, RoleRef, WlmProfile,
};
use control_plane::{ControlPlane, ControlPlaneError, StateStore};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use kubernetes::compute_cluster::token_audience;
use kubernetes::{HardwareProfile, KubernetesConnection, KubernetesControlPlane, WorkerHosts};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use types::{Clock, Oid, SystemClock};

use crate::fake_workers::FakeWorkers;
use crate::plane::{Cluster, Operator};

/// Finalizer that keeps a pod until its simulated node has ended it.
const NODE_FINALIZER: &str = "test.kiln.dev/node";
/// Time between passes.
const LOOK_EVERY: Duration = Duration::from_millis(50);
pub(crate) const HARDWARE: &str = "small";
pub(crate) const OWNER: Oid = Oid(10);

/// State that an instance stores on its volume.
#[derive(Debug, Clone, Default)]
struct MemoryStore(Arc<Mutex<Option<Vec<u8>>>>);

impl StateStore for MemoryStore {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().clone())
    }

    fn save(&self, bytes: &[u8]) -> io::Result<()> {
        *self.0.lock() = Some(bytes.to_vec());
        Ok(())
    }
}

/// Instance under test.
pub(crate) struct TestInstance {
    pub(crate) cluster: Cluster,
    /// Client with the permissions of the instance's pod.
    client: Client,
    store: MemoryStore,
    pub(crate) guests: Arc<FakeWorkers>,
    clock: Arc<dyn Clock>,
    warehouse: KubernetesConnection,
    pub(crate) plane: Arc<KubernetesControlPlane>,
    operator: Option<Operator>,
    /// Whether nodes are simulated.
    pub(crate) has_nodes: bool,
}

impl TestInstance {
    /// Starts an instance `dw` in its own namespace. Returns `None` if there is no control plane.
    pub(crate) async fn new(namespace: &str) -> Option<TestInstance> {
        let cluster = Cluster::with_kiln(namespace).await?;
        let operator = cluster.operator("a").await;
        cluster.create(json!({ "storage": { "url": "s3://bucket/dw" } })).await.expect("it is an instance");
        let profile = json!({
            "apiVersion": "kiln.dev/v1alpha1",
            "kind": "HardwareProfile",
            "metadata": { "name": HARDWARE },
            "spec": { "cpu": "1", "memory": "1Gi", "cacheVolume": { "size": "1Gi" } },
        });
        let profile: HardwareProfile = serde_json::from_value(profile).expect("it is a profile");
        cluster.all().create(&PostParams::default(), &profile).await.expect("it is within limits");
        cluster.until("dw", |account: Option<&ServiceAccount>| account.is_some()).await;
        cluster.until("dw", |binding: Option<&k8s_openapi::api::rbac::v1::RoleBinding>| binding.is_some()).await;
        let client = cluster.client_of("dw").await;
        Some(TestInstance::from_parts(cluster, client, operator).await)
    }

    /// Starts an instance that uses the client that `connect` returns.
    pub(crate) async fn with_client(
        namespace: &str,
        connect: impl AsyncFnOnce(&Cluster) -> Client,
    ) -> Option<TestInstance> {
        let mut house = TestInstance::new(namespace).await?;
        house.client = connect(&house.cluster).await;
        house.begin().await;
        Some(house)
    }

    async fn from_parts(cluster: Cluster, client: Client, operator: Operator) -> TestInstance {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (store, guests) = (MemoryStore::default(), FakeWorkers::new(Arc::clone(&clock)));
        let (warehouse, plane) = open(&cluster, &client, &store, &guests, &clock);
        let mut house = TestInstance {
            cluster,
            client,
            store,
            guests,
            clock,
            warehouse,
            plane,
            operator: Some(operator),
            has_nodes: true,
        };
        house.begin().await;
        house
    }

    /// Restarts the instance over its stored state.
    pub(crate) async fn begin(&mut self) {
        (self.warehouse, self.plane) = open(&self.cluster, &self.client, &self.store, &self.guests, &self.clock);
        self.until("its hardware is known", |plane| plane.inventory().hardware(HARDWARE).is_ok()).await;
    }

    /// Loses the instance's volume.
    pub(crate) fn forget(&mut self) {
        self.store = MemoryStore::default();
    }

    /// Runs one pass of the nodes and of the control plane.
    pub(crate) async fn pass(&self) {
        if self.has_nodes {
            self.play_nodes().await;
        }
        let plane = Arc::clone(&self.plane);
        tokio::task::spawn_blocking(move || drop(plane.reconcile(&BTreeMap::new()))).await.expect("it does not panic");
        self.clock.sleep(LOOK_EVERY).await;
    }

    /// Runs passes until a condition holds.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&KubernetesControlPlane) -> bool) {
        let waiting = async {
            while !is_so(&self.plane) {
                self.pass().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "{what}: {:?} {:?}", self.plane.workers(), self.plane.events());
    }

    /// Applies a change by a statement of the role `kiln`.
    pub(crate) async fn apply(&self, change: Change) -> Result<Vec<ClusterEvent>, ControlPlaneError> {
        let plane = Arc::clone(&self.plane);
        let applying = tokio::task::spawn_blocking(move || plane.apply(&change, &superuser()));
        applying.await.expect("it does not panic")
    }

    pub(crate) fn id(&self, name: &str) -> ClusterId {
        self.plane.desired().cluster_named(name).expect("it is there").id
    }

    /// Stops the operator and starts another one.
    pub(crate) async fn another_operator(&mut self, name: &str) {
        if let Some(operator) = self.operator.take() {
            operator.stop().await;
        }
        self.operator = Some(self.cluster.operator(name).await);
    }

    pub(crate) async fn stop(mut self) {
        if let Some(operator) = self.operator.take() {
            operator.stop().await;
        }
    }

    /// Does the work of the kubelets.
    async fn play_nodes(&self) {
        let pods: Api<Pod> = self.cluster.all();
        let workers = ListParams::default().labels("app.kubernetes.io/component=worker");
        for pod in pods.list(&workers).await.expect("an administrator may") {
            let (name, uid) = (pod.name_any(), pod.uid().expect("it is there"));
            let is_held = pod.finalizers().iter().any(|held| held == NODE_FINALIZER);
            let has_failed = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Failed");
            if pod.metadata.deletion_timestamp.is_some() {
                if is_held && (has_failed || !self.guests.has(&uid)) {
                    finalizers(&pods, &name, json!(null)).await;
                }
            } else if !is_held {
                finalizers(&pods, &name, json!([NODE_FINALIZER])).await;
            } else if !has_failed && !self.guests.has(&uid) && self.come(&name, &uid).await {
                self.cluster.say_ready(&name, true).await;
            }
        }
    }

    /// Starts the process of a pod, which joins by the pod's token. Returns whether it was accepted.
    async fn come(&self, pod: &str, uid: &str) -> bool {
        let token = self.token(pod, uid, &token_audience(&self.cluster.namespace, "dw")).await;
        let Some(token) = token else { return false };
        match self.warehouse.token_authenticator().verify(&token).await {
            Ok(vouched) => {
                self.guests.come(vouched);
                true
            }
            // The next pass tries again.
            Err(_) => false,
        }
    }

    /// Requests a token of a pod, like its node. Returns `None` if the pod is gone.
    pub(crate) async fn token(&self, pod: &str, uid: &str, audience: &str) -> Option<String> {
        let accounts: Api<ServiceAccount> = self.cluster.all();
        let asked = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![audience.to_owned()],
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(pod.to_owned()),
                    uid: Some(uid.to_owned()),
                }),
                expiration_seconds: Some(600),
            },
            ..TokenRequest::default()
        };
        let given = accounts.create_subresource("token", "dw", &PostParams::default(), &asked).await;
        let given: TokenRequest = given.ok()?;
        Some(given.status.expect("a token is given").token)
    }

    pub(crate) async fn vouch(&self, token: &str) -> Result<control_plane::VerifiedWorker, String> {
        self.warehouse.token_authenticator().verify(token).await
    }

    /// Reports a pod as failed, so that it is not restarted.
    pub(crate) async fn fail(&self, pod: &str) {
        let failed = json!({ "status": { "phase": "Failed", "reason": "Evicted" } });
        let pods: Api<Pod> = self.cluster.all();
        pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(&failed)).await.expect("the pod is there");
    }

    /// Returns the name of the pod with this uid.
    pub(crate) async fn pod(&self, uid: &str) -> String {
        let pods: Api<Pod> = self.cluster.all();
        let all = pods.list(&ListParams::default()).await.expect("an administrator may");
        all.into_iter().find(|pod| pod.uid().as_deref() == Some(uid)).expect("it is there").name_any()
    }
}

async fn finalizers(pods: &Api<Pod>, name: &str, finalizers: serde_json::Value) {
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    match pods.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        // The pod is being deleted or gone.
        Err(kube::Error::Api(error)) if error.is_not_found() || error.code == 422 => {}
        patched => drop(patched.expect("an administrator may")),
    }
}

fn open(
    cluster: &Cluster,
    client: &Client,
    store: &MemoryStore,
    guests: &Arc<FakeWorkers>,
    clock: &Arc<dyn Clock>,
) -> (KubernetesConnection, Arc<KubernetesControlPlane>) {
    let warehouse =
        KubernetesConnection::watch(client.clone(), cluster.namespace.clone(), "dw".to_owned(), Arc::clone(clock));
    let hosts = WorkerHosts { pods: Arc::clone(guests) as Arc<_>, embedded: FakeWorkers::new(Arc::clone(clock)) };
    let profile = WlmProfile { name: "default".to_owned(), max_running: 100 };
    let settings = ReconcileSettings::new("1", Resources { millicores: 1_000, memory_bytes: 1 << 30 });
    let plane = KubernetesControlPlane::open(
        &warehouse,
        Box::new(store.clone()),
        hosts,
        vec![profile],
        settings,
        Arc::clone(clock),
        OWNER,
    );
    (warehouse, Arc::new(plane.expect("memory can be read")))
}

pub(crate) fn superuser() -> Author {
    let role = RoleRef { oid: OWNER, name: "kiln".to_owned() };
    Author::Role(Actor { role, superuser: true, create_cluster: true, create_role: true })
}

/// Waits for a future on a thread that may block.
pub(crate) fn wait<T>(on: &Handle, future: impl Future<Output = T>) -> T {
    on.block_on(future)
}

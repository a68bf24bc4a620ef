//! Kubernetes control plane for all tests of this binary, with a separate namespace for each test in which Kiln is
//! installed.

use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{DynamicObject, NamespaceResourceScope};
use kube::runtime::wait::{Condition, await_condition, conditions};
use kube::{Api, Client, Config, Resource};
use kubernetes::resources::custom_resource_definitions;
use kubernetes::{Installation, Instance, OperatorError, OperatorSettings};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use types::{SystemClock, SystemRandom};

/// Environment variable by which `make test-k8s` forbids skipping tests.
const REQUIRED: &str = "KILN_TEST_K8S";
/// Time limit for conditions, longer than any of them takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for conditions for which Kubernetes itself waits.
const LONG_PATIENCE: Duration = Duration::from_secs(180);

/// Processes of a control plane. They end with this process, because it holds the other end of their standard input.
struct Plane {
    kubeconfig: PathBuf,
    _processes: Child,
}

/// Label and taint of nodes that run only pods of one namespace.
pub(crate) const NAMESPACE_TAINT: &str = "test.kiln.dev/namespace";

static PLANE: OnceLock<Option<Plane>> = OnceLock::new();

impl Plane {
    fn start() -> Option<Plane> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("k8s");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).expect("what an earlier run has left can be removed");
        }
        let mut processes = Command::new(root.join("tests/k8s/up"))
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell runs the script");
        let mut line = String::new();
        let output = processes.stdout.take().expect("it was asked for");
        BufReader::new(output).read_line(&mut line).expect("it says how it went");
        if line.trim() == "ready" {
            return Some(Plane { kubeconfig: folder.join("kubeconfig"), _processes: processes });
        }
        let status = processes.wait().expect("it ends");
        let may_be_missing = std::env::var_os(REQUIRED).is_none();
        assert!(may_be_missing && status.code() == Some(3), "the control plane did not start");
        None
    }
}

/// Namespace of a test.
pub(crate) struct Cluster {
    /// Client with an administrator's permissions.
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Kubeconfig with an administrator's permissions.
    pub(crate) kubeconfig: PathBuf,
    config: Config,
}

impl Cluster {
    /// Creates a namespace and installs Kiln in it. Returns `None` if there is no control plane.
    pub(crate) async fn with_kiln(namespace: &str) -> Option<Cluster> {
        let cluster = Cluster::bare(namespace).await?;
        cluster.install().await;
        Some(cluster)
    }

    /// Creates an empty namespace. Returns `None` if there is no control plane.
    pub(crate) async fn bare(namespace: &str) -> Option<Cluster> {
        let plane = tokio::task::block_in_place(|| PLANE.get_or_init(Plane::start).as_ref());
        let Some(plane) = plane else {
            eprintln!("skipped: there is no Kubernetes control plane");
            return None;
        };
        let kubeconfig = Kubeconfig::read_from(&plane.kubeconfig).expect("the script wrote it");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("it is whole");
        let client = Client::try_from(config.clone()).expect("its certificates can be read");
        let cluster = Cluster { client, namespace: namespace.to_owned(), config, kubeconfig: plane.kubeconfig.clone() };
        let metadata = json!({ "name": namespace, "annotations": of_own_nodes(namespace) });
        let metadata: ObjectMeta = serde_json::from_value(metadata).expect("it is metadata");
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let namespace = Namespace { metadata, ..Namespace::default() };
        namespaces.create(&PostParams::default(), &namespace).await.expect("each test has a namespace of its own");
        Some(cluster)
    }

    /// Applies the objects of an installation as an administrator, except for the operator's deployment, which no node
    /// would run.
    async fn install(&self) {
        let apply = PatchParams::apply("administrator").force();
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for definition in custom_resource_definitions() {
            let name = definition.metadata.name.clone().expect("definitions have names");
            crds.patch(&name, &apply, &Patch::Apply(&definition)).await.expect("the API server takes the definition");
            let established = Box::pin(await_condition(crds.clone(), &name, conditions::is_crd_established()));
            let established = tokio::time::timeout(PATIENCE, established).await.expect("it is established in time");
            established.expect("the API server can be watched");
        }
        for object in self.manifests() {
            let kind = object["kind"].as_str().expect("objects have a kind");
            if matches!(kind, "CustomResourceDefinition" | "Namespace" | "Deployment") {
                continue;
            }
            let dynamic: DynamicObject = serde_json::from_value(object.clone()).expect("it is an object");
            let types = dynamic.types.clone().expect("it says what it is");
            let kind = kube::core::GroupVersionKind::try_from(&types).expect("its version is one");
            let resource = kube::core::ApiResource::from_gvk(&kind);
            let api: Api<DynamicObject> = if dynamic.metadata.namespace.is_none() {
                Api::all_with(self.client.clone(), &resource)
            } else {
                Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
            };
            let name = dynamic.metadata.name.clone().expect("it has a name");
            api.patch(&name, &apply, &Patch::Apply(&object)).await.expect("the API server takes it");
        }
    }

    /// Returns the objects of an installation in this namespace.
    pub(crate) fn manifests(&self) -> Vec<Value> {
        self.installation(None).objects()
    }

    /// Returns the parameters of an installation in this namespace.
    pub(crate) fn installation(&self, instance: Option<Instance>) -> Installation {
        Installation { namespace: self.namespace.clone(), image: "registry.example/kiln:1".to_owned(), instance }
    }

    pub(crate) fn all<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns a client with the permissions of a service account of the namespace.
    pub(crate) async fn client_of(&self, account: &str) -> Client {
        Client::try_from(self.config_of(account).await).expect("a token needs no more")
    }

    /// Returns a client with the permissions of a service account, which connects to the address `way`.
    pub(crate) async fn client_by(&self, account: &str, way: SocketAddr) -> Client {
        let mut config = self.config_of(account).await;
        config.cluster_url = format!("https://{way}/").parse().expect("it is an address");
        Client::try_from(config).expect("a token needs no more")
    }

    /// Returns the address of the API server.
    pub(crate) fn api_server(&self) -> SocketAddr {
        let authority = self.config.cluster_url.authority().expect("it was written so");
        authority.as_str().parse().expect("it is an address")
    }

    async fn config_of(&self, account: &str) -> Config {
        let accounts: Api<ServiceAccount> = self.all();
        let asked = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(3_600), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let given: TokenRequest = accounts
            .create_subresource("token", account, &PostParams::default(), &asked)
            .await
            .expect("the service account is there");
        let token = given.status.expect("a token is given").token;
        let mut config = self.config.clone();
        config.auth_info = kube::config::AuthInfo { token: Some(token.into()), ..kube::config::AuthInfo::default() };
        config.default_namespace.clone_from(&self.namespace);
        config
    }

    /// Starts an operator in this process, with the permissions of an installed one.
    pub(crate) async fn operator(&self, identity: &str) -> Operator {
        let client = self.client_of("kiln-operator").await;
        let settings = OperatorSettings {
            namespace: Some(self.namespace.clone()),
            identity: identity.to_owned(),
            lease: Duration::from_secs(6),
        };
        let (tell, told) = oneshot::channel::<()>();
        let (namespace, clock) = (self.namespace.clone(), Arc::new(SystemClock::new()));
        let (told, random) = (Box::pin(async { drop(told.await) }), Arc::new(SystemRandom));
        let running = tokio::spawn(kubernetes::operator::run_with(client, namespace, settings, clock, random, told));
        Operator { tell, running }
    }

    /// Creates an instance called `dw`.
    pub(crate) async fn create(&self, more: Value) -> Result<Instance, kube::Error> {
        self.all().create(&PostParams::default(), &instance("dw", more)).await
    }

    /// Waits until an object satisfies a condition.
    pub(crate) async fn until<K>(&self, name: &str, is_so: impl Condition<K>) -> Option<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + 'static,
    {
        self.until_within(PATIENCE, name, is_so).await
    }

    /// Waits until an object satisfies a condition, for which Kubernetes may take minutes.
    pub(crate) async fn until_late<K>(&self, name: &str, is_so: impl Condition<K>) -> Option<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + 'static,
    {
        self.until_within(LONG_PATIENCE, name, is_so).await
    }

    async fn until_within<K>(&self, patience: Duration, name: &str, is_so: impl Condition<K>) -> Option<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + 'static,
    {
        // Boxed, because futures of watches are large and tests have many of them.
        let waiting = Box::pin(await_condition(self.all::<K>(), name, is_so));
        match tokio::time::timeout(patience, waiting).await {
            Ok(waited) => waited.expect("the API server can be watched"),
            Err(_) => {
                let is = self.all::<K>().get_opt(name).await;
                panic!("{name} does not satisfy the condition after {} s: {is:#?}", patience.as_secs())
            }
        }
    }

    /// Reports a pod as running, and as ready or not, in place of a kubelet.
    pub(crate) async fn say_ready(&self, pod: &str, is_ready: bool) {
        let ready = if is_ready { "True" } else { "False" };
        let status = json!({
            "status": {
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" }],
            },
        });
        let pods: Api<Pod> = self.all();
        pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(&status)).await.expect("the pod is there");
    }

    /// Reports a pod as running and ready.
    pub(crate) async fn say_ready_of(&self, pod: &Pod) {
        self.say_ready(&kube::ResourceExt::name_any(pod), true).await;
    }
}

/// Running operator.
pub(crate) struct Operator {
    tell: oneshot::Sender<()>,
    running: JoinHandle<Result<(), OperatorError>>,
}

impl Operator {
    /// Stops the operator like SIGTERM.
    pub(crate) async fn stop(self) {
        drop(self.tell);
        self.running.await.expect("it does not panic").expect("it ends well");
    }

    /// Kills the operator like SIGKILL.
    pub(crate) async fn kill(self) {
        self.running.abort();
        assert!(self.running.await.expect_err("it was ended").is_cancelled());
    }

    /// Waits until the operator ends by itself, and returns its result.
    pub(crate) async fn ended(self) -> Result<(), OperatorError> {
        self.running.await.expect("it does not panic")
    }
}

/// Returns whether a pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the annotations that restrict the pods of a namespace to its own nodes. Without such nodes, pods stay
/// pending.
fn of_own_nodes(namespace: &str) -> Value {
    let tolerated = json!([
        { "key": NAMESPACE_TAINT, "operator": "Equal", "value": namespace, "effect": "NoSchedule" },
    ]);
    json!({
        "scheduler.alpha.kubernetes.io/node-selector": format!("{NAMESPACE_TAINT}={namespace}"),
        "scheduler.alpha.kubernetes.io/defaultTolerations": tolerated.to_string(),
    })
}

/// Returns an instance with the required fields and `more` in its spec.
pub(crate) fn instance(name: &str, more: Value) -> Instance {
    let mut object = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "Instance",
        "metadata": { "name": name },
        "spec": {
            "image": "registry.example/kiln:1",
            "resources": { "cpu": "1", "memory": "1Gi" },
            "volume": { "size": "1Gi" },
        },
    });
    let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) else {
        panic!("an object is given")
    };
    spec.extend(more);
    serde_json::from_value(object).expect("it is an instance")
}

/// Returns the message with which the API server refused a request.
pub(crate) fn refusal<T: Debug>(answer: Result<T, kube::Error>) -> String {
    match answer {
        Err(kube::Error::Api(status)) => status.message.clone(),
        other => panic!("it was not refused: {other:?}"),
    }
}

//! `Instance`: a warehouse. One pod that serves SQL, with a volume for its catalog and a storage for its rows.

#![expect(
    unreachable_pub,
    reason = "the derived schemas copy each type into a block of their own, with its visibility"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Kiln warehouse: one pod that serves SQL, a volume for its catalog, a storage for its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kiln.dev",
    version = "v1alpha1",
    kind = "Instance",
    namespaced,
    category = "kiln",
    doc = "A Kiln warehouse: one pod that serves SQL, a volume for its catalog, a storage for its rows.",
    status = "InstanceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("an instance's name has at most 40 characters, begins with a letter and has only small letters, digits and -"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!has(self.restore) || has(self.storage.url)")
        .message("an instance is restored from the bucket that storage.url names"),
    validation = Rule::new("!has(self.restore) || (has(oldSelf.restore) && self.restore == oldSelf.restore)")
        .message("an instance is restored when it is made: delete it and its volume, and make it again with what it is to be restored to"),
    validation = Rule::new("has(self.storage.url) == has(oldSelf.storage.url) && (!has(self.storage.url) || self.storage.url == oldSelf.storage.url)")
        .message("the storage of an instance cannot be changed: its rows are there")
)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpec {
    /// The image with the program `kiln`. Another one is a new version: the pod is replaced.
    #[schemars(length(min = 1, max = 500))]
    pub image: String,
    /// Where rows are kept.
    #[serde(default)]
    pub storage: Storage,
    /// What the pod has of its node.
    pub resources: Resources,
    /// The volume of the catalog, its write-ahead log, caches and what queries spill.
    #[x_kube(validation = Rule::new("self.size == oldSelf.size && has(self.storageClassName) == has(oldSelf.storageClassName) \
        && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("the size and the class of an instance's volume cannot be changed"))]
    pub volume: Volume,
    /// What its storage had at a moment: an instance whose volume is empty begins with that, and not with nothing. Where its volume is not, this says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,
    /// By what its superuser is known.
    #[serde(default)]
    pub auth: Auth,
    /// The certificate that clients are shown.
    #[serde(default)]
    pub tls: Tls,
    /// How clients outside the cluster come to it.
    #[serde(default)]
    pub service_type: ServiceType,
    /// The service account of the pod, for clouds that give rights to one; the operator makes one without any where this is not set.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Whether nodes may be drained under it. A drain ends all sessions; where this is false it waits until somebody deletes the pod.
    #[serde(default)]
    pub evictable: bool,
    /// Any other options of `kiln serve`.
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
}

/// Where rows are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// s3://bucket/prefix, gs://bucket/prefix or az://container/prefix; the instance's volume where nothing is said.
    #[schemars(length(max = 1024), regex(pattern = "^(s3|gs|az)://.+$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A secret whose keys are the cloud's usual variables, as AWS_ACCESS_KEY_ID.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// What a pod has of its node: this, no less and no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Cores, as `4` or `500m`. Queries run on as many threads, rounded up.
    #[schemars(length(max = 12), regex(pattern = "^([0-9]+m|[0-9]+(\\.[0-9]{1,3})?)$"))]
    pub cpu: String,
    /// Memory, as `16Gi`. Queries share 60 % of it.
    #[schemars(length(max = 12), regex(pattern = "^[0-9]+(Mi|Gi|Ti|M|G|T)$"))]
    pub memory: String,
}

/// The volume of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// As `100Gi`.
    #[schemars(length(max = 12), regex(pattern = "^[0-9]+(Mi|Gi|Ti|M|G|T)$"))]
    pub size: String,
    /// The cluster's usual class where nothing is said.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// What becomes of the volume when the instance is deleted.
    #[serde(default)]
    pub when_deleted: VolumeRetention,
}

/// What becomes of a volume: kept, for an instance of the same name to find, or deleted with all that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VolumeRetention {
    #[default]
    Retain,
    Delete,
}

/// A moment of a warehouse that was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restore {
    /// A time, as `2026-01-31 12:00:00+00`, or the number of a snapshot; the newest moment where nothing is said.
    #[schemars(length(max = 63), regex(pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].+)?)$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// By what the superuser is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// A secret with the password of the role `kiln` in `password`, as those of the type kubernetes.io/basic-auth have it. Where nothing is said the operator
    /// makes one, called like the instance with `-superuser` after it.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// A certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!has(self.secretName) || !has(self.names)")
        .message("the names are those of the certificate in the secret")
)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// A secret of the type kubernetes.io/tls: a chain in `tls.crt`, its private key in `tls.key`. Where nothing is said the operator makes one, called like the
    /// instance with `-tls` after it, whose certificate the authority in the config map `kiln-ca` has signed.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// By what other names and addresses clients come than by those that Kubernetes gives the service and the pod.
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 253), regex(pattern = "^(\\*\\.)?[0-9A-Za-z:]([-.:0-9A-Za-z]*[0-9A-Za-z:])?$"))
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// How a service is reached: within the cluster, at a port of each node, or by an address of the cloud.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    #[default]
    ClusterIP,
    NodePort,
    LoadBalancer,
}

/// An option of `kiln serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!(self.name in ['config', 'data', 'http', 'kubernetes', 'listen', 'memory_mb', 'password_file', 'storage', 'superuser_password_file', 'threads', 'tls_cert', 'tls_key', 'worker_door', 'worker_launcher'])")
        .message("this setting follows from the other fields of the instance")
)]
pub struct Setting {
    /// As `kiln.toml` has it: `shutdown_grace`.
    #[schemars(length(max = 63), regex(pattern = "^[a-z][a-z_]*$"))]
    pub name: String,
    #[schemars(length(max = 1024))]
    pub value: String,
}

/// How an instance is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// The generation of the instance that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub phase: InstancePhase,
    /// It has begun with what its `restore` says: should its volume be lost, that is not what it goes on with.
    #[serde(default)]
    pub restored: bool,
    /// Where clients in the cluster connect, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How far an instance is: its pod starts, it serves, its pod is being replaced by one of another template, or it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstancePhase {
    #[default]
    Starting,
    Running,
    Upgrading,
    Stopping,
}

impl Instance {
    /// The value of a setting, where it has one.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.spec.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }
}

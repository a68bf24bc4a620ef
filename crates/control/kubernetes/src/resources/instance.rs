//! The resource `Instance`: a warehouse, with its pod, its volume and its storage.

#![expect(
    unreachable_pub,
    reason = "the derived schemas copy each type into a block of their own, with its visibility"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Kiln warehouse: one pod that serves SQL, a volume for its catalog, and storage for its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kiln.dev",
    version = "v1alpha1",
    kind = "Instance",
    namespaced,
    category = "kiln",
    doc = "A Kiln warehouse: one pod that serves SQL, a volume for its catalog, and storage for its rows.",
    status = "InstanceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("an instance's name has at most 40 characters, begins with a letter and has only lowercase letters, digits and -"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!has(self.restore) || has(self.storage.url)")
        .message("an instance is restored from the bucket that storage.url names"),
    validation = Rule::new("!has(self.restore) || (has(oldSelf.restore) && self.restore == oldSelf.restore)")
        .message("an instance is restored when it is created: delete it and its volume, and create it again with the restore that is wanted"),
    validation = Rule::new("has(self.storage.url) == has(oldSelf.storage.url) && (!has(self.storage.url) || self.storage.url == oldSelf.storage.url)")
        .message("the storage of an instance cannot be changed: its rows are stored there")
)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpec {
    /// Container image with the program `kiln`. Changing it replaces the pod.
    #[schemars(length(min = 1, max = 500))]
    pub image: String,
    /// Storage of the table data.
    #[serde(default)]
    pub storage: Storage,
    /// CPU and memory of the pod, as requests and as limits.
    pub resources: Resources,
    /// Volume for the catalog, its write-ahead log, caches and spill files.
    #[x_kube(validation = Rule::new("self.size == oldSelf.size && has(self.storageClassName) == has(oldSelf.storageClassName) \
        && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
        .message("the size and the class of an instance's volume cannot be changed"))]
    pub volume: Volume,
    /// Restores the warehouse from its storage if the volume is empty. Has no effect if the volume is not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,
    /// Password of the superuser.
    #[serde(default)]
    pub auth: Auth,
    /// Certificate that the server presents to clients.
    #[serde(default)]
    pub tls: Tls,
    /// Type of the service through which clients connect.
    #[serde(default)]
    pub service_type: ServiceType,
    /// Service account of the pod, for cloud permissions. By default the operator creates one without any.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Whether a node drain may evict the pod, which ends all sessions. If false, drains wait for its deletion.
    #[serde(default)]
    pub evictable: bool,
    /// Further options of `kiln serve`.
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
}

/// Storage of the table data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// URL, as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix. The default is the volume.
    #[schemars(length(max = 1024), regex(pattern = "^(s3|gs|az)://.+$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Secret whose keys are the cloud's environment variables for credentials, as AWS_ACCESS_KEY_ID.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// CPU and memory of a pod, as requests and as limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Cores, as `4` or `500m`. Queries run on as many threads, rounded up.
    #[schemars(length(max = 12), regex(pattern = "^([0-9]+m|[0-9]+(\\.[0-9]{1,3})?)$"))]
    pub cpu: String,
    /// Memory, as `16Gi`. Queries share 60 % of it.
    #[schemars(length(max = 12), regex(pattern = "^[0-9]+(Mi|Gi|Ti|M|G|T)$"))]
    pub memory: String,
}

/// Volume of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Size, as `100Gi`.
    #[schemars(length(max = 12), regex(pattern = "^[0-9]+(Mi|Gi|Ti|M|G|T)$"))]
    pub size: String,
    /// Storage class; by default, the default class of the Kubernetes cluster.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Whether the volume is retained or deleted with the instance.
    #[serde(default)]
    pub when_deleted: VolumeRetention,
}

/// Fate of a volume after its instance is deleted: retained for a new instance of the same name, or deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VolumeRetention {
    #[default]
    Retain,
    Delete,
}

/// Restore of a warehouse from its storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restore {
    /// Time, as `2026-01-31 12:00:00+00`, or number of a snapshot. The default is the newest snapshot.
    #[schemars(length(max = 63), regex(pattern = "^([0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].+)?)$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Authentication of the superuser.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// Secret with the password of the role `kiln` in the key `password`, as in the type kubernetes.io/basic-auth.
    /// By default the operator creates one, named after the instance with the suffix `-superuser`.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// TLS certificate of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!has(self.secretName) || !has(self.names)")
        .message("names cannot be set together with secretName: the certificate in the secret has its own names")
)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Secret of the type kubernetes.io/tls, with the certificate chain in `tls.crt` and the private key in `tls.key`.
    /// By default the operator creates one, named after the instance with the suffix `-tls`. Its certificate is signed
    /// by the authority in the config map `kiln-ca`.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Names and addresses for the certificate, besides those that Kubernetes gives the service and the pod.
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 253), regex(pattern = "^(\\*\\.)?[0-9A-Za-z:]([-.:0-9A-Za-z]*[0-9A-Za-z:])?$"))
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Type of a Kubernetes service: reachable in the cluster, on a port of each node, or by a load balancer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    #[default]
    ClusterIP,
    NodePort,
    LoadBalancer,
}

/// Option of `kiln serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!(self.name in ['config', 'data', 'http', 'kubernetes', 'listen', 'memory_mb', 'password_file', 'storage', 'superuser_password_file', 'threads', 'tls_cert', 'tls_key', 'worker_door', 'worker_launcher'])")
        .message("this setting follows from the other fields of the instance")
)]
pub struct Setting {
    /// Name of the option as in `kiln.toml`, for example `shutdown_grace`.
    #[schemars(length(max = 63), regex(pattern = "^[a-z][a-z_]*$"))]
    pub name: String,
    #[schemars(length(max = 1024))]
    pub value: String,
}

/// Observed state of an instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Generation of the instance that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub phase: InstancePhase,
    /// Whether `restore` was carried out. It is not repeated if the volume is lost later.
    #[serde(default)]
    pub restored: bool,
    /// Address for clients in the cluster, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Phase of an instance: its pod is starting, it serves, a changed template replaces its pod, or it is stopping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstancePhase {
    #[default]
    Starting,
    Running,
    Upgrading,
    Stopping,
}

impl Instance {
    /// Returns the value of a setting, or `None` if the spec does not set it.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.spec.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }
}

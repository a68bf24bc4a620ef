//! The resource `ComputeCluster`: a cluster of workers, as `CREATE CLUSTER` defines it.

#![expect(
    unreachable_pub,
    reason = "the derived schemas copy each type into a block of their own, with its visibility"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cluster of workers that run the queries of an instance. It has no workers only while it is suspended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kiln.dev",
    version = "v1alpha1",
    kind = "ComputeCluster",
    namespaced,
    category = "kiln",
    doc = "Cluster of workers that run the queries of an instance, as created by CREATE CLUSTER.",
    status = "ComputeClusterStatus",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.nodeCount",
        status_replicas_path = ".status.nodes",
        label_selector_path = ".status.selector"
    ),
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("a cluster's name in Kubernetes has at most 40 characters, begins with a letter and has only lowercase letters, digits and -"),
    printcolumn(name = "Instance", type_ = "string", json_path = ".spec.instance"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".spec.nodeCount"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyNodes"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ComputeClusterSpec {
    /// Name of the instance, in the same namespace.
    #[schemars(length(min = 1, max = 40))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("the instance of a cluster cannot be changed"))]
    pub instance: String,
    /// Name of the cluster in SQL. The default is the name of this object.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of workers while the cluster is not suspended.
    #[schemars(range(min = 1, max = 64))]
    #[serde(default = "default_node_count")]
    pub node_count: i32,
    /// Name of the workers' HardwareProfile, in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub hardware_instance: String,
    /// Name of the workload management (WLM) profile, which bounds the number of statements that run at a time.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default = "default_wlm_profile")]
    pub wlm_profile: String,
    /// Seconds without a statement after which the cluster is suspended. By default it never is.
    #[schemars(range(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_suspend: Option<i32>,
    /// Whether a statement for the suspended cluster resumes it.
    #[serde(default = "default_auto_resume")]
    pub auto_resume: bool,
    /// Percentage of a worker's disk that may be used for spill files.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_spill_pct: Option<i32>,
    /// Percentage of a worker's disk that its cache may use.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cache_pct: Option<i32>,
    /// Whether the cluster is suspended, that is, has no workers for now.
    #[serde(default)]
    pub suspended: bool,
}

/// Observed state of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComputeClusterStatus {
    /// Generation of the cluster that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub phase: ComputeClusterPhase,
    /// Number of worker pods that exist.
    #[serde(default)]
    pub nodes: i32,
    /// Number of worker pods that are ready.
    #[serde(default)]
    pub ready_nodes: i32,
    /// Label selector of the worker pods, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Phase of a cluster, as `sys.cluster` shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ComputeClusterPhase {
    #[default]
    Starting,
    Running,
    Resizing,
    Suspending,
    Suspended,
}

fn default_node_count() -> i32 {
    1
}

fn default_auto_resume() -> bool {
    true
}

fn default_wlm_profile() -> String {
    "default".to_owned()
}

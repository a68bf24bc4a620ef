//! `ComputeCluster`: a cluster of workers, as `CREATE CLUSTER` says it.

#![expect(
    unreachable_pub,
    reason = "the derived schemas copy each type into a block of their own, with its visibility"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Workers that run the queries of an instance, as CREATE CLUSTER makes them. It has none only while it is suspended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kiln.dev",
    version = "v1alpha1",
    kind = "ComputeCluster",
    namespaced,
    category = "kiln",
    doc = "Workers that run the queries of an instance, as CREATE CLUSTER makes them.",
    status = "ComputeClusterStatus",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.nodeCount",
        status_replicas_path = ".status.nodes",
        label_selector_path = ".status.selector"
    ),
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("a cluster's name in Kubernetes has at most 40 characters, begins with a letter and has only small letters, digits and -"),
    printcolumn(name = "Instance", type_ = "string", json_path = ".spec.instance"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".spec.nodeCount"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyNodes"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ComputeClusterSpec {
    /// The name of the instance in the same namespace.
    #[schemars(length(min = 1, max = 40))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("a cluster stays with its instance"))]
    pub instance: String,
    /// Its name in SQL; that of this object where nothing is said.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Workers while it is awake.
    #[schemars(range(min = 1, max = 64))]
    #[serde(default = "one")]
    pub node_count: i32,
    /// What its workers run on: the name of a HardwareProfile in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub hardware_instance: String,
    /// Who may run how much on it.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default = "usual_profile")]
    pub wlm_profile: String,
    /// Seconds without a statement after which it is suspended; never where nothing is said.
    #[schemars(range(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_suspend: Option<i32>,
    /// Whether a statement for it wakes it.
    #[serde(default = "yes")]
    pub auto_resume: bool,
    /// How much of its disk a worker may spill to, in percent.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_spill_pct: Option<i32>,
    /// How much of its disk a worker's cache may take, in percent.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cache_pct: Option<i32>,
    /// It has no workers for now.
    #[serde(default)]
    pub suspended: bool,
}

/// How a cluster is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComputeClusterStatus {
    /// The generation of the cluster that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub phase: ComputeClusterPhase,
    /// Workers that there are.
    #[serde(default)]
    pub nodes: i32,
    /// Those of them that get statements.
    #[serde(default)]
    pub ready_nodes: i32,
    /// Which pods are its workers, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How far a cluster is on its way to what it should be, as `sys.cluster` says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ComputeClusterPhase {
    #[default]
    Starting,
    Running,
    Resizing,
    Suspending,
    Suspended,
}

fn one() -> i32 {
    1
}

fn yes() -> bool {
    true
}

fn usual_profile() -> String {
    "default".to_owned()
}

//! The resource `HardwareProfile`: hardware of workers, which HARDWARE_INSTANCE names in SQL.

#![expect(
    unreachable_pub,
    reason = "the derived schemas copy each type into a block of their own, with its visibility"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hardware of workers: CPU and memory, the nodes that they may run on, and the volume for their cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kiln.dev",
    version = "v1alpha1",
    kind = "HardwareProfile",
    namespaced,
    category = "kiln",
    doc = "Hardware of workers: CPU and memory, the nodes that they may run on, and the volume for their cache.",
    derive = "PartialEq",
    printcolumn = r#"{"name": "CPU", "type": "string", "jsonPath": ".spec.cpu"}"#,
    printcolumn = r#"{"name": "Memory", "type": "string", "jsonPath": ".spec.memory"}"#,
    printcolumn = r#"{"name": "Cache", "type": "string", "jsonPath": ".spec.cacheVolume.size"}"#,
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct HardwareProfileSpec {
    /// Cores of a worker, as `4` or `500m`.
    #[schemars(length(max = 12), regex(pattern = "^([0-9]+m|[0-9]+(\\.[0-9]{1,3})?)$"))]
    pub cpu: String,
    /// Memory of a worker, as `16Gi`.
    #[schemars(length(max = 12), regex(pattern = "^[0-9]+(Mi|Gi|Ti|M|G|T)$"))]
    pub memory: String,
    /// Volume of a worker, for its cache and spill files.
    pub cache_volume: CacheVolume,
    /// Labels that a node must have to run workers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that workers tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// Volume of a worker, for its cache and spill files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheVolume {
    /// Size, as `100Gi`.
    #[schemars(length(max = 12), regex(pattern = "^[0-9]+(Mi|Gi|Ti|M|G|T)$"))]
    pub size: String,
    /// Storage class; by default, the default class of the Kubernetes cluster.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

//! `HardwareProfile`: what workers can run on, as HARDWARE_INSTANCE names it.

#![expect(
    unreachable_pub,
    reason = "the derived schemas copy each type into a block of their own, with its visibility"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What workers can run on: how much of a node, of which nodes, and with which disk for their cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kiln.dev",
    version = "v1alpha1",
    kind = "HardwareProfile",
    namespaced,
    category = "kiln",
    doc = "What workers can run on: how much of a node, of which nodes, and with which disk for their cache.",
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
    /// The disk of a worker, for what it caches and spills.
    pub cache_volume: CacheVolume,
    /// Labels that its nodes have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that it does not mind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// The disk of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheVolume {
    /// As `100Gi`.
    #[schemars(length(max = 12), regex(pattern = "^[0-9]+(Mi|Gi|Ti|M|G|T)$"))]
    pub size: String,
    /// The cluster's usual class where nothing is said.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

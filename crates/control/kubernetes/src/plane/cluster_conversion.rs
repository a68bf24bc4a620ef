//! Conversion between clusters of SQL and `ComputeCluster`s.

use std::collections::{BTreeMap, BTreeSet};

use cluster_model::desired_state::{ExternalCluster, Grant};
use cluster_model::{Author, ClusterId, ClusterSpec, ClusterState, WorkerOptions};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use types::Oid;
use xxhash_rust::xxh3::xxh3_64;

use crate::compute_cluster::CLUSTER_LABEL;
use crate::resources::{ComputeCluster, ComputeClusterSpec};

/// Field manager of changes by SQL statements.
pub const SQL_MANAGER: &str = "kiln-sql";
/// Annotation with the role that last changed the cluster by a statement.
pub const MODIFIED_BY_ANNOTATION: &str = "kiln.dev/modified-by";
/// Annotation with the id of the cluster.
pub(super) const CLUSTER_ID_ANNOTATION: &str = "kiln.dev/cluster-id";
/// Annotation with the OID of the owner.
const OWNER_ANNOTATION: &str = "kiln.dev/owner";
/// Annotation with the privileges granted on the cluster, as JSON.
const GRANTS_ANNOTATION: &str = "kiln.dev/grants";
/// Value of [`MODIFIED_BY_ANNOTATION`] for changes by the instance itself; no role has this name.
const INSTANCE_AUTHOR: &str = "(the instance)";
/// Longest part of a cluster's name in the name of its object.
const NAME_CHARACTERS_MAX: usize = 28;

/// Returns the name of a new cluster's object: a prefix of the cluster's name and a hash of its id, so that it is
/// unique. A rename of the cluster does not change it.
pub(super) fn object_name(instance: &str, id: ClusterId, name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|character| match character.to_ascii_lowercase() {
            plain @ ('a'..='z' | '0'..='9') => plain,
            _ => '-',
        })
        .collect();
    let plain = plain.trim_start_matches(|character: char| !character.is_ascii_lowercase());
    let plain = plain.get(..NAME_CHARACTERS_MAX).unwrap_or(plain).trim_end_matches('-');
    let plain = if plain.is_empty() { "cluster" } else { plain };
    let mark = xxh3_64(format!("{instance}/{id}").as_bytes());
    format!("{plain}-{:08x}", mark >> 32)
}

/// Returns the ComputeCluster of a new cluster.
pub(super) fn new_object(state: &ClusterState, instance: &str, author: &Author) -> ComputeCluster {
    let mut object =
        ComputeCluster::new(&object_name(instance, state.id, &state.spec.name), object_spec(state, instance));
    object.metadata.annotations = Some(annotations(state, author));
    object.metadata.labels = Some(BTreeMap::from([(crate::instance::INSTANCE_LABEL.to_owned(), instance.to_owned())]));
    object
}

/// Returns the merge patch that changes a ComputeCluster from `before` to `after`. It contains only the fields that
/// differ, because others may have changed the remaining ones. Returns `None` if no difference concerns the object.
pub(super) fn merge_patch(
    before: &ClusterState,
    after: &ClusterState,
    instance: &str,
    author: &Author,
) -> Option<Value> {
    let fields = |state: &ClusterState| match serde_json::to_value(object_spec(state, instance)) {
        Ok(Value::Object(fields)) => fields,
        other => unreachable!("a ComputeClusterSpec serialized to something other than an object: {other:?}"),
    };
    let (before_fields, after_fields) = (fields(before), fields(after));
    let names: BTreeSet<&String> = before_fields.keys().chain(after_fields.keys()).collect();
    let different: Map<String, Value> = names
        .into_iter()
        .filter(|name| before_fields.get(*name) != after_fields.get(*name))
        .map(|name| (name.clone(), after_fields.get(name).cloned().unwrap_or(Value::Null)))
        .collect();
    let is_same = different.is_empty() && before.grants == after.grants && before.spec.owner == after.spec.owner;
    (!is_same).then(|| json!({ "metadata": { "annotations": annotations(after, author) }, "spec": different }))
}

/// Returns the merge patch that annotates an object that others created with its cluster id.
pub(super) fn id_patch(id: ClusterId) -> Value {
    json!({ "metadata": { "annotations": { CLUSTER_ID_ANNOTATION: id.to_string() } } })
}

fn object_spec(state: &ClusterState, instance: &str) -> ComputeClusterSpec {
    // Destructured, so that a new option does not compile until it has a field in the resource.
    let ClusterSpec { name, node_count, hardware_instance, wlm_profile, auto_suspend, auto_resume, worker, owner: _ } =
        &state.spec;
    let WorkerOptions { max_spill_pct, max_cache_pct } = worker;
    let small = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    ComputeClusterSpec {
        instance: instance.to_owned(),
        name: Some(name.clone()),
        node_count: small(*node_count),
        hardware_instance: hardware_instance.clone(),
        wlm_profile: wlm_profile.clone(),
        auto_suspend: auto_suspend.map(small),
        auto_resume: *auto_resume,
        max_spill_pct: max_spill_pct.map(i32::from),
        max_cache_pct: max_cache_pct.map(i32::from),
        suspended: state.suspended,
    }
}

fn annotations(state: &ClusterState, author: &Author) -> BTreeMap<String, String> {
    let grants = serde_json::to_string(&state.grants).expect("grants serialize to JSON");
    BTreeMap::from([
        (MODIFIED_BY_ANNOTATION.to_owned(), author.name().unwrap_or(INSTANCE_AUTHOR).to_owned()),
        (CLUSTER_ID_ANNOTATION.to_owned(), state.id.to_string()),
        (OWNER_ANNOTATION.to_owned(), state.spec.owner.to_string()),
        (GRANTS_ANNOTATION.to_owned(), grants),
    ])
}

/// Returns the cluster id in an object's annotation.
pub(super) fn cluster_id(object: &ComputeCluster) -> Option<ClusterId> {
    object.annotations().get(CLUSTER_ID_ANNOTATION)?.parse().ok().map(ClusterId)
}

/// Converts an object to a cluster. `owner` owns the cluster if no statement has created it.
pub(super) fn to_cluster(object: &ComputeCluster, owner: Oid) -> ExternalCluster {
    let spec = &object.spec;
    let number = |value: i32| u32::try_from(value).unwrap_or(0);
    let percent = |value: i32| u8::try_from(value).unwrap_or(0);
    let owner = object.annotations().get(OWNER_ANNOTATION).and_then(|owner| owner.parse().ok()).map_or(owner, Oid);
    let grants: Option<BTreeSet<Grant>> =
        object.annotations().get(GRANTS_ANNOTATION).and_then(|grants| serde_json::from_str(grants).ok());
    ExternalCluster {
        id: cluster_id(object),
        spec: ClusterSpec {
            name: spec.name.clone().unwrap_or_else(|| object.name_any()),
            node_count: number(spec.node_count),
            hardware_instance: spec.hardware_instance.clone(),
            wlm_profile: spec.wlm_profile.clone(),
            auto_suspend: spec.auto_suspend.map(number),
            auto_resume: spec.auto_resume,
            worker: WorkerOptions {
                max_spill_pct: spec.max_spill_pct.map(percent),
                max_cache_pct: spec.max_cache_pct.map(percent),
            },
            owner,
        },
        suspended: spec.suspended,
        grants: grants.unwrap_or_default(),
        changed_by: last_modified_by(object),
        worker_count_changed_by: last_scaled_by(object),
    }
}

/// Returns who last changed the spec of the object: the role of a statement, or the field manager of another client.
fn last_modified_by(object: &ComputeCluster) -> Option<String> {
    // Times have a resolution of seconds. On a tie, the change is not by the statement, because those are known
    // already.
    let last =
        spec_field_entries(object).max_by_key(|entry| (entry.time.as_ref().map(|time| time.0), !is_sql(entry)))?;
    author_name(object, last)
}

/// Returns who last changed the node count: the field manager that owns the field. The API server records no time for a
/// change by the scale subresource, so another manager takes precedence over the statement.
fn last_scaled_by(object: &ComputeCluster) -> Option<String> {
    let says_so = |entry: &&ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer("/f:spec/f:nodeCount").is_some())
    };
    let last = spec_field_entries(object)
        .filter(says_so)
        .max_by_key(|entry| (!is_sql(entry), entry.time.as_ref().map(|time| time.0)))?;
    author_name(object, last)
}

fn spec_field_entries(object: &ComputeCluster) -> impl Iterator<Item = &ManagedFieldsEntry> {
    let says_of_spec = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some());
        fields && entry.subresource.as_deref() != Some("status")
    };
    object.metadata.managed_fields.iter().flatten().filter(says_of_spec)
}

fn is_sql(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(SQL_MANAGER)
}

fn author_name(object: &ComputeCluster, entry: &ManagedFieldsEntry) -> Option<String> {
    if is_sql(entry) {
        return object.annotations().get(MODIFIED_BY_ANNOTATION).filter(|name| *name != INSTANCE_AUTHOR).cloned();
    }
    entry.manager.as_ref().map(|manager| format!("{manager} (Kubernetes)"))
}

/// Returns the name of the ComputeCluster in a pod's labels.
pub(super) fn cluster_label(labels: &BTreeMap<String, String>) -> Option<&String> {
    labels.get(CLUSTER_LABEL)
}

use k8s_openapi::jiff::Timestamp;
use kube::CustomResourceExt;

use super::*;
use crate::desired_object::{assert_golden, to_yaml};

#[test]
fn definitions_are_those_of_the_golden_files() {
    for definition in custom_resource_definitions() {
        let value = serde_json::to_value(&definition).expect("definitions serialise");
        assert_golden(&format!("{}.yaml", definition.spec.names.plural), &to_yaml(&[value]));
    }
}

#[test]
fn clusters_scale_by_their_node_count() {
    let definition = ComputeCluster::crd();
    let version = definition.spec.versions.first().expect("there is a version");
    let scale = version.subresources.as_ref().and_then(|resources| resources.scale.as_ref()).expect("it scales");
    assert_eq!(scale.spec_replicas_path, ".spec.nodeCount");
    assert_eq!(scale.status_replicas_path, ".status.nodes");
}

#[test]
fn conditions_remember_since_when() {
    let at = |second| Timestamp::from_second(second).expect("a small number");
    let report = |holds, reason| ConditionState { is_true: holds, reason, message: "it is so".to_owned() };
    let first = updated_condition(&[], READY, report(false, "PodStarts"), Some(1), at(10));
    assert_eq!(first.last_transition_time.0, at(10));
    let same = updated_condition(std::slice::from_ref(&first), READY, report(false, "PodFails"), Some(2), at(20));
    assert_eq!((same.last_transition_time.0, same.reason.as_str()), (at(10), "PodFails"));
    let other = updated_condition(&[first], READY, report(true, "PodReady"), Some(2), at(30));
    assert_eq!((other.last_transition_time.0, other.status.as_str()), (at(30), "True"));
}

#[test]
fn long_messages_are_cut_between_characters() {
    let report = ConditionState { is_true: false, reason: "Failed", message: "ä".repeat(5_000) };
    let cut = updated_condition(&[], RECONCILED, report, None, Timestamp::UNIX_EPOCH);
    assert_eq!(cut.message.len(), 4_096);
}

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::desired_object::{assert_golden, to_yaml};
use crate::resources::{InstancePhase, InstanceSpec, READY, RECONCILED, Setting};

/// Returns an instance as read from the API server, with the required fields and `more` in its spec.
fn instance(more: Value) -> Instance {
    let mut spec = json!({
        "image": "registry.example/kiln:1",
        "resources": { "cpu": "4", "memory": "16Gi" },
        "volume": { "size": "100Gi" },
    });
    let (Value::Object(spec_fields), Value::Object(more)) = (&mut spec, more) else { panic!("an object is given") };
    spec_fields.extend(more);
    let spec: InstanceSpec = serde_json::from_value(spec).expect("the spec is one");
    let mut instance = Instance::new("dw", spec);
    instance.metadata.namespace = Some("warehouses".to_owned());
    instance.metadata.uid = Some("0b6f8e0e-0000-4000-8000-000000000001".to_owned());
    instance.metadata.generation = Some(3);
    instance
}

fn everything() -> Instance {
    instance(json!({
        "storage": { "url": "s3://bucket/dw", "secretName": "bucket" },
        "volume": { "size": "200Gi", "storageClassName": "fast", "whenDeleted": "Delete" },
        "restore": { "to": "2026-01-31 12:00:00+00" },
        "auth": { "secretName": "boss" },
        "tls": { "secretName": "cert" },
        "serviceType": "LoadBalancer",
        "serviceAccountName": "cloud-identity",
        "evictable": true,
        "settings": [{ "name": "shutdown_grace", "value": "120" }, { "name": "log_format", "value": "text" }],
    }))
}

fn made(instance: &Instance) -> Vec<Value> {
    desired_objects(instance).expect("its amounts are amounts").into_iter().map(|object| object.value).collect()
}

fn arguments(instance: &Instance) -> Vec<String> {
    let set = stateful_set::stateful_set(instance).expect("its amounts are amounts").spec.expect("it has a spec");
    let pod = set.template.spec.expect("its pod has a spec");
    pod.containers.into_iter().next().and_then(|container| container.args).expect("its container has arguments")
}

#[test]
fn a_plain_instance_is_made_of_these_objects() {
    assert_golden("instance-plain.yaml", &to_yaml(&made(&instance(json!({})))));
}

#[test]
fn an_instance_with_everything_is_made_of_these_objects() {
    assert_golden("instance-everything.yaml", &to_yaml(&made(&everything())));
}

#[test]
fn every_object_is_owned_and_of_a_kind_that_is_looked_for() {
    let kinds = owned_kinds().map(|kind| kind.kind);
    for object in desired_objects(&instance(json!({}))).expect("its amounts are amounts") {
        assert!(kinds.contains(&object.resource.kind), "{}", object.resource.kind);
        assert_eq!(object.value["metadata"]["labels"][INSTANCE_LABEL], "dw");
        let owner = &object.value["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["name"], &owner["controller"]),
            (&json!("Instance"), &json!("dw"), &json!(true))
        );
    }
}

#[test]
fn a_new_image_is_the_only_change_it_makes() {
    let before = made(&instance(json!({})));
    let after = made(&instance(json!({ "image": "registry.example/kiln:2" })));
    let changed: Vec<&Value> =
        before.iter().zip(&after).filter(|(before, after)| before != after).map(|(_, after)| after).collect();
    assert_eq!(changed.len(), 1, "one object");
    let mut same = changed[0].clone();
    assert_eq!(same["kind"], "StatefulSet");
    same["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/kiln:1");
    let set = before.iter().find(|object| object["kind"] == "StatefulSet").expect("there is one");
    assert_eq!(same["spec"], set["spec"]);
}

#[test]
fn what_does_not_concern_the_pod_does_not_restart_it() {
    let template = |instance: &Instance| {
        let made = made(instance);
        made.into_iter().find(|object| object["kind"] == "StatefulSet").expect("there is one")["spec"]["template"]
            .take()
    };
    let more = json!({
        "serviceType": "LoadBalancer",
        "evictable": true,
        "volume": { "size": "100Gi", "whenDeleted": "Delete" },
    });
    assert_eq!(template(&instance(json!({}))), template(&instance(more)));
}

#[test]
fn threads_and_memory_follow_from_the_resources() {
    let of = |cpu: &str, memory: &str| {
        let arguments = arguments(&instance(json!({ "resources": { "cpu": cpu, "memory": memory } })));
        let after = |option: &str| {
            let at = arguments.iter().position(|argument| argument == option).expect("the option is there");
            arguments[at + 1].clone()
        };
        (after("--threads"), after("--memory-mb"))
    };
    assert_eq!(of("4", "16Gi"), ("4".to_owned(), "9830".to_owned()));
    assert_eq!(of("500m", "1000M"), ("1".to_owned(), "572".to_owned()));
    assert_eq!(of("1.5", "1Gi"), ("2".to_owned(), "614".to_owned()));
}

#[test]
fn a_warehouse_is_restored_before_its_server_starts_and_only_where_that_was_said() {
    let before = |restore: Value| {
        let made = made(&instance(json!({ "storage": { "url": "s3://bucket/dw" }, "restore": restore })));
        let set = made.into_iter().find(|object| object["kind"] == "StatefulSet").expect("there is one");
        set["spec"]["template"]["spec"]["initContainers"][0]["args"].clone()
    };
    assert_eq!(before(json!(null)), json!(null));
    let usual = json!(["restore", "--kubernetes", "dw", "--data", "/var/lib/kiln/data", "--storage", "s3://bucket/dw"]);
    assert_eq!(before(json!({})), usual);
    let mut to_a_moment = usual;
    to_a_moment.as_array_mut().expect("it is one").extend([json!("--to"), json!("4711")]);
    assert_eq!(before(json!({ "to": "4711" })), to_a_moment);
}

#[test]
fn amounts_that_are_none_are_named() {
    let no_cores = instance(json!({ "resources": { "cpu": "0", "memory": "1Gi" } }));
    let invalid = desired_objects(&no_cores).expect_err("a pod needs cores");
    assert_eq!(invalid.to_string(), "resources.cpu \"0\" is not a valid Kubernetes quantity");
}

#[test]
fn the_pod_has_the_time_that_its_end_may_take() {
    let grace = |settings: Vec<Setting>| {
        let mut instance = instance(json!({}));
        instance.spec.settings = settings;
        let set = stateful_set::stateful_set(&instance).expect("its amounts are amounts").spec.expect("it has a spec");
        set.template.spec.and_then(|pod| pod.termination_grace_period_seconds).expect("it is said")
    };
    let setting = |value: &str| vec![Setting { name: "shutdown_grace".to_owned(), value: value.to_owned() }];
    assert_eq!(grace(Vec::new()), 60);
    assert_eq!(grace(setting("600")), 650);
}

fn pods(generation: i64, observed: i64, revisions: (&str, &str), ready: i32) -> StatefulSet {
    let mut set = StatefulSet::default();
    set.metadata.generation = Some(generation);
    set.status = Some(StatefulSetStatus {
        replicas: 1,
        observed_generation: Some(observed),
        current_revision: Some(revisions.0.to_owned()),
        update_revision: Some(revisions.1.to_owned()),
        ready_replicas: Some(ready),
        ..StatefulSetStatus::default()
    });
    set
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number")
}

#[test]
fn the_phase_follows_the_pod() {
    let instance = instance(json!({}));
    let phase = |pods: Option<&StatefulSet>| compute_status(&instance, pods, &ReconcileOutcome::Applied, at(0)).phase;
    assert_eq!(phase(None), InstancePhase::Starting);
    assert_eq!(phase(Some(&StatefulSet::default())), InstancePhase::Starting);
    assert_eq!(phase(Some(&pods(1, 1, ("a", "a"), 0))), InstancePhase::Starting);
    assert_eq!(phase(Some(&pods(1, 1, ("a", "a"), 1))), InstancePhase::Running);
    assert_eq!(phase(Some(&pods(2, 1, ("a", "a"), 1))), InstancePhase::Upgrading, "not seen yet");
    assert_eq!(phase(Some(&pods(2, 2, ("a", "b"), 1))), InstancePhase::Upgrading);
    assert_eq!(phase(Some(&pods(2, 2, ("a", "b"), 0))), InstancePhase::Upgrading);
    assert_eq!(phase(Some(&pods(2, 2, ("b", "b"), 1))), InstancePhase::Running);
}

#[test]
fn a_status_that_says_the_same_is_the_same() {
    let mut instance = instance(json!({}));
    let ready = pods(1, 1, ("a", "a"), 1);
    let first = compute_status(&instance, Some(&ready), &ReconcileOutcome::Applied, at(10));
    instance.status = Some(first.clone());
    assert_eq!(
        compute_status(&instance, Some(&ready), &ReconcileOutcome::Applied, at(20)),
        first,
        "or it would be written for ever"
    );
    let failed =
        compute_status(&instance, Some(&ready), &ReconcileOutcome::NotApplied("no right to".to_owned()), at(30));
    let conditions =
        |kind: &str| failed.conditions.iter().find(|condition| condition.type_ == kind).expect("it is there");
    assert_eq!(conditions(READY).status, "True", "it serves all the same");
    assert_eq!(
        (conditions(RECONCILED).status.as_str(), conditions(RECONCILED).message.as_str()),
        ("False", "no right to")
    );
    assert_eq!(failed.endpoint.as_deref(), Some("dw.warehouses.svc:5432"));
    assert_eq!(failed.observed_generation, Some(3));
}

#[test]
fn an_instance_lives_step_by_step() {
    let mut instance = instance(json!({}));
    let there = StatefulSet::default();
    let mut ending = StatefulSet::default();
    ending.metadata.deletion_timestamp = Some(Time(at(1)));

    assert_eq!(next_step(&instance, None), InstanceStep::AddFinalizer);
    instance.metadata.finalizers = Some(vec!["somebody.else/too".to_owned()]);
    assert_eq!(next_step(&instance, None), InstanceStep::AddFinalizer);
    instance.metadata.finalizers = Some(vec!["somebody.else/too".to_owned(), FINALIZER.to_owned()]);
    assert_eq!(next_step(&instance, None), InstanceStep::Apply);
    assert_eq!(next_step(&instance, Some(&there)), InstanceStep::Apply);

    instance.metadata.deletion_timestamp = Some(Time(at(1)));
    assert_eq!(next_step(&instance, Some(&there)), InstanceStep::DeleteStatefulSet);
    assert_eq!(next_step(&instance, Some(&ending)), InstanceStep::AwaitPodEnd);
    assert_eq!(next_step(&instance, None), InstanceStep::RemoveFinalizer);
    instance.metadata.finalizers = Some(vec!["somebody.else/too".to_owned()]);
    assert_eq!(next_step(&instance, Some(&there)), InstanceStep::Nothing);
    assert_eq!(
        compute_status(&instance, Some(&there), &ReconcileOutcome::Applied, at(2)).phase,
        InstancePhase::Stopping
    );
}

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::desired_object::{assert_golden, to_yaml};
use crate::instance::{ReconcileOutcome, desired_objects as instance_objects};
use crate::resources::{ComputeClusterPhase, READY, RECONCILED};

fn instance_of(more: Value) -> Instance {
    let mut object = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "Instance",
        "metadata": { "name": "dw", "namespace": "warehouses", "uid": "0b6f8e0e-0000-4000-8000-000000000001" },
        "spec": {
            "image": "registry.example/kiln:1",
            "storage": { "url": "s3://bucket/dw", "secretName": "bucket" },
            "resources": { "cpu": "4", "memory": "16Gi" },
            "volume": { "size": "100Gi" },
        },
    });
    extend(&mut object["spec"], more);
    serde_json::from_value(object).expect("it is an instance")
}

fn hardware(more: Value) -> HardwareProfile {
    let mut object = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "HardwareProfile",
        "metadata": { "name": "small", "namespace": "warehouses" },
        "spec": {
            "cpu": "8",
            "memory": "64Gi",
            "cacheVolume": { "size": "500Gi", "storageClassName": "local-nvme" },
            "nodeSelector": { "kiln.dev/workers": "yes" },
            "tolerations": [{ "key": "kiln.dev/workers", "operator": "Exists", "effect": "NoSchedule" }],
        },
    });
    extend(&mut object["spec"], more);
    serde_json::from_value(object).expect("it is a profile")
}

fn cluster(more: Value) -> ComputeCluster {
    let mut object = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "ComputeCluster",
        "metadata": {
            "name": "etl",
            "namespace": "warehouses",
            "uid": "0b6f8e0e-0000-4000-8000-000000000002",
            "generation": 3,
        },
        "spec": { "instance": "dw", "hardwareInstance": "small", "nodeCount": 3 },
    });
    extend(&mut object["spec"], more);
    serde_json::from_value(object).expect("it is a cluster")
}

fn extend(spec: &mut Value, more: Value) {
    let (Value::Object(spec), Value::Object(more)) = (spec, more) else { panic!("objects are given") };
    spec.extend(more);
}

/// Returns the desired objects of a new cluster.
fn made(cluster: &ComputeCluster, instance: &Instance, hardware: &HardwareProfile) -> Vec<Value> {
    let around = ClusterDependencies::new(cluster, Some(instance), Some(hardware), None).expect("it is possible");
    desired_objects(cluster, &around, None).into_iter().map(|object| object.value).collect()
}

fn set_of(made: &[Value]) -> &Value {
    made.iter().find(|object| object["kind"] == "StatefulSet").expect("there is one")
}

/// Returns the StatefulSet as the API server reports it once its controller has processed it and all pods are ready.
fn observed(set: &Value) -> StatefulSet {
    let mut set: StatefulSet = serde_json::from_value(set.clone()).expect("it is one");
    set.metadata.generation = Some(1);
    set.status = Some(StatefulSetStatus {
        replicas: 3,
        observed_generation: Some(1),
        current_revision: Some("a".to_owned()),
        update_revision: Some("a".to_owned()),
        ready_replicas: Some(3),
        ..StatefulSetStatus::default()
    });
    set
}

fn plain() -> Value {
    json!({})
}

#[test]
fn a_cluster_is_made_of_these_objects() {
    let made = made(&cluster(plain()), &instance_of(plain()), &hardware(plain()));
    assert_golden("cluster.yaml", &to_yaml(&made));
}

#[test]
fn every_object_is_owned_and_of_a_kind_that_is_looked_for() {
    let kinds = owned_kinds().map(|kind| kind.kind);
    for object in made(&cluster(plain()), &instance_of(plain()), &hardware(plain())) {
        assert!(kinds.iter().any(|kind| object["kind"] == kind.as_str()), "{}", object["kind"]);
        assert_eq!(object["metadata"]["labels"][CLUSTER_LABEL], "etl");
        let owner = &object["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["name"]), (&json!("ComputeCluster"), &json!("etl")));
    }
}

#[test]
fn what_does_not_concern_the_pods_rolls_none() {
    let (instance, hardware) = (instance_of(plain()), hardware(plain()));
    let before = made(&cluster(plain()), &instance, &hardware);
    let more = json!({
        "nodeCount": 5,
        "name": "another name",
        "wlmProfile": "batch",
        "autoSuspend": 60,
        "autoResume": false,
        "maxSpillPct": 10,
        "maxCachePct": 20,
        "suspended": true,
    });
    let after = made(&cluster(more), &instance, &hardware);
    assert_eq!(set_of(&before)["spec"]["template"], set_of(&after)["spec"]["template"]);
    let others: Value = json!({ "settings": [{ "name": "retention", "value": "60" }], "serviceType": "LoadBalancer" });
    let after = made(&cluster(plain()), &instance_of(others), &hardware);
    assert_eq!(before, after, "what is the instance's alone is not its workers'");
}

#[test]
fn a_cluster_has_its_workers_while_it_is_awake() {
    let (instance, hardware) = (instance_of(plain()), hardware(plain()));
    let replicas = |more: Value| set_of(&made(&cluster(more), &instance, &hardware))["spec"]["replicas"].clone();
    assert_eq!(replicas(plain()), 3);
    assert_eq!(replicas(json!({ "nodeCount": 64 })), 64);
    assert_eq!(replicas(json!({ "nodeCount": 64, "suspended": true })), 0);
}

#[test]
fn workers_get_a_new_image_after_their_instance() {
    let (cluster, hardware) = (cluster(plain()), hardware(plain()));
    let old = instance_of(plain());
    let present = observed(set_of(&made(&cluster, &old, &hardware)));
    let new = instance_of(json!({ "image": "registry.example/kiln:2" }));
    let pods_of = |instance: &Instance| {
        let objects = instance_objects(instance).expect("its amounts are amounts");
        let set = objects.into_iter().find(|object| object.resource.kind == "StatefulSet").expect("there is one");
        observed(&set.value)
    };
    let image = |instance_pods: &StatefulSet| {
        let around = ClusterDependencies::new(&cluster, Some(&new), Some(&hardware), Some(instance_pods))
            .expect("it is possible");
        let objects = desired_objects(&cluster, &around, Some(&present));
        let values: Vec<Value> = objects.into_iter().map(|object| object.value).collect();
        set_of(&values)["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(image(&pods_of(&old)), "registry.example/kiln:1", "its template is still the old one");
    let mut rolling = pods_of(&new);
    rolling.status.as_mut().expect("it has one").update_revision = Some("b".to_owned());
    assert_eq!(image(&rolling), "registry.example/kiln:1", "its pod is still the old one");
    assert_eq!(image(&pods_of(&new)), "registry.example/kiln:2");
}

#[test]
fn volumes_of_a_set_that_is_there_stay_as_they_were_made() {
    let (cluster, instance) = (cluster(plain()), instance_of(plain()));
    let before = hardware(plain());
    let present = observed(set_of(&made(&cluster, &instance, &before)));
    let after = hardware(json!({ "cpu": "16", "cacheVolume": { "size": "1Ti" } }));
    let around = ClusterDependencies::new(&cluster, Some(&instance), Some(&after), None).expect("it is possible");
    let objects = desired_objects(&cluster, &around, Some(&present));
    let values: Vec<Value> = objects.into_iter().map(|object| object.value).collect();
    let set = set_of(&values);
    assert_eq!(
        set["spec"]["volumeClaimTemplates"],
        set_of(&made(&cluster, &instance, &before))["spec"]["volumeClaimTemplates"]
    );
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"], "16");
}

#[test]
fn what_cannot_have_workers_says_why() {
    let (cluster, instance, hardware) = (cluster(plain()), instance_of(plain()), hardware(plain()));
    let why = |instance: Option<&Instance>, hardware: Option<&HardwareProfile>| {
        ClusterDependencies::new(&cluster, instance, hardware, None).expect_err("it cannot").to_string()
    };
    assert_eq!(why(None, Some(&hardware)), "there is no instance dw");
    assert_eq!(why(Some(&instance), None), "there is no HardwareProfile small");
    let alone = instance_of(json!({ "storage": {} }));
    assert!(why(Some(&alone), Some(&hardware)).contains("a storage that is a bucket"));
}

#[test]
fn the_longest_names_are_short_enough() {
    let name = "c".repeat(40);
    let pod = format!("{}-63", stateful_set_name(&name));
    // Kubernetes labels pods with the name of their set and ten characters more.
    assert!(stateful_set_name(&name).len() + 11 <= 63 && pod.len() <= 63);
    assert_eq!(slot(&name, &pod), Some(63));
}

#[test]
fn slots_are_those_of_the_clusters_own_pods() {
    assert_eq!(slot("etl", "etl-workers-0"), Some(0));
    assert_eq!(slot("etl", "etl-workers-17"), Some(17));
    for other in ["etl-workers-", "etl-workers-01", "etl-workers-+1", "etl-2-workers-1", "etl-workers", "x"] {
        assert_eq!(slot("etl", other), None, "{other}");
    }
}

#[test]
fn only_volumes_of_slots_that_are_gone_are_surplus() {
    let claims = [
        "cache-etl-workers-0",
        "cache-etl-workers-2",
        "cache-etl-workers-3",
        "cache-etl-workers-4",
        "data-dw-0",
        "cache-other-workers-9",
    ];
    let surplus = |more: Value, living: &'static str| surplus_volumes(&cluster(more), claims, move |pod| pod == living);
    assert_eq!(surplus(plain(), "none"), ["cache-etl-workers-3", "cache-etl-workers-4"]);
    assert_eq!(surplus(plain(), "etl-workers-3"), ["cache-etl-workers-4"]);
    assert!(
        surplus(json!({ "nodeCount": 5, "suspended": true }), "none").is_empty(),
        "who sleeps finds its cache again"
    );
}

#[test]
fn the_phase_follows_the_pods() {
    let at = Timestamp::UNIX_EPOCH;
    let awake = cluster(plain());
    let asleep = cluster(json!({ "suspended": true }));
    let set = |there: i32, ready: i32| {
        let mut set = observed(set_of(&made(&awake, &instance_of(plain()), &hardware(plain()))));
        let status = set.status.as_mut().expect("it has one");
        (status.replicas, status.ready_replicas) = (there, Some(ready));
        set
    };
    let phase = |cluster: &ComputeCluster, set: Option<&StatefulSet>| {
        compute_status(cluster, set, &ReconcileOutcome::Applied, at).phase
    };
    assert_eq!(phase(&awake, None), ComputeClusterPhase::Starting);
    assert_eq!(phase(&awake, Some(&set(3, 0))), ComputeClusterPhase::Starting);
    assert_eq!(phase(&awake, Some(&set(3, 1))), ComputeClusterPhase::Resizing);
    assert_eq!(phase(&awake, Some(&set(3, 3))), ComputeClusterPhase::Running);
    assert_eq!(phase(&awake, Some(&set(5, 5))), ComputeClusterPhase::Resizing, "some are to go");
    let mut rolling = set(3, 3);
    rolling.status.as_mut().expect("it has one").update_revision = Some("b".to_owned());
    assert_eq!(phase(&awake, Some(&rolling)), ComputeClusterPhase::Resizing);
    assert_eq!(phase(&asleep, Some(&set(2, 2))), ComputeClusterPhase::Suspending);
    assert_eq!(phase(&asleep, Some(&set(0, 0))), ComputeClusterPhase::Suspended);

    let said = compute_status(&awake, Some(&set(3, 2)), &ReconcileOutcome::NotApplied("exceeded quota".to_owned()), at);
    assert_eq!((said.nodes, said.ready_nodes, said.observed_generation), (3, 2, Some(3)));
    let condition = |kind: &str| said.conditions.iter().find(|one| one.type_ == kind).expect("it is there");
    assert_eq!(condition(READY).message, "2 of 3 workers are ready");
    assert_eq!(condition(RECONCILED).message, "exceeded quota");
    let selector = said.selector.expect("autoscalers need it");
    assert_eq!(selector, "app.kubernetes.io/component=worker,app.kubernetes.io/name=kiln,kiln.dev/cluster=etl");
}

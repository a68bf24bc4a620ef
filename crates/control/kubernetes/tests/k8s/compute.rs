//! Objects that the operator creates for a ComputeCluster and keeps in the desired state.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kubernetes::resources::{ComputeClusterPhase, RECONCILED};
use kubernetes::{ComputeCluster, HardwareProfile, Instance};
use serde_json::{Value, json};

use crate::plane::Cluster;

async fn hardware(cluster: &Cluster, cpu: &str) {
    let profile = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "HardwareProfile",
        "metadata": { "name": "small" },
        "spec": { "cpu": cpu, "memory": "1Gi", "cacheVolume": { "size": "1Gi" } },
    });
    let api: Api<HardwareProfile> = cluster.all();
    api.patch("small", &PatchParams::apply("administrator"), &Patch::Apply(&profile)).await.expect("it is a profile");
}

async fn create(cluster: &Cluster, nodes: i32) {
    let object = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "ComputeCluster",
        "metadata": { "name": "etl" },
        "spec": { "instance": "dw", "hardwareInstance": "small", "nodeCount": nodes },
    });
    let object: ComputeCluster = serde_json::from_value(object).expect("it is a cluster");
    cluster.all().create(&PostParams::default(), &object).await.expect("it is within limits");
}

async fn change(cluster: &Cluster, spec: Value) {
    let api: Api<ComputeCluster> = cluster.all();
    let patch = Patch::Merge(json!({ "spec": spec }));
    api.patch("etl", &PatchParams::default(), &patch).await.expect("it is within limits");
}

fn in_phase(phase: ComputeClusterPhase) -> impl Fn(Option<&ComputeCluster>) -> bool {
    move |cluster| cluster.and_then(|cluster| cluster.status.as_ref()).is_some_and(|status| status.phase == phase)
}

/// Returns a condition that holds when the cluster's reconciliation has failed with a message that contains `with`.
fn failed(with: &'static str) -> impl Fn(Option<&ComputeCluster>) -> bool {
    move |cluster| {
        let status = cluster.and_then(|cluster| cluster.status.as_ref());
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        conditions.iter().any(|one| one.type_ == RECONCILED && one.status == "False" && one.message.contains(with))
    }
}

async fn ready(cluster: &Cluster, slots: std::ops::Range<u32>) {
    for slot in slots {
        let name = format!("etl-workers-{slot}");
        cluster.until(&name, |pod: Option<&Pod>| pod.is_some()).await;
        cluster.say_ready(&name, true).await;
    }
}

async fn claims(cluster: &Cluster) -> Vec<String> {
    let api: Api<PersistentVolumeClaim> = cluster.all();
    let own = ListParams::default().labels("kiln.dev/cluster=etl");
    api.list(&own).await.expect("an administrator may").iter().map(ResourceExt::name_any).collect()
}

async fn uid(cluster: &Cluster, pod: &str) -> Option<String> {
    cluster.all::<Pod>().get_opt(pod).await.expect("an administrator may").and_then(|pod| pod.uid())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_comes_grows_shrinks_sleeps_and_goes() {
    let Some(cluster) = Cluster::with_kiln("compute-life").await else { return };
    let operator = cluster.operator("a").await;
    hardware(&cluster, "1").await;
    // Without the instance, and then with an instance whose storage other pods cannot read.
    create(&cluster, 2).await;
    cluster.until("etl", failed("there is no instance dw")).await;
    cluster.create(json!({ "storage": { "url": "s3://bucket/dw" } })).await.expect("it is an instance");
    ready(&cluster, 0..2).await;
    let running = cluster.until("etl", in_phase(ComputeClusterPhase::Running)).await.expect("it was waited for");
    let status = running.status.clone().expect("it was looked at");
    assert_eq!((status.nodes, status.ready_nodes, status.observed_generation), (2, 2, running.metadata.generation));
    assert_eq!(running.owner_references().first().map(|owner| owner.name.as_str()), Some("dw"));
    cluster.until("etl-workers", |service: Option<&Service>| service.is_some()).await;
    cluster.until("etl-workers", |budget: Option<&PodDisruptionBudget>| budget.is_some()).await;
    let first = (uid(&cluster, "etl-workers-0").await, uid(&cluster, "etl-workers-1").await);

    change(&cluster, json!({ "nodeCount": 4 })).await;
    ready(&cluster, 2..4).await;
    cluster.until("etl", in_phase(ComputeClusterPhase::Running)).await;
    assert_eq!(claims(&cluster).await.len(), 4);
    change(&cluster, json!({ "nodeCount": 2 })).await;
    cluster.until("etl-workers-3", |pod: Option<&Pod>| pod.is_none()).await;
    cluster.until("etl", in_phase(ComputeClusterPhase::Running)).await;
    cluster.until("cache-etl-workers-3", |claim: Option<&PersistentVolumeClaim>| claim.is_none()).await;
    cluster.until("cache-etl-workers-2", |claim: Option<&PersistentVolumeClaim>| claim.is_none()).await;
    assert_eq!((uid(&cluster, "etl-workers-0").await, uid(&cluster, "etl-workers-1").await), first, "who stays, stays");

    change(&cluster, json!({ "suspended": true })).await;
    cluster.until("etl", in_phase(ComputeClusterPhase::Suspended)).await;
    assert_eq!(claims(&cluster).await, ["cache-etl-workers-0", "cache-etl-workers-1"], "its caches stay");
    change(&cluster, json!({ "suspended": false })).await;
    ready(&cluster, 0..2).await;
    cluster.until("etl", in_phase(ComputeClusterPhase::Running)).await;

    cluster.all::<ComputeCluster>().delete("etl", &DeleteParams::default()).await.expect("it is there");
    cluster.until("etl-workers", |set: Option<&StatefulSet>| set.is_none()).await;
    cluster.until("etl-workers-0", |pod: Option<&Pod>| pod.is_none()).await;
    cluster.until("cache-etl-workers-0", |claim: Option<&PersistentVolumeClaim>| claim.is_none()).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_another_template_replaces_workers_and_one_after_the_other() {
    let Some(cluster) = Cluster::with_kiln("compute-roll").await else { return };
    let operator = cluster.operator("a").await;
    hardware(&cluster, "1").await;
    cluster.create(json!({ "storage": { "url": "s3://bucket/dw" } })).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await;
    cluster.say_ready("dw-0", true).await;
    create(&cluster, 2).await;
    ready(&cluster, 0..2).await;
    cluster.until("etl", in_phase(ComputeClusterPhase::Running)).await;
    let uids = async || [uid(&cluster, "etl-workers-0").await, uid(&cluster, "etl-workers-1").await];
    let before = uids().await;
    change(&cluster, json!({ "autoSuspend": 60, "maxCachePct": 10, "wlmProfile": "batch", "name": "another" })).await;
    operator.stop().await;
    let operator = cluster.operator("b").await;
    let sets: Api<StatefulSet> = cluster.all();
    let by_hand = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    sets.patch("etl-workers", &PatchParams::default(), &by_hand).await.expect("an administrator may");
    let is_back = |set: Option<&StatefulSet>| {
        set.is_some_and(|set| {
            set.spec.as_ref().and_then(|spec| spec.replicas) == Some(2) && Some(1) < set.metadata.generation
        })
    };
    cluster.until("etl-workers", is_back).await;
    ready(&cluster, 0..2).await;
    assert_eq!(uids().await[0], before[0], "nothing of it is the pods'");

    // Changed hardware: the last pod is replaced first, and the next one when that is ready again.
    let before = uids().await;
    hardware(&cluster, "2").await;
    let other = before[1].clone();
    cluster.until("etl-workers-1", move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != other)).await;
    assert_eq!(uids().await[0], before[0], "it waits for the other one");
    cluster.say_ready("etl-workers-1", true).await;
    let other = before[0].clone();
    cluster.until("etl-workers-0", move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != other)).await;
    cluster.say_ready("etl-workers-0", true).await;
    cluster.until("etl", in_phase(ComputeClusterPhase::Running)).await;

    // A new image reaches the workers after the instance's pod runs it.
    let before = uids().await;
    let image = |pod: Option<&Pod>| {
        pod.and_then(|pod| pod.spec.as_ref()?.containers.first()?.image.clone()).unwrap_or_default()
    };
    let instances: Api<Instance> = cluster.all();
    let new = Patch::Merge(json!({ "spec": { "image": "registry.example/kiln:2" } }));
    instances.patch("dw", &PatchParams::default(), &new).await.expect("it is within limits");
    cluster.until("dw-0", move |pod: Option<&Pod>| image(pod) == "registry.example/kiln:2").await;
    assert_eq!(uids().await, before, "its pod is not ready yet");
    cluster.say_ready("dw-0", true).await;
    cluster.until("etl-workers-1", move |pod: Option<&Pod>| image(pod) == "registry.example/kiln:2").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_goes_with_its_instance_and_what_cannot_be_says_so() {
    let Some(cluster) = Cluster::with_kiln("compute-orphan").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    create(&cluster, 1).await;
    cluster.until("etl", failed("a storage that is a bucket")).await;
    cluster.all::<Instance>().delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster.until("etl", |cluster: Option<&ComputeCluster>| cluster.is_none()).await;
    create(&cluster, 1).await;
    cluster.until("dw", |instance: Option<&Instance>| instance.is_none()).await;
    cluster.create(json!({ "storage": { "url": "s3://bucket/dw" } })).await.expect("the name is free");
    cluster.until("etl", failed("there is no HardwareProfile small")).await;
    hardware(&cluster, "1").await;
    cluster.until("etl-workers-0", |pod: Option<&Pod>| pod.is_some()).await;
    cluster.all::<Instance>().delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster.until("etl", |cluster: Option<&ComputeCluster>| cluster.is_none()).await;
    cluster.until("etl-workers-0", |pod: Option<&Pod>| pod.is_none()).await;
    operator.stop().await;
}

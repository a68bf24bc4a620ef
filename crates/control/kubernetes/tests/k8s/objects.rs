//! Objects that the operator creates for an instance and keeps in the desired state.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use kubernetes::Instance;
use kubernetes::resources::{InstancePhase, READY, RECONCILED};
use serde_json::{Value, json};

use crate::plane::Cluster;

/// Returns whether a condition of the instance is True.
fn holds(instance: &Instance, kind: &str) -> bool {
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
}

fn in_phase(phase: InstancePhase) -> impl Fn(Option<&Instance>) -> bool {
    move |instance| {
        instance.is_some_and(|instance| instance.status.as_ref().is_some_and(|status| status.phase == phase))
    }
}

async fn change(cluster: &Cluster, spec: Value) {
    let api: Api<Instance> = cluster.all();
    let patch = Patch::Merge(json!({ "spec": spec }));
    api.patch("dw", &PatchParams::default(), &patch).await.expect("the change is within limits");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_becomes_a_pod_with_a_volume_and_runs() {
    let Some(cluster) = Cluster::with_kiln("objects-made").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    let pod: Pod = cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await.expect("it was waited for");
    let container = &pod.spec.as_ref().expect("a pod has a spec").containers[0];
    assert_eq!(container.image.as_deref(), Some("registry.example/kiln:1"));
    cluster.until("data-dw-0", |claim: Option<&PersistentVolumeClaim>| claim.is_some()).await;
    let waiting = |instance: Option<&Instance>| instance.is_some_and(|instance| holds(instance, RECONCILED));
    let instance: Instance = cluster.until("dw", waiting).await.expect("it was waited for");
    assert!(!holds(&instance, READY), "its pod does not run yet");
    assert_eq!(instance.status.and_then(|status| status.endpoint).as_deref(), Some("dw.objects-made.svc:5432"));

    cluster.say_ready("dw-0", true).await;
    let instance: Instance = cluster.until("dw", in_phase(InstancePhase::Running)).await.expect("it was waited for");
    assert!(holds(&instance, READY));
    assert_eq!(instance.status.and_then(|status| status.observed_generation), instance.metadata.generation);

    cluster.say_ready("dw-0", false).await;
    cluster.until("dw", in_phase(InstancePhase::Starting)).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_image_replaces_the_pod_and_nothing_else_does() {
    let Some(cluster) = Cluster::with_kiln("objects-upgrade").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await;
    cluster.say_ready("dw-0", true).await;
    cluster.until("dw", in_phase(InstancePhase::Running)).await;
    let pods: Api<Pod> = cluster.all();
    let before = pods.get("dw-0").await.expect("it runs").uid();

    change(&cluster, json!({ "evictable": true, "serviceType": "NodePort" })).await;
    cluster.until("dw", |budget: Option<&PodDisruptionBudget>| budget.is_none()).await;
    let is_node_port = |service: Option<&Service>| {
        service.and_then(|service| service.spec.as_ref()?.type_.as_deref()) == Some("NodePort")
    };
    cluster.until("dw", is_node_port).await;
    assert_eq!(pods.get("dw-0").await.expect("it runs").uid(), before, "the same pod");

    change(&cluster, json!({ "image": "registry.example/kiln:2" })).await;
    let is_new = |pod: Option<&Pod>| {
        let image = pod.and_then(|pod| pod.spec.as_ref()?.containers.first()?.image.as_deref());
        image == Some("registry.example/kiln:2")
    };
    cluster.until("dw-0", is_new).await;
    cluster.until("dw", in_phase(InstancePhase::Upgrading)).await;
    cluster.say_ready("dw-0", true).await;
    cluster.until("dw", in_phase(InstancePhase::Running)).await;
    operator.stop().await;
}

/// With the pod management policy `OrderedReady`, Kubernetes would not replace such a pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_never_became_ready_is_replaced_by_one_of_a_better_template() {
    let Some(cluster) = Cluster::with_kiln("objects-corrected").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({ "image": "registry.example/mistyped:1" })).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await;
    cluster.say_ready("dw-0", false).await;
    change(&cluster, json!({ "image": "registry.example/kiln:1" })).await;
    let is_corrected = |pod: Option<&Pod>| {
        let image = pod.and_then(|pod| pod.spec.as_ref()?.containers.first()?.image.as_deref());
        image == Some("registry.example/kiln:1")
    };
    cluster.until("dw-0", is_corrected).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_change_is_put_right_and_what_they_add_stays() {
    let Some(cluster) = Cluster::with_kiln("objects-drift").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    let services: Api<Service> = cluster.all();
    let first =
        cluster.until("dw-pods", |service: Option<&Service>| service.is_some()).await.expect("it was waited for");
    cluster.until("dw", |set: Option<&StatefulSet>| set.is_some()).await;

    let note = json!({ "metadata": { "annotations": { "somebody.else/note": "kept" } } });
    services.patch("dw", &PatchParams::default(), &Patch::Merge(&note)).await.expect("anybody may note something");
    let scaled = json!({ "spec": { "replicas": 3 } });
    let sets: Api<StatefulSet> = cluster.all();
    sets.patch("dw", &PatchParams::default(), &Patch::Merge(&scaled)).await.expect("an administrator may");
    let is_one = |set: Option<&StatefulSet>| {
        // A generation after the change shows that the operator has reverted it.
        set.is_some_and(|set| {
            set.spec.as_ref().and_then(|spec| spec.replicas) == Some(1) && Some(2) < set.metadata.generation
        })
    };
    cluster.until("dw", is_one).await;
    services.delete("dw-pods", &DeleteParams::default()).await.expect("it was there");
    let uid = first.uid();
    cluster
        .until("dw-pods", move |service: Option<&Service>| service.is_some_and(|service| service.uid() != uid))
        .await;
    let service = services.get("dw").await.expect("it is there");
    assert_eq!(service.annotations().get("somebody.else/note").map(String::as_str), Some("kept"));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_wanted_any_more_goes_and_what_others_own_stays() {
    let Some(cluster) = Cluster::with_kiln("objects-orphans").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("dw", |account: Option<&ServiceAccount>| account.is_some()).await;
    cluster.until("dw", |set: Option<&StatefulSet>| set.is_some()).await;
    let accounts: Api<ServiceAccount> = cluster.all();
    let foreign = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": "foreign", "labels": { "kiln.dev/instance": "dw" } },
    });
    let foreign: ServiceAccount = serde_json::from_value(foreign).expect("it is one");
    accounts.create(&kube::api::PostParams::default(), &foreign).await.expect("anybody may make one");
    change(&cluster, json!({ "serviceAccountName": "foreign" })).await;
    cluster.until("dw", |account: Option<&ServiceAccount>| account.is_none()).await;
    accounts.get("foreign").await.expect("it is nobody's to delete");
    operator.stop().await;
}

/// A foreign object with the name of a desired one is neither changed nor adopted.
#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_has_made_is_left_alone() {
    let Some(cluster) = Cluster::with_kiln("objects-taken").await else { return };
    let services: Api<Service> = cluster.all();
    let foreign = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "dw" },
        "spec": { "ports": [{ "port": 80 }] },
    });
    let foreign: Service = serde_json::from_value(foreign).expect("it is one");
    let foreign = services.create(&kube::api::PostParams::default(), &foreign).await.expect("the name is free");
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    let says = |instance: Option<&Instance>| {
        let conditions =
            instance.and_then(|instance| instance.status.as_ref()).map(|status| status.conditions.as_slice());
        let mut conditions = conditions.unwrap_or_default().iter();
        let found = conditions.find(|condition| condition.type_ == RECONCILED && condition.status == "False");
        found.is_some_and(|condition| {
            condition.message == "the Service dw exists already and does not belong to this instance"
        })
    };
    cluster.until("dw", says).await;
    assert_eq!(services.get("dw").await.expect("it is there").resource_version(), foreign.resource_version());
    services.delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster
        .until("dw", |instance: Option<&Instance>| instance.is_some_and(|instance| holds(instance, RECONCILED)))
        .await;
    cluster.until("dw", |set: Option<&StatefulSet>| set.is_some()).await;
    operator.stop().await;
}

/// An operator that replaces a dead one finds everything in the desired state and writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_changes_nothing() {
    let Some(cluster) = Cluster::with_kiln("objects-restart").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await;
    cluster.say_ready("dw-0", true).await;
    cluster.until("dw", in_phase(InstancePhase::Running)).await;
    operator.kill().await;
    // Changes by Kubernetes itself are not compared: the status of the StatefulSet, and everything of the pod but its
    // uid.
    let versions = async || {
        let set = cluster.all::<StatefulSet>().get("dw").await.expect("it is there").metadata.generation;
        let service = cluster.all::<Service>().get("dw").await.expect("it is there").resource_version();
        let pods = cluster.all::<Service>().get("dw-pods").await.expect("it is there").resource_version();
        let account = cluster.all::<ServiceAccount>().get("dw").await.expect("it is there").resource_version();
        let pod = cluster.all::<Pod>().get("dw-0").await.expect("it is there").uid();
        (set, [service, pods, account, pod])
    };
    let before = versions().await;
    let operator = cluster.operator("b").await;
    // Once the new operator has carried out this change, it has reconciled the other objects of the instance too.
    change(&cluster, json!({ "evictable": true })).await;
    cluster.until("dw", |budget: Option<&PodDisruptionBudget>| budget.is_none()).await;
    assert_eq!(versions().await, before);
    operator.stop().await;
}

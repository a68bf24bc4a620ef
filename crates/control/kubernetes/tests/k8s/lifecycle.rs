//! Deletion of an instance: after its pod, with all its objects, and with its volume only if requested.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use kubernetes::Instance;
use kubernetes::resources::InstancePhase;
use serde_json::json;

use crate::plane::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_goes_after_its_pod_and_keeps_its_volume() {
    let Some(cluster) = Cluster::with_kiln("lifecycle-kept").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await;
    let claims: Api<PersistentVolumeClaim> = cluster.all();
    let claim = cluster
        .until("data-dw-0", |claim: Option<&PersistentVolumeClaim>| claim.is_some())
        .await
        .expect("it was waited for");

    // A pod that takes time to end, like one with open connections and commits to upload.
    let pods: Api<Pod> = cluster.all();
    let held = json!({ "metadata": { "finalizers": ["test.kiln.dev/ends"] } });
    pods.patch("dw-0", &PatchParams::default(), &Patch::Merge(&held)).await.expect("the pod is there");
    let instances: Api<Instance> = cluster.all();
    instances.delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())).await;
    let stopping = |instance: Option<&Instance>| {
        instance
            .and_then(|instance| instance.status.as_ref())
            .is_some_and(|status| status.phase == InstancePhase::Stopping)
    };
    cluster.until("dw", stopping).await;
    assert!(instances.get_opt("dw").await.expect("it can be asked").is_some(), "its pod has not ended");

    let free = json!({ "metadata": { "finalizers": null } });
    pods.patch("dw-0", &PatchParams::default(), &Patch::Merge(&free)).await.expect("the pod is still there");
    cluster.until("dw", |instance: Option<&Instance>| instance.is_none()).await;
    cluster.until("dw", |set: Option<&StatefulSet>| set.is_none()).await;
    cluster.until("dw", |service: Option<&Service>| service.is_none()).await;
    assert_eq!(claims.get("data-dw-0").await.expect("the volume is kept").uid(), claim.uid());

    // A new instance of the same name uses the volume.
    cluster.create(json!({})).await.expect("the name is free");
    let pod = cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await.expect("it was waited for");
    let volumes = pod.spec.and_then(|spec| spec.volumes).unwrap_or_default();
    let names = volumes.into_iter().filter_map(|volume| volume.persistent_volume_claim).map(|claim| claim.claim_name);
    assert_eq!(names.collect::<Vec<_>>(), ["data-dw-0"]);
    assert_eq!(claims.get("data-dw-0").await.expect("it is the same").uid(), claim.uid());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_goes_where_that_was_said() {
    let Some(cluster) = Cluster::with_kiln("lifecycle-gone").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({ "volume": { "size": "1Gi", "whenDeleted": "Delete" } })).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await;
    // Kubernetes makes the StatefulSet the owner of the claim.
    let is_owned =
        |claim: Option<&PersistentVolumeClaim>| claim.is_some_and(|claim| !claim.owner_references().is_empty());
    cluster.until("data-dw-0", is_owned).await;
    let instances: Api<Instance> = cluster.all();
    instances.delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster.until("dw", |instance: Option<&Instance>| instance.is_none()).await;
    // Volumes in use are protected, so the claim is deleted after the pod.
    cluster.until("data-dw-0", |claim: Option<&PersistentVolumeClaim>| claim.is_none()).await;
    operator.stop().await;
}

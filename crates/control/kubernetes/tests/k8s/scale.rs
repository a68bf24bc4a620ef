//! ComputeClusters as resources: limits, `kubectl scale`, and field ownership.

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kubernetes::ComputeCluster;
use serde_json::{Value, json};

use crate::plane::{Cluster, refusal};

fn cluster_of(spec: Value) -> ComputeCluster {
    let object = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "ComputeCluster",
        "metadata": { "name": "etl" },
        "spec": spec,
    });
    serde_json::from_value(object).expect("it is a cluster")
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_suspended_cluster_has_no_workers() {
    let Some(cluster) = Cluster::with_kiln("scale-limits").await else { return };
    let api: Api<ComputeCluster> = cluster.all();
    let said = json!({ "instance": "dw", "hardwareInstance": "small" });
    let with = |more: Value| {
        let mut spec = said.clone();
        spec.as_object_mut().expect("a spec has fields").extend(more.as_object().expect("fields are given").clone());
        cluster_of(spec)
    };
    for (more, why) in [
        (json!({ "nodeCount": 0 }), "spec.nodeCount"),
        (json!({ "nodeCount": 65 }), "spec.nodeCount"),
        (json!({ "autoSuspend": 0 }), "spec.autoSuspend"),
        (json!({ "maxSpillPct": 101 }), "spec.maxSpillPct"),
        (json!({ "maxCachePct": 0 }), "spec.maxCachePct"),
    ] {
        let message = refusal(api.create(&PostParams::default(), &with(more.clone())).await);
        assert!(message.contains(why), "{more}: {message}");
    }
    let made = api.create(&PostParams::default(), &with(json!({}))).await.expect("it says all that it must");
    assert_eq!((made.spec.node_count, made.spec.auto_resume, made.spec.suspended), (1, true, false));
    assert_eq!(made.spec.wlm_profile, "default");

    let to = |count: i32| Patch::Merge(json!({ "spec": { "replicas": count } }));
    let scaled = api.patch_scale("etl", &PatchParams::default(), &to(5)).await.expect("a person may scale it");
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(5));
    assert_eq!(api.get("etl").await.expect("it is there").spec.node_count, 5);
    for count in [0, 65] {
        let message = refusal(api.patch_scale("etl", &PatchParams::default(), &to(count)).await);
        assert!(message.contains("spec.nodeCount"), "{count}: {message}");
    }
    let moved = Patch::Merge(json!({ "spec": { "instance": "other" } }));
    let message = refusal(api.patch("etl", &PatchParams::default(), &moved).await);
    assert!(message.contains("the instance of a cluster cannot be changed"), "{message}");
}

/// A person who scales a cluster owns the node count: applying another number without force is a conflict.
#[tokio::test(flavor = "multi_thread")]
async fn who_scaled_a_cluster_owns_its_size() {
    let Some(cluster) = Cluster::with_kiln("scale-owner").await else { return };
    let api: Api<ComputeCluster> = cluster.all();
    let said = |count: i32| {
        Patch::Apply(json!({
            "apiVersion": "kiln.dev/v1alpha1",
            "kind": "ComputeCluster",
            "metadata": { "name": "etl", "annotations": { "kiln.dev/modified-by": "ana" } },
            "spec": { "instance": "dw", "hardwareInstance": "small", "nodeCount": count },
        }))
    };
    let sql = PatchParams::apply("kiln-sql");
    api.patch("etl", &sql, &said(2)).await.expect("nobody else has said anything");
    let person = PatchParams { field_manager: Some("kubectl".to_owned()), ..PatchParams::default() };
    let five = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    api.patch_scale("etl", &person, &five).await.expect("a person may scale it");
    let message = refusal(api.patch("etl", &sql, &said(3)).await);
    assert!(message.contains("kubectl") && message.contains("nodeCount"), "{message}");
    assert_eq!(api.get("etl").await.expect("it is there").spec.node_count, 5);
    api.patch("etl", &sql.clone().force(), &said(3)).await.expect("a statement may insist");
    let after = api.get("etl").await.expect("it is there");
    assert_eq!(after.spec.node_count, 3);
    assert_eq!(
        after.metadata.annotations.and_then(|all| all.get("kiln.dev/modified-by").cloned()).as_deref(),
        Some("ana")
    );
}

//! Leader election: one of several operators leads, and another one takes over when it ends.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kubernetes::OperatorError;
use kubernetes::operator::LEASE_NAME;
use serde_json::json;

use crate::plane::Cluster;

fn held_by(name: &'static str) -> impl Fn(Option<&Lease>) -> bool {
    move |lease| lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref()) == Some(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_operator_goes_on_where_one_has_ended() {
    let Some(cluster) = Cluster::with_kiln("leadership-next").await else { return };
    let first = cluster.operator("a").await;
    cluster.until(LEASE_NAME, held_by("a")).await;
    let second = cluster.operator("b").await;
    first.stop().await;
    cluster.until(LEASE_NAME, held_by("b")).await;
    // The lease of a killed operator expires.
    let third = cluster.operator("c").await;
    second.kill().await;
    cluster.until(LEASE_NAME, held_by("c")).await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("dw", |service: Option<&Service>| service.is_some()).await;
    let lease: Api<Lease> = cluster.all();
    let spec = lease.get(LEASE_NAME).await.expect("it is held").spec.expect("it says by whom");
    assert_eq!(spec.lease_transitions, Some(4), "a, nobody, b, c");
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_whose_lease_was_taken_ends() {
    let Some(cluster) = Cluster::with_kiln("leadership-taken").await else { return };
    let operator = cluster.operator("a").await;
    cluster.until(LEASE_NAME, held_by("a")).await;
    let taken = json!({ "spec": { "holderIdentity": "z" } });
    let leases: Api<Lease> = cluster.all();
    leases.patch(LEASE_NAME, &PatchParams::default(), &Patch::Merge(&taken)).await.expect("an administrator may");
    let ended = operator.ended().await;
    assert!(matches!(ended, Err(OperatorError::LeadershipLost { .. })), "{ended:?}");
}

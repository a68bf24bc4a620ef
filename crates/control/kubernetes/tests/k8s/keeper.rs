//! Control plane of an instance: changes by statements and by other clients, authentication of workers, and outages of
//! the API server.

use cluster_model::cluster_events::EventKind;
use cluster_model::{Change, ClusterOptions, ClusterPhase, IfExists, WorkerState};
use control_plane::{ControlPlane, ControlPlaneError, TokenWorkerHost};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kubernetes::ComputeCluster;
use serde_json::json;

use crate::proxy::Proxy;
use crate::test_instance::TestInstance;

fn create(name: &str, nodes: i64) -> Change {
    let options = ClusterOptions { node_count: Some(nodes), ..ClusterOptions::default() };
    Change::Create { name: name.to_owned(), options, if_exists: IfExists::Refuse }
}

fn alter(name: &str, nodes: i64) -> Change {
    let options = ClusterOptions { node_count: Some(nodes), ..ClusterOptions::default() };
    Change::Alter { name: name.to_owned(), options }
}

/// Returns the only ComputeCluster.
async fn object(house: &TestInstance) -> ComputeCluster {
    let clusters: Api<ComputeCluster> = house.cluster.all();
    let all = clusters.list(&ListParams::default()).await.expect("an administrator may");
    all.into_iter().next().expect("there is one")
}

fn has_event(house: &TestInstance, what: EventKind, detail: &str) -> bool {
    house.plane.events().iter().any(|event| event.kind == what && event.detail.contains(detail))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_a_change_of_an_object_with_its_users_name() {
    let Some(house) = TestInstance::new("keeper-statement").await else { return };
    house.apply(create("My ETL", 2)).await.expect("it is within limits");
    let made = object(&house).await;
    assert_eq!((made.spec.name.as_deref(), made.spec.node_count), (Some("My ETL"), 2));
    assert_eq!(made.annotations().get(kubernetes::plane::MODIFIED_BY_ANNOTATION).map(String::as_str), Some("kiln"));
    let id = house.id("My ETL");
    house.until("it runs", |plane| plane.phase(id) == Some(ClusterPhase::Running)).await;
    house.apply(Change::Rename { name: "My ETL".to_owned(), to: "etl".to_owned() }).await.expect("the name is free");
    house.apply(Change::Suspend { name: "etl".to_owned() }).await.expect("it is awake");
    let after = object(&house).await;
    assert_eq!((after.name_any(), after.spec.name.as_deref()), (made.name_any(), Some("etl")));
    assert!(after.spec.suspended && after.spec.node_count == 2);
    house.until("it sleeps", |plane| plane.phase(id) == Some(ClusterPhase::Suspended)).await;
    house.apply(Change::Drop { name: "etl".to_owned(), if_exists: false }).await.expect("it may go");
    house.until("it is gone", |plane| plane.phase(id).is_none()).await;
    let drained = house.plane.events().into_iter().filter(|event| event.kind == EventKind::WorkerStopped).count();
    assert_eq!(drained, 2, "who slept had ended what it did: {:?}", house.plane.events());
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_does_is_honoured_and_remembered() {
    let Some(mut house) = TestInstance::new("keeper-person").await else { return };
    house.apply(create("etl", 1)).await.expect("it is within limits");
    let id = house.id("etl");
    house.until("it runs", |plane| plane.phase(id) == Some(ClusterPhase::Running)).await;
    let clusters: Api<ComputeCluster> = house.cluster.all();
    let name = object(&house).await.name_any();
    let person = PatchParams { field_manager: Some("kubectl".to_owned()), ..PatchParams::default() };
    let three = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    clusters.patch_scale(&name, &person, &three).await.expect("a person may");
    house
        .until("three run", |plane| plane.phase(id) == Some(ClusterPhase::Running) && plane.serving(id).len() == 3)
        .await;
    let events = house.plane.events();
    let scaled = events.iter().find(|event| event.kind == EventKind::Altered).expect("it is remembered");
    assert_eq!(scaled.detail, "node_count 1 -> 3");
    assert_eq!(
        scaled.author.as_deref(),
        Some("kubectl (Kubernetes)"),
        "{:?}",
        object(&house).await.metadata.managed_fields
    );
    // A statement about another field leaves it unchanged.
    let options = ClusterOptions { auto_suspend: Some(Some(600)), ..ClusterOptions::default() };
    house.apply(Change::Alter { name: "etl".to_owned(), options }).await.expect("it is within limits");
    assert_eq!(object(&house).await.spec.node_count, 3);

    // ComputeClusters that are created and deleted by hand, also while the instance does not run.
    let by_hand = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "ComputeCluster",
        "metadata": { "name": "by-hand" },
        "spec": { "instance": "dw", "hardwareInstance": "small" },
    });
    let by_hand: ComputeCluster = serde_json::from_value(by_hand).expect("it is a cluster");
    clusters.create(&PostParams::default(), &by_hand).await.expect("a person may");
    house.until("it is seen", |plane| plane.desired().cluster_named("by-hand").is_ok()).await;
    let own = house.id("by-hand");
    house.until("it runs", |plane| plane.phase(own) == Some(ClusterPhase::Running)).await;
    clusters.delete(&name, &DeleteParams::default()).await.expect("a person may");
    house.begin().await;
    house.until("it is seen to be gone", |plane| plane.desired().cluster_named("etl").is_err()).await;
    assert!(has_event(&house, EventKind::Dropped, ""));

    // An instance that has lost its volume finds its clusters with their ids.
    house.forget();
    house.begin().await;
    house.until("it is found", |plane| plane.desired().cluster_named("by-hand").is_ok()).await;
    assert_eq!(house.id("by-hand"), own);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_pods_of_a_cluster_come_in() {
    let Some(house) = TestInstance::new("keeper-tokens").await else { return };
    house.apply(create("etl", 1)).await.expect("it is within limits");
    let id = house.id("etl");
    house.until("it runs", |plane| plane.phase(id) == Some(ClusterPhase::Running)).await;
    let pods: Api<Pod> = house.cluster.all();
    let worker = house.plane.workers().iter().find(|worker| worker.cluster == id).expect("it runs").clone();
    let life = house.guests.host_uid(worker.id).expect("it came from a pod");
    let pod = house.pod(&life).await;
    let right = kubernetes::compute_cluster::token_audience(&house.cluster.namespace, "dw");
    let token = house.token(&pod, &life, &right).await.expect("it is there");
    let vouched = house.vouch(&token).await.expect("it is one of the instance's");
    assert_eq!((vouched.cluster, vouched.slot, vouched.host_uid.as_str()), (id, 0, life.as_str()));

    let others = house.token(&pod, &life, &kubernetes::compute_cluster::token_audience("elsewhere", "dw")).await;
    let refused = house.vouch(&others.expect("it is there")).await.expect_err("it is for somebody else");
    assert!(refused.starts_with("the worker's token is not valid for this instance"), "{refused}");
    house.vouch("no token at all").await.expect_err("nobody knows it");
    // A pod that was created by hand with the labels of a worker.
    let alike = json!({
        "metadata": { "name": format!("{}-7", pod.trim_end_matches("-0")), "labels": pods.get(&pod).await.expect("it runs").labels() },
        "spec": { "serviceAccountName": "dw", "containers": [{ "name": "worker", "image": "x" }] },
    });
    let alike: Pod = serde_json::from_value(alike).expect("it is a pod");
    let alike = pods.create(&PostParams::default(), &alike).await.expect("an administrator may");
    let uid = alike.uid().expect("it is there");
    let token = house.token(&alike.name_any(), &uid, &right).await.expect("it is there");
    let refused = house.vouch(&token).await.expect_err("no cluster has made it");
    // By then the StatefulSet may have adopted and deleted it as a surplus pod.
    assert!(refused.starts_with(&format!("the pod {} of the worker's token is ", alike.name_any())), "{refused}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_api_server_nothing_changes_and_everybody_works_on() {
    let mut road = None;
    let by = async |cluster: &crate::plane::Cluster| {
        let made = Proxy::to(cluster.api_server()).await;
        let client = cluster.client_by("dw", made.address).await;
        road = Some(made);
        client
    };
    let Some(house) = TestInstance::with_client("keeper-outage", by).await else { return };
    let road = road.expect("it was made");
    house.apply(create("etl", 2)).await.expect("it is within limits");
    let id = house.id("etl");
    house.until("it runs", |plane| plane.phase(id) == Some(ClusterPhase::Running)).await;

    road.cut();
    let before = house.plane.desired();
    let refused = house.apply(alter("etl", 3)).await.expect_err("nobody can be asked");
    assert!(matches!(refused, ControlPlaneError::ExternalStore(_)), "{refused:?}");
    assert_eq!(house.plane.desired(), before);
    for _ in 0..10 {
        house.pass().await;
    }
    assert_eq!((house.plane.serving(id).len(), house.plane.phase(id)), (2, Some(ClusterPhase::Running)));
    // Changes by others are noticed after the outage.
    let clusters: Api<ComputeCluster> = house.cluster.all();
    let name = object(&house).await.name_any();
    let asleep = Patch::Merge(json!({ "spec": { "suspended": true } }));
    clusters.patch(&name, &PatchParams::default(), &asleep).await.expect("a person may");
    house.pass().await;
    assert!(!house.plane.desired().cluster_named("etl").expect("it is there").suspended);

    road.heal();
    house.until("it is seen", |plane| plane.phase(id) == Some(ClusterPhase::Suspended)).await;
    house.apply(Change::Resume { name: "etl".to_owned() }).await.expect("the API server is there again");
    house.until("it runs", |plane| plane.phase(id) == Some(ClusterPhase::Running)).await;
    assert!(
        house
            .plane
            .workers()
            .iter()
            .all(|worker| worker.cluster != id || !worker.failed || worker.state != WorkerState::Ready)
    );
    house.stop().await;
}

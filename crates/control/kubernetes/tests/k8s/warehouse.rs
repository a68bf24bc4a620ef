//! Instance with a real pod: its data survives kills, a changed pod template, and the deletion of the instance.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use kubernetes::Instance;
use kubernetes::resources::{InstancePhase, READY};
use serde_json::json;

use crate::node::Node;
use crate::plane::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn a_warehouse_keeps_what_it_was_told() {
    let Some(cluster) = Cluster::with_kiln("warehouse").await else { return };
    let Some(node) = Node::start(&cluster).await else { return };
    let operator = cluster.operator("a").await;
    // Small enough for a small machine.
    cluster.create(json!({ "resources": { "cpu": "1", "memory": "1Gi" } })).await.expect("it is an instance");
    ready(&cluster, &node).await;
    sql(&node, "CREATE TABLE t (a int PRIMARY KEY)").await;
    sql(&node, "INSERT INTO t VALUES (1), (2), (3)").await;
    assert_eq!(sql(&node, "SELECT sum(a) AS s FROM t").await, "s\n6\n");

    // The process is killed: the same pod restarts it over the same volume.
    node.signal("dw-0", "KILL");
    let not_ready = |instance: Option<&Instance>| !is_ready(instance);
    cluster.until("dw", not_ready).await;
    ready(&cluster, &node).await;
    assert_eq!(sql(&node, "SELECT sum(a) AS s FROM t").await, "s\n6\n");
    let pods: Api<Pod> = cluster.all();
    let before = pods.get("dw-0").await.expect("it runs").uid();

    // A changed template replaces the pod.
    let settings = json!({ "spec": { "settings": [{ "name": "retention", "value": "3600" }] } });
    let instances: Api<Instance> = cluster.all();
    instances.patch("dw", &PatchParams::default(), &Patch::Merge(&settings)).await.expect("it is within limits");
    cluster.until("dw-0", move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != before)).await;
    ready(&cluster, &node).await;
    sql(&node, "INSERT INTO t VALUES (4)").await;
    assert_eq!(sql(&node, "SELECT sum(a) AS s FROM t").await, "s\n10\n");

    // The instance is deleted, shuts down cleanly, and is created again over its old volume.
    instances.delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster.until("dw", |instance: Option<&Instance>| instance.is_none()).await;
    assert!(
        node.site().log("dw-0").lines().last().is_some_and(|line| line.contains("stopped")),
        "{}",
        node.site().log("dw-0")
    );
    cluster.create(json!({ "resources": { "cpu": "1", "memory": "1Gi" } })).await.expect("the name is free");
    ready(&cluster, &node).await;
    assert_eq!(sql(&node, "SELECT sum(a) AS s FROM t").await, "s\n10\n");
    operator.stop().await;
}

fn is_ready(instance: Option<&Instance>) -> bool {
    let status = instance.and_then(|instance| instance.status.as_ref());
    status.is_some_and(|status| {
        let holds = status.conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True");
        holds && status.phase == InstancePhase::Running
    })
}

async fn ready(cluster: &Cluster, node: &Node) {
    let waited = tokio::time::timeout(std::time::Duration::from_secs(50), cluster.until("dw", is_ready)).await;
    assert!(waited.is_ok(), "the pod is not ready: {}", node.site().log("dw-0"));
}

/// Runs statements inside the pod, and returns the result as CSV.
async fn sql(node: &Node, statements: &str) -> String {
    let asked = node.exec("dw-0", &["kiln", "sql", "--format", "csv", "-c", statements]).await;
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    String::from_utf8(asked.stdout).expect("it is text")
}

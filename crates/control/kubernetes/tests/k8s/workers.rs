//! Workers in real pods, created, changed and dropped by SQL statements.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use kubernetes::HardwareProfile;
use serde_json::json;
use types::{Clock, SystemClock};

use crate::bucket::{Bucket, SECRET};
use crate::node::Node;
use crate::plane::{Cluster, is_ready};

/// Time limit, longer than any condition takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs statements inside the instance's pod, and returns the result as CSV.
async fn sql(node: &Node, statements: &str) -> String {
    let asked = node.exec("dw-0", &["kiln", "sql", "--format", "csv", "-c", statements]).await;
    assert!(asked.status.success(), "{statements}: {}", String::from_utf8_lossy(&asked.stderr));
    String::from_utf8(asked.stdout).expect("it is text")
}

/// Repeats a query until its result is `answer`.
async fn until(node: &Node, statement: &str, answer: &str) {
    let (clock, mut last) = (SystemClock::new(), String::new());
    while clock.monotonic() < PATIENCE {
        last = sql(node, statement).await;
        if last == answer {
            return;
        }
        clock.sleep(Duration::from_millis(300)).await;
    }
    let workers = sql(node, "SELECT cluster, slot, state, detail FROM sys.worker").await;
    panic!("{statement} is {last:?} and not {answer:?}\n{workers}\n{}", node.site().log("dw-0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_makes_workers_that_run_queries() {
    let Some(cluster) = Cluster::with_kiln("workers").await else { return };
    let Some(node) = Node::start(&cluster).await else { return };
    let Some(bucket) = Bucket::open(&cluster, node.site()).await else { return };
    let profile = json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "HardwareProfile",
        "metadata": { "name": "small" },
        "spec": { "cpu": "1", "memory": "512Mi", "cacheVolume": { "size": "1Gi" } },
    });
    let profile: HardwareProfile = serde_json::from_value(profile).expect("it is a profile");
    cluster.all().create(&PostParams::default(), &profile).await.expect("it is within limits");
    let operator = cluster.operator("a").await;
    let spec = json!({
        "resources": { "cpu": "1", "memory": "1Gi" },
        "storage": { "url": bucket.url("dw"), "secretName": SECRET },
    });
    cluster.create(spec).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some_and(is_ready)).await;

    sql(&node, "CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 100000) AS s(i)").await;
    sql(&node, "CREATE CLUSTER etl WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = small)").await;
    let count = "SELECT count(*) AS n FROM sys.worker WHERE cluster = 'etl' AND state = 'ready'";
    until(&node, count, "n\n2\n").await;
    let sum = "USE CLUSTER etl; SELECT sum(a) AS s FROM t";
    assert!(sql(&node, sum).await.ends_with("s\n5000050000\n"));

    // A worker's process is killed: the same pod restarts it, and it joins as another worker.
    let pods: Api<Pod> = cluster.all();
    let all = pods.list(&kube::api::ListParams::default().labels("app.kubernetes.io/component=worker")).await;
    let names: Vec<String> = all.expect("an administrator may").iter().map(ResourceExt::name_any).collect();
    node.signal(&names[1], "KILL");
    assert!(sql(&node, sum).await.ends_with("s\n5000050000\n"), "no statement fails");
    until(&node, count, "n\n2\n").await;
    // A worker's pod is deleted: the worker drains, and another one replaces it.
    pods.delete(&names[0], &DeleteParams::default()).await.expect("it is there");
    assert!(sql(&node, sum).await.ends_with("s\n5000050000\n"), "no statement fails");
    until(&node, count, "n\n2\n").await;

    sql(&node, "ALTER CLUSTER etl SET (NODE_COUNT = 1)").await;
    until(&node, "SELECT count(*) AS n FROM sys.worker WHERE cluster = 'etl' AND state <> 'gone'", "n\n1\n").await;
    sql(&node, "ALTER CLUSTER etl SUSPEND").await;
    cluster.until(&names[0], |pod: Option<&Pod>| pod.is_none()).await;
    assert!(sql(&node, sum).await.ends_with("s\n5000050000\n"), "a statement wakes it");
    sql(&node, "DROP CLUSTER etl").await;
    cluster.until(&names[0], |pod: Option<&Pod>| pod.is_none()).await;
    let told = sql(&node, "SELECT DISTINCT what FROM sys.cluster_event WHERE cluster = 'etl' ORDER BY 1").await;
    for what in ["altered", "created", "dropped", "resumed", "suspended", "worker_failed", "worker_ready"] {
        assert!(told.lines().any(|line| line == what), "{what}: {told}");
    }
    operator.stop().await;
}

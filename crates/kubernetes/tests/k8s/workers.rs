//! From a statement to workers in real pods, and back.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use kubernetes::HardwareProfile;
use serde_json::json;
use tempfile::TempDir;
use types::{Clock, SystemClock};

use crate::node::Node;
use crate::plane::Cluster;

const BUCKET: &str = "warehouse";
/// What the script ends with where there is no server to run.
const NO_SERVER: i32 = 3;
/// Nothing here takes as long on any machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// An S3 server with an empty bucket, ended when dropped.
struct S3 {
    process: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl S3 {
    async fn start() -> Option<S3> {
        let folder = TempDir::with_prefix("kiln-s3-").expect("a temporary folder can be made");
        std::fs::create_dir_all(folder.path().join("buckets").join(BUCKET)).expect("the folder is ours");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = free.local_addr().expect("it listens");
        drop(free);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/servers/s3.sh");
        let mut process = Command::new(script)
            .arg(address.port().to_string())
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the script is part of the tests");
        let clock = SystemClock::new();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = process.try_wait().expect("it is our child") {
                assert_eq!(status.code(), Some(NO_SERVER), "the S3 server does not start");
                eprintln!("skipped: there is no S3 server");
                return None;
            }
            assert!(clock.monotonic() < PATIENCE, "the S3 server serves in time");
            clock.sleep(Duration::from_millis(50)).await;
        }
        Some(S3 { process, address, _folder: folder })
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The answer to statements, asked from within the instance's pod.
async fn sql(node: &Node, statements: &str) -> String {
    let asked = node.exec("dw-0", &["kiln", "sql", "--format", "csv", "-c", statements]).await;
    assert!(asked.status.success(), "{statements}: {}", String::from_utf8_lossy(&asked.stderr));
    String::from_utf8(asked.stdout).expect("it is text")
}

/// Asks until the answer is this one.
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
    panic!("{statement} is {last:?} and not {answer:?}\n{workers}\n{}", node.log("dw-0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_makes_workers_that_run_queries() {
    let Some(cluster) = Cluster::with_kiln("workers").await else { return };
    let Some(node) = Node::start(&cluster).await else { return };
    let Some(s3) = S3::start().await else { return };
    let road = node.way_to(s3.address).await;
    let secret = json!({
        "metadata": { "name": "bucket" },
        "stringData": {
            "AWS_ENDPOINT_URL": format!("http://{}", road.address),
            "AWS_ACCESS_KEY_ID": "kiln-test",
            "AWS_SECRET_ACCESS_KEY": "kiln-test-secret",
            "AWS_REGION": "us-east-1",
        },
    });
    let secret: Secret = serde_json::from_value(secret).expect("it is a secret");
    cluster.all().create(&PostParams::default(), &secret).await.expect("an administrator may");
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
        "storage": { "url": format!("s3://{BUCKET}/dw"), "secretName": "bucket" },
    });
    cluster.create(spec).await.expect("it is an instance");
    let ready = |pod: Option<&Pod>| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_deref()).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    cluster.until("dw-0", ready).await;

    sql(&node, "CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 100000) AS s(i)").await;
    sql(&node, "CREATE CLUSTER etl WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = small)").await;
    let count = "SELECT count(*) AS n FROM sys.worker WHERE cluster = 'etl' AND state = 'ready'";
    until(&node, count, "n\n2\n").await;
    let sum = "USE CLUSTER etl; SELECT sum(a) AS s FROM t";
    assert!(sql(&node, sum).await.ends_with("s\n5000050000\n"));

    // A worker's process is killed: the same pod starts it again, and it comes back as another worker.
    let pods: Api<Pod> = cluster.all();
    let all = pods.list(&kube::api::ListParams::default().labels("app.kubernetes.io/component=worker")).await;
    let names: Vec<String> = all.expect("an administrator may").iter().map(ResourceExt::name_any).collect();
    node.signal(&names[1], "KILL");
    assert!(sql(&node, sum).await.ends_with("s\n5000050000\n"), "no statement fails");
    until(&node, count, "n\n2\n").await;
    // Its pod is deleted: it drains, and another one comes.
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

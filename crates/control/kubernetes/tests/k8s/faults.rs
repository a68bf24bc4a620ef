//! Faults of machines, injected one after the other, and their effects on the users of a warehouse.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use kubernetes::HardwareProfile;
use serde_json::{Value, json};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use types::{Clock, SystemClock};

use crate::bucket::{Bucket, SECRET};
use crate::client::{ServiceAddress, until, value};
use crate::load::{KnownQuery, Load};
use crate::node::{Node, Site};
use crate::plane::{Cluster, Operator, is_ready};
use crate::steps::Steps;

const ON_WORKERS: &str = "USE CLUSTER etl; SET min_parallel_table_scan_size = 0";
const WORKERS: &str = "app.kubernetes.io/component=worker";
const READY: &str = "SELECT count(*) FROM sys.worker WHERE cluster = 'etl' AND state = 'ready' AND NOT hung";
/// Seconds after which a hung worker is replaced.
const REPLACED_AFTER: u64 = 20;
/// Additional seconds that the replacement may take on a slow machine.
const REST: u64 = 40;

/// Warehouse on two nodes, with an operator in this process.
struct Scene {
    cluster: Cluster,
    nodes: [Node; 2],
    operator: Operator,
    door: ServiceAddress,
    clock: SystemClock,
    _bucket: Option<Bucket>,
}

impl Scene {
    async fn open(namespace: &str, on_bucket: bool, more: Value) -> Option<Scene> {
        let cluster = Cluster::with_kiln(namespace).await?;
        let site: Arc<Site> = Site::open(&cluster).await?;
        let bucket = if on_bucket { Some(Bucket::open(&cluster, &site).await?) } else { None };
        let nodes = [Node::join(&site, "a").await, Node::join(&site, "b").await];
        let operator = cluster.operator("a").await;
        let mut spec = json!({ "resources": { "cpu": "1", "memory": "1Gi" } });
        let fields = spec.as_object_mut().expect("a spec has fields");
        fields.extend(more.as_object().expect("fields are given").clone());
        if let Some(bucket) = &bucket {
            fields.insert("storage".to_owned(), json!({ "url": bucket.url("dw"), "secretName": SECRET }));
        }
        cluster.create(spec).await.expect("it is an instance");
        cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some_and(is_ready)).await;
        let door = ServiceAddress::resolve(&cluster).await;
        Some(Scene { cluster, nodes, operator, door, clock: SystemClock::new(), _bucket: bucket })
    }

    async fn connect(&self) -> Client {
        self.door.wait().await
    }

    fn node_of(&self, pod: &str) -> &Node {
        self.nodes.iter().find(|node| node.runs(pod)).expect("the pod runs")
    }

    /// Returns the pods of the workers.
    async fn workers(&self) -> Vec<Pod> {
        let pods: Api<Pod> = self.cluster.all();
        pods.list(&ListParams::default().labels(WORKERS)).await.expect("an administrator may").items
    }

    /// Injects a fault into a worker under load, and returns the seconds until its pod is replaced and all workers get
    /// statements again.
    async fn replaced(&self, boss: &Client, load: &Load, worker: &Pod, fault: impl FnOnce(&str)) -> f64 {
        load.goes_on(5).await;
        let (name, uid) = (worker.name_any(), worker.uid());
        let begun = self.clock.monotonic();
        fault(&name);
        self.cluster.until(&name, move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != uid)).await;
        let replaced = (self.clock.monotonic() - begun).as_secs();
        assert!((REPLACED_AFTER - 2..REPLACED_AFTER + REST).contains(&replaced), "after {replaced} s");
        self.cluster.until(&name, |pod: Option<&Pod>| pod.is_some_and(is_ready)).await;
        until(boss, READY, "3").await;
        load.goes_on(5).await;
        (self.clock.monotonic() - begun).as_secs_f64()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_outlive_workers_that_freeze_are_cut_off_or_have_full_disks() {
    let Some(scene) = Scene::open("faults-workers", true, json!({})).await else { return };
    let mut steps = Steps::begin("faults");
    let profile: HardwareProfile = serde_json::from_value(json!({
        "apiVersion": "kiln.dev/v1alpha1",
        "kind": "HardwareProfile",
        "metadata": { "name": "small" },
        "spec": { "cpu": "1", "memory": "512Mi", "cacheVolume": { "size": "900Mi" } },
    }))
    .expect("it is a profile");
    scene.cluster.all().create(&PostParams::default(), &profile).await.expect("it is within limits");
    let boss = scene.connect().await;
    let rows = "SELECT i AS a, i % 1000 AS b, md5(i::text) AS c FROM generate_series(1, 500000) AS s(i)";
    boss.batch_execute(&format!("CREATE TABLE t AS {rows}")).await.expect("it is loaded");
    until(&boss, "SELECT count(*) FROM sys.cluster WHERE name = 'default'", "1").await;
    let mut known = Vec::new();
    for sql in [
        "SELECT count(*), sum(a), min(c), max(c) FROM t",
        "SELECT b, count(*), sum(a) FROM t GROUP BY b",
        "SELECT x.b, count(*) FROM t AS x JOIN t AS y ON x.a = y.a WHERE y.b < 100 GROUP BY x.b",
    ] {
        known.push(KnownQuery::ask(&boss, sql).await);
    }
    let make = "CREATE CLUSTER etl WITH (NODE_COUNT = 3, HARDWARE_INSTANCE = small, AUTO_SUSPEND = NULL)";
    boss.batch_execute(make).await.expect("it is within limits");
    until(&boss, READY, "3").await;
    let load = Load::begin(&scene.door, ON_WORKERS, &known, 2);

    let workers = scene.workers().await;
    let seconds = scene.replaced(&boss, &load, &workers[0], |name| scene.node_of(name).signal(name, "STOP")).await;
    steps.done("a frozen worker", &format!("replaced after {seconds:.1} s"));
    let told = "SELECT count(*) > 0 FROM sys.cluster_event WHERE cluster = 'etl' AND what = 'worker_failed'";
    until(&boss, told, "t").await;

    let seconds = scene.replaced(&boss, &load, &workers[1], |name| scene.node_of(name).cut_pod(name)).await;
    steps.done("a worker that is cut off", &format!("replaced after {seconds:.1} s"));

    // Orders no longer reach the node, so its worker continues until the node is reconnected.
    let away = scene.nodes.iter().find(|node| !node.runs("dw-0")).expect("there is one more");
    let worker = scene.workers().await.into_iter().find(|pod| away.runs(&pod.name_any())).expect("they are spread");
    let seconds = scene.replaced(&boss, &load, &worker, |_| away.cut()).await;
    let name = worker.name_any();
    assert!(
        scene.nodes.iter().all(|node| node.runs(&name)),
        "nobody has told its node, and another one has the new one"
    );
    away.heal();
    let healed = scene.clock.monotonic();
    while away.runs(&name) {
        assert!((scene.clock.monotonic() - healed).as_secs() < REST, "its node is told in the end");
        scene.clock.sleep(std::time::Duration::from_millis(100)).await;
    }
    steps.done("a node that is cut off", &format!("its worker replaced on another one after {seconds:.1} s"));

    // Nothing can be cached on the disk any more; columns that do not fit in memory are read again.
    let disk = scene.nodes[0].site().disk(&format!("cache-{}", scene.workers().await[2].name_any())).await;
    disk.fill(0);
    assert_eq!(disk.free(), 0);
    boss.batch_execute(&format!("CREATE TABLE u AS {rows}")).await.expect("the instance's own disk is another one");
    boss.batch_execute(ON_WORKERS).await.expect("the cluster is there");
    for _ in 0..3 {
        assert_eq!(value(&boss, "SELECT sum(a) FROM u").await, "125000250000");
        assert_eq!(value(&boss, "SELECT count(DISTINCT c) FROM u").await, "500000");
    }
    load.goes_on(10).await;
    disk.make_room();
    assert_eq!(value(&boss, READY).await, "3");
    steps.done("a full disk of a worker", "answers stay right");

    let endings = load.end().await;
    // A statement that loses workers twice fails with 58030, as documented in `docs/operations/troubleshooting.md`.
    assert!(endings.failed.iter().all(|trouble| trouble.code.as_deref() == Some("58030")), "{endings:#?}");
    assert!(endings.failed.len() * 100 <= endings.right, "99 of 100 are answered: {endings:#?}");
    let (right, again, longest) = (endings.right, endings.failed.len(), endings.longest.as_secs_f64());
    steps.done("all of it", &format!("{right} queries right, {again} told to run again, the longest {longest:.1} s"));
    scene.operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_volume_refuses_writers_until_there_is_room() {
    let small = json!({
        "volume": { "size": "256Mi" },
        "settings": [{ "name": "disk_reserve_mb", "value": "32" }],
    });
    let Some(scene) = Scene::open("faults-volume", false, small).await else { return };
    let boss = scene.connect().await;
    boss.batch_execute("CREATE TABLE t (n int, v text) WITH (storage = row)").await.expect("there is room");
    insert(&boss, 0).await.expect("there is room");
    let disk = scene.nodes[0].site().disk("data-dw-0").await;
    disk.fill(16 << 20);
    // Half of the reserve is used up at once. The server checks the disk five times a second; commits that it accepted
    // before the next check could use the other half and more.
    scene.clock.sleep(2 * LOOKED_WITHIN).await;
    let mut acknowledged = 1;
    let refused = loop {
        match insert(&boss, acknowledged).await {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 500, "the disk is never full: {}", disk.free());
    };
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused:?}");
    let rows = (acknowledged * ROWS).to_string();
    assert_eq!(value(&boss, "SELECT count(*) FROM t").await, rows, "readers go on");

    // A start needs little space: the pod's process is killed and starts over the full volume.
    drop(boss);
    scene.node_of("dw-0").signal("dw-0", "KILL");
    scene.cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some_and(|pod| !is_ready(pod))).await;
    let comes_up = scene.cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some_and(is_ready));
    let is_up = tokio::time::timeout(std::time::Duration::from_secs(50), comes_up).await.is_ok();
    assert!(is_up, "it does not come up with {} bytes free: {}", disk.free(), scene.node_of("dw-0").site().log("dw-0"));
    let boss = scene.connect().await;
    assert_eq!(value(&boss, "SELECT count(*) FROM t").await, rows, "nothing is lost");
    let refused = insert(&boss, acknowledged).await.expect_err("it is as full as before");
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused:?}");

    disk.make_room();
    let begun = scene.clock.monotonic();
    while let Err(error) = insert(&boss, acknowledged).await {
        assert_eq!(error.code(), Some(&SqlState::DISK_FULL), "{error:?}");
        assert!((scene.clock.monotonic() - begun).as_secs() < 10, "there is room again: {error:?}");
        scene.clock.sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(value(&boss, "SELECT count(*) FROM t").await, ((acknowledged + 1) * ROWS).to_string());
    scene.operator.stop().await;
}

const ROWS: u64 = 1_000;
/// Interval at which an instance checks the free space of its disk.
const LOOKED_WITHIN: std::time::Duration = std::time::Duration::from_millis(200);

async fn insert(client: &Client, number: u64) -> Result<(), tokio_postgres::Error> {
    let (from, to) = (number * ROWS, (number + 1) * ROWS - 1);
    let rows = format!("SELECT i, repeat(md5(i::text), 20) FROM generate_series({from}, {to}) AS g(i)");
    client.batch_execute(&format!("INSERT INTO t {rows}")).await
}

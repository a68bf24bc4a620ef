//! Cost of an operator and an instance with the maximum number of workers. Takes minutes, so it runs only at night.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::{WorkerOptions, WorkerSpec};
use control_plane::{ControlPlane, VerifiedWorker};
use futures::StreamExt;
use futures::stream::iter;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Api, ResourceExt};
use kubernetes::ComputeCluster;
use serde_json::json;
use types::{Clock, SystemClock};

use crate::test_instance::{HARDWARE, TestInstance};

/// Number of workers in pods; with the instance's own worker it is 3,000.
const WORKERS: i32 = 2_999;
const NODES_MAX: i32 = 64;
const PATIENCE: Duration = Duration::from_secs(900);
/// Concurrent requests of the test itself.
const AT_A_TIME: usize = 32;
/// Time limit of a full pass of the operator on any machine.
const PASS_MAX: Duration = Duration::from_secs(60);
/// Limit of the requests of one reconciliation.
const CALLS_OF_A_LOOK_MAX: f64 = 6.0;
/// Limit of the memory of the operator and the test, which also holds all pods.
const MEMORY_MAX: u64 = 256 << 20;

/// Stopwatch that starts when it is created.
struct Watch(SystemClock);

impl Watch {
    fn new() -> Watch {
        Watch(SystemClock::new())
    }

    fn elapsed(&self) -> Duration {
        self.0.monotonic()
    }
}

/// Returns the number of requests by service accounts that the API server has served. Only the operator and the
/// instance send such requests.
async fn requests(house: &TestInstance) -> f64 {
    let asked = Request::new("/metrics").list(&ListParams::default()).expect("it is an address");
    let text = house.cluster.client.request_text(asked).await.expect("an administrator may");
    let counts = text.lines().filter(|line| {
        line.starts_with("apiserver_flowcontrol_dispatched_requests_total")
            && line.contains("flow_schema=\"service-accounts\"")
    });
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it is among it");
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("it is a number");
    kilobytes << 10
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) -> Duration {
    let began = Watch::new();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what}");
        SystemClock::new().sleep(Duration::from_millis(500)).await;
    }
    began.elapsed()
}

/// Changes each cluster without affecting its pods, and waits until the operator has reconciled all of them. Returns
/// the time taken.
async fn pass(house: &TestInstance, number: i32) -> Duration {
    let clusters: Api<ComputeCluster> = house.cluster.all();
    let all = clusters.list(&ListParams::default()).await.expect("an administrator may");
    let other = json!({ "spec": { "autoSuspend": 1_000 + number } });
    let began = Watch::new();
    iter(all)
        .for_each_concurrent(AT_A_TIME, async |cluster| {
            let (name, patch) = (cluster.name_any(), Patch::Merge(&other));
            clusters.patch(&name, &PatchParams::default(), &patch).await.expect("it is within limits");
        })
        .await;
    until("each is looked at", async || {
        let all = clusters.list(&ListParams::default()).await.expect("an administrator may");
        all.iter().all(|cluster| {
            cluster.status.as_ref().is_some_and(|status| status.observed_generation == cluster.metadata.generation)
        })
    })
    .await;
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_thousand_workers_cost_little() {
    if std::env::var_os("KILN_NIGHTLY").is_none() {
        eprintln!("skipped: KILN_NIGHTLY is not set");
        return;
    }
    let empty = resident();
    let Some(mut house) = TestInstance::new("many").await else { return };
    house.has_nodes = false;
    let api: Api<ComputeCluster> = house.cluster.all();
    let count = (WORKERS + NODES_MAX - 1) / NODES_MAX;
    let (asked, began) = (requests(&house).await, Watch::new());
    for number in 0..count {
        let object = json!({
            "apiVersion": "kiln.dev/v1alpha1",
            "kind": "ComputeCluster",
            "metadata": { "name": format!("c{number}") },
            "spec": {
                "instance": "dw",
                "hardwareInstance": HARDWARE,
                "nodeCount": NODES_MAX.min(WORKERS - number * NODES_MAX),
            },
        });
        let object: ComputeCluster = serde_json::from_value(object).expect("it is a cluster");
        api.create(&PostParams::default(), &object).await.expect("it is within limits");
    }
    until("all pods are there", async || {
        let all = api.list(&ListParams::default()).await.expect("an administrator may");
        let there: i32 = all.iter().filter_map(|cluster| cluster.status.as_ref()).map(|status| status.nodes).sum();
        there == WORKERS
    })
    .await;
    let pods: Api<Pod> = house.cluster.all();
    let workers = ListParams::default().labels("app.kubernetes.io/component=worker");
    let workers = pods.list(&workers).await.expect("an administrator may");
    iter(&workers).for_each_concurrent(AT_A_TIME, |pod| house.cluster.say_ready_of(pod)).await;
    until("all clusters run", async || {
        let all = api.list(&ListParams::default()).await.expect("an administrator may");
        let ready: i32 =
            all.iter().filter_map(|cluster| cluster.status.as_ref()).map(|status| status.ready_nodes).sum();
        ready == WORKERS
    })
    .await;
    let came = began.elapsed();
    let calls = requests(&house).await - asked;
    eprintln!(
        "{WORKERS} pods of {count} clusters came up in {came:.1?}: {calls} requests, {:.1} a second",
        calls / came.as_secs_f64()
    );

    let asked = requests(&house).await;
    let took = pass(&house, 1).await;
    let calls = requests(&house).await - asked;
    let operator = resident().saturating_sub(empty);
    eprintln!(
        "a full pass of the operator: {took:.1?}, {calls} requests; memory of operator and test {} MiB",
        operator >> 20
    );
    assert!(took < PASS_MAX, "{took:?}");
    assert!(calls <= CALLS_OF_A_LOOK_MAX * f64::from(count), "{calls}");
    assert!(operator < MEMORY_MAX, "{operator}");

    // A new operator has nothing to change.
    let asked = requests(&house).await;
    house.another_operator("b").await;
    let took = pass(&house, 2).await;
    let calls = requests(&house).await - asked;
    eprintln!("a new operator leads and has passed: {took:.1?}, {calls} requests");

    // The instance, with a worker that has joined from each pod.
    let before = resident();
    let began = Watch::new();
    house.begin().await;
    house.until("all clusters are known", |plane| plane.desired().clusters().len() > count as usize).await;
    let desired = house.plane.desired();
    for pod in &workers {
        let name = pod.labels().get("kiln.dev/cluster").expect("it is a worker's");
        let cluster = desired.cluster_named(name).expect("it is known");
        let slot = kubernetes::compute_cluster::slot(name, &pod.name_any()).expect("it is one of the cluster's");
        let share = cluster_model::Resources { millicores: 1_000, memory_bytes: (1 << 30) / 100 * 80 };
        let spec = WorkerSpec { hardware_instance: HARDWARE.to_owned(), share, options: WorkerOptions::default() };
        house.guests.come(VerifiedWorker {
            cluster: cluster.id,
            slot,
            spec,
            host_uid: pod.uid().expect("it is there"),
        });
    }
    let plane = Arc::clone(&house.plane);
    let passes = tokio::task::spawn_blocking(move || {
        let mut took = Vec::new();
        for _ in 0..20 {
            let began = Watch::new();
            plane.reconcile(&BTreeMap::new());
            took.push(began.elapsed());
        }
        took.sort();
        took
    });
    let took = passes.await.expect("it does not panic");
    let serving: usize = desired.clusters().map(|cluster| house.plane.serving(cluster.id).len()).sum();
    assert_eq!(serving, WORKERS as usize + 1, "and the instance's own");
    eprintln!(
        "an instance with {WORKERS} workers: begun after {:.1?}, a pass {:.1?} (at most {:.1?}), {} MiB",
        began.elapsed(),
        took[took.len() / 2],
        took.last().expect("there were some"),
        resident().saturating_sub(before) >> 20
    );
    assert!(took[took.len() / 2] < Duration::from_secs(1), "{took:?}");
    house.stop().await;
}

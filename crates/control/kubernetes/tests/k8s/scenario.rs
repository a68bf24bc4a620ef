//! Scenario of a warehouse from installation to removal, with the actions of an administrator and users and with
//! faults.
//!
//! Everything is as in production: the program `kiln` installs, the operator is a pod, and clients connect to a
//! service.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bench::{Suite, table_load};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Node as NodeObject, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use kubernetes::{HardwareProfile, Instance};
use serde_json::json;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use types::SystemClock;

use crate::bucket::{Bucket, SECRET};
use crate::client::{QueryError, ServiceAddress, until, value};
use crate::load::{KnownQuery, Load};
use crate::node::{self, Node, Site};
use crate::plane::{Cluster, is_ready};
use crate::steps::Steps;

const SCALE: f64 = 0.1;
const SESSIONS: usize = 2;
const ON_WORKERS: &str = "USE CLUSTER etl; SET min_parallel_table_scan_size = 0";
const WORKERS: &str = "app.kubernetes.io/component=worker";
const OPERATORS: &str = "app.kubernetes.io/component=operator";
/// Time limit for the operator to move off a dead node: 8 seconds until that is noticed, 30 seconds of toleration, and
/// a margin.
const OPERATOR_MOVES: Duration = Duration::from_secs(60);
const IMAGE: &str = "registry.example/kiln:1";
/// Image with the same program, which reports another version.
const NEXT_IMAGE: &str = "registry.example/kiln:2";
const NEXT_VERSION: &str = "0.9.9-next";
/// SQLSTATEs that queries may fail with when their server is gone: no connection, no server yet, workers lost twice. A
/// query may also fail without one.
const GONE: [&str; 4] = ["57P01", "57P03", "08006", "58030"];

#[tokio::test(flavor = "multi_thread")]
async fn from_nothing_to_queries_through_faults_and_an_upgrade_to_nothing() {
    let Some(mut scene) = Scenario::open().await else { return };
    scene.install().await;
    let boss = scene.connect().await;
    scene.load(&boss).await;
    scene.make_a_cluster(&boss).await;
    scene.scale(&boss).await;
    scene.sleep_and_wake(&boss).await;
    scene.lose_a_worker(&boss).await;
    scene.lose_the_operator(&boss).await;
    let boss = scene.lose_the_instance(boss).await;
    scene.lose_a_node(&boss).await;
    let boss = scene.lose_the_node_of_the_instance(boss).await;
    let boss = scene.upgrade(boss).await;
    drop(boss);
    scene.uninstall().await;
}

/// Warehouse under test, with its environment.
struct Scenario {
    steps: Steps,
    cluster: Cluster,
    site: Arc<Site>,
    nodes: Vec<Node>,
    bucket: Bucket,
    door: Option<ServiceAddress>,
    /// All 22 queries of TPC-H.
    all: Vec<KnownQuery>,
    /// Queries that several sessions can run at the same time.
    plain: Vec<KnownQuery>,
    /// Names of dead nodes.
    dead: Vec<String>,
}

impl Scenario {
    async fn open() -> Option<Scenario> {
        let cluster = Cluster::bare("scenario").await?;
        let site = Site::open(&cluster).await?;
        let bucket = Bucket::open(&cluster, &site).await?;
        site.image(
            NEXT_IMAGE,
            &[&format!("KILN_TEST_VERSION={NEXT_VERSION}"), &format!("KILN_TEST_WORKER_VERSION={NEXT_VERSION}")],
        );
        let mut nodes = Vec::new();
        for name in ["a", "b", "c"] {
            nodes.push(Node::join(&site, name).await);
        }
        let steps = Steps::begin("scenario");
        let (all, plain, dead) = Default::default();
        Some(Scenario { steps, cluster, site, nodes, bucket, door: None, all, plain, dead })
    }

    fn door(&self) -> &ServiceAddress {
        self.door.as_ref().expect("it is known where it is")
    }

    fn begin_load(&self) -> Load {
        Load::begin(self.door(), ON_WORKERS, &self.plain, SESSIONS)
    }

    async fn pods(&self, labels: &str) -> Vec<Pod> {
        let pods: Api<Pod> = self.cluster.all();
        pods.list(&ListParams::default().labels(labels)).await.expect("an administrator may").items
    }

    /// Deletes a pod without a grace period, like `kubectl delete pod --force`.
    async fn kill(&self, pod: &str) {
        let pods: Api<Pod> = self.cluster.all();
        pods.delete(pod, &DeleteParams::default().grace_period(0)).await.expect("it is there");
    }

    /// Runs `kiln` as the administrator, and returns its output.
    async fn kiln(&self, arguments: &[&str]) -> String {
        let done = Command::new(node::program().expect("the site has it"))
            .args(arguments)
            .args(["--namespace", &self.cluster.namespace])
            .env("KUBECONFIG", &self.cluster.kubeconfig)
            .stdin(Stdio::null())
            .output()
            .await
            .expect("it runs");
        let (said, told) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "kiln {}: {told}{}", arguments.join(" "), self.site.log("dw-0"));
        format!("{told}{said}")
    }

    /// Waits until exactly `count` workers exist and are ready.
    async fn until_workers(&self, boss: &Client, count: usize) {
        let all = "SELECT count(*) || ' of ' || (SELECT count(*) FROM sys.worker WHERE cluster = 'etl' AND state <> 'gone') \
                   FROM sys.worker WHERE cluster = 'etl' AND state = 'ready' AND NOT hung";
        until(boss, all, &format!("{count} of {count}")).await;
    }

    /// Runs all 22 queries and checks their results.
    async fn asked_all(&self, client: &Client) {
        client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
        for known in &self.all {
            let again = KnownQuery::ask(client, &known.sql).await;
            bench::result_comparison::compare(&known.rows, &again.rows).expect("the answer is right");
        }
    }

    async fn install(&mut self) {
        let url = self.bucket.url("dw");
        let storage = ["--storage", &url, "--storage-secret", SECRET];
        let size = ["--cpu", "1", "--memory", "1Gi", "--volume", "1Gi", "--timeout", "120"];
        let told = self.kiln(&[&["install", "kubernetes", "--image", IMAGE], &storage[..], &size].concat()).await;
        assert!(told.contains("get secret dw-superuser") && told.contains("instance dw: running"), "{told}");
        let operators = self.pods(OPERATORS).await;
        assert_eq!(operators.len(), 1, "the operator is a pod");
        self.steps.done("`kiln install kubernetes`, until the warehouse takes queries", "");
    }

    async fn connect(&mut self) -> Client {
        let refused =
            ServiceAddress::without(&self.cluster).await.connect().await.map(drop).expect_err("it is no password");
        assert_eq!(refused.code.as_deref(), Some("28P01"), "{refused:?}");
        self.door = Some(ServiceAddress::resolve(&self.cluster).await);
        let client = self.door().wait().await;
        self.steps.done("the first connection by the service", "encrypted, verified, by the password of the secret");
        client
    }

    async fn load(&mut self, boss: &Client) {
        table_load::load(boss, Suite::Tpch, SCALE, &SystemClock::new(), |_| {}).await.expect("the data loads");
        self.steps.done("load TPC-H SF0.1", "");
        for sql in Suite::Tpch.queries() {
            self.all.push(KnownQuery::ask(boss, sql).await);
        }
        self.plain = self.all.iter().filter(|known| !known.sql.contains("CREATE")).cloned().collect();
        self.steps
            .done("the 22 queries on the instance's own cluster", "the answers that all others are compared with");
    }

    async fn make_a_cluster(&mut self, boss: &Client) {
        let profile: HardwareProfile = serde_json::from_value(json!({
            "apiVersion": "kiln.dev/v1alpha1",
            "kind": "HardwareProfile",
            "metadata": { "name": "small" },
            "spec": { "cpu": "1", "memory": "512Mi", "cacheVolume": { "size": "1Gi" } },
        }))
        .expect("it is a profile");
        self.cluster.all().create(&PostParams::default(), &profile).await.expect("it is within limits");
        let known = "SELECT count(*) FROM sys.cluster WHERE name = 'etl'";
        assert_eq!(value(boss, known).await, "0");
        let statement = "CREATE CLUSTER etl WITH (NODE_COUNT = 3, HARDWARE_INSTANCE = small, AUTO_SUSPEND = NULL)";
        until_done(boss, statement).await;
        self.until_workers(boss, 3).await;
        self.steps.done("`CREATE CLUSTER` with 3 nodes, until all take queries", "");
        self.asked_all(boss).await;
        self.steps.done("the 22 queries on them, for the first time", "right");
        self.asked_all(boss).await;
        self.steps.done("the 22 queries on them, again", "right");
        let mut divided = 0;
        for known in &self.plain {
            let plan = KnownQuery::ask(boss, &format!("EXPLAIN (ANALYZE) {}", known.sql)).await;
            divided += usize::from(plan.rows.iter().flatten().flatten().any(|line| line == "Runs: on 3 workers"));
        }
        assert!(0 < divided, "some are divided among the workers");
        self.steps.done("`EXPLAIN (ANALYZE)` of them", &format!("{divided} were divided among all three"));
    }

    async fn scale(&mut self, boss: &Client) {
        for (nodes, step) in [(5, "scale to 5 under load"), (2, "scale to 2 under load")] {
            let load = self.begin_load();
            load.goes_on(5).await;
            boss.batch_execute(&format!("ALTER CLUSTER etl SET (NODE_COUNT = {nodes})")).await.expect("it is there");
            self.until_workers(boss, nodes).await;
            self.until_pods(nodes).await;
            load.goes_on(5).await;
            let endings = load.end_whole().await;
            let more =
                format!("{} queries, all right; the longest {:.1} s", endings.right, endings.longest.as_secs_f64());
            self.steps.done(step, &more);
        }
    }

    async fn until_pods(&self, count: usize) {
        for pod in self.pods(WORKERS).await.iter().map(ResourceExt::name_any) {
            let slot: usize = pod.rsplit_once('-').and_then(|(_, slot)| slot.parse().ok()).expect("it has a slot");
            if count <= slot {
                self.cluster.until(&pod, |pod: Option<&Pod>| pod.is_none()).await;
            }
        }
    }

    async fn sleep_and_wake(&mut self, boss: &Client) {
        boss.batch_execute("ALTER CLUSTER etl SUSPEND").await.expect("it is awake");
        self.until_workers(boss, 0).await;
        self.until_pods(0).await;
        self.steps.done("suspend, until the pods are gone", "");
        let known = &self.plain[0];
        let again = KnownQuery::ask(boss, &known.sql).await;
        bench::result_comparison::compare(&known.rows, &again.rows).expect("the answer is right");
        self.steps.done("resume by a query, until it is answered", "right");
        until_done(boss, "ALTER CLUSTER etl SET (NODE_COUNT = 3)").await;
        self.until_workers(boss, 3).await;
        self.steps.done("scale to 3, none asking", "");
    }

    async fn lose_a_worker(&mut self, boss: &Client) {
        let load = self.begin_load();
        load.goes_on(5).await;
        let pod = self.pods(WORKERS).await[1].clone();
        let (name, uid) = (pod.name_any(), pod.uid());
        self.kill(&name).await;
        let is_another = move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != uid && is_ready(pod));
        self.cluster.until(&name, is_another).await;
        self.until_workers(boss, 3).await;
        load.goes_on(5).await;
        let endings = load.end().await;
        let forgiven = |trouble: &QueryError| trouble.code.as_deref() == Some("58030");
        assert!(endings.failed.iter().all(forgiven) && endings.failed.len() <= 1, "{endings:#?}");
        let more = format!("{} queries right, {} told to run again", endings.right, endings.failed.len());
        self.steps.done("kill a worker's pod under load, until there is another one", &more);
    }

    async fn lose_the_operator(&mut self, boss: &Client) {
        let before = self.life().await;
        let load = self.begin_load();
        let operator = self.pods(OPERATORS).await[0].name_any();
        self.kill(&operator).await;
        boss.batch_execute("ALTER CLUSTER etl SET (NODE_COUNT = 2)").await.expect("the API server takes it");
        self.until_workers(boss, 2).await;
        self.steps
            .done("kill the operator's pod, until the next one has made what was asked meanwhile", "one worker less");
        boss.batch_execute("ALTER CLUSTER etl SET (NODE_COUNT = 3)").await.expect("the API server takes it");
        self.until_workers(boss, 3).await;
        let endings = load.end_whole().await;
        let after = self.life().await;
        let kept: Vec<_> = before.iter().filter(|one| after.contains(one)).collect();
        assert_eq!(kept.len() + 1, before.len(), "nothing else has begun anew: {before:?} {after:?}");
        self.steps.done("… and back to 3", &format!("{} queries, all right", endings.right));
    }

    /// Returns the pods of the warehouse with their uids and restart counts.
    async fn life(&self) -> Vec<(String, Option<String>, i32)> {
        let mut pods = self.pods(WORKERS).await;
        pods.extend(self.pods("app.kubernetes.io/component=instance").await);
        let life = pods.iter().map(|pod| {
            let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
            (pod.name_any(), pod.uid(), status.map_or(0, |status| status.restart_count))
        });
        life.collect()
    }

    async fn lose_the_instance(&mut self, boss: Client) -> Client {
        drop(boss);
        let before = self.life().await;
        let load = self.begin_load();
        load.goes_on(5).await;
        let pods: Api<Pod> = self.cluster.all();
        let uid = pods.get("dw-0").await.expect("it runs").uid();
        self.kill("dw-0").await;
        self.cluster.until("dw-0", move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != uid)).await;
        load.goes_on(10).await;
        let boss = self.door().wait().await;
        self.until_workers(&boss, 3).await;
        let endings = load.end().await;
        let has_gone = |trouble: &QueryError| trouble.code.as_ref().is_none_or(|code| GONE.contains(&code.as_str()));
        assert!(endings.failed.iter().all(has_gone), "{endings:#?}");
        let after = self.life().await;
        let workers = before.iter().filter(|(name, ..)| name != "dw-0");
        assert!(workers.clone().all(|worker| after.contains(worker)), "its workers have found it again: {after:?}");
        let more = format!(
            "nobody was answered for {:.1} s, {} tries failed; the workers found it again",
            endings.silence.as_secs_f64(),
            endings.failed.len()
        );
        self.steps.done("kill the instance's pod under load, until all is as before", &more);
        boss
    }

    /// Kills a node with workers but without the instance, if possible the one with the operator.
    async fn lose_a_node(&mut self, boss: &Client) {
        let workers: Vec<String> = self.pods(WORKERS).await.iter().map(ResourceExt::name_any).collect();
        let has_only_workers = |node: &Node| !node.runs("dw-0") && workers.iter().any(|worker| node.runs(worker));
        let operator = self.pods(OPERATORS).await[0].name_any();
        let candidates: Vec<usize> = (0..self.nodes.len()).filter(|at| has_only_workers(&self.nodes[*at])).collect();
        let with_operator = candidates.iter().find(|at| self.nodes[**at].runs(&operator));
        let at = *with_operator.or_else(|| candidates.first()).expect("workers are spread over nodes");
        let load = self.begin_load();
        load.goes_on(5).await;
        let node = self.nodes.swap_remove(at);
        let (pods, has_operator): (Api<Pod>, _) = (self.cluster.all(), with_operator.is_some());
        let mut lost = Vec::new();
        for worker in workers.iter().filter(|worker| node.runs(worker)) {
            lost.push((worker, pods.get(worker).await.expect("it is there").uid()));
        }
        let dead = node.die().await;
        load.goes_on(5).await;
        for (worker, uid) in &lost {
            let is_another = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != *uid && is_ready(pod));
            self.cluster.until(worker, is_another).await;
        }
        self.until_workers(boss, 3).await;
        let nodes: Api<NodeObject> = Api::all(self.cluster.client.clone());
        let object = nodes.get(&dead).await.expect("nobody has deleted it");
        let conditions = object.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().find(|one| one.type_ == "Ready").map(|one| one.status.as_str());
        assert_eq!(ready, Some("Unknown"), "it is not heard of");
        load.goes_on(5).await;
        let endings = load.end().await;
        let forgiven = |trouble: &QueryError| trouble.code.as_deref() == Some("58030");
        assert!(endings.failed.iter().all(forgiven) && endings.failed.len() <= SESSIONS, "{endings:#?}");
        let more = format!(
            "{} lost{}, {} queries right, {} told to run again, the longest {:.1} s; the node's object is still there",
            lost.len(),
            if has_operator { " with the operator" } else { "" },
            endings.right,
            endings.failed.len(),
            endings.longest.as_secs_f64()
        );
        self.steps.done("kill a node with workers under load, until they are replaced on others", &more);
        self.until_operator_off(&dead).await;
        self.steps.done("… until an operator is on another one", "");
        self.dead.push(dead);
    }

    /// Waits until an operator is ready on another node than the dead one.
    async fn until_operator_off(&self, dead: &str) {
        let operators = watcher::Config::default().labels(OPERATORS);
        let mut events = watcher(self.cluster.all::<Pod>(), operators).boxed();
        let there = async {
            while let Some(event) = events.next().await {
                if let Event::Apply(pod) | Event::InitApply(pod) = event.expect("the API server can be watched") {
                    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                    if is_ready(&pod) && node != Some(dead) {
                        return;
                    }
                }
            }
        };
        tokio::time::timeout(OPERATOR_MOVES, there).await.expect("the operator leaves a dead node in time");
    }

    async fn lose_the_node_of_the_instance(&mut self, boss: Client) -> Client {
        drop(boss);
        let at = self.nodes.iter().position(|node| node.runs("dw-0")).expect("it runs");
        let dead = self.nodes.swap_remove(at).die().await;
        let pods: Api<Pod> = self.cluster.all();
        let uid = pods.get("dw-0").await.expect("it is there").uid();
        let is_unknown = |pod: Option<&Pod>| {
            let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_deref()).unwrap_or_default();
            conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "False")
        };
        self.cluster.until("dw-0", is_unknown).await;
        let nobody = self.door().connect().await.map(drop).expect_err("its pod is gone");
        assert_eq!(nobody.code, None, "{nobody:?}");
        assert_eq!(pods.get("dw-0").await.expect("it is there").uid(), uid, "Kubernetes does not know that it is gone");
        self.steps.done("kill the instance's node, until Kubernetes hears nothing of it", "nobody is answered");
        self.dead.push(dead);
        for dead in self.dead.drain(..) {
            node::forget(&self.cluster, &dead).await;
        }
        let is_another = move |pod: Option<&Pod>| {
            let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_deref()).unwrap_or_default();
            let is_ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
            is_ready && pod.is_some_and(|pod| pod.uid() != uid)
        };
        // Kubernetes itself waits 40 seconds, and checks every 20.
        self.cluster.until_late("dw-0", is_another).await;
        self.steps.done("delete the dead nodes, until the instance is ready on another one", "");
        let boss = self.door().wait().await;
        self.until_workers(&boss, 3).await;
        self.asked_all(&boss).await;
        self.steps.done("… until its workers are there, and the 22 queries are answered", "right");
        boss
    }

    async fn upgrade(&mut self, boss: Client) -> Client {
        drop(boss);
        let load = self.begin_load();
        load.goes_on(5).await;
        let (least, watching) = self.watch_workers();
        let instances: Api<Instance> = self.cluster.all();
        let image = json!({ "spec": { "image": NEXT_IMAGE } });
        instances.patch("dw", &PatchParams::default(), &Patch::Merge(&image)).await.expect("it is within limits");
        let has_image = |pod: Option<&Pod>| pod.is_some_and(|pod| is_ready(pod) && image_of(pod) == Some(NEXT_IMAGE));
        self.cluster.until_late("dw-0", has_image).await;
        self.steps.done("another image under load, until the instance is ready with it", "");
        for pod in self.pods(WORKERS).await.iter().map(ResourceExt::name_any) {
            self.cluster.until_late(&pod, has_image).await;
        }
        let boss = self.door().wait().await;
        self.until_workers(&boss, 3).await;
        let versions = "SELECT count(*) FROM sys.worker WHERE cluster = 'etl' AND state = 'ready' AND version = ";
        assert_eq!(value(&boss, &format!("{versions}'{NEXT_VERSION}'")).await, "3");
        load.goes_on(5).await;
        watching.abort();
        let endings = load.end().await;
        let has_gone = |trouble: &QueryError| trouble.code.as_ref().is_none_or(|code| GONE.contains(&code.as_str()));
        assert!(endings.failed.iter().all(has_gone), "{endings:#?}");
        let least = least.load(Ordering::Relaxed);
        assert!(2 <= least, "one after the other: {least} were ready at the least");
        let more = format!(
            "one after the other; {} queries right, nobody was answered for {:.1} s, {} tries failed",
            endings.right,
            endings.silence.as_secs_f64(),
            endings.failed.len()
        );
        self.steps.done("… until all its workers have it", &more);
        self.asked_all(&boss).await;
        self.steps.done("the 22 queries on the new version", "right");
        boss
    }

    /// Starts recording the minimum number of ready worker pods.
    fn watch_workers(&self) -> (Arc<AtomicUsize>, JoinHandle<()>) {
        let least = Arc::new(AtomicUsize::new(usize::MAX));
        let (seen, pods): (_, Api<Pod>) = (Arc::clone(&least), self.cluster.all());
        let watching = tokio::spawn(async move {
            let mut events = watcher(pods, watcher::Config::default().labels(WORKERS)).boxed();
            let (mut ready, mut is_told) = (std::collections::HashSet::new(), false);
            while let Some(event) = events.next().await {
                match event.expect("the API server can be watched") {
                    Event::Apply(pod) | Event::InitApply(pod) if is_ready(&pod) => drop(ready.insert(pod.name_any())),
                    Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod) => {
                        ready.remove(&pod.name_any());
                    }
                    Event::Init => {}
                    Event::InitDone => is_told = true,
                }
                if is_told {
                    seen.fetch_min(ready.len(), Ordering::Relaxed);
                }
            }
        });
        (least, watching)
    }

    async fn uninstall(&mut self) {
        let objects = self.bucket.objects();
        let told = self.kiln(&["uninstall", "kubernetes", "--timeout", "120"]).await;
        assert!(told.contains("kept PersistentVolumeClaim data-dw-0"), "{told}");
        self.cluster.until("dw", |set: Option<&StatefulSet>| set.is_none()).await;
        self.cluster.until("kiln-operator", |operator: Option<&Deployment>| operator.is_none()).await;
        for pod in self.pods("app.kubernetes.io/name=kiln").await.iter().map(ResourceExt::name_any) {
            self.cluster.until(&pod, |pod: Option<&Pod>| pod.is_none()).await;
        }
        let claims: Api<PersistentVolumeClaim> = self.cluster.all();
        let left = claims.list(&ListParams::default()).await.expect("an administrator may");
        let left: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
        self.steps.done("`kiln uninstall kubernetes`, until no pod is left", "the volume and the bucket stay");
        assert!(left.contains(&"data-dw-0".to_owned()), "{left:?}");
        assert!(objects <= self.bucket.objects() && 0 < objects, "rows stay in the bucket");
    }
}

/// Repeats a statement until it succeeds, because the instance learns of new objects with a delay.
async fn until_done(boss: &Client, statement: &str) {
    let clock = SystemClock::new();
    loop {
        let Err(error) = boss.batch_execute(statement).await else { return };
        assert!(types::Clock::monotonic(&clock) < Duration::from_secs(10), "{statement}: {error:?}");
        types::Clock::sleep(&clock, Duration::from_millis(100)).await;
    }
}

fn image_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

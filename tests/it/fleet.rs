//! Worker processes: the control plane over real processes, and servers with workers, while workers and servers are
//! killed, frozen and contacted by strangers.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ::fleet::{Fleet, FleetSettings, Launcher};
use cluster_model::{
    Actor, Author, Change, ClusterId, ClusterOptions, ClusterPhase, HardwareInstance, HardwareKind, IfExists,
    Inventory, ReconcileSettings, Resources, RoleRef, WlmProfile, Worker, WorkerId, WorkerState,
};
use control_plane::conformance_tests::{self, TestEnvironment};
use control_plane::{ControlPlane, LocalControlPlane, StateStore, WorkerHost};
use local_workers::DesiredStateFile;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;
use tokio_postgres::Client;
use types::{Clock, Oid, SystemClock, SystemRandom};

use crate::cluster::wait_until;
use crate::server::{Server, kiln};

/// Longest wait for an expected state.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between polls of unresponsive workers.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Control plane over processes of the real program.
struct TestFleet {
    runtime: Runtime,
    folder: TempDir,
    clock: Arc<dyn Clock>,
    patience: ReconcileSettings,
    variables: Vec<(String, String)>,
    fleet: Option<Fleet>,
    plane: Option<LocalControlPlane>,
}

impl TestFleet {
    fn new(variables: &[(&str, &str)]) -> Self {
        let machine = Resources { millicores: 2_000, memory_bytes: 256 << 20 };
        let mut patience = ReconcileSettings::new(env!("CARGO_PKG_VERSION"), machine);
        patience.backoff_initial = Duration::ZERO;
        let mut made = Self {
            runtime: Runtime::new().expect("threads can be started"),
            folder: TempDir::with_prefix("kiln-fleet-").expect("a temporary folder can be made"),
            clock: Arc::new(SystemClock::new()),
            patience,
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            fleet: None,
            plane: None,
        };
        made.open();
        made
    }

    fn open(&mut self) {
        let settings = FleetSettings {
            data_folder: self.folder.path().to_owned(),
            workers_folder: self.folder.path().join("workers"),
            join_address: SocketAddr::from(([127, 0, 0, 1], 0)),
            program: kiln(),
            launcher: Launcher::default(),
            environment: self.variables.clone(),
            storage: format!("file://{}", self.folder.path().join("storage").display()),
            memory_bytes: self.patience.all_workers_resources.memory_bytes,
            cache_bytes: 64 << 20,
            cache_disk_bytes: 64 << 20,
            cache_disk_divisor: 4,
            reserve_bytes: 0,
            reconnect_timeout: Duration::from_secs(20),
            token_verifier: None,
        };
        let opening = Fleet::open(settings, Arc::clone(&self.clock), Arc::new(SystemRandom));
        let fleet = self.runtime.block_on(opening).expect("the folder is ours");
        let host = Arc::clone(fleet.processes()) as Arc<dyn WorkerHost>;
        // All workers are processes, including those of `default`.
        let embedded = HardwareInstance { kind: HardwareKind::Local, ..HardwareInstance::embedded() };
        let profile = WlmProfile { name: "default".to_owned(), max_running: 100 };
        let plane = LocalControlPlane::open(
            Box::new(DesiredStateFile::in_folder(self.folder.path())) as Box<dyn StateStore>,
            BTreeMap::from([(HardwareKind::Local, host)]),
            Inventory::new([HardwareInstance::local(), embedded], [profile]),
            self.patience.clone(),
            Arc::clone(&self.clock),
            Oid(10),
        );
        (self.fleet, self.plane) = (Some(fleet), Some(plane.expect("the folder is ours")));
    }

    fn fleet(&self) -> &Fleet {
        self.fleet.as_ref().expect("it is open")
    }

    fn pid(&self, worker: WorkerId) -> u32 {
        let found = pids(self.folder.path()).into_iter().find(|(id, _)| *id == worker);
        found.expect("it is kept").1
    }

    /// Returns the workers of a cluster once they satisfy `is_so`.
    fn until(&mut self, cluster: &str, is_so: impl Fn(&[Worker]) -> bool) -> Vec<Worker> {
        let id = self.id(cluster);
        let begun = self.clock.monotonic();
        loop {
            let workers: Vec<Worker> = self.plane().workers().iter().filter(|one| one.cluster == id).cloned().collect();
            if is_so(&workers) {
                return workers;
            }
            assert!(self.clock.monotonic() - begun < PATIENCE, "not within {PATIENCE:?}: {workers:?}");
            self.pass();
        }
    }

    fn id(&self, cluster: &str) -> ClusterId {
        self.plane().desired().cluster_named(cluster).expect("it is there").id
    }

    fn create(&self, options: ClusterOptions) {
        let role = RoleRef { oid: Oid(10), name: "kiln".to_owned() };
        let author = Author::Role(Actor { role, superuser: true, create_cluster: true, create_role: true });
        let create = Change::Create { name: "c".to_owned(), options, if_exists: IfExists::Refuse };
        self.plane().apply(&create, &author).expect("it is new");
    }
}

impl TestEnvironment for TestFleet {
    fn plane(&self) -> &dyn ControlPlane {
        self.plane.as_ref().expect("it is open")
    }

    fn pass(&mut self) {
        let seen = self.fleet().processes().changes().current();
        self.plane.as_ref().expect("it is open").reconcile(&BTreeMap::new());
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.fleet().processes().changes().wait_for_newer(seen) => {}
                () = self.clock.sleep(POLL_INTERVAL) => {}
            }
        });
    }

    fn kill(&mut self, worker: WorkerId) {
        signal("KILL", self.pid(worker));
    }

    fn restart(&mut self) {
        self.plane = None;
        let fleet = self.fleet.take().expect("it is open");
        self.runtime.block_on(fleet.abandon());
        self.open();
    }
}

impl Drop for TestFleet {
    fn drop(&mut self) {
        if let Some(fleet) = self.fleet.take() {
            self.runtime.block_on(fleet.close());
        }
    }
}

#[test]
fn the_control_plane_over_processes_conforms() {
    conformance_tests::run(&mut TestFleet::new(&[]), HardwareInstance::LOCAL);
}

#[test]
fn a_frozen_worker_is_hung_and_replaced() {
    let mut machine = TestFleet::new(&[]);
    machine.patience.hung_after = Duration::from_secs(3);
    machine.patience.replace_hung_after = Duration::from_secs(5);
    machine.restart();
    machine.create(ClusterOptions { node_count: Some(2), ..ClusterOptions::default() });
    let is_ready = |one: &Worker| one.state == WorkerState::Ready;
    let before = machine.until("c", |workers| workers.iter().filter(|one| is_ready(one)).count() == 2);
    let (frozen, other) = (before[0].id, before[1].id);
    signal("STOP", machine.pid(frozen));
    let hung = machine.until("c", |workers| workers.iter().any(|one| one.hung));
    assert_eq!(hung.iter().filter(|one| one.hung).map(|one| one.id).collect::<Vec<_>>(), [frozen]);
    let serving = machine.plane().serving(machine.id("c"));
    assert_eq!(serving.iter().map(|one| one.id).collect::<Vec<_>>(), [other], "it gets no work");
    let after = machine.until("c", |workers| {
        let is_over = workers.iter().any(|one| one.id == frozen && one.state == WorkerState::Gone);
        is_over && workers.iter().filter(|one| is_ready(one)).count() == 2
    });
    let gone = after.iter().find(|one| one.id == frozen).expect("it is remembered");
    assert_eq!((gone.failed, gone.detail.as_deref()), (true, Some("did not answer")));
}

#[test]
fn workers_of_another_version_are_seen_and_get_no_work() {
    let mut machine = TestFleet::new(&[("KILN_TEST_WORKER_VERSION", "0.0.1-other")]);
    machine.create(ClusterOptions::default());
    let seen = machine.until("c", |workers| {
        workers.iter().any(|one| one.version.as_deref() == Some("0.0.1-other") && one.state != WorkerState::Starting)
    });
    assert!(!seen.is_empty());
    assert!(machine.plane().serving(machine.id("c")).is_empty());
    assert_eq!(machine.plane().phase(machine.id("c")), Some(ClusterPhase::Starting));
}

const BIG: &str = "CREATE TABLE big (i bigint, v text); INSERT INTO big SELECT i, 'text ' || i FROM generate_series(1, 20000) AS g(i)";
const RUNNING: &str = "SELECT state = 'running' AND ready_workers = 2 FROM sys.cluster WHERE name = 'c'";

#[tokio::test(flavor = "multi_thread")]
async fn workers_outlive_a_server_that_is_killed_and_not_one_that_stops() {
    let folder = TempDir::with_prefix("kiln-fleet-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    client.batch_execute(BIG).await.expect("the table is new");
    client.batch_execute("CREATE CLUSTER c (NODE_COUNT = 2)").await.expect("it is new");
    wait_until(&client, RUNNING).await;
    check_statements(&client).await;
    let before = ready_workers(&client).await;
    server.kill();

    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    wait_until(&client, RUNNING).await;
    assert_eq!(ready_workers(&client).await, before, "they are found again");
    check_statements(&client).await;

    // One worker dies.
    let (victim, pid) = pids(folder.path())[0];
    signal("KILL", pid);
    let replaced = format!(
        "SELECT count(*) = 1 FROM sys.worker WHERE worker = '{victim}' AND state = 'gone' AND detail LIKE 'ended%'"
    );
    wait_until(&client, &replaced).await;
    wait_until(&client, RUNNING).await;
    let after = ready_workers(&client).await;
    assert_eq!(after.iter().filter(|worker| before.contains(worker)).count(), 1, "{before:?}, then {after:?}");
    check_statements(&client).await;

    let living = pids(folder.path());
    assert_eq!(living.len(), 2);
    assert!(server.stop(), "it ends cleanly");
    assert!(living.iter().all(|(_, pid)| !is_running(*pid)), "and takes its workers along");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_at_the_doors_disturb_nobody() {
    let server = Server::start();
    let client = server.connect().await;
    client.batch_execute(BIG).await.expect("the table is new");
    client.batch_execute("CREATE CLUSTER c (NODE_COUNT = 2)").await.expect("it is new");
    wait_until(&client, RUNNING).await;
    let before = ready_workers(&client).await;
    let mut doors: Vec<SocketAddr> =
        vec![worker_registry(server.folder())["address"].as_str().expect("it is text").parse().expect("it is one")];
    for row in client
        .query("SELECT address FROM sys.worker WHERE state = 'ready' AND cluster = 'c'", &[])
        .await
        .expect("it is there")
    {
        doors.push(row.get::<_, &str>(0).parse().expect("it is one"));
    }
    assert_eq!(doors.len(), 3);
    for door in doors {
        for bytes in [&b"\x16\x03\x01\xff\xff"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0; 20_000], b""] {
            let mut stream = tokio::net::TcpStream::connect(door).await.expect("it listens");
            // It may be closed already.
            let _ = stream.write_all(bytes).await;
        }
    }
    check_statements(&client).await;
    assert_eq!(ready_workers(&client).await, before);
    // A worker that nobody has invited.
    let join = format!("kiln://{}", worker_registry(server.folder())["address"].as_str().expect("it is text"));
    let uninvited = Command::new(kiln())
        .args(["worker", "--join", &join, "--patience", "1"])
        .env("KILN_JOIN_TICKET", "AAAA")
        .output()
        .expect("it can be started");
    assert!(!uninvited.status.success());
    let told = String::from_utf8_lossy(&uninvited.stderr).into_owned();
    assert!(told.contains("the join ticket is damaged"), "{told}");
    assert!(server.stop(), "it ends cleanly");
}

/// Checks that statements on the cluster return right answers.
async fn check_statements(client: &Client) {
    client.batch_execute("USE CLUSTER c").await.expect("it is there");
    let row = client.query_one("SELECT count(*), sum(length(v)) FROM big", &[]).await.expect("it is answered");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (20_000, 188_894));
}

/// Returns the ready workers of the cluster.
async fn ready_workers(client: &Client) -> Vec<String> {
    let sql = "SELECT worker FROM sys.worker WHERE cluster = 'c' AND state = 'ready' ORDER BY slot";
    let rows = client.query(sql, &[]).await.expect("it is there");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Reads the instance's persisted list of workers.
fn worker_registry(data: &Path) -> serde_json::Value {
    let bytes = std::fs::read(data.join("workers/roster")).expect("there are workers");
    serde_json::from_slice(&bytes).expect("it is written whole")
}

/// Returns the process ids of the workers.
fn pids(data: &Path) -> Vec<(WorkerId, u32)> {
    let roster = worker_registry(data);
    let workers = roster["workers"].as_array().expect("it is a list").iter();
    let number = |of: &serde_json::Value| of.as_u64().expect("it is a number");
    workers.map(|one| (WorkerId(number(&one["id"])), u32::try_from(number(&one["pid"])).expect("it is one"))).collect()
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the process is ours");
}

/// Returns true if a process runs; a zombie does not.
fn is_running(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

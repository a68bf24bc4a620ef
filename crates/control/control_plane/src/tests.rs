use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::ClusterActivity;
use cluster_model::cluster_events::EventKind;
use cluster_model::desired_state::{ClusterOptions, DEFAULT_CLUSTER_NAME, HardwareKind, Inventory};
use cluster_model::reconcile::Action;
use cluster_model::worker::WorkerState;
use parking_lot::Mutex;
use types::{Clock, ManualClock};

use super::conformance_tests::{self, TestEnvironment};
use super::*;
use crate::fixtures::{BOOTSTRAP, SimulatedHost, StartBehavior, create, nodes, settings, superuser};

/// Store in memory that can fail.
#[derive(Debug, Default)]
struct MemoryStore {
    bytes: Mutex<Option<Vec<u8>>>,
    fails: Mutex<bool>,
}

impl StateStore for Arc<MemoryStore> {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.bytes.lock().clone())
    }

    fn save(&self, bytes: &[u8]) -> io::Result<()> {
        if *self.fails.lock() {
            return Err(io::Error::other("the disk is gone"));
        }
        *self.bytes.lock() = Some(bytes.to_vec());
        Ok(())
    }
}

/// Machine with a control plane, including everything that survives a restart of the instance.
#[derive(Debug)]
struct Machine {
    clock: Arc<ManualClock>,
    memory: Arc<MemoryStore>,
    embedded: Arc<SimulatedHost>,
    local: Arc<SimulatedHost>,
    plane: LocalControlPlane,
}

impl Machine {
    fn new() -> Machine {
        let clock = Arc::new(ManualClock::default());
        clock.advance(Duration::from_secs(1));
        let memory = Arc::new(MemoryStore::default());
        let embedded = Arc::new(SimulatedHost::new(Arc::clone(&clock), 1, 2));
        let local = Arc::new(SimulatedHost::new(Arc::clone(&clock), 2, 2));
        let plane = Machine::open(&clock, &memory, &embedded, &local).expect("open with an empty store");
        Machine { clock, memory, embedded, local, plane }
    }

    fn open(
        clock: &Arc<ManualClock>,
        memory: &Arc<MemoryStore>,
        embedded: &Arc<SimulatedHost>,
        local: &Arc<SimulatedHost>,
    ) -> Result<LocalControlPlane, ControlPlaneError> {
        let hosts: BTreeMap<HardwareKind, Arc<dyn WorkerHost>> = BTreeMap::from([
            (HardwareKind::Embedded, Arc::clone(embedded) as Arc<dyn WorkerHost>),
            (HardwareKind::Local, Arc::clone(local) as Arc<dyn WorkerHost>),
        ]);
        let clock = Arc::clone(clock) as Arc<dyn Clock>;
        let store = Box::new(Arc::clone(memory));
        LocalControlPlane::open(store, hosts, Inventory::single_machine(), settings(), clock, BOOTSTRAP)
    }

    fn passes(&self, count: usize) {
        for _ in 0..count {
            self.plane.reconcile(&BTreeMap::new());
            self.clock.advance(Duration::from_secs(1));
        }
    }

    fn id(&self, name: &str) -> ClusterId {
        self.plane.desired().cluster_named(name).expect("it exists").id
    }

    fn kinds(&self) -> Vec<EventKind> {
        self.plane.events().iter().map(|event| event.kind).collect()
    }
}

impl TestEnvironment for Machine {
    fn plane(&self) -> &dyn ControlPlane {
        &self.plane
    }

    fn pass(&mut self) {
        self.passes(1);
    }

    fn kill(&mut self, worker: WorkerId) {
        self.embedded.kill(worker);
        self.local.kill(worker);
    }

    fn restart(&mut self) {
        // Threads end with the process; child processes are taken over.
        self.embedded = Arc::new(SimulatedHost::new(Arc::clone(&self.clock), 1_001, 2));
        self.plane = Machine::open(&self.clock, &self.memory, &self.embedded, &self.local).expect("reopen the state");
    }
}

#[test]
fn one_machine_conforms_with_processes() {
    conformance_tests::run(&mut Machine::new(), "local");
}

#[test]
fn one_machine_conforms_without_processes() {
    conformance_tests::run(&mut Machine::new(), "embedded");
}

#[test]
fn each_kind_of_hardware_has_its_host() {
    let machine = Machine::new();
    machine.plane.apply(&create("c", nodes(3)), &superuser()).expect("the change is applied");
    machine.passes(4);
    assert_eq!((machine.embedded.starts(), machine.local.starts()), (1, 3));
    let all: Vec<(u32, u32)> = machine.plane.workers().iter().map(|worker| (worker.cluster.0, worker.slot)).collect();
    assert_eq!(all, [(1, 0), (2, 0), (2, 1), (2, 2)]);
}

#[test]
fn a_restarted_instance_takes_over_its_workers() {
    let mut machine = Machine::new();
    machine.plane.apply(&create("c", nodes(2)), &superuser()).expect("the change is applied");
    machine.passes(4);
    let before = machine.plane.serving(machine.id("c"));
    machine.restart();
    machine.passes(1);
    let after = machine.plane.serving(machine.id("c"));
    assert_eq!(after.iter().map(|worker| worker.id).collect::<Vec<_>>(), [WorkerId(2), WorkerId(4)]);
    assert_eq!((before.len(), machine.local.starts()), (2, 2), "no worker is started again");
}

#[test]
fn a_failed_save_changes_nothing() {
    let machine = Machine::new();
    *machine.memory.fails.lock() = true;
    let before = (machine.plane.desired(), machine.plane.revisions().current());
    let error = machine.plane.apply(&create("c", nodes(3)), &superuser()).expect_err("the disk is gone");
    assert_eq!(error.condition(), Condition::IoError);
    assert_eq!((machine.plane.desired(), machine.plane.revisions().current()), before);
    *machine.memory.fails.lock() = false;
    machine.plane.apply(&create("c", nodes(3)), &superuser()).expect("the store works again");
}

#[test]
fn a_damaged_state_is_an_error() {
    let machine = Machine::new();
    machine.memory.bytes.lock().as_mut().expect("the initial state is stored").push(b'!');
    let error = Machine::open(&machine.clock, &machine.memory, &machine.embedded, &machine.local);
    assert_eq!(error.expect_err("the stored state is damaged").condition(), Condition::DataCorrupted);
}

#[test]
fn an_idle_cluster_is_suspended_and_resumed() {
    let machine = Machine::new();
    let options = ClusterOptions { auto_suspend: Some(Some(30)), ..nodes(2) };
    machine.plane.apply(&create("c", options), &superuser()).expect("the change is applied");
    machine.passes(4);
    let id = machine.id("c");
    let now = machine.clock.now_us();
    let busy = BTreeMap::from([(id, ClusterActivity { running: 1, queued: 0, idle_since: None })]);
    let idle = BTreeMap::from([(id, ClusterActivity { running: 0, queued: 0, idle_since: Some(now) })]);
    for _ in 0..40 {
        machine.plane.reconcile(&busy);
        machine.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(machine.plane.phase(id), Some(ClusterPhase::Running));
    machine.plane.reconcile(&idle);
    assert!(machine.plane.desired().cluster(id).expect("it exists").suspended);
    assert_eq!(machine.plane.serving(id).len(), 0, "a suspended cluster serves no statements immediately");
    machine.passes(2);
    assert_eq!(machine.plane.phase(id), Some(ClusterPhase::Suspended));
    machine.plane.apply(&Change::AutoResume { name: "c".to_owned() }, &superuser()).expect("the cluster is resumed");
    machine.plane.reconcile(&idle);
    assert!(!machine.plane.desired().cluster(id).expect("it exists").suspended, "earlier idle time does not count");
}

#[test]
fn worker_events_are_recorded() {
    let machine = Machine::new();
    machine.passes(4);
    assert_eq!(machine.kinds(), [EventKind::WorkerStarting, EventKind::WorkerReady]);
    machine.embedded.set_hanging(WorkerId(1), true);
    machine.passes(8);
    machine.embedded.set_hanging(WorkerId(1), false);
    machine.passes(1);
    machine.embedded.kill(WorkerId(1));
    machine.embedded.set_fate(StartBehavior::Stalls);
    machine.passes(2);
    machine
        .plane
        .apply(&Change::Suspend { name: DEFAULT_CLUSTER_NAME.to_owned() }, &superuser())
        .expect("the change is applied");
    machine.passes(1);
    let kinds = machine.kinds();
    assert_eq!(
        kinds[2..],
        [
            EventKind::WorkerHung,
            EventKind::WorkerRecovered,
            EventKind::WorkerFailed,
            EventKind::WorkerStarting,
            EventKind::Suspended,
            EventKind::WorkerStopped,
        ]
    );
    let failed = machine.plane.events().into_iter().nth(4).expect("it exists");
    assert_eq!(failed.detail, "worker 0000000000000001 in slot 0: killed");
    assert_eq!((failed.cluster.as_deref(), failed.author), (Some("default"), None));
}

#[test]
fn heartbeats_do_not_advance_the_revision() {
    let machine = Machine::new();
    machine.passes(4);
    let seen = machine.plane.revisions().current();
    machine.embedded.set_running(WorkerId(1), 5);
    machine.passes(5);
    assert_eq!(machine.plane.revisions().current(), seen, "heartbeats and statements do not advance the revision");
    assert_eq!(machine.plane.workers()[0].running, 5, "running statements are observed");
    machine.embedded.kill(WorkerId(1));
    machine.passes(1);
    assert!(seen < machine.plane.revisions().current());
}

#[test]
fn draining_is_visible_after_the_pass() {
    let machine = Machine::new();
    machine.passes(4);
    machine
        .plane
        .apply(&Change::Suspend { name: DEFAULT_CLUSTER_NAME.to_owned() }, &superuser())
        .expect("the change is applied");
    assert_eq!(machine.plane.reconcile(&BTreeMap::new()), [Action::Drain { worker: WorkerId(1) }]);
    assert_eq!(machine.plane.workers()[0].state, WorkerState::Draining);
}

#[test]
fn a_paused_instance_does_not_replace_workers() {
    let machine = Machine::new();
    machine.passes(4);
    let worker = machine.plane.workers()[0].id;
    machine.embedded.set_hanging(worker, true);
    machine.passes(1);
    // No pass for a minute, and no heartbeats.
    machine.clock.advance(Duration::from_secs(60));
    assert_eq!(machine.plane.reconcile(&BTreeMap::new()), []);
    machine.embedded.set_hanging(worker, false);
    machine.passes(3);
    assert_eq!(machine.plane.workers()[0].id, worker, "the worker is not replaced");
    assert_eq!(machine.plane.workers()[0].state, WorkerState::Ready);
    // A worker that is silent during regular passes is replaced.
    machine.embedded.set_hanging(worker, true);
    machine.passes(30);
    assert!(machine.plane.workers().iter().any(|other| other.id != worker && other.state == WorkerState::Ready));
}

//! Tests of reconciliation over many passes, with a simulated worker host.

mod fault_simulation;

use std::sync::Arc;
use std::time::Duration;

use cluster_model::desired_state::{Change, ClusterId, ClusterOptions, DesiredState, WorkerOptions};
use cluster_model::reconcile::{Action, ReconcileSettings, reconcile};
use cluster_model::worker::WorkerState::{self, Draining, Ready};
use cluster_model::{Resources, StopReason, Worker, WorkerId};
use types::{Clock, ManualClock};

use crate::fixtures::{MACHINE, SimulatedHost, StartBehavior, apply_changes, create, initial_state, nodes, settings};
use crate::{StartRequest, WorkerHost};

const SECOND: Duration = Duration::from_secs(1);

/// Instance with a cluster `c`, whose id is 2. The cluster `default` is suspended.
struct TestInstance {
    clock: Arc<ManualClock>,
    host: SimulatedHost,
    settings: ReconcileSettings,
    desired: DesiredState,
}

impl TestInstance {
    fn new(changes: &[Change]) -> TestInstance {
        let clock = Arc::new(ManualClock::default());
        clock.advance(SECOND);
        let host = SimulatedHost::new(Arc::clone(&clock), 1, 1);
        let desired = apply_changes(&initial_state(), &[Change::Suspend { name: "default".to_owned() }]);
        let desired = apply_changes(&desired, changes);
        TestInstance { clock, host, settings: settings(), desired }
    }

    fn cluster(count: i64) -> TestInstance {
        TestInstance::new(&[create("c", nodes(count))])
    }

    fn plan_actions(&self) -> Vec<Action> {
        reconcile(&self.desired, &self.host.observe(), self.clock.monotonic(), &self.settings)
    }

    /// Runs one reconciliation pass, then lets time pass.
    fn pass(&self, time: Duration) -> Vec<Action> {
        let actions = self.plan_actions();
        for action in &actions {
            self.act(action);
        }
        self.clock.advance(time);
        actions
    }

    fn act(&self, action: &Action) {
        match action.clone() {
            Action::Start { cluster, slot, spec } => self.host.start(&StartRequest { cluster, slot, spec }),
            Action::Configure { worker, spec } => self.host.configure(worker, &spec),
            Action::Drain { worker } => self.host.drain(worker),
            Action::Stop { worker, reason } => self.host.stop(worker, reason),
            Action::MarkHung { worker } => self.host.mark_hung(worker),
            Action::Forget { worker } => self.host.forget(worker),
        }
    }

    fn passes(&self, count: usize) -> Vec<Action> {
        (0..count).flat_map(|_| self.pass(SECOND)).collect()
    }

    /// Returns id, slot and state of the workers that are not gone.
    fn living(&self) -> Vec<(u64, u32, WorkerState)> {
        let workers = self.host.observe().into_iter().filter(|worker| worker.state != WorkerState::Gone);
        workers.map(|worker| (worker.id.0, worker.slot, worker.state)).collect()
    }

    fn change(&mut self, change: Change) {
        self.desired = apply_changes(&self.desired, &[change]);
    }

    fn alter(&mut self, options: ClusterOptions) {
        self.change(Change::Alter { name: "c".to_owned(), options });
    }
}

fn stopped(actions: &[Action]) -> Vec<(u64, StopReason)> {
    let stops = actions.iter().filter_map(|action| match action {
        Action::Stop { worker, reason } => Some((worker.0, *reason)),
        _ => None,
    });
    stops.collect()
}

fn drained(actions: &[Action]) -> Vec<u64> {
    let drains = actions.iter().filter_map(|action| match action {
        Action::Drain { worker } => Some(worker.0),
        _ => None,
    });
    drains.collect()
}

#[test]
fn a_cluster_starts_its_workers_once() {
    let world = TestInstance::cluster(3);
    let actions = world.pass(SECOND);
    let slots: Vec<u32> = actions
        .iter()
        .map(|action| match action {
            Action::Start { cluster: ClusterId(2), slot, .. } => *slot,
            other => panic!("expected a start, not {other:?}"),
        })
        .collect();
    assert_eq!(slots, [0, 1, 2]);
    assert_eq!(world.passes(5), [], "starting workers need no action");
    assert_eq!(world.living(), [(1, 0, Ready), (2, 1, Ready), (3, 2, Ready)]);
}

#[test]
fn shrinking_drains_the_highest_slots_and_waits_for_their_statements() {
    let mut world = TestInstance::cluster(4);
    world.passes(4);
    world.host.set_running(WorkerId(4), 1);
    world.alter(nodes(2));
    assert_eq!(drained(&world.pass(SECOND)), [4, 3], "the highest slots are drained first");
    assert_eq!(stopped(&world.pass(SECOND)), [(3, StopReason::Drained)]);
    assert_eq!(world.passes(5), []);
    assert_eq!(world.living(), [(1, 0, Ready), (2, 1, Ready), (4, 3, Draining)]);
    world.host.set_running(WorkerId(4), 0);
    assert_eq!(stopped(&world.pass(SECOND)), [(4, StopReason::Drained)]);
    assert_eq!(world.living().len(), 2);
    let forgotten = world.passes(70).into_iter().filter(|action| matches!(action, Action::Forget { .. })).count();
    assert_eq!((forgotten, world.host.observe().len()), (2, 2), "ended workers are forgotten after a while");
}

#[test]
fn a_worker_stays_while_it_hands_over_its_cache() {
    let mut world = TestInstance::cluster(3);
    world.passes(4);
    world.host.set_handing_over(WorkerId(3), true);
    world.alter(nodes(1));
    assert_eq!(drained(&world.pass(SECOND)), [2], "only the other worker hands over its cache");
    assert_eq!(stopped(&world.passes(5)), [(2, StopReason::Drained)]);
    assert_eq!(world.living(), [(1, 0, Ready), (3, 2, Ready)]);
    world.host.set_handing_over(WorkerId(3), false);
    assert_eq!(drained(&world.pass(SECOND)), [3]);
    // A worker that is draining already stays as well, but not beyond its grace period.
    world.host.set_handing_over(WorkerId(3), true);
    assert_eq!(stopped(&world.passes(299)), []);
    assert_eq!(stopped(&world.pass(SECOND)), [(3, StopReason::GracePeriodExceeded)]);
    assert_eq!(world.living(), [(1, 0, Ready)]);
}

#[test]
fn a_hung_worker_is_stopped_despite_its_handover() {
    let mut world = TestInstance::cluster(2);
    world.passes(4);
    world.host.set_handing_over(WorkerId(2), true);
    world.alter(nodes(1));
    world.host.set_hanging(WorkerId(2), true);
    assert_eq!(stopped(&world.passes(30)), [(2, StopReason::Hung)]);
}

#[test]
fn draining_ends_after_the_grace_period() {
    let mut world = TestInstance::cluster(1);
    world.passes(4);
    world.host.set_running(WorkerId(1), 1);
    world.change(Change::Suspend { name: "c".to_owned() });
    assert_eq!(drained(&world.pass(SECOND)), [1]);
    assert_eq!(world.passes(299), []);
    assert_eq!(stopped(&world.pass(SECOND)), [(1, StopReason::GracePeriodExceeded)]);
    assert_eq!(world.living(), []);
}

#[test]
fn suspended_clusters_have_no_workers() {
    let mut world = TestInstance::cluster(2);
    world.pass(SECOND);
    world.change(Change::Suspend { name: "c".to_owned() });
    assert_eq!(stopped(&world.pass(SECOND)), [(2, StopReason::Unwanted), (1, StopReason::Unwanted)]);
    assert_eq!(world.living(), []);
    world.change(Change::Resume { name: "c".to_owned() });
    world.passes(4);
    assert_eq!(world.living(), [(3, 0, Ready), (4, 1, Ready)]);
}

#[test]
fn a_dropped_cluster_loses_its_workers() {
    let mut world = TestInstance::cluster(2);
    world.passes(4);
    world.change(Change::Drop { name: "c".to_owned(), if_exists: false });
    assert_eq!(drained(&world.pass(SECOND)), [2, 1]);
    assert_eq!(world.passes(1).len(), 2);
    assert_eq!(world.living(), []);
    world.passes(70);
    assert_eq!(world.host.observe(), []);
}

#[test]
fn a_dead_worker_is_replaced_in_its_slot() {
    let world = TestInstance::cluster(2);
    world.passes(4);
    world.host.kill(WorkerId(1));
    assert_eq!(world.pass(SECOND), [], "the first restart is delayed");
    assert_eq!(world.pass(SECOND).len(), 1);
    world.passes(3);
    assert_eq!(world.living(), [(2, 1, Ready), (3, 0, Ready)]);
    world.passes(70);
    assert_eq!(world.host.observe().len(), 2, "the failure is forgotten once the next worker is stable");
}

#[test]
fn crash_loops_do_not_spin() {
    for fate in [
        StartBehavior::Dies(Duration::ZERO),
        StartBehavior::Dies(SECOND),
        StartBehavior::JoinsOld(Duration::ZERO),
        StartBehavior::JoinsOld(SECOND),
    ] {
        let world = TestInstance::cluster(1);
        world.host.set_fate(fate);
        world.passes(60);
        let first_minute = world.host.starts();
        assert!((4..=7).contains(&first_minute), "{fate:?}: {first_minute} starts in the first minute");
        world.passes(3_600);
        let later = world.host.starts() - first_minute;
        assert!((50..=62).contains(&later), "{fate:?}: {later} starts in the hour after it");
        assert!(world.host.observe().len() <= 12, "{fate:?}: the number of remembered failures is bounded");
        world.host.heal();
        world.passes(70);
        assert_eq!(world.living().len(), 1, "{fate:?}: the worker is started again");
    }
}

#[test]
fn backoff_is_per_slot() {
    let world = TestInstance::cluster(2);
    world.passes(4);
    for round in 0..4 {
        let first = world.living().into_iter().find(|(_, slot, _)| *slot == 0).expect("slot 0 is filled").0;
        world.host.kill(WorkerId(first));
        let mut waited = 0;
        while world.pass(SECOND).is_empty() {
            waited += 1;
        }
        assert_eq!(waited, 1 << round, "the backoff doubles");
        world.passes(3);
    }
    let other = world.living().into_iter().find(|(_, slot, _)| *slot == 1).expect("slot 1 is filled").0;
    world.host.kill(WorkerId(other));
    assert_eq!((world.pass(SECOND).len(), world.pass(SECOND).len()), (0, 1));
    world.passes(70);
    let first = world.living().into_iter().find(|(_, slot, _)| *slot == 0).expect("slot 0 is filled").0;
    world.host.kill(WorkerId(first));
    assert_eq!((world.pass(SECOND).len(), world.pass(SECOND).len()), (0, 1), "a stable worker resets the backoff");
}

#[test]
fn a_worker_that_does_not_join_is_replaced() {
    let world = TestInstance::cluster(1);
    world.host.set_fate(StartBehavior::Stalls);
    world.pass(SECOND);
    world.host.heal();
    assert_eq!(world.passes(59), []);
    assert_eq!(stopped(&world.pass(SECOND)), [(1, StopReason::JoinTimeout)]);
    world.passes(5);
    assert_eq!(world.living(), [(2, 0, Ready)]);
}

#[test]
fn a_hung_worker_is_marked_then_replaced() {
    let world = TestInstance::cluster(2);
    world.passes(4);
    world.host.set_hanging(WorkerId(1), true);
    world.host.observe();
    assert_eq!(world.passes(4), []);
    assert_eq!(world.passes(3), [Action::MarkHung { worker: WorkerId(1) }], "a hung worker is marked only once");
    world.host.set_hanging(WorkerId(1), false);
    assert_eq!(world.passes(10), [], "a recovered worker needs no action");
    world.host.set_hanging(WorkerId(1), true);
    let actions = world.passes(25);
    assert_eq!(stopped(&actions), [(1, StopReason::Hung)]);
    world.passes(3);
    assert_eq!(world.living(), [(2, 1, Ready), (3, 0, Ready)]);
}

#[test]
fn an_unreachable_worker_is_replaced() {
    let world = TestInstance::cluster(1);
    world.passes(4);
    world.host.set_cut_off(WorkerId(1), true);
    let actions = world.passes(30);
    assert!(stopped(&actions).iter().all(|stop| *stop == (1, StopReason::Hung)));
    assert_eq!(world.living(), [(1, 0, Ready), (2, 0, Ready)], "an unreachable worker is still observed");
    world.host.set_cut_off(WorkerId(1), false);
    world.pass(SECOND);
    assert_eq!(world.living(), [(2, 0, Ready)]);
}

#[test]
fn the_older_of_two_workers_in_a_slot_stays() {
    let world = TestInstance::cluster(1);
    world.passes(4);
    let spec = world.host.observe()[0].spec.clone();
    world.host.start(&StartRequest { cluster: ClusterId(2), slot: 0, spec: spec.clone() });
    assert_eq!(stopped(&world.pass(SECOND)), [(2, StopReason::Unwanted)], "a starting worker is stopped immediately");
    world.host.start(&StartRequest { cluster: ClusterId(2), slot: 0, spec });
    world.clock.advance(SECOND * 3);
    assert_eq!(drained(&world.pass(SECOND)), [3], "a ready worker is drained");
    world.passes(2);
    assert_eq!(world.living(), [(1, 0, Ready)]);
}

#[test]
fn another_version_is_drained_and_replaced() {
    let world = TestInstance::cluster(2);
    world.host.set_fate(StartBehavior::JoinsOld(SECOND));
    world.pass(SECOND);
    world.host.set_fate(StartBehavior::Joins(SECOND));
    world.host.observe();
    world.host.set_running(WorkerId(1), 1);
    let actions = world.pass(SECOND);
    assert_eq!(drained(&actions), [1, 2]);
    world.passes(5);
    assert_eq!(world.living(), [(1, 0, Draining), (3, 0, Ready), (4, 1, Ready)]);
}

#[test]
fn hardware_changes_slot_by_slot() {
    let mut world = TestInstance::cluster(3);
    world.passes(4);
    world.host.set_fate(StartBehavior::Joins(SECOND * 5));
    world.alter(ClusterOptions { hardware_instance: Some("embedded".to_owned()), ..ClusterOptions::default() });
    let cluster = world.desired.cluster_named("c").expect("the cluster exists").clone();
    for _ in 0..30 {
        world.pass(SECOND);
        let workers = world.host.observe();
        let now = world.clock.monotonic();
        assert_eq!(
            cluster_model::serving_workers::serving_workers(&cluster, &workers, now, &world.settings).len(),
            3,
            "all slots have a serving worker"
        );
        assert!(world.living().len() <= 4, "at most one slot has two workers");
    }
    assert_eq!(world.living(), [(4, 0, Ready), (5, 1, Ready), (6, 2, Ready)]);
    assert!(
        world
            .host
            .observe()
            .iter()
            .all(|worker| { worker.state == WorkerState::Gone || worker.spec.hardware_instance == "embedded" })
    );
}

#[test]
fn an_unreachable_worker_does_not_block_a_hardware_change() {
    let mut world = TestInstance::cluster(3);
    world.passes(4);
    world.alter(ClusterOptions { hardware_instance: Some("embedded".to_owned()), ..ClusterOptions::default() });
    world.pass(SECOND);
    world.host.set_cut_off(WorkerId(1), true);
    world.passes(100);
    let new = |worker: &&Worker| worker.spec.hardware_instance == "embedded" && worker.state == Ready;
    let workers = world.host.observe();
    assert_eq!(workers.iter().filter(new).map(|worker| worker.slot).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(world.living().iter().any(|(id, ..)| *id == 1), "the unreachable worker is still observed");
}

#[test]
fn changed_specs_are_applied() {
    let mut world = TestInstance::cluster(2);
    world.passes(4);
    world.alter(ClusterOptions { max_spill_pct: Some(Some(20)), max_cache_pct: Some(Some(30)), ..nodes(4) });
    let actions = world.passes(5);
    let told = actions.iter().filter(|action| matches!(action, Action::Configure { .. })).count();
    assert_eq!(told, 2);
    for worker in world.host.observe() {
        let share = Resources { millicores: 2_000, memory_bytes: MACHINE.memory_bytes / 4 };
        let options = WorkerOptions { max_spill_pct: Some(20), max_cache_pct: Some(30) };
        assert_eq!((worker.spec.share, worker.spec.options), (share, options));
    }
}

#[test]
fn reconciling_3000_workers_is_not_quadratic() {
    let clusters: Vec<Change> =
        (0..46).map(|index| create(&format!("c{index}"), nodes(64))).chain([create("last", nodes(55))]).collect();
    let mut world = TestInstance::new(&clusters);
    world.change(Change::Resume { name: "default".to_owned() });
    // A pass takes some milliseconds; a minute on any machine would mean quadratic complexity.
    let clock = types::SystemClock::new();
    let timed = |expected: usize| {
        let start = clock.monotonic();
        let actions = world.plan_actions();
        let took = clock.monotonic() - start;
        assert_eq!(actions.len(), expected);
        assert!(took < SECOND * 60, "{took:?}");
        actions
    };
    for action in timed(3_000) {
        world.act(&action);
    }
    world.clock.advance(SECOND * 5);
    timed(0);
    for worker in world.host.observe() {
        world.host.kill(worker.id);
    }
    world.clock.advance(SECOND);
    timed(3_000);
}

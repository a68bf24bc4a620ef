use super::*;
use crate::desired_state::{Change, ClusterOptions, WorkerOptions};
use crate::fixtures::{MACHINE, VERSION, apply_changes, create, initial_state, settings, with_nodes};
use crate::worker::{WorkerId, WorkerSpec};

const NOW: Duration = Duration::from_secs(1_000);

fn worker(id: u64, slot: u32) -> Worker {
    Worker {
        id: WorkerId(id),
        cluster: ClusterId(2),
        slot,
        spec: WorkerSpec { hardware_instance: "local".to_owned(), share: MACHINE, options: WorkerOptions::default() },
        state: WorkerState::Ready,
        state_since: Duration::from_secs(id),
        last_heartbeat: NOW,
        hung: false,
        failed: false,
        is_handing_over: false,
        version: Some(VERSION.to_owned()),
        address: None,
        running: 0,
        cache_bytes: 0,
        detail: None,
    }
}

fn two() -> DesiredState {
    apply_changes(&initial_state(), &[create("c", with_nodes(2))])
}

fn slots(desired: &DesiredState, workers: &[Worker]) -> Vec<(u32, u64)> {
    let cluster = desired.cluster_named("c").expect("the cluster was created");
    serving_workers(cluster, workers, NOW, &settings()).iter().map(|worker| (worker.slot, worker.id.0)).collect()
}

#[test]
fn ready_workers_in_slots_serve() {
    let desired = two();
    assert_eq!(slots(&desired, &[worker(1, 1), worker(2, 0), worker(3, 2)]), [(0, 2), (1, 1)]);
    let foreign = Worker { cluster: ClusterId(1), ..worker(1, 0) };
    assert_eq!(slots(&desired, &[foreign]), []);
    let silent = Worker { last_heartbeat: NOW - Duration::from_secs(5), ..worker(1, 0) };
    let unable = [
        Worker { state: WorkerState::Starting, ..worker(1, 0) },
        Worker { state: WorkerState::Draining, ..worker(1, 0) },
        Worker { state: WorkerState::Gone, ..worker(1, 0) },
        Worker { hung: true, ..worker(1, 0) },
        Worker { version: Some("1".to_owned()), ..worker(1, 0) },
        silent,
    ];
    for one in unable {
        assert_eq!(slots(&desired, &[one.clone(), worker(2, 1)]), [(1, 2)], "{one:?}");
    }
    let asleep = apply_changes(&desired, &[Change::Suspend { name: "c".to_owned() }]);
    assert_eq!(slots(&asleep, &[worker(1, 0), worker(2, 1)]), []);
}

#[test]
fn one_worker_of_a_slot_serves() {
    let desired = two();
    assert_eq!(slots(&desired, &[worker(5, 0), worker(3, 0), worker(4, 0)]), [(0, 3)], "the oldest worker serves");
    let hardware = ClusterOptions { hardware_instance: Some("embedded".to_owned()), ..ClusterOptions::default() };
    let desired = apply_changes(&desired, &[Change::Alter { name: "c".to_owned(), options: hardware }]);
    let mut new = worker(9, 0);
    new.spec.hardware_instance = "embedded".to_owned();
    assert_eq!(
        slots(&desired, &[worker(1, 0), new, worker(2, 1)]),
        [(0, 9), (1, 2)],
        "a worker on the new hardware is preferred"
    );
}

#[test]
fn the_phase_follows_the_workers() {
    let of =
        |desired: &DesiredState, workers: &[Worker]| cluster_phase(desired, ClusterId(2), workers, NOW, &settings());
    let desired = two();
    let gone = Worker { state: WorkerState::Gone, ..worker(8, 0) };
    let drains = Worker { state: WorkerState::Draining, ..worker(9, 2) };
    assert_eq!(of(&desired, &[]), Some(ClusterPhase::Starting));
    assert_eq!(of(&desired, &[worker(1, 0)]), Some(ClusterPhase::Resizing));
    assert_eq!(of(&desired, &[worker(1, 0), worker(2, 1), drains.clone()]), Some(ClusterPhase::Resizing));
    assert_eq!(of(&desired, &[worker(1, 0), worker(2, 1), gone.clone()]), Some(ClusterPhase::Running));
    let mut old = worker(2, 1);
    old.spec.hardware_instance = "embedded".to_owned();
    assert_eq!(of(&desired, &[worker(1, 0), old]), Some(ClusterPhase::Resizing), "a change of hardware is in progress");
    let asleep = apply_changes(&desired, &[Change::Suspend { name: "c".to_owned() }]);
    assert_eq!(of(&asleep, &[drains.clone(), gone.clone()]), Some(ClusterPhase::Suspending));
    assert_eq!(of(&asleep, std::slice::from_ref(&gone)), Some(ClusterPhase::Suspended));
    let dropped = apply_changes(&desired, &[Change::Drop { name: "c".to_owned(), if_exists: false }]);
    assert_eq!(of(&dropped, &[drains]), Some(ClusterPhase::Dropping));
    assert_eq!(of(&dropped, &[gone]), None);
}

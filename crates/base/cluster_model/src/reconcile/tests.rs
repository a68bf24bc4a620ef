use super::*;
use crate::cluster_activity::ClusterActivity;
use crate::desired_state::{Change, ClusterOptions};
use crate::fixtures::{apply_changes, create, initial_state, settings, with_nodes};

#[test]
fn cores_are_shared_in_a_cluster_and_memory_by_all() {
    let machine = Resources { millicores: 8_000, memory_bytes: 1_200 };
    assert_eq!(worker_share(machine, 4, 6), Resources { millicores: 2_000, memory_bytes: 200 });
    assert_eq!(worker_share(machine, 2, 6), Resources { millicores: 4_000, memory_bytes: 200 });
    assert_eq!(worker_share(machine, 64, 64).millicores, 125);
    assert_eq!(worker_share(Resources { millicores: 8, ..machine }, 64, 64).millicores, 1);
    assert_eq!(worker_share(machine, 0, 0), machine);
}

#[test]
fn the_backoff_doubles_up_to_its_limit() {
    let settings = settings();
    let waits: Vec<u64> =
        (0..=9).map(|failures| restart_backoff::restart_delay(failures, &settings).as_secs()).collect();
    assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(restart_backoff::restart_delay(usize::MAX, &settings), Duration::from_secs(60));
    assert_eq!(restart_backoff::remembered_failures_max(&settings), 7);
    let endless = ReconcileSettings { backoff_initial: Duration::ZERO, ..settings };
    assert_eq!(restart_backoff::remembered_failures_max(&endless), 64);
}

#[test]
fn idle_clusters_are_suspended() {
    let options = ClusterOptions { auto_suspend: Some(Some(60)), ..with_nodes(1) };
    let desired = apply_changes(
        &initial_state(),
        &[create("a", options.clone()), create("b", options), create("never", with_nodes(1))],
    );
    let idle = |since: i64| ClusterActivity { running: 0, queued: 0, idle_since: Some(since) };
    let busy = ClusterActivity { running: 1, queued: 0, idle_since: None };
    let id = |name: &str| desired.cluster_named(name).expect("the cluster was created").id;
    let asleep = |first: ClusterActivity, now_us: i64| {
        let activity = [(id("a"), first), (id("b"), busy), (id("never"), idle(0)), (id("default"), idle(0))];
        let changes = suspend_idle(&desired, &activity.into_iter().collect(), now_us);
        changes.len()
    };
    assert_eq!(asleep(idle(1_000_000), 60_999_999), 0);
    assert_eq!(asleep(idle(1_000_000), 61_000_000), 1);
    assert_eq!(asleep(busy, i64::MAX), 0);
    // The cluster was made at 7: nothing was idle before.
    assert_eq!(asleep(idle(i64::MIN), 60_000_006), 0);
    assert_eq!(asleep(idle(i64::MIN), 60_000_007), 1);
    assert_eq!(suspend_idle(&desired, &BTreeMap::new(), i64::MAX), [], "unknown activity is not idleness");
    let sleeping = apply_changes(&desired, &[Change::Suspend { name: "a".to_owned() }]);
    assert_eq!(suspend_idle(&sleeping, &[(id("a"), idle(0))].into_iter().collect(), i64::MAX), []);
}

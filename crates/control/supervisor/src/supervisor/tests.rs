use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};

use types::ManualClock;

use super::*;
use crate::ServiceState;

/// A supervisor and the clock that it sleeps by.
fn supervisor() -> (Supervisor, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    (Supervisor::new(Arc::clone(&clock) as Arc<dyn Clock>), clock)
}

/// Lets every task go as far as it can without the clock.
async fn let_tasks_run() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_service_that_panics_is_started_again_after_pauses_that_grow() {
    let (supervisor, clock) = supervisor();
    let runs = Arc::new(AtomicU64::new(0));
    supervisor.start("flusher", &runs, |runs, _| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        async move { if run < 3 { panic!("run {run}") } else { pending().await } }
    });
    let_tasks_run().await;
    let status = supervisor.statuses().remove(0);
    assert_eq!((status.state, status.restarts), (ServiceState::Restarting, 0));
    assert!(status.is_failing() && status.last_error.as_deref() == Some("it panicked: run 0"), "{status:?}");
    for (seconds, expected) in [(1, 2), (1, 2), (1, 3), (3, 3), (1, 4), (60, 4)] {
        clock.advance(Duration::from_secs(seconds));
        let_tasks_run().await;
        assert_eq!(runs.load(Ordering::Relaxed), expected, "after {seconds} more seconds");
    }
    let status = supervisor.statuses().remove(0);
    assert_eq!((status.state, status.restarts), (ServiceState::Running, 3));
    assert_eq!(status.last_error.as_deref(), Some("it panicked: run 2"), "the cause of its last restart");
    assert_eq!(status.started_us, 7_000_000);
}

#[tokio::test]
async fn a_run_that_was_long_makes_the_next_pause_short() {
    let (supervisor, clock) = supervisor();
    let runs = Arc::new(AtomicU64::new(0));
    supervisor.start("settler", &(Arc::clone(&runs), Arc::clone(&clock)), |(runs, clock), _| {
        runs.fetch_add(1, Ordering::Relaxed);
        clock.sleep(Duration::from_secs(100))
    });
    for expected in 1..5 {
        let_tasks_run().await;
        assert_eq!(runs.load(Ordering::Relaxed), expected);
        clock.advance(Duration::from_secs(100));
        let_tasks_run().await;
        assert_eq!(supervisor.statuses()[0].state, ServiceState::Restarting);
        assert_eq!(supervisor.statuses()[0].last_error.as_deref(), Some("it ended"));
        clock.advance(RESTART_DELAY_FIRST);
    }
}

#[tokio::test]
async fn what_a_service_reports_is_its_state_until_it_reports_something_else() {
    let (supervisor, clock) = supervisor();
    supervisor.start("archiver", &clock, |clock, health| async move {
        health.report_failure("the bucket is gone");
        clock.sleep(Duration::from_secs(5)).await;
        health.report_success();
        pending().await
    });
    let_tasks_run().await;
    let status = supervisor.statuses().remove(0);
    assert_eq!((status.state, status.last_error.as_deref()), (ServiceState::Failing, Some("the bucket is gone")));
    clock.advance(Duration::from_secs(5));
    let_tasks_run().await;
    let status = supervisor.statuses().remove(0);
    assert_eq!((status.state, status.last_error), (ServiceState::Running, None));
}

#[tokio::test]
async fn a_service_may_be_done_and_those_that_are_stopped_have_left_their_step() {
    let (supervisor, _clock) = supervisor();
    supervisor.start_until_done("announcer", &(), |(), _| async {});
    let held = Arc::new(());
    supervisor.start("cleaner", &held, |in_step, _| async move {
        pending::<()>().await;
        drop(in_step);
    });
    let_tasks_run().await;
    assert_eq!(supervisor.statuses()[0].state, ServiceState::Done);
    assert!(!supervisor.statuses()[0].is_failing());
    supervisor.stop(|name| name == "cleaner").await;
    assert_eq!(Arc::strong_count(&held), 1, "its task is gone");
    let names: Vec<_> = supervisor.statuses().iter().map(|status| status.name).collect();
    assert_eq!(names, ["announcer"]);
}

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use types::{QueryId, SystemClock};

use super::query_task::run_part;
use super::turn_queue::Queue;
use super::*;

fn shares<const N: usize>(priorities: [Priority; N]) -> [QueryShare; N] {
    priorities.map(QueryShare::new)
}

/// Simulates queries that always have work for `rounds` turns of a millisecond; returns the turns of each.
fn turns_of(shares: &[QueryShare], rounds: usize) -> Vec<usize> {
    let mut queue = Queue::default();
    shares.iter().enumerate().for_each(|(query, share)| queue.push(share, query));
    let mut had = vec![0; shares.len()];
    for _ in 0..rounds {
        let query = queue.pop().expect("each is queued again");
        had[query] += 1;
        let level = shares[query].level();
        shares[query].add_thread_time(Duration::from_millis(1));
        queue.account_turn(level, Duration::from_millis(1));
        queue.push(&shares[query], query);
    }
    had
}

#[test]
fn queries_of_one_priority_advance_alike() {
    let shares = shares([Priority::Normal; 3]);
    turns_of(&shares, 300);
    let had = turns_of(&shares, 300);
    assert!(had.iter().all(|turns| (99..=101).contains(turns)), "{had:?}");
}

#[test]
fn a_priority_gets_four_times_what_the_next_gets() {
    let shares = shares([Priority::Low, Priority::Normal, Priority::High]);
    turns_of(&shares, 40_000);
    let had = turns_of(&shares, 2100);
    assert!((95..=105).contains(&had[0]) && (390..=410).contains(&had[1]) && 1585 <= had[2], "{had:?}");
}

#[test]
fn a_young_query_goes_first_and_stops_nobody() {
    let old = QueryShare::new(Priority::Normal);
    old.add_thread_time(Duration::from_secs(60));
    let young = QueryShare::new(Priority::Normal);
    let had = turns_of(&[old, young], 80);
    assert_eq!(had, [10, 70]);
}

#[test]
fn who_has_longer_turns_has_fewer() {
    let [old, young] = shares([Priority::Normal; 2]);
    old.add_thread_time(Duration::from_secs(60));
    let mut queue = Queue::default();
    let shares = [old, young];
    shares.iter().enumerate().for_each(|(query, share)| queue.push(share, query));
    let mut had = [Duration::ZERO; 2];
    for _ in 0..57 {
        let query: usize = queue.pop().expect("each is queued again");
        // The old query computes for eight times as long without yielding.
        let time = Duration::from_millis([8, 1][query]);
        had[query] += time;
        queue.account_turn(shares[query].level(), time);
        queue.push(&shares[query], query);
    }
    assert_eq!(had, [Duration::from_millis(8), Duration::from_millis(56)]);
}

#[test]
fn the_younger_go_first_at_all_scales() {
    let [first, second, third] = shares([Priority::Normal; 3]);
    first.add_thread_time(Duration::from_secs(60));
    second.add_thread_time(Duration::from_secs(2));
    third.add_thread_time(Duration::from_millis(500));
    let had = turns_of(&[first, second, third], 640);
    assert_eq!(had, [10, 70, 560]);
}

#[test]
fn a_query_that_waited_for_something_else_claims_nothing_for_that() {
    let [busy, idle] = shares([Priority::Normal; 2]);
    for share in [&busy, &idle] {
        share.add_thread_time(Duration::from_secs(20));
    }
    turns_of(std::slice::from_ref(&busy), 5000);
    let mut queue = Queue::default();
    let mut had = [0, 0];
    queue.push(&busy, 0);
    queue.pop();
    queue.push(&busy, 0);
    queue.push(&idle, 1);
    for _ in 0..100 {
        let query: usize = queue.pop().expect("each is queued again");
        had[query] += 1;
        [&busy, &idle][query].add_thread_time(Duration::from_millis(1));
        queue.push([&busy, &idle][query], query);
    }
    assert!(had.iter().all(|turns| (49..=51).contains(turns)), "{had:?}");
}

fn started(count: usize) -> (QueryThreads, Arc<QueryShare>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    (QueryThreads::start(count, &clock).expect("threads start"), Arc::default())
}

/// Computes for a while, yielding after each step.
async fn steps(count: usize) {
    for _ in 0..count {
        std::hint::black_box((0..20_000_u64).fold(0, |sum, next| std::hint::black_box(sum ^ next)));
        yield_if_due().await;
    }
}

#[tokio::test]
async fn no_more_run_at_once_than_there_are_threads() {
    let (threads, query) = started(2);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let task = || {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            for _ in 0..20 {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::hint::black_box((0..200_000_u64).fold(0, |sum, next| std::hint::black_box(sum ^ next)));
                running.fetch_sub(1, Ordering::SeqCst);
                yield_if_due().await;
            }
        }
    };
    let tasks: Vec<_> = (0..16).map(|_| threads.spawn(&query, task())).collect();
    for task in tasks {
        task.await.expect("it ends");
    }
    assert!(most.load(Ordering::SeqCst) <= 2);
    assert!(Duration::ZERO < query.thread_time());
    assert_eq!(threads.turns.free(), 2);
}

#[tokio::test]
async fn a_young_query_does_not_wait_for_an_old_one_that_cannot_pause() {
    let (threads, young) = started(1);
    let old = Arc::new(QueryShare::default());
    old.add_thread_time(Duration::from_secs(60));
    let (sender, receiver) = std::sync::mpsc::channel();
    let (begun, has_begun) = oneshot::channel();
    let busy = threads.spawn(&old, async move {
        begun.send(()).expect("somebody waits");
        receiver.recv_timeout(Duration::from_secs(60)).expect("the young one runs meanwhile");
    });
    has_begun.await.expect("it begins");
    threads.spawn(&young, async move { sender.send(()) }).await.expect("it ends").expect("somebody waits");
    busy.await.expect("it ends");
    assert_eq!(threads.turns.free(), 1);
}

#[tokio::test]
async fn turns_come_back_from_what_dies_is_dropped_or_never_began() {
    let (threads, query) = started(1);
    let died = threads.spawn(&query, async { panic!("on purpose") });
    assert!(died.await.is_err());
    drop(threads.spawn(&query, std::future::pending::<()>()));
    let busy: Vec<_> = (0..8).map(|_| threads.spawn(&query, steps(1_000_000))).collect();
    threads.spawn(&query, steps(10)).await.expect("it ends");
    drop(busy);
    threads.spawn(&query, steps(10)).await.expect("it ends");
    while 0 < threads.unfinished_tasks() {
        tokio::task::yield_now().await;
    }
    assert_eq!(threads.turns.free(), 1);
}

#[tokio::test]
async fn what_waits_outside_lets_those_go_on_that_it_waits_for() {
    let (threads, query) = started(1);
    let (sender, receiver) = oneshot::channel();
    let waiting = threads.spawn(&query, async { block_outside_turn(|| receiver.blocking_recv()) });
    threads.spawn(&query, async { sender.send(7) }).await.expect("it ends").expect("somebody waits");
    assert_eq!(waiting.await.expect("it ends"), Ok(7));
    let long = threads.spawn(&query, async { run_long(|| 8) });
    assert_eq!(long.await.expect("it ends"), 8);
    assert_eq!(threads.turns.free(), 1);
}

#[tokio::test]
async fn long_steps_that_cannot_pause_give_way() {
    let (threads, query) = started(1);
    let is_over = Arc::new(AtomicBool::new(false));
    let step = || {
        let is_over = Arc::clone(&is_over);
        async move {
            while !is_over.load(Ordering::SeqCst) {
                run_part(&mut || {
                    std::hint::black_box((0..20_000_u64).fold(0, |sum, next| std::hint::black_box(sum ^ next)));
                });
            }
        }
    };
    let long: Vec<_> = (0..4).map(|_| threads.spawn(&query, step())).collect();
    let ending = threads.spawn(&query, async move { is_over.store(true, Ordering::SeqCst) });
    tokio::time::timeout(Duration::from_secs(60), ending).await.expect("it has a thread").expect("it ends");
    for step in long {
        step.await.expect("it ends");
    }
    assert_eq!(threads.turns.free(), 1);
}

#[tokio::test]
async fn few_old_queries_compute_at_length_at_once() {
    let (threads, query) = started(2);
    let old = Arc::new(QueryShare::default());
    old.add_thread_time(Duration::from_secs(60));
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let task = || {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            let _place = long_run_permit().await;
            run_long(|| {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::hint::black_box((0..200_000_u64).fold(0, |sum, next| std::hint::black_box(sum ^ next)));
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
    };
    let tasks: Vec<_> = (0..8).map(|_| threads.spawn(&old, task())).collect();
    for task in tasks {
        task.await.expect("it ends");
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let (sender, receiver) = oneshot::channel::<()>();
    let holder = threads.spawn(&old, async {
        let _place = long_run_permit().await;
        receiver.await.expect("it is told to end");
    });
    drop(threads.spawn(&old, async { long_run_permit().await }));
    threads
        .spawn(&query, async { assert!(long_run_permit().await.is_none()) })
        .await
        .expect("a young one does not wait");
    sender.send(()).expect("it waits");
    holder.await.expect("it ends");
    let after = threads.spawn(&old, async { long_run_permit().await.is_some() });
    assert!(after.await.expect("the place has come back, also from whoever was dropped"));
}

#[tokio::test]
async fn what_old_queries_compute_at_length_stays_behind() {
    let (threads, young) = started(1);
    let old = Arc::new(QueryShare::default());
    old.add_thread_time(Duration::from_secs(60));
    let niceness = || async { run_long(|| rustix::process::getpriority_process(None)) };
    let of_young = threads.spawn(&young, niceness()).await.expect("it ends").expect("threads have one");
    let of_old = threads.spawn(&old, niceness()).await.expect("it ends").expect("threads have one");
    assert!(!cfg!(target_os = "linux") || of_young < of_old, "{of_young} and {of_old}");
    let panicking = threads.spawn(&old, async { run_long(|| panic!("on purpose")) });
    assert!(panicking.await.is_err());
    assert_eq!(threads.turns.free(), 1);
}

#[tokio::test]
async fn a_short_query_ends_before_long_ones_that_came_first() {
    let (threads, _) = started(1);
    let old: Vec<_> = (0..4)
        .map(|_| {
            let query = Arc::new(QueryShare::default());
            query.add_thread_time(Duration::from_secs(1));
            threads.spawn(&query, steps(1_000_000))
        })
        .collect();
    let short = Arc::new(QueryShare::default());
    threads.spawn(&short, steps(100)).await.expect("it ends");
    assert!(old.iter().all(|task| !task.is_finished()));
}

#[tokio::test]
async fn tasks_beside_one_another_are_of_one_query() {
    let (threads, query) = started(2);
    let parts = threads.spawn(&query, async {
        let part = tokio::spawn(in_same_query(steps(100)));
        part.await
    });
    parts.await.expect("it ends").expect("so does its part");
    assert_eq!(threads.turns.free(), 2);
}

#[tokio::test]
async fn a_task_that_keeps_its_thread_is_named_until_it_gives_it_back() {
    let (threads, _) = started(1);
    let query = QueryId(0x5_7A_4D);
    let share = Arc::new(QueryShare::new(Priority::Normal).with_query(query));
    let (begun, has_begun) = oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let task = threads.spawn(&share, async move {
        begun.send(()).expect("the test waits");
        released.recv().expect("the test says so");
    });
    has_begun.await.expect("it runs");
    let named = || stuck_threads(Duration::ZERO).into_iter().find(|standing| standing.query == Some(query));
    let standing = named().expect("it has the thread");
    assert!(standing.thread.starts_with("query-"), "{standing:?}");
    assert!(stuck_threads(Duration::from_secs(3600)).iter().all(|standing| standing.query != Some(query)));
    release.send(()).expect("the task waits");
    task.await.expect("it ends");
    assert_eq!(named(), None);
}

#[tokio::test]
async fn who_waits_outside_its_turn_is_not_named() {
    let (threads, _) = started(1);
    let query = QueryId(0x5_7A_4E);
    let share = Arc::new(QueryShare::new(Priority::Normal).with_query(query));
    let (begun, has_begun) = oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let task = threads.spawn(&share, async move {
        block_outside_turn(|| {
            begun.send(()).expect("the test waits");
            released.recv().expect("the test says so");
        });
    });
    has_begun.await.expect("it runs");
    assert!(stuck_threads(Duration::ZERO).iter().all(|standing| standing.query != Some(query)));
    release.send(()).expect("the task waits");
    task.await.expect("it ends");
}

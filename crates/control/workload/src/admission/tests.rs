use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use types::random::SeededRandom;
use types::{ManualClock, Random, SystemClock};

use super::*;
use crate::counting_waker::CountingWaker;

fn admission(running: u32) -> (Arc<Admission>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let limits = Limits { running, ..Limits::default() };
    (Admission::new(limits, AdmissionMode::Open, Arc::clone(&clock) as Arc<dyn Clock>), clock)
}

fn request(statement: u64, user: u32) -> Request {
    Request { statement: QueryId(statement), user: Oid(user), weight: 1, is_superuser: false }
}

/// Waiting request with its waker.
#[derive(Debug)]
struct WaitingRequest {
    flag: CountingWaker,
    future: Pin<Box<Admit>>,
}

impl WaitingRequest {
    fn new(admission: &Arc<Admission>, request: Request) -> WaitingRequest {
        let mut asked = WaitingRequest { flag: CountingWaker::new(), future: Box::pin(admission.admit(request)) };
        assert!(asked.poll().is_pending(), "the request waits");
        asked
    }

    fn poll(&mut self) -> Poll<Result<Permit, Refusal>> {
        self.future.as_mut().poll(&mut self.flag.context())
    }

    #[track_caller]
    fn admitted(&mut self) -> Permit {
        assert_eq!(self.flag.wakes(), 1, "the request was woken");
        match self.poll() {
            Poll::Ready(Ok(permit)) => permit,
            other => panic!("expected an admission, not {other:?}"),
        }
    }

    #[track_caller]
    fn refused(&mut self) -> Refusal {
        assert_eq!(self.flag.wakes(), 1, "the request was woken");
        match self.poll() {
            Poll::Ready(Err(refusal)) => refusal,
            other => panic!("expected a refusal, not {other:?}"),
        }
    }
}

fn admit_now(admission: &Arc<Admission>, request: Request) -> Permit {
    let flag = CountingWaker::new();
    match pin!(admission.admit(request)).poll(&mut flag.context()) {
        Poll::Ready(Ok(permit)) => permit,
        other => panic!("expected an immediate admission, not {other:?}"),
    }
}

#[test]
fn statements_beyond_the_limit_wait() {
    let (admission, clock) = admission(2);
    let first = admit_now(&admission, request(1, 1));
    let second = admit_now(&admission, request(2, 1));
    assert_eq!(first.waited(), Duration::ZERO);
    let mut third = WaitingRequest::new(&admission, request(3, 1));
    let mut fourth = WaitingRequest::new(&admission, request(4, 1));
    assert_eq!((admission.activity().running, admission.activity().queued), (2, 2));
    assert!(admission.try_admit(&request(9, 9)).is_none());
    clock.advance(Duration::from_millis(250));
    drop(first);
    let third = third.admitted();
    assert_eq!(third.waited(), Duration::from_millis(250));
    assert_eq!(fourth.flag.wakes(), 0);
    drop((second, third));
    drop(fourth.admitted());
    assert!(admission.try_admit(&request(9, 9)).is_some(), "all permits are released");
    let totals = admission.snapshot().totals;
    assert_eq!((totals.admitted, totals.waited, totals.cancelled, totals.refused), (5, 2, 0, 0));
    assert_eq!((totals.total_wait, totals.longest_wait), (Duration::from_millis(500), Duration::from_millis(250)));
}

#[test]
fn one_superuser_may_exceed_the_limit() {
    let (admission, _) = admission(2);
    let superuser = Request { is_superuser: true, ..request(3, 3) };
    let held = [admit_now(&admission, request(1, 1)), admit_now(&admission, request(2, 1))];
    let waiting = WaitingRequest::new(&admission, request(4, 1));
    let beyond = admission.try_admit(&superuser).expect("a superuser may exceed the limit");
    assert!(admission.try_admit(&superuser).is_none(), "only one superuser may exceed the limit");
    let mut late = WaitingRequest::new(&admission, superuser);
    assert_eq!((admission.activity().running, admission.activity().queued), (3, 2));
    drop(beyond);
    assert_eq!(waiting.flag.wakes(), 0, "the limit was exceeded before");
    drop(late.admitted());
    assert!(admission.try_admit(&superuser).is_some(), "the next superuser may exceed the limit");
    drop((held, waiting));
    let normal = admission.try_admit(&superuser).expect("no statement runs");
    let other = admit_now(&admission, request(5, 1));
    assert!(admission.try_admit(&superuser).is_none(), "a superuser runs already");
    drop((normal, other));
    admission.set_mode(AdmissionMode::Closed);
    assert!(admission.try_admit(&superuser).is_none(), "a closed admission refuses superusers too");
}

#[test]
fn users_take_turns_in_order_of_arrival() {
    let (admission, _) = admission(1);
    let runs = admit_now(&admission, request(0, 1));
    let asks = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)];
    let mut asked: Vec<WaitingRequest> =
        asks.map(|(statement, user)| WaitingRequest::new(&admission, request(statement, user))).into();
    let shown: Vec<u64> = admission.snapshot().queued.iter().map(|queued| queued.statement.0).collect();
    assert_eq!(shown, [1, 4, 6, 2, 5, 3]);
    let mut runs = Some(runs);
    for statement in shown {
        drop(runs.take());
        runs = Some(asked[statement as usize - 1].admitted());
    }
}

#[test]
fn the_weight_is_the_number_of_statements_per_turn() {
    let (admission, _) = admission(1);
    let _runs = admit_now(&admission, request(0, 1));
    let heavy = |statement| Request { weight: 3, ..request(statement, 1) };
    let _asked: Vec<WaitingRequest> = (1..=6)
        .map(heavy)
        .chain((7..=9).map(|statement| request(statement, 2)))
        .map(|request| WaitingRequest::new(&admission, request))
        .collect();
    let shown: Vec<u64> = admission.snapshot().queued.iter().map(|queued| queued.statement.0).collect();
    assert_eq!(shown, [1, 2, 3, 7, 4, 5, 6, 8, 9]);
}

#[test]
fn a_cancelled_request_is_refused() {
    let (admission, _) = admission(1);
    let runs = admit_now(&admission, request(1, 1));
    let mut second = WaitingRequest::new(&admission, request(2, 1));
    let mut third = WaitingRequest::new(&admission, request(3, 1));
    assert!(!admission.cancel(QueryId(1)), "running statements cannot be cancelled here");
    assert!(!admission.cancel(QueryId(9)), "unknown statements cannot be cancelled");
    assert!(admission.cancel(QueryId(2)));
    assert!(!admission.cancel(QueryId(2)), "a cancelled statement is not waiting");
    assert_eq!(second.refused(), Refusal::Cancelled);
    drop(runs);
    drop(third.admitted());
    assert_eq!(admission.snapshot().totals.cancelled, 1);
}

#[test]
fn an_admitted_request_that_is_dropped_admits_the_next() {
    let (admission, _) = admission(1);
    let runs = admit_now(&admission, request(1, 1));
    let second = WaitingRequest::new(&admission, request(2, 1));
    let third = WaitingRequest::new(&admission, request(3, 2));
    let mut fourth = WaitingRequest::new(&admission, request(4, 3));
    drop(runs);
    assert_eq!((second.flag.wakes(), third.flag.wakes()), (1, 0), "the second request is admitted");
    assert!(!admission.cancel(QueryId(2)), "an admitted statement cannot be cancelled");
    drop(second);
    assert_eq!((third.flag.wakes(), fourth.flag.wakes()), (1, 0), "dropping the second admits the third");
    drop(third);
    drop(fourth.admitted());
    let activity = admission.activity();
    assert_eq!((activity.running, activity.queued), (0, 0));
    assert!(admission.gate.lock().is_clean(), "dropped requests leave no entry");
}

#[test]
fn an_unclaimed_refusal_leaves_no_entry() {
    let (admission, _) = admission(1);
    let runs = admit_now(&admission, request(1, 1));
    let second = WaitingRequest::new(&admission, request(2, 1));
    assert!(admission.cancel(QueryId(2)));
    drop((second, runs));
    assert!(admission.gate.lock().is_clean());
}

#[test]
fn the_newest_waker_is_woken() {
    let (admission, _) = admission(1);
    let runs = admit_now(&admission, request(1, 1));
    let mut second = WaitingRequest::new(&admission, request(2, 1));
    let old = std::mem::replace(&mut second.flag, CountingWaker::new());
    assert!(second.poll().is_pending());
    drop(runs);
    assert_eq!(old.wakes(), 0);
    drop(second.admitted());
}

#[test]
fn a_full_queue_refuses() {
    let (admission, _) = admission(1);
    admission.set_limits(Limits { running: 1, queued: 1 });
    let _runs = admit_now(&admission, request(1, 1));
    let _second = WaitingRequest::new(&admission, request(2, 1));
    let flag = CountingWaker::new();
    let third = pin!(admission.admit(request(3, 1))).poll(&mut flag.context());
    assert!(matches!(third, Poll::Ready(Err(Refusal::QueueFull { limit: 1 }))), "{third:?}");
    assert_eq!(admission.snapshot().totals.refused, 1);
}

#[test]
fn the_mode_holds_opens_and_closes() {
    let (admission, _) = admission(1);
    admission.set_mode(AdmissionMode::Holding);
    assert!(admission.try_admit(&request(9, 9)).is_none());
    let mut first = WaitingRequest::new(&admission, request(1, 1));
    let mut second = WaitingRequest::new(&admission, request(2, 1));
    admission.set_mode(AdmissionMode::Open);
    let first = first.admitted();
    assert_eq!(second.flag.wakes(), 0, "only one is admitted at a time");
    admission.set_mode(AdmissionMode::Closed);
    assert_eq!(second.refused(), Refusal::Closed);
    let flag = CountingWaker::new();
    let third = pin!(admission.admit(request(3, 1))).poll(&mut flag.context());
    assert!(matches!(third, Poll::Ready(Err(Refusal::Closed))), "{third:?}");
    assert_eq!(admission.activity().running, 1, "running statements continue");
    drop(first);
    assert_eq!(admission.activity().running, 0);
    admission.set_mode(AdmissionMode::Open);
    drop(admit_now(&admission, request(4, 1)));
}

#[test]
fn limits_change_without_ending_statements() {
    let (admission, _) = admission(1);
    let first = admit_now(&admission, request(1, 1));
    let mut asked: Vec<WaitingRequest> =
        (2..=4).map(|statement| WaitingRequest::new(&admission, request(statement, 1))).collect();
    admission.set_limits(Limits { running: 3, ..Limits::default() });
    let second = asked[0].admitted();
    let third = asked[1].admitted();
    assert_eq!(asked[2].flag.wakes(), 0);
    admission.set_limits(Limits { running: 1, ..Limits::default() });
    assert_eq!(admission.activity().running, 3);
    drop((first, second));
    assert_eq!(asked[2].flag.wakes(), 0, "the lower limit holds");
    drop(third);
    drop(asked[2].admitted());
}

#[test]
fn idle_time_starts_with_the_last_statements_end() {
    let (admission, clock) = admission(1);
    assert_eq!(admission.activity().idle_since, Some(0));
    clock.advance(Duration::from_micros(10));
    let runs = admit_now(&admission, request(1, 1));
    assert_eq!(admission.activity().idle_since, None);
    let waits = WaitingRequest::new(&admission, request(2, 1));
    drop(waits);
    assert_eq!(admission.activity().idle_since, None);
    clock.advance(Duration::from_micros(10));
    drop(runs);
    assert_eq!(admission.activity().idle_since, Some(20));
    admission.set_mode(AdmissionMode::Holding);
    let waits = WaitingRequest::new(&admission, request(3, 1));
    assert_eq!(admission.activity(), ClusterActivity { running: 0, queued: 1, idle_since: None });
    clock.advance(Duration::from_micros(10));
    assert!(admission.cancel(QueryId(3)));
    assert_eq!(admission.activity().idle_since, Some(30));
    drop(waits);
    assert_eq!(admission.activity().idle_since, Some(30));
}

/// Random arrivals, ends, cancellations and dropped requests: the limit is never exceeded, no statement waits while
/// there is room, and statements of one user are admitted in order.
#[test]
fn random_statements_never_lose_their_turn() {
    let mut waits = 0;
    for seed in 0..200 {
        let random = SeededRandom::new(seed);
        let below = |limit: u64| random.next_u64() % limit;
        let limit = 1 + u32::try_from(below(4)).expect("the number fits into 32 bits");
        let (admission, _) = admission(limit);
        let mut running: Vec<Permit> = Vec::new();
        let mut waiting: VecDeque<(u64, u32, WaitingRequest)> = VecDeque::new();
        for statement in 0..300 {
            match below(10) {
                0..4 => {
                    let user = u32::try_from(below(3)).expect("the number fits into 32 bits");
                    let weight = 1 + u32::try_from(below(3)).expect("the number fits into 32 bits");
                    let mut asked = WaitingRequest {
                        flag: CountingWaker::new(),
                        future: Box::pin(admission.admit(Request { weight, ..request(statement, user) })),
                    };
                    match asked.poll() {
                        Poll::Ready(permit) => running.push(permit.expect("the queue has room")),
                        Poll::Pending => waiting.push_back((statement, user, asked)),
                    }
                }
                4..8 if !running.is_empty() => drop(running.swap_remove(below(running.len() as u64) as usize)),
                8 if !waiting.is_empty() => drop(waiting.remove(below(waiting.len() as u64) as usize)),
                9 if !waiting.is_empty() => {
                    let at = below(waiting.len() as u64) as usize;
                    if admission.cancel(QueryId(waiting[at].0)) {
                        let (_, _, mut asked) = waiting.remove(at).expect("the request is in the queue");
                        assert!(matches!(asked.poll(), Poll::Ready(Err(Refusal::Cancelled))));
                    }
                }
                _ => {}
            }
            // Woken requests take their permits sooner or later.
            let mut at = 0;
            while at < waiting.len() {
                if waiting[at].2.flag.wakes() == 0 || below(2) == 0 {
                    at += 1;
                    continue;
                }
                let (statement, user, mut asked) = waiting.remove(at).expect("the request is in the queue");
                running.push(asked.admitted());
                waits += 1;
                let earlier = |(other, of, asked): &&(u64, u32, WaitingRequest)| {
                    *of == user && *other < statement && asked.flag.wakes() == 0
                };
                assert_eq!(waiting.iter().find(earlier).map(|one| one.0), None, "seed {seed}: {statement} overtook");
            }
            let activity = admission.activity();
            let woken = waiting.iter().filter(|(_, _, asked)| 0 < asked.flag.wakes()).count();
            assert_eq!(activity.running as usize, running.len() + woken, "seed {seed}");
            assert_eq!(activity.queued as usize, waiting.len() - woken, "seed {seed}");
            assert!(activity.running <= limit, "seed {seed}");
            assert!(activity.queued == 0 || activity.running == limit, "seed {seed}: a statement waits needlessly");
        }
        drop((running, waiting));
        assert!(admission.gate.lock().is_clean(), "seed {seed}");
        assert!(admission.activity().idle_since.is_some());
    }
    assert!(1_000 < waits, "too few waits to prove anything: {waits}");
}

/// Threads that park until they are woken: a lost wake-up or permit would make this test hang.
#[test]
fn threads_lose_no_wakeup() {
    #[derive(Debug)]
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    const THREADS: u32 = 8;
    const ROUNDS: u64 = 3_000;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let admission = Admission::new(Limits { running: 2, ..Limits::default() }, AdmissionMode::Open, clock);
    let (inside, admitted) = (AtomicU32::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (admission, inside, admitted) = (&admission, &inside, &admitted);
            scope.spawn(move || {
                let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                let mut context = Context::from_waker(&waker);
                for round in 0..ROUNDS {
                    let statement = u64::from(thread) * ROUNDS + round;
                    let mut future = pin!(admission.admit(request(statement, thread % 3)));
                    let mut polls = 0;
                    let permit = loop {
                        match future.as_mut().poll(&mut context) {
                            Poll::Ready(permit) => break permit.ok(),
                            // Some requests are dropped, possibly just after their admission.
                            Poll::Pending if round % 5 == 0 && 0 < polls => break None,
                            Poll::Pending if round % 7 == 0 => drop(admission.cancel(QueryId(statement))),
                            Poll::Pending => std::thread::park(),
                        }
                        polls += 1;
                    };
                    if permit.is_some() {
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < 2, "at most two statements run at a time");
                        admitted.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert!(admission.gate.lock().is_clean());
    assert!(admitted.load(Ordering::SeqCst) <= admission.snapshot().totals.admitted);
    assert!(ROUNDS * u64::from(THREADS) / 2 < admitted.load(Ordering::SeqCst), "most requests were admitted");
}

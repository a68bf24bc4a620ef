//! Benchmark of reconciliation, placement and admission: `cargo bench -p workload [-- FILTER]`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures with the system's clock")]

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use cluster_model::desired_state::stored_encoding;
use cluster_model::{
    Action, Actor, Author, Change, ClusterOptions, DesiredState, IfExists, Inventory, Part, Placement,
    ReconcileSettings, Resources, RoleRef, Worker, WorkerId, WorkerState, placement, reconcile,
};
use types::{Oid, QueryId, SystemClock};
use workload::admission::{AdmissionMode, Request};
use workload::{Admission, Limits};

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let bench = Bench { filter };
    println!("{:<64} {:>14} {:>16}", "what", "a run", "a piece");
    reconciliation(&bench);
    placements(&bench);
    admissions(&bench);
}

struct Bench {
    filter: String,
}

impl Bench {
    /// Runs `code` several times and prints the best time, also per item.
    fn run(&self, name: &str, pieces: u64, mut code: impl FnMut()) {
        if !name.contains(&self.filter) {
            return;
        }
        let mut best = Duration::MAX;
        for _ in 0..7 {
            let start = Instant::now();
            code();
            best = best.min(start.elapsed());
        }
        let piece = best.as_secs_f64() * 1e9 / pieces as f64;
        println!("{name:<64} {:>11.3} ms {piece:>13.1} ns", best.as_secs_f64() * 1e3);
    }
}

/// Returns a state of 48 clusters with 3,000 workers.
fn three_thousand() -> DesiredState {
    let role = RoleRef { oid: Oid(10), name: "kiln".to_owned() };
    let author = Author::Role(Actor { role, superuser: true, create_cluster: true, create_role: true });
    let nodes = |index: i64| if index == 46 { 55 } else { 64 };
    (0..47).fold(DesiredState::initial(Oid(10), 0), |state, index| {
        let options = ClusterOptions { node_count: Some(nodes(index)), ..ClusterOptions::default() };
        let change = Change::Create { name: format!("c{index}"), options, if_exists: IfExists::Refuse };
        state.change(&Inventory::single_machine(), &change, &author, 0).expect("the limit is not reached").0
    })
}

/// Returns the workers that the start actions lead to, in the given state.
fn started(actions: &[Action], state: WorkerState) -> Vec<Worker> {
    let starts = actions.iter().zip(1..).filter_map(|(action, id)| match action {
        Action::Start { cluster, slot, spec } => Some(Worker {
            id: WorkerId(id),
            cluster: *cluster,
            slot: *slot,
            spec: spec.clone(),
            state,
            state_since: Duration::ZERO,
            last_heartbeat: Duration::from_secs(60),
            hung: false,
            failed: state == WorkerState::Gone,
            is_handing_over: false,
            version: Some("1".to_owned()),
            address: None,
            running: 0,
            cache_bytes: 0,
            detail: None,
        }),
        _ => None,
    });
    starts.collect()
}

fn reconciliation(bench: &Bench) {
    let desired = three_thousand();
    let settings = ReconcileSettings::new("1", Resources { millicores: 16_000, memory_bytes: 1 << 37 });
    let now = Duration::from_secs(60);
    let starts = reconcile(&desired, &[], now, &settings);
    let ready = started(&starts, WorkerState::Ready);
    let dead = started(&starts, WorkerState::Gone);
    assert_eq!((starts.len(), ready.len()), (3_000, 3_000));
    assert!(reconcile(&desired, &ready, now, &settings).is_empty());
    let workers = 3_000;
    bench.run("reconcile 3,000 workers: all are missing", workers, || {
        black_box(reconcile(&desired, &[], now, &settings));
    });
    bench.run("reconcile 3,000 workers: all are well", workers, || {
        black_box(reconcile(&desired, &ready, now, &settings));
    });
    bench.run("reconcile 3,000 workers: all have died", workers, || {
        black_box(reconcile(&desired, &dead, now, &settings));
    });
    let bytes = stored_encoding::encode(&desired);
    bench.run("store 48 clusters", 48, || {
        black_box(stored_encoding::encode(&desired));
    });
    bench.run("read 48 clusters", 48, || {
        black_box(stored_encoding::decode(&bytes).expect("decode the encoded state"));
    });
}

fn placements(bench: &Bench) {
    let parts: Vec<Part> = (0..1_000_000).map(|at| Part { shard: at / 4, index: (at % 4) as u32 }).collect();
    let cluster = three_thousand().clusters().next().expect("the cluster default exists").id;
    let count = parts.len() as u64;
    for slots in [4, 16, 64] {
        let placement = Placement::new(cluster, 0..slots);
        bench.run(&format!("owners of 1,000,000 parts among {slots} workers"), count, || {
            black_box(placement.owners(&parts));
        });
    }
    let (before, after) = (Placement::new(cluster, 0..63), Placement::new(cluster, 0..64));
    bench.run("moves of 1,000,000 parts from 63 workers to 64", count, || {
        black_box(placement::changed_owners(&before, &after, parts.iter().copied()).count());
    });
    let sized: Vec<(Part, u64)> = parts.iter().take(100_000).map(|part| (*part, 1 + part.shard % 100)).collect();
    bench.run("bounded owners (125 %) of 100,000 parts among 64 workers", sized.len() as u64, || {
        black_box(after.place_bounded(&sized, 125));
    });
}

/// Waker that unparks a thread.
#[derive(Debug)]
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn request(statement: u64, user: u32) -> Request {
    Request { statement: QueryId(statement), user: Oid(user), weight: 1, is_superuser: false }
}

fn admissions(bench: &Bench) {
    const ROUNDS: u64 = 200_000;
    let open = |running| {
        Admission::new(Limits { running, ..Limits::default() }, AdmissionMode::Open, Arc::new(SystemClock::new()))
    };
    let admission = open(100);
    let mut context = Context::from_waker(Waker::noop());
    bench.run("admissions, one after the other", ROUNDS, || {
        for statement in 0..ROUNDS {
            let permit = pin!(admission.admit(request(statement, 1))).poll(&mut context);
            assert!(matches!(permit, Poll::Ready(Ok(_))));
        }
    });
    // Each release admits the longest waiting of 1,000 statements.
    let admission = open(1);
    bench.run("admissions through a queue of 1,000 of 10 users", ROUNDS, || {
        let mut runs = admission.try_admit(&request(0, 0));
        let mut waiting = std::collections::VecDeque::new();
        for statement in 0..ROUNDS {
            let mut future = Box::pin(admission.admit(request(statement, (statement % 10) as u32)));
            assert!(future.as_mut().poll(&mut context).is_pending());
            waiting.push_back(future);
            if waiting.len() == 1_000 {
                drop(runs.take());
                let mut first = waiting.pop_front().expect("1,000 wait");
                let Poll::Ready(Ok(permit)) = first.as_mut().poll(&mut context) else { panic!("not admitted") };
                runs = Some(permit);
            }
        }
        drop(waiting);
        drop(runs);
    });
    threads(bench);
}

/// Benchmarks threads that are admitted and release at once, and park while they wait.
fn threads(bench: &Bench) {
    const ROUNDS: u64 = 50_000;
    for (threads, running) in [(2, 100), (8, 100), (8, 2)] {
        let admission =
            Admission::new(Limits { running, ..Limits::default() }, AdmissionMode::Open, Arc::new(SystemClock::new()));
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        bench.run(&format!("admissions of {threads} threads, {running} at a time"), ROUNDS, || {
            next.store(0, Ordering::SeqCst);
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (admission, next, failed) = (&admission, &next, &failed);
                    scope.spawn(move || {
                        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                        let mut context = Context::from_waker(&waker);
                        loop {
                            let statement = next.fetch_add(1, Ordering::Relaxed);
                            if ROUNDS <= statement {
                                break;
                            }
                            let mut future = pin!(admission.admit(request(statement, thread)));
                            let permit = loop {
                                match future.as_mut().poll(&mut context) {
                                    Poll::Ready(permit) => break permit,
                                    Poll::Pending => std::thread::park(),
                                }
                            };
                            if permit.is_err() {
                                failed.store(true, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
        });
        assert!(!failed.load(Ordering::Relaxed), "no request is refused");
    }
}

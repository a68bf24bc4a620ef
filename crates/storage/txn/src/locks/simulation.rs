//! Simulation: transactions that take random locks in a seeded order, and invariants that are checked after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::task::noop_waker;
use types::random::SeededRandom;
use types::{ManualClock, Random};

use super::*;

type LockFuture = Pin<Box<dyn Future<Output = Result<LockOutcome, LockError>> + Send>>;

/// Sequence of transactions in one session.
#[derive(Default)]
struct Session {
    txn: u64,
    steps_left: u64,
    /// Locks that the transaction should hold.
    held: BTreeMap<Resource, u8>,
    savepoints: Vec<(LockPosition, BTreeMap<Resource, u8>)>,
    statement: Option<Statement>,
}

struct Statement {
    future: LockFuture,
    mark: LockPosition,
    resources: Vec<Resource>,
    request: ModeBits,
}

struct Simulation {
    seed: u64,
    random: SeededRandom,
    clock: Arc<ManualClock>,
    locks: Arc<LockManager>,
    sessions: Vec<Session>,
    last_txn: u64,
    deadlocks: usize,
    timeouts: usize,
    waits: usize,
}

#[test]
fn random_transactions_never_conflict_and_always_end() {
    let (mut deadlocks, mut timeouts, mut waits) = (0, 0, 0);
    for seed in 0..300 {
        let mut simulation = Simulation::new(seed);
        simulation.run();
        deadlocks += simulation.deadlocks;
        timeouts += simulation.timeouts;
        waits += simulation.waits;
    }
    // Too few deadlocks, timeouts or waits would mean that the simulation does not cover them.
    assert!(100 < deadlocks && 50 < timeouts && 2000 < waits, "{deadlocks} {timeouts} {waits}");
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        let clock = Arc::new(ManualClock::default());
        let random = SeededRandom::new(seed);
        let sessions = 2 + random.next_u64() % 6;
        Simulation {
            seed,
            random,
            locks: Arc::new(LockManager::new(Arc::<ManualClock>::clone(&clock))),
            clock,
            sessions: (0..sessions).map(|_| Session::default()).collect(),
            last_txn: 0,
            deadlocks: 0,
            timeouts: 0,
            waits: 0,
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn run(&mut self) {
        for _ in 0..200 {
            let session = usize::try_from(self.below(self.sessions.len() as u64)).unwrap();
            self.step(session);
            self.check();
        }
        // No new transactions are started: the running ones must end, whatever they wait for.
        while let Some(session) = (0..self.sessions.len()).find(|session| self.can_go_on(*session)) {
            if self.sessions[session].statement.is_some() {
                self.poll(session);
            }
            if self.sessions[session].statement.is_none() {
                self.end(session);
            }
            self.check();
        }
        assert!(self.sessions.iter().all(|session| session.statement.is_none()), "seed {}: sessions wait", self.seed);
        assert!(self.locks.is_empty(), "seed {}: a lock was not released", self.seed);
    }

    /// Returns whether a session has a transaction that is not blocked.
    fn can_go_on(&self, session: usize) -> bool {
        let session = &self.sessions[session];
        session.txn != 0 && (session.statement.is_none() || self.locks.blockers(TxnId(session.txn)).is_empty())
    }

    fn step(&mut self, at: usize) {
        if self.sessions[at].statement.is_some() {
            match self.below(12) {
                0 => return self.cancel(at),
                1 => self.clock.advance(Duration::from_millis(400)),
                _ => {}
            }
            return self.poll(at);
        }
        if self.sessions[at].txn == 0 {
            self.last_txn += 1;
            let steps_left = 1 + self.below(8);
            self.sessions[at] = Session { txn: self.last_txn, steps_left, ..Session::default() };
        }
        if self.sessions[at].steps_left == 0 {
            return self.end(at);
        }
        self.sessions[at].steps_left -= 1;
        let txn = TxnId(self.sessions[at].txn);
        match self.below(8) {
            0 => {
                let session = &mut self.sessions[at];
                session.savepoints.push((self.locks.current_position(txn), session.held.clone()));
            }
            1 => {
                if let Some((mark, held)) = self.sessions[at].savepoints.pop() {
                    self.locks.release_to(txn, mark);
                    self.sessions[at].held = held;
                }
            }
            _ => self.start_request(at),
        }
    }

    fn start_request(&mut self, at: usize) {
        let txn = TxnId(self.sessions[at].txn);
        let wait = match self.below(6) {
            0 => LockWait::NoWait,
            1 => LockWait::SkipLocked,
            2 => LockWait::Block { timeout: Some(Duration::from_millis(500)) },
            _ => LockWait::Block { timeout: None },
        };
        let pick = |bound: usize| usize::try_from(self.below(bound as u64)).unwrap();
        let (locks, mark, table) = (Arc::clone(&self.locks), self.locks.current_position(txn), Oid(1));
        let (asked, resources, request): (LockFuture, Vec<_>, _) = match pick(3) {
            0 => {
                let mode = TableLock::ALL[pick(8)];
                let asked = Box::pin(async move { locks.lock_table(txn, table, mode, wait).await });
                (asked, vec![Resource::Table(table)], mode.mode_bits())
            }
            1 => {
                let mode = RowLock::ALL[pick(4)];
                let rows: Vec<_> = (0..=pick(3)).map(|_| RowId(self.below(4))).collect();
                let resources = rows.iter().map(|row| Resource::Row(table, *row)).collect();
                let asked = Box::pin(async move { locks.lock_rows(txn, table, &rows, mode, wait).await });
                (asked, resources, mode.mode_bits())
            }
            _ => {
                let mode = KeyLock::ALL[pick(2)];
                let keys: Vec<_> = (0..=pick(2)).map(|_| [u8::try_from(self.below(3)).unwrap()]).collect();
                let resources = keys.iter().map(|key| Resource::key(table, key)).collect();
                let asked = Box::pin(async move { locks.lock_keys(txn, table, &keys, mode, wait).await });
                (asked, resources, mode.mode_bits())
            }
        };
        self.sessions[at].statement = Some(Statement { future: asked, mark, resources, request });
        self.poll(at);
    }

    fn poll(&mut self, at: usize) {
        let statement = self.sessions[at].statement.as_mut().expect("a statement was started");
        let Poll::Ready(result) = statement.future.as_mut().poll(&mut Context::from_waker(&noop_waker())) else {
            return;
        };
        let session = &mut self.sessions[at];
        let Statement { resources, request, mark, .. } = session.statement.take().expect("statement was polled above");
        match result {
            Ok(LockOutcome { waited, skipped }) => {
                self.waits += usize::from(waited);
                let taken = resources.into_iter().enumerate().filter(|(position, _)| !skipped.contains(position));
                for (_, resource) in taken {
                    let held = session.held.entry(resource).or_default();
                    if *held & request.covered_by == 0 {
                        *held |= request.bit;
                    }
                }
            }
            Err(error) => {
                match error {
                    LockError::NotAvailable { .. } => {}
                    LockError::Timeout { .. } => self.timeouts += 1,
                    LockError::Deadlock { cycle: circle } => {
                        self.deadlocks += 1;
                        self.check_circle(at, &circle, request);
                        return self.end(at);
                    }
                }
                // The statement failed; in half of the cases the transaction ends with it.
                self.locks.release_to(TxnId(self.sessions[at].txn), mark);
                if self.below(2) == 0 {
                    self.end(at);
                }
            }
        }
    }

    /// Cancels the statement, wherever it waits.
    fn cancel(&mut self, at: usize) {
        let Statement { mark, future: asked, .. } =
            self.sessions[at].statement.take().expect("a statement was started");
        drop(asked);
        self.locks.release_to(TxnId(self.sessions[at].txn), mark);
        if self.below(2) == 0 {
            self.end(at);
        }
    }

    fn end(&mut self, at: usize) {
        self.locks.release_all(TxnId(self.sessions[at].txn));
        self.sessions[at] = Session::default();
    }

    /// Checks that a reported cycle is one: the caller's wait closes it, and each other transaction waits for the next.
    fn check_circle(&self, at: usize, circle: &[WaitEdge], request: ModeBits) {
        let seed = self.seed;
        assert_eq!(circle[0].waiter.0, self.sessions[at].txn, "seed {seed}");
        assert_eq!(circle[circle.len() - 1].blocker, circle[0].waiter, "seed {seed}");
        assert!(circle.windows(2).all(|steps| steps[0].blocker == steps[1].waiter), "seed {seed}");
        for step in &circle[1..] {
            if step.blocker != circle[0].waiter || !step.is_queued {
                assert!(self.locks.blockers(step.waiter).contains(&step.blocker), "seed {seed}: {step:?}");
            }
        }
        let (first, held) = (&circle[0], self.contents());
        let (holders, waiters) = &held[&first.resource];
        let is_held = holders.get(&first.blocker).is_some_and(|modes| modes & request.conflicts != 0);
        assert!(is_held || waiters.iter().any(|(txn, _)| *txn == first.blocker), "seed {seed}: {first:?}");
    }

    fn check(&self) {
        let seed = self.seed;
        let contents = self.contents();
        let mut waits_for: BTreeMap<TxnId, BTreeSet<TxnId>> = BTreeMap::new();
        for (resource, (holders, waiters)) in &contents {
            for (txn, modes) in holders {
                let others = holders.iter().filter(|(other, _)| *other != txn).fold(0, |all, (_, modes)| all | modes);
                let conflicts = (0..8_u8).filter(|bit| modes & (1 << bit) != 0).map(|bit| conflicts(resource, bit));
                assert_eq!(
                    conflicts.fold(0, |all, one| all | one) & others,
                    0,
                    "seed {seed}: {resource:?} {holders:?}"
                );
            }
            let mut ahead: Vec<(TxnId, u8)> = Vec::new();
            for (txn, request) in waiters {
                let in_the_way =
                    holders.iter().filter(|(other, _)| *other != txn).map(|(other, modes)| (*other, *modes));
                let blockers: BTreeSet<_> = in_the_way
                    .chain(ahead.iter().copied())
                    .filter(|(_, modes)| modes & request.conflicts != 0)
                    .map(|(other, _)| other)
                    .collect();
                assert!(!blockers.is_empty(), "seed {seed}: {txn:?} waits for {resource:?} and for nobody");
                waits_for.insert(*txn, blockers);
                ahead.push((*txn, request.bit));
            }
        }
        self.check_no_circle(&waits_for);
        for session in self.sessions.iter().filter(|session| session.txn != 0) {
            let txn = TxnId(session.txn);
            let held = contents.iter().filter_map(|(resource, (holders, _))| Some((resource, *holders.get(&txn)?)));
            match &session.statement {
                None => {
                    assert!(held.eq(session.held.iter().map(|(resource, modes)| (resource, *modes))), "seed {seed}")
                }
                Some(_) => {
                    for (resource, modes) in &session.held {
                        let now = contents.get(resource).and_then(|(holders, _)| holders.get(&txn)).unwrap_or(&0);
                        assert_eq!(now & modes, *modes, "seed {seed}: {txn:?} has lost {resource:?}");
                    }
                }
            }
        }
        let mut running: BTreeSet<_> = self.sessions.iter().map(|session| TxnId(session.txn)).collect();
        running.insert(TxnId(0));
        let strangers = contents.values().flat_map(|(holders, _)| holders.keys()).find(|txn| !running.contains(txn));
        assert_eq!(strangers, None, "seed {seed}: an ended transaction holds a lock");
    }

    /// Repeatedly removes the transactions that wait for no waiting one: the remaining ones would wait for ever.
    fn check_no_circle(&self, waits_for: &BTreeMap<TxnId, BTreeSet<TxnId>>) {
        let mut left = waits_for.clone();
        loop {
            let waiting: BTreeSet<_> = left.keys().copied().collect();
            left.retain(|_, blockers| blockers.iter().any(|txn| waiting.contains(txn)));
            if left.len() == waiting.len() {
                break;
            }
        }
        assert!(left.is_empty(), "seed {}: an undetected deadlock of {left:?}", self.seed);
    }

    /// Returns holders and waiters of all resources.
    #[expect(clippy::type_complexity, reason = "spelled out once")]
    fn contents(&self) -> BTreeMap<Resource, (BTreeMap<TxnId, u8>, Vec<(TxnId, ModeBits)>)> {
        let shards = self.locks.lock_maps.iter().map(|shard| shard.lock());
        shards
            .flat_map(|shard| {
                shard
                    .iter()
                    .map(|(resource, entry)| {
                        let contents = match entry {
                            LockEntry::SingleHolder { txn, modes } => (BTreeMap::from([(*txn, *modes)]), Vec::new()),
                            LockEntry::Queued(queue) => (
                                queue.holders().iter().copied().collect(),
                                queue.waiters().iter().map(|waiter| (waiter.txn, waiter.request)).collect(),
                            ),
                        };
                        (resource.clone(), contents)
                    })
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Returns the modes that conflict with the mode of this bit.
fn conflicts(resource: &Resource, bit: u8) -> u8 {
    match resource.mode(1 << bit) {
        LockMode::Table(mode) => mode.mode_bits().conflicts,
        LockMode::Row(mode) => mode.mode_bits().conflicts,
        LockMode::Key(mode) => mode.mode_bits().conflicts,
    }
}

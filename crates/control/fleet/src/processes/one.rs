//! One worker, as its host knows it.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_model::{StopReason, Worker, WorkerId, WorkerState};
use control_plane::{StartWorker, Vouched};
use exchange::AheadUse;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::CacheUses;
use super::process::Process;
use super::roster::Entry;
use crate::join::{Beat, FromInstance, LinkNumber};
use crate::ticket::ExpectedSecret;

/// What is shown of a worker that answers, but not to all.
const UNREACHED: &str = "a query could not reach it";

pub(super) struct One {
    seen: Worker,
    /// `None` before it runs, and once it is gone.
    pub(super) process: Option<Process>,
    /// What it lives in, where it was not started here.
    pub(super) life: Option<String>,
    /// What its ticket says; `None` once that was used.
    pub(super) secret: Option<ExpectedSecret>,
    pub(super) has_joined: bool,
    /// For the next certificate.
    pub(super) public_key: Vec<u8>,
    pub(super) link: Option<Link>,
    /// It was told to end.
    pub(super) stopping: Option<StopReason>,
    beat: Beat,
    /// New shards that it could not be told of.
    pub(super) untold: u64,
    /// Statements that were given to it and are not over.
    pub(super) holds: BTreeMap<u64, CancellationToken>,
    /// Each fires when it has taken over what it was told to under its number.
    pub(super) taking: BTreeMap<u64, oneshot::Sender<()>>,
    /// Others could not reach it: until then it is as if it hung, whatever it says itself.
    unreached_until: Option<Duration>,
}

/// The connection over which it is told things.
pub(super) struct Link {
    pub(super) number: LinkNumber,
    pub(super) say: mpsc::Sender<FromInstance>,
}

impl One {
    /// One that is about to be started.
    pub(super) fn starting(id: WorkerId, start: &StartWorker, secret: Option<ExpectedSecret>, now: Duration) -> Self {
        let seen = Worker {
            id,
            cluster: start.cluster,
            slot: start.slot,
            spec: start.spec.clone(),
            state: WorkerState::Starting,
            since: now,
            heard: now,
            hung: false,
            failed: false,
            hands_over: false,
            version: None,
            address: None,
            running: 0,
            cache_bytes: 0,
            detail: None,
        };
        Self {
            seen,
            process: None,
            life: None,
            secret,
            has_joined: false,
            public_key: Vec::new(),
            link: None,
            stopping: None,
            beat: Beat::default(),
            untold: 0,
            holds: BTreeMap::new(),
            taking: BTreeMap::new(),
            unreached_until: None,
        }
    }

    /// One that an earlier instance has left. Until it has come back it is as if it were starting.
    pub(super) fn found(entry: Entry, process: Option<Process>, now: Duration) -> Self {
        let start = StartWorker { cluster: entry.cluster, slot: entry.slot, spec: entry.spec };
        let mut found = Self::starting(entry.id, &start, None, now);
        (found.process, found.life, found.has_joined) = (process, entry.life, true);
        found
    }

    /// One that has come by itself, and for which somebody vouches.
    pub(super) fn vouched(id: WorkerId, vouched: Vouched, now: Duration) -> Self {
        let Vouched { cluster, slot, spec, life } = vouched;
        let mut come = Self::starting(id, &StartWorker { cluster, slot, spec }, None, now);
        come.life = Some(life);
        come
    }

    /// It gets nothing more to do.
    pub(super) fn drain(&mut self, now: Duration) {
        if matches!(self.seen.state, WorkerState::Starting | WorkerState::Ready) {
            (self.seen.state, self.seen.since) = (WorkerState::Draining, now);
            self.tell(FromInstance::Drain);
        }
    }

    pub(super) fn seen(&self) -> &Worker {
        &self.seen
    }

    pub(super) fn seen_mut(&mut self) -> &mut Worker {
        &mut self.seen
    }

    /// As it is observed now.
    pub(super) fn observed(&self, now: Duration) -> Worker {
        if self.is_gone() {
            return self.seen.clone();
        }
        let given = u32::try_from(self.holds.len()).unwrap_or(u32::MAX);
        let (running, cache_bytes) = (given.max(self.beat.running), self.beat.cache_bytes);
        let observed = Worker { running, cache_bytes, ..self.seen.clone() };
        if self.unreached_until.is_some_and(|until| now < until) {
            return Worker { hung: true, detail: Some(UNREACHED.to_owned()), ..observed };
        }
        observed
    }

    /// Nobody is to try to reach it until then.
    pub(super) fn unreached(&mut self, until: Duration) {
        self.unreached_until = Some(until);
    }

    pub(super) fn memory_used(&self) -> u64 {
        self.beat.memory_bytes
    }

    /// How its cache was used.
    pub(super) fn cache_uses(&self) -> CacheUses {
        let Beat { cache_hits, cache_misses, ahead_shards, ahead_blocks, ahead_dropped, .. } = self.beat;
        let ahead = AheadUse { shards: ahead_shards, blocks: ahead_blocks, dropped: ahead_dropped + self.untold };
        CacheUses { hits: cache_hits, misses: cache_misses, ahead }
    }

    /// It has taken over what it was told to under this number.
    pub(super) fn took_over(&mut self, number: u64) {
        if let Some(done) = self.taking.remove(&number) {
            // Who waited for it may have waited long enough.
            let _ = done.send(());
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.seen.state == WorkerState::Gone
    }

    /// It has answered.
    pub(super) fn answered(&mut self, now: Duration) {
        (self.seen.heard, self.seen.hung) = (now, false);
    }

    pub(super) fn beat(&mut self, beat: Beat, now: Duration) {
        self.beat = beat;
        self.answered(now);
    }

    /// It takes tasks. One that drains goes on with that.
    pub(super) fn joined(&mut self, address: String, now: Duration) {
        self.answered(now);
        self.seen.address = Some(address);
        if self.seen.state == WorkerState::Starting {
            (self.seen.state, self.seen.since) = (WorkerState::Ready, now);
        }
    }

    /// Its process is over, or never was.
    pub(super) fn gone(&mut self, how: &str, now: Duration) {
        if self.is_gone() {
            return;
        }
        let (failed, detail) = match self.stopping {
            Some(reason) => (reason.is_failure(), reason.to_string()),
            None => (true, how.to_owned()),
        };
        let seen = &mut self.seen;
        (seen.state, seen.since, seen.failed, seen.detail) = (WorkerState::Gone, now, failed, Some(detail));
        (self.process, self.secret, self.link, self.beat) = (None, None, None, Beat::default());
        self.taking.clear();
    }

    /// Tells it something, if it can be reached.
    pub(super) fn tell(&self, message: FromInstance) -> bool {
        self.link.as_ref().is_some_and(|link| link.say.try_send(message).is_ok())
    }

    /// What is kept of it.
    pub(super) fn entry(&self) -> Option<Entry> {
        let is_there = self.process.is_some() || (self.life.is_some() && !self.is_gone());
        let (pid, began) = self.process.as_ref().map_or((0, 0), |process| (process.pid, process.began));
        let Worker { id, cluster, slot, spec, .. } = &self.seen;
        if !is_there {
            return None;
        }
        Some(Entry {
            id: *id,
            cluster: *cluster,
            slot: *slot,
            spec: spec.clone(),
            pid,
            began,
            life: self.life.clone(),
            has_joined: self.has_joined,
        })
    }
}

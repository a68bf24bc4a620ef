//! The state of one worker in its host.

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

/// Detail shown for a worker that sends heartbeats but that a query could not reach.
const UNREACHED: &str = "a query could not reach it";

/// A worker of the host: its observed state, its process and its connection.
pub(super) struct One {
    seen: Worker,
    /// Process of the worker; `None` before it runs, after its end, and for workers that were not started here.
    pub(super) process: Option<Process>,
    /// Unique name of what a worker that was not started here runs in, such as the uid of a pod.
    pub(super) life: Option<String>,
    /// Hash of the ticket's secret; `None` once the ticket is used.
    pub(super) secret: Option<ExpectedSecret>,
    pub(super) has_joined: bool,
    /// Public key for the next certificate.
    pub(super) public_key: Vec<u8>,
    /// Current connection.
    pub(super) link: Option<Link>,
    /// Reason why the worker was told to stop; `None` if it was not.
    pub(super) stopping: Option<StopReason>,
    /// Last heartbeat.
    beat: Beat,
    /// Number of new shards that could not be announced to the worker.
    pub(super) untold: u64,
    /// Running statements by their number, with the token that cancels each.
    pub(super) holds: BTreeMap<u64, CancellationToken>,
    /// Cache hand-overs to this worker by their number; the sender fires when the worker reports the end.
    pub(super) taking: BTreeMap<u64, oneshot::Sender<()>>,
    /// Time until which the worker counts as hung because a query could not reach it.
    unreached_until: Option<Duration>,
}

/// Connection to a worker.
pub(super) struct Link {
    pub(super) number: LinkNumber,
    pub(super) say: mpsc::Sender<FromInstance>,
}

impl One {
    /// Creates the state of a worker that is about to be started.
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

    /// Creates the state of a worker of an earlier instance, which counts as starting until it rejoins.
    pub(super) fn found(entry: Entry, process: Option<Process>, now: Duration) -> Self {
        let start = StartWorker { cluster: entry.cluster, slot: entry.slot, spec: entry.spec };
        let mut found = Self::starting(entry.id, &start, None, now);
        (found.process, found.life, found.has_joined) = (process, entry.life, true);
        found
    }

    /// Creates the state of a worker that joins with a verified token.
    pub(super) fn vouched(id: WorkerId, vouched: Vouched, now: Duration) -> Self {
        let Vouched { cluster, slot, spec, life } = vouched;
        let mut come = Self::starting(id, &StartWorker { cluster, slot, spec }, None, now);
        come.life = Some(life);
        come
    }

    /// Starts draining: the worker gets no more statements.
    pub(super) fn drain(&mut self, now: Duration) {
        if matches!(self.seen.state, WorkerState::Starting | WorkerState::Ready) {
            (self.seen.state, self.seen.since) = (WorkerState::Draining, now);
            self.tell(FromInstance::Drain);
        }
    }

    /// Returns the observed state without the values of the last heartbeat; see [`One::observed`].
    pub(super) fn seen(&self) -> &Worker {
        &self.seen
    }

    pub(super) fn seen_mut(&mut self) -> &mut Worker {
        &mut self.seen
    }

    /// Returns the worker as observed now, with running statements and cache size.
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

    /// Treats the worker as hung until then.
    pub(super) fn unreached(&mut self, until: Duration) {
        self.unreached_until = Some(until);
    }

    pub(super) fn memory_used(&self) -> u64 {
        self.beat.memory_bytes
    }

    /// Returns its cache statistics, with shards that could not be announced counted as dropped.
    pub(super) fn cache_uses(&self) -> CacheUses {
        let Beat { cache_hits, cache_misses, ahead_shards, ahead_blocks, ahead_dropped, .. } = self.beat;
        let ahead = AheadUse { shards: ahead_shards, blocks: ahead_blocks, dropped: ahead_dropped + self.untold };
        CacheUses { hits: cache_hits, misses: cache_misses, ahead }
    }

    /// Completes the cache hand-over with this number.
    pub(super) fn took_over(&mut self, number: u64) {
        if let Some(done) = self.taking.remove(&number) {
            // The receiver is gone if the hand-over has timed out.
            let _ = done.send(());
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.seen.state == WorkerState::Gone
    }

    /// Records a sign of life.
    pub(super) fn answered(&mut self, now: Duration) {
        (self.seen.heard, self.seen.hung) = (now, false);
    }

    /// Records a heartbeat.
    pub(super) fn beat(&mut self, beat: Beat, now: Duration) {
        self.beat = beat;
        self.answered(now);
    }

    /// Records that the worker accepts tasks at this address. A starting worker becomes ready; a draining one keeps
    /// draining.
    pub(super) fn joined(&mut self, address: String, now: Duration) {
        self.answered(now);
        self.seen.address = Some(address);
        if self.seen.state == WorkerState::Starting {
            (self.seen.state, self.seen.since) = (WorkerState::Ready, now);
        }
    }

    /// Marks the worker as gone: failed with the detail `how`, unless it was told to stop.
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

    /// Sends a message; returns false if the worker is not connected or its queue is full.
    pub(super) fn tell(&self, message: FromInstance) -> bool {
        self.link.as_ref().is_some_and(|link| link.say.try_send(message).is_ok())
    }

    /// Returns its roster entry; `None` once it has ended.
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

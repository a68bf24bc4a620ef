//! The state of one worker in its host.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_model::{StopReason, Worker, WorkerId, WorkerState};
use control_plane::{StartRequest, VerifiedWorker};
use exchange::CacheWarmingStats;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::CacheStatistics;
use super::process::Process;
use super::roster_file::RosterEntry;
use crate::join::{ConnectionNumber, FromInstance, Heartbeat};
use crate::join_ticket::SecretHash;

/// Detail shown for a worker that sends heartbeats but that a query could not reach.
const UNREACHABLE_DETAIL: &str = "a query could not reach it";

/// A worker of the host: its observed state, its process and its connection.
pub(super) struct WorkerEntry {
    worker: Worker,
    /// Process of the worker; `None` before it runs, after its end, and for workers that were not started here.
    pub(super) process: Option<Process>,
    /// Unique name of what a worker that was not started here runs in, such as the uid of a pod.
    pub(super) host_uid: Option<String>,
    /// Hash of the ticket's secret; `None` once the ticket is used.
    pub(super) secret_hash: Option<SecretHash>,
    pub(super) has_joined: bool,
    /// Public key for the next certificate.
    pub(super) public_key: Vec<u8>,
    /// Current connection.
    pub(super) connection: Option<Connection>,
    /// Reason why the worker was told to stop; `None` if it was not.
    pub(super) stop_reason: Option<StopReason>,
    /// Last heartbeat.
    heartbeat: Heartbeat,
    /// Number of new shards that could not be announced to the worker.
    pub(super) unannounced_shards: u64,
    /// Running statements by their number, with the token that cancels each.
    pub(super) statements: BTreeMap<u64, CancellationToken>,
    /// Cache hand-overs to this worker by their number; the sender fires when the worker reports the end.
    pub(super) handovers: BTreeMap<u64, oneshot::Sender<()>>,
    /// Time until which the worker counts as hung because a query could not reach it.
    unreachable_until: Option<Duration>,
}

/// Connection to a worker.
pub(super) struct Connection {
    pub(super) number: ConnectionNumber,
    pub(super) sender: mpsc::Sender<FromInstance>,
}

impl WorkerEntry {
    /// Creates the state of a worker that is about to be started.
    pub(super) fn new(id: WorkerId, start: &StartRequest, secret: Option<SecretHash>, now: Duration) -> Self {
        let seen = Worker {
            id,
            cluster: start.cluster,
            slot: start.slot,
            spec: start.spec.clone(),
            state: WorkerState::Starting,
            state_since: now,
            last_heartbeat: now,
            hung: false,
            failed: false,
            is_handing_over: false,
            version: None,
            address: None,
            running: 0,
            cache_bytes: 0,
            detail: None,
        };
        Self {
            worker: seen,
            process: None,
            host_uid: None,
            secret_hash: secret,
            has_joined: false,
            public_key: Vec::new(),
            connection: None,
            stop_reason: None,
            heartbeat: Heartbeat::default(),
            unannounced_shards: 0,
            statements: BTreeMap::new(),
            handovers: BTreeMap::new(),
            unreachable_until: None,
        }
    }

    /// Creates the state of a worker of an earlier instance, which counts as starting until it rejoins.
    pub(super) fn from_roster(entry: RosterEntry, process: Option<Process>, now: Duration) -> Self {
        let start = StartRequest { cluster: entry.cluster, slot: entry.slot, spec: entry.spec };
        let mut found = Self::new(entry.id, &start, None, now);
        (found.process, found.host_uid, found.has_joined) = (process, entry.host_uid, true);
        found
    }

    /// Creates the state of a worker that joins with a verified token.
    pub(super) fn from_token(id: WorkerId, verified: VerifiedWorker, now: Duration) -> Self {
        let VerifiedWorker { cluster, slot, spec, host_uid } = verified;
        let mut come = Self::new(id, &StartRequest { cluster, slot, spec }, None, now);
        come.host_uid = Some(host_uid);
        come
    }

    /// Starts draining: the worker gets no more statements.
    pub(super) fn drain(&mut self, now: Duration) {
        if matches!(self.worker.state, WorkerState::Starting | WorkerState::Ready) {
            (self.worker.state, self.worker.state_since) = (WorkerState::Draining, now);
            self.send(FromInstance::Drain);
        }
    }

    /// Returns the observed state without the values of the last heartbeat; see [`WorkerEntry::observed`].
    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }

    pub(super) fn worker_mut(&mut self) -> &mut Worker {
        &mut self.worker
    }

    /// Returns the worker as observed now, with running statements and cache size.
    pub(super) fn observed(&self, now: Duration) -> Worker {
        if self.is_gone() {
            return self.worker.clone();
        }
        let given = u32::try_from(self.statements.len()).unwrap_or(u32::MAX);
        let (running, cache_bytes) = (given.max(self.heartbeat.running), self.heartbeat.cache_bytes);
        let observed = Worker { running, cache_bytes, ..self.worker.clone() };
        if self.unreachable_until.is_some_and(|until| now < until) {
            return Worker { hung: true, detail: Some(UNREACHABLE_DETAIL.to_owned()), ..observed };
        }
        observed
    }

    /// Treats the worker as hung until then.
    pub(super) fn mark_unreachable(&mut self, until: Duration) {
        self.unreachable_until = Some(until);
    }

    pub(super) fn memory_used(&self) -> u64 {
        self.heartbeat.memory_bytes
    }

    /// Returns its cache statistics, with shards that could not be announced counted as dropped.
    pub(super) fn cache_statistics(&self) -> CacheStatistics {
        let Heartbeat { cache_hits, cache_misses, prewarmed_shards, prewarmed_blocks, prewarming_skipped, .. } =
            self.heartbeat;
        let warming = CacheWarmingStats {
            shards: prewarmed_shards,
            blocks: prewarmed_blocks,
            dropped: prewarming_skipped + self.unannounced_shards,
        };
        CacheStatistics { hits: cache_hits, misses: cache_misses, warming }
    }

    /// Completes the cache hand-over with this number.
    pub(super) fn complete_handover(&mut self, number: u64) {
        if let Some(done) = self.handovers.remove(&number) {
            // The receiver is gone if the hand-over has timed out.
            let _ = done.send(());
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.worker.state == WorkerState::Gone
    }

    /// Records a sign of life.
    pub(super) fn record_contact(&mut self, now: Duration) {
        (self.worker.last_heartbeat, self.worker.hung) = (now, false);
    }

    /// Records a heartbeat.
    pub(super) fn record_heartbeat(&mut self, beat: Heartbeat, now: Duration) {
        self.heartbeat = beat;
        self.record_contact(now);
    }

    /// Records that the worker accepts tasks at this address. A starting worker becomes ready; a draining one keeps
    /// draining.
    pub(super) fn mark_joined(&mut self, address: String, now: Duration) {
        self.record_contact(now);
        self.worker.address = Some(address);
        if self.worker.state == WorkerState::Starting {
            (self.worker.state, self.worker.state_since) = (WorkerState::Ready, now);
        }
    }

    /// Marks the worker as gone: failed with the detail `how`, unless it was told to stop.
    pub(super) fn mark_gone(&mut self, how: &str, now: Duration) {
        if self.is_gone() {
            return;
        }
        let (failed, detail) = match self.stop_reason {
            Some(reason) => (reason.is_failure(), reason.to_string()),
            None => (true, how.to_owned()),
        };
        let seen = &mut self.worker;
        (seen.state, seen.state_since, seen.failed, seen.detail) = (WorkerState::Gone, now, failed, Some(detail));
        (self.process, self.secret_hash, self.connection, self.heartbeat) = (None, None, None, Heartbeat::default());
        self.handovers.clear();
    }

    /// Sends a message; returns false if the worker is not connected or its queue is full.
    pub(super) fn send(&self, message: FromInstance) -> bool {
        self.connection.as_ref().is_some_and(|link| link.sender.try_send(message).is_ok())
    }

    /// Returns its roster entry; `None` once it has ended.
    pub(super) fn roster_entry(&self) -> Option<RosterEntry> {
        let is_there = self.process.is_some() || (self.host_uid.is_some() && !self.is_gone());
        let (pid, start_ticks) = self.process.as_ref().map_or((0, 0), |process| (process.pid, process.start_ticks));
        let Worker { id, cluster, slot, spec, .. } = &self.worker;
        if !is_there {
            return None;
        }
        Some(RosterEntry {
            id: *id,
            cluster: *cluster,
            slot: *slot,
            spec: spec.clone(),
            pid,
            start_ticks,
            host_uid: self.host_uid.clone(),
            has_joined: self.has_joined,
        })
    }
}

//! Entry point of the crate: all transactions over one store, and the state that they share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use catalog::{Sequence, SequencePosition};
use history::{History, HistorySettings, RecentStates, WriteAuthority};
use kv::logical_log::RecordingStore;
use kv::{Batch, TxKv};
use objects::Objects;
use tokio::sync::oneshot;
use types::{Clock, CommitTs, Oid, RowId};

use crate::commit_group::Proposal;
use crate::committer::{Committer, Request};
use crate::disk_space::DiskSpace;
use crate::locks::{LockManager, TxnId};
use crate::oid_allocator::OidAllocator;
use crate::outcome::OutcomeRegistry;
use crate::read_validation::WriteLog;
use crate::recover::{Recovered, recover};
use crate::row_id_allocator::RowIdAllocator;
use crate::row_moves::RecordedMoves;
use crate::sequences::{SequenceCounters, SequenceExhausted};
use crate::snapshot_registry::SnapshotRegistry;
use crate::transaction_locks::TransactionLocks;
use crate::upload_announcements::UploadRegistry;
use crate::{Error, Isolation, Result, Snapshot, Transaction};

#[cfg(test)]
mod tests;

/// Transactions of an instance. There is one per store, for the lifetime of the server.
#[derive(Debug)]
pub struct Transactions {
    pub(crate) core: Arc<Core>,
    /// Queue of the committer; `None` only during the drop.
    requests: Option<mpsc::Sender<Request>>,
    /// Thread of the committer; `None` if a simulation drives it.
    committer: Option<JoinHandle<()>>,
}

/// State shared by the committer, the sessions and the cleaner.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) kv: Arc<dyn TxKv>,
    pub(crate) objects: Objects,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) snapshots: Arc<SnapshotRegistry>,
    pub(crate) uploads: UploadRegistry,
    /// Held during a cleaning, so that only one runs at a time.
    pub(crate) cleaning_lock: tokio::sync::Mutex<()>,
    pub(crate) moves: RecordedMoves,
    pub(crate) write_log: WriteLog,
    pub(crate) locks: LockManager,
    pub(crate) outcomes: OutcomeRegistry,
    oid_allocator: OidAllocator,
    row_id_allocator: RowIdAllocator,
    next_transaction: AtomicU64,
    sequences: SequenceCounters,
    /// History of the warehouse; `None` if it has none.
    pub(crate) history: Option<History>,
    pub(crate) recent_states: RecentStates,
    pub(crate) disk_space: DiskSpace,
    pub(crate) write_authority: WriteAuthority,
}

impl Core {
    pub(crate) fn is_poisoned(&self) -> bool {
        self.write_authority.is_over()
    }

    /// Writes a batch of commits durably; returns its time in microseconds since 1970.
    pub(crate) fn write_commits(&self, batch: Batch) -> kv::Result<i64> {
        match &self.history {
            Some(history) => history.write(batch),
            None => self.kv.write(batch).map(|()| self.clock.now_us()),
        }
    }

    /// Refuses every operation from now on: after a failed write the content of the store is unknown.
    pub(crate) fn poison(&self, error: &kv::Error) {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "could not write to the catalog store; the server must stop and restart"
        );
        self.write_authority.end();
    }
}

impl Transactions {
    /// Reads the store and starts the committer; an empty store is initialized with a new catalog. Blocks on the
    /// store's I/O.
    pub fn open(kv: Arc<dyn TxKv>, objects: Objects, clock: Arc<dyn Clock>) -> Result<Arc<Self>> {
        Self::start(kv, objects, clock, None)
    }

    /// Opens a store whose log is kept as the warehouse's history; otherwise as [`Transactions::open`].
    ///
    /// # Errors
    /// As [`Transactions::open`].
    pub fn open_with_history(
        log: Arc<RecordingStore>,
        objects: Objects,
        clock: Arc<dyn Clock>,
        settings: HistorySettings,
    ) -> Result<Arc<Self>> {
        let history = History::open(Arc::clone(&log), objects.clone(), Arc::clone(&clock), settings)
            .map_err(Error::from_opening)?;
        Self::start(log, objects, clock, Some(history))
    }

    fn start(
        kv: Arc<dyn TxKv>,
        objects: Objects,
        clock: Arc<dyn Clock>,
        history: Option<History>,
    ) -> Result<Arc<Self>> {
        let (mut transactions, committer) = Self::recover(kv, objects, clock, history)?;
        let thread = std::thread::Builder::new().name("committer".to_owned()).spawn(move || committer.run());
        transactions.committer = Some(thread.map_err(Error::StartCommitter)?);
        Ok(Arc::new(transactions))
    }

    /// Opens a store with history but without a committer thread: commits wait until the caller drives the returned
    /// committer. For simulations.
    ///
    /// # Errors
    /// As [`Transactions::open`].
    pub fn open_without_thread(
        log: Arc<RecordingStore>,
        objects: Objects,
        clock: Arc<dyn Clock>,
        settings: HistorySettings,
    ) -> Result<(Arc<Self>, Committer)> {
        let history = History::open(Arc::clone(&log), objects.clone(), Arc::clone(&clock), settings)
            .map_err(Error::from_opening)?;
        let (transactions, committer) = Self::recover(log, objects, clock, Some(history))?;
        Ok((Arc::new(transactions), committer))
    }

    fn recover(
        kv: Arc<dyn TxKv>,
        objects: Objects,
        clock: Arc<dyn Clock>,
        history: Option<History>,
    ) -> Result<(Self, Committer)> {
        let Recovered { ts, catalog, snapshot_floor, uploads } = recover(&*kv)?;
        tracing::info!(commit = ts.0, uploads = uploads.len(), "opened the catalog");
        let sequences = SequenceCounters::recover(&*kv, &catalog)?;
        let catalog = Arc::new(catalog);
        let write_authority = history.as_ref().map_or_else(|| WriteAuthority::new(None), History::write_authority);
        let since_us = history.as_ref().map_or_else(|| clock.now_us(), History::newest_record_us);
        let core = Arc::new(Core {
            recent_states: RecentStates::new(ts, Arc::clone(&catalog), since_us),
            snapshots: SnapshotRegistry::new(ts, catalog, snapshot_floor),
            history,
            uploads: UploadRegistry::with_failed(uploads),
            cleaning_lock: tokio::sync::Mutex::new(()),
            moves: RecordedMoves::default(),
            write_log: WriteLog::default(),
            disk_space: DiskSpace::default(),
            locks: LockManager::new(Arc::clone(&clock)),
            outcomes: OutcomeRegistry::recover(&*kv)?,
            oid_allocator: OidAllocator::recover(&*kv)?,
            row_id_allocator: RowIdAllocator::recover(&*kv)?,
            next_transaction: AtomicU64::new(1),
            sequences,
            write_authority,
            kv,
            objects,
            clock,
        });
        let (requests, queue) = mpsc::channel();
        let committer = Committer::new(Arc::clone(&core), queue);
        Ok((Self { core, requests: Some(requests), committer: None }, committer))
    }

    /// Returns a snapshot of the newest commit. Objects that it references are not deleted while it or a clone of it
    /// lives, so hold it as long as a query runs.
    #[must_use]
    pub fn current(&self) -> Snapshot {
        self.core.snapshots.pin_newest()
    }

    /// Waits until there is a newer commit than `ts`.
    pub async fn wait_for_commit_after(&self, ts: CommitTs) {
        self.core.snapshots.wait_for_newer(ts).await;
    }

    /// Allocates an id that no object has or ever had. One of 1,024 calls waits for a durable write.
    #[must_use]
    pub fn allocate_oid(&self) -> Oid {
        let (oid, reserved) = self.core.oid_allocator.allocate(&*self.core.kv);
        if let Err(error) = reserved {
            // No further commit is possible, so it does not matter which id is returned.
            self.core.poison(&error);
        }
        oid
    }

    /// Allocates `count` consecutive ids that no row of any table has or ever had, and returns the first. Occasionally
    /// waits for a durable write.
    #[must_use]
    pub fn allocate_row_ids(&self, count: u64) -> RowId {
        let (first, reserved) = self.core.row_id_allocator.allocate(count, &*self.core.kv);
        if let Err(error) = reserved {
            self.core.poison(&error);
        }
        first
    }

    /// Returns a number that no earlier transaction of this server has.
    pub(crate) fn next_transaction(&self) -> TxnId {
        TxnId(self.core.next_transaction.fetch_add(1, Ordering::Relaxed))
    }

    /// Appends the next `count` numbers of a sequence to `numbers`. Nobody else receives them, even if the calling
    /// transaction is rolled back. One of 32 numbers waits for a durable write.
    ///
    /// # Errors
    /// [`SequenceExhausted`] at the end of the sequence; the numbers up to it are consumed then.
    pub fn next_sequence_numbers(
        &self,
        sequence: &Arc<Sequence>,
        count: usize,
        numbers: &mut Vec<i64>,
    ) -> std::result::Result<(), SequenceExhausted> {
        // After a failed write no further commit is possible, so it does not matter which numbers are returned.
        self.core.sequences.allocate(&*self.core.kv, sequence, count, numbers).unwrap_or_else(|error| {
            self.core.poison(&error);
            Ok(())
        })
    }

    /// Sets a sequence as `setval` does: the next number is the one after `value` if `is_called`, else `value` itself.
    pub fn set_sequence(&self, sequence: &Arc<Sequence>, value: i64, is_called: bool) {
        if let Err(error) = self.core.sequences.set(&*self.core.kv, sequence, value, is_called) {
            self.core.poison(&error);
        }
    }

    /// Returns the current position of a sequence.
    #[must_use]
    pub fn sequence_position(&self, sequence: &Sequence) -> SequencePosition {
        self.core.sequences.position(sequence)
    }

    /// Drops records of row moves that no snapshot needs; they keep old row versions in memory. With `in_need`, which
    /// is for memory pressure, also drops the states cached for time travel, which keep old rows too; a query that
    /// needs one has it rebuilt.
    pub fn forget_moves(&self, under_memory_pressure: bool) {
        self.core.moves.forget(self.core.snapshots.horizon());
        if under_memory_pressure {
            self.core.recent_states.drop_older();
        }
    }

    /// Starts a transaction whose snapshot is the newest commit.
    #[must_use]
    pub fn begin(self: &Arc<Self>, isolation: Isolation) -> Transaction {
        Transaction::new(Arc::clone(self), isolation)
    }

    /// Returns whether a write has failed or the storage was lost to another server: every commit fails from then on,
    /// and the server must stop.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.core.is_poisoned()
    }

    /// Waits until [`Self::is_poisoned`].
    pub async fn wait_until_poisoned(&self) {
        self.core.write_authority.wait_for_end().await;
    }

    pub(crate) async fn commit(&self, proposal: Proposal, holder: TransactionLocks) -> Result<CommitTs> {
        self.send_request(|reply_sender| Request::Commit { proposal: Box::new(proposal), locks: holder, reply_sender })
            .await
    }

    pub(crate) async fn announce(&self, object: String) -> Result<()> {
        self.send_request(|reply_sender| Request::Announce { object, reply_sender }).await
    }

    async fn send_request<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T>>) -> Request) -> Result<T> {
        let (reply_sender, answered) = oneshot::channel();
        let requests = self.requests.as_ref().expect("invariant of Transactions: the queue exists until the drop");
        // If the committer has ended nothing can be committed, as after a failed write.
        requests.send(request(reply_sender)).map_err(|_| Error::Poisoned)?;
        answered.await.map_err(|_| Error::Poisoned)?
    }
}

/// Waits for the committer, so that the store is closed once the last snapshot is dropped.
impl Drop for Transactions {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(committer) = self.committer.take()
            && committer.join().is_err()
        {
            tracing::error!("the committer thread has panicked");
        }
    }
}

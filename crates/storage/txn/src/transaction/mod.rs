//! One transaction: its view, staged changes, own rows, savepoints, commit and rollback.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{CatalogState, Change, RowPosition, TableRows};
use rowstore::{RowVersion, Tuple, UncommittedRows};
use types::{CommitTs, InjectedBug, Oid, RowId, ShardId};

use crate::commit_group::{DeletionGuard, Proposal, ROW_BYTES_MAX, TokenWrites};
use crate::disk_space::SpaceDemand;
use crate::locks::{KeyLock, LockError, LockOutcome, LockPosition, LockWait, RowLock, TableLock};
use crate::outcome::{TokenRollbackPoint, TransactionToken};
use crate::read_validation::{KeyRead, ReadSet};
use crate::rebind_own_rows::rebind_rows;
use crate::transaction_locks::TransactionLocks;
use crate::transactions::Core;
use crate::{Error, Result, Snapshot, Transactions, UploadAnnouncer, catalog_conflict};

#[cfg(test)]
mod tests;

/// Maximum bytes of a row's tuple. Its value in the store also holds the commit number.
const TUPLE_BYTES_MAX: usize = kv::VALUE_BYTES_MAX - 64;

/// Transaction isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Each statement sees everything committed before it began.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the transaction began.
    RepeatableRead,
    /// As [`Isolation::RepeatableRead`]; in addition the commit fails if something that was read has changed since.
    Serializable,
}

/// Change of one row of a table.
#[derive(Debug, Clone)]
pub struct RowChange {
    pub id: RowId,
    /// The row's position in the transaction's view; `None` for a new row.
    pub old_position: Option<RowPosition>,
    /// The new version; `None` deletes the row.
    pub new_version: Option<Tuple>,
}

/// An open transaction. It is rolled back if it is dropped without [`Transaction::commit`].
#[derive(Debug)]
pub struct Transaction {
    transactions: Arc<Transactions>,
    isolation: Isolation,
    /// The snapshot that `staged` was applied to.
    base_snapshot: Snapshot,
    /// The state of `base` with the staged changes and own rows applied.
    view: Arc<CatalogState>,
    staged_changes: Vec<Change>,
    /// The rows that the transaction has written, by table.
    own_rows: BTreeMap<Oid, OwnTableRows>,
    /// The oldest snapshot that rows of `own` were located in; keeps the record of later moves in memory.
    moves_pin: Option<Snapshot>,
    /// Guards of states that the staged changes copy from.
    deletion_guards: Vec<DeletionGuard>,
    savepoints: Vec<Savepoint>,
    uploads: UploadAnnouncer,
    locks: TransactionLocks,
    /// The read set; `None` unless the isolation level is serializable.
    read_set: Option<ReadSet>,
    /// The idempotency token and the statements that ran under it.
    pub(crate) token: TransactionToken,
}

#[derive(Debug, Clone)]
struct OwnTableRows {
    rows: UncommittedRows,
    /// The table's number of row moves when `rows` was bound to its positions.
    moves_when_bound: u64,
}

#[derive(Debug)]
struct Savepoint {
    name: String,
    rollback_point: RollbackPoint,
}

/// Position within a transaction that it can be rolled back to.
#[derive(Debug)]
pub struct RollbackPoint {
    /// Number of staged changes.
    staged_changes: usize,
    own_rows: BTreeMap<Oid, OwnTableRows>,
    locks: LockPosition,
    token: TokenRollbackPoint,
    /// Number of savepoints.
    savepoints: usize,
}

impl Transaction {
    pub(crate) fn new(transactions: Arc<Transactions>, isolation: Isolation) -> Self {
        let reads = (isolation == Isolation::Serializable).then(|| {
            transactions.core.write_log.begin_reader();
            ReadSet::default()
        });
        let base = transactions.current();
        let view = Arc::clone(&base.state);
        let uploads = UploadAnnouncer::new(Arc::clone(&transactions));
        let holder = TransactionLocks::new(&transactions.core, transactions.next_transaction());
        Self {
            transactions,
            isolation,
            base_snapshot: base,
            view,
            staged_changes: Vec::new(),
            own_rows: BTreeMap::new(),
            moves_pin: None,
            deletion_guards: Vec::new(),
            savepoints: Vec::new(),
            uploads,
            locks: holder,
            read_set: reads,
            token: TransactionToken::default(),
        }
    }

    /// Returns the snapshot that the next statement sees: committed data with the transaction's own changes.
    #[must_use]
    pub fn view(&self) -> Snapshot {
        self.base_snapshot.with_state(Arc::clone(&self.view))
    }

    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Moves the view of a READ COMMITTED transaction to the newest commit and applies the staged changes to it; does
    /// nothing at other isolation levels. Must be called before each statement. On a conflict the transaction must be
    /// rolled back.
    pub fn refresh(&mut self) -> Result<()> {
        if self.isolation != Isolation::ReadCommitted || self.sees_newest() {
            return Ok(());
        }
        let newest = self.transactions.current();
        for table in self.own_rows.keys() {
            catalog_conflict::check_written_rows(&self.base_snapshot.state, &newest.state, *table)
                .map_err(Error::Conflict)?;
        }
        if self.staged_changes.is_empty() && self.own_rows.is_empty() {
            self.view = Arc::clone(&newest.state);
            self.base_snapshot = newest;
            return Ok(());
        }
        let rebased = if self.staged_changes.is_empty() {
            CatalogState::clone(&newest.state)
        } else {
            let rebased =
                catalog_conflict::rebase(&self.base_snapshot.state, &newest.state, &self.staged_changes, |_, _| ());
            rebased.map_err(Error::Conflict)?
        };
        self.base_snapshot = newest;
        let indexed_for = Arc::clone(&self.view);
        self.view = Arc::new(self.apply_own_rows(rebased, Some(&indexed_for))?);
        if self.moves_pin.is_some() && self.savepoints.is_empty() {
            // The rows are bound to positions as of this commit now, and no savepoint needs the older ones.
            self.moves_pin = Some(self.base_snapshot.clone());
        }
        Ok(())
    }

    /// Adds the transaction's own rows to `state`, the newest base. `indexed_for` is the state whose table definitions
    /// the rows' index entries were built for; `None` rebuilds them.
    fn apply_own_rows(&mut self, mut state: CatalogState, indexed_for: Option<&CatalogState>) -> Result<CatalogState> {
        let moves = &self.transactions.core.moves;
        for (table, own) in self.own_rows.iter_mut() {
            let mut rows = TableRows::clone(state.rows(*table));
            if rows.counters.moves != own.moves_when_bound {
                *own = OwnTableRows {
                    rows: rebind_rows(&own.rows, &rows, &moves.until(*table, self.base_snapshot.ts)),
                    moves_when_bound: rows.counters.moves,
                };
            }
            if let Some(definition) = state.table(*table)
                && !indexed_for
                    .and_then(|state| state.table(*table))
                    .is_some_and(|known| Arc::ptr_eq(known, definition))
                && let Cow::Owned(indexed) = definition.with_current_indexes(&own.rows)?
            {
                own.rows = indexed;
            }
            rows.own_rows = own.rows.clone();
            state.set_rows(*table, rows);
        }
        Ok(state)
    }

    /// Changes rows of a table of the view.
    ///
    /// # Errors
    /// - [`Error::RowTooBig`] if a row is longer than a value of the store can be.
    /// - [`Error::CommitTooBig`] if the transaction changes more than one write can hold.
    /// - [`catalog::Error::Damaged`] if the default that older rows have in a column is no value of its type.
    ///
    /// Nothing is changed then.
    pub fn write_rows(&mut self, table: Oid, changes: impl IntoIterator<Item = RowChange>) -> Result<()> {
        let mut view = CatalogState::clone(&self.view);
        let definition =
            view.table(table).ok_or(catalog::Error::Missing { kind: catalog::ObjectKind::Table, oid: table })?;
        let mut rows = TableRows::clone(view.rows(table));
        let own = &mut rows.own_rows;
        for RowChange { id, old_position: was, new_version: now } in changes {
            // The transaction's own version of the row already hides the committed one.
            let is_own = own.layer.get(id).is_some();
            let hide = !is_own && was == Some(RowPosition::Fresh);
            if let Some(RowPosition::Shard { shard, ordinal }) = was.filter(|_| !is_own) {
                own.delete_from_shard(shard, ordinal);
            }
            match now {
                Some(tuple) => {
                    let bytes = tuple.as_bytes().len();
                    if TUPLE_BYTES_MAX < bytes {
                        return Err(Error::RowTooBig { bytes, limit: TUPLE_BYTES_MAX });
                    }
                    let keys = definition.index_entries(id, &tuple)?;
                    own.layer.put(
                        id,
                        Arc::new(RowVersion { commit_ts: RowVersion::UNCOMMITTED, tuple, index_entries: keys }),
                        hide,
                    );
                }
                None => own.layer.remove(id, hide),
            }
        }
        let others = self.own_rows.iter().filter(|(other, _)| **other != table);
        let bytes =
            own.layer.stored_bytes_max() + others.map(|(_, own)| own.rows.layer.stored_bytes_max()).sum::<u64>();
        if ROW_BYTES_MAX < bytes {
            return Err(Error::CommitTooBig { bytes, limit: ROW_BYTES_MAX });
        }
        if self.moves_pin.is_none() {
            self.moves_pin = Some(self.base_snapshot.clone());
        }
        self.own_rows
            .insert(table, OwnTableRows { rows: rows.own_rows.clone(), moves_when_bound: rows.counters.moves });
        view.set_rows(table, rows);
        self.view = Arc::new(view);
        Ok(())
    }

    /// Locks a table until the end of the transaction or a rollback to an earlier savepoint.
    ///
    /// # Errors
    /// Fails if another transaction is in the way and `wait` does not allow to wait, if the wait times out, or on a
    /// deadlock.
    pub async fn lock_table(&self, table: Oid, mode: TableLock, wait: LockWait) -> Result<LockOutcome, LockError> {
        self.locks.lock_table(table, mode, wait).await
    }

    /// Locks rows of a table in the given order, as long as [`Transaction::lock_table`].
    ///
    /// # Errors
    /// As [`Transaction::lock_table`].
    pub async fn lock_rows(
        &self,
        table: Oid,
        rows: &[RowId],
        mode: RowLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        self.locks.lock_rows(table, rows, mode, wait).await
    }

    /// Locks keys of an index, whether or not they exist, as long as [`Transaction::lock_table`].
    ///
    /// # Errors
    /// As [`Transaction::lock_table`].
    pub async fn lock_keys(
        &self,
        index: Oid,
        keys: &[Vec<u8>],
        mode: KeyLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        self.locks.lock_keys(index, keys, mode, wait).await
    }

    /// Locks an idempotency token, as long as [`Transaction::lock_table`].
    pub(crate) async fn lock_token(&self, key: &[u8], wait: LockWait) -> Result<LockOutcome, LockError> {
        self.locks.lock_token(key, wait).await
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.transactions.core
    }

    /// Adds a whole table to the read set of a serializable transaction.
    pub fn record_table_read(&mut self, table: Oid) {
        if let Some(reads) = &mut self.read_set {
            reads.add_table(table);
        }
    }

    /// Adds a key lookup to the read set of a serializable transaction.
    pub fn record_key_read(&mut self, read: impl FnOnce() -> KeyRead) {
        if let Some(reads) = &mut self.read_set {
            reads.add_key(read());
        }
    }

    /// Returns whether nothing was committed since the transaction's base snapshot.
    #[must_use]
    pub fn sees_newest(&self) -> bool {
        self.transactions.core.snapshots.newest() == self.base_snapshot.ts
    }

    /// Returns a snapshot of the newest commit, whatever the transaction itself sees.
    #[must_use]
    pub fn newest(&self) -> Snapshot {
        self.transactions.current()
    }

    /// Returns the change counters of a table as of the base snapshot; the transaction's own changes do not count.
    #[must_use]
    pub fn row_counters(&self, table: Oid) -> catalog::RowCounters {
        self.base_snapshot.state.rows(table).counters
    }

    /// Returns the newest committed rows of a table with the transaction's own rows applied.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the staged changes cannot be applied to the newest commit.
    pub fn rows_over_newest(&self, table: Oid) -> Result<Arc<TableRows>> {
        if self.sees_newest() {
            return Ok(Arc::clone(self.view.rows(table)));
        }
        let newest = self.newest();
        let rebased;
        let now = if self.staged_changes.is_empty() {
            newest.state.rows(table)
        } else {
            rebased =
                catalog_conflict::rebase(&self.base_snapshot.state, &newest.state, &self.staged_changes, |_, _| ())
                    .map_err(Error::Conflict)?;
            rebased.rows(table)
        };
        let Some(own) = self.own_rows.get(&table) else { return Ok(Arc::clone(now)) };
        let mut rows = TableRows::clone(now);
        rows.own_rows = rebind_rows(&own.rows, &rows, &self.transactions.core.moves.until(table, newest.ts));
        Ok(Arc::new(rows))
    }

    /// The first of `count` ids for new rows; see [`Transactions::allocate_row_ids`].
    #[must_use]
    pub fn allocate_row_ids(&self, count: u64) -> RowId {
        self.transactions.allocate_row_ids(count)
    }

    /// Compares a row of the transaction's view with the newer snapshot `now`: unchanged, changed or deleted by another
    /// transaction.
    #[must_use]
    pub fn find_row_fate(&self, now: &Snapshot, table: Oid, id: RowId, place: RowPosition) -> crate::RowFate {
        let seen = self.view.rows(table);
        if seen.own_rows.layer.get(id).is_some() {
            return crate::RowFate::Same(RowPosition::Fresh);
        }
        if let RowPosition::Shard { shard, .. } = place
            && self.has_staged_shard(table, shard)
        {
            // No other transaction sees the shard; its rows are new, or have been locked since this transaction wrote
            // it.
            return crate::RowFate::Same(place);
        }
        let moves = self.transactions.core.moves.until(table, now.ts);
        crate::row_moves::row_fate(seen, now.state.rows(table), &moves, id, place)
    }

    /// Returns whether this transaction has staged the shard.
    fn has_staged_shard(&self, table: Oid, shard: ShardId) -> bool {
        self.staged_changes.iter().any(|change| match change {
            Change::AddShards { table: of, shards, .. } => *of == table && shards.iter().any(|added| added.id == shard),
            _ => false,
        })
    }

    /// Applies `changes` to the view and stages them for commit: all of them, or none if one is refused.
    pub fn stage(&mut self, changes: Vec<Change>) -> Result<()> {
        let mut view = CatalogState::clone(&self.view);
        for change in &changes {
            view = view.apply(change)?;
        }
        for table in self.own_rows.keys() {
            let (Some(known), Some(definition)) = (self.view.table(*table), view.table(*table)) else { continue };
            if Arc::ptr_eq(known, definition) {
                continue;
            }
            if let Cow::Owned(indexed) = definition.with_current_indexes(&view.rows(*table).own_rows)? {
                let mut rows = TableRows::clone(view.rows(*table));
                rows.own_rows = indexed;
                view.set_rows(*table, rows);
            }
        }
        if changes.iter().any(|change| matches!(change, Change::CloneRows { .. })) {
            self.deletion_guards.push(Arc::new(self.base_snapshot.clone()));
        }
        self.own_rows = (self.own_rows.keys().copied())
            .filter(|table| view.table(*table).is_some())
            .map(|table| {
                let rows = view.rows(table);
                (table, OwnTableRows { rows: rows.own_rows.clone(), moves_when_bound: rows.counters.moves })
            })
            .filter(|(_, own)| !own.rows.is_empty())
            .collect();
        self.view = Arc::new(view);
        self.staged_changes.extend(changes);
        Ok(())
    }

    /// Holds a guard until the transaction has committed or is rolled back.
    pub fn hold_guard(&mut self, held: DeletionGuard) {
        self.deletion_guards.push(held);
    }

    /// Returns whether there is anything to commit.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        !self.staged_changes.is_empty() || !self.own_rows.is_empty() || self.token.has_written()
    }

    /// Returns whether the transaction holds a lock that others may have to wait for.
    #[must_use]
    pub fn holds_locks(&self) -> bool {
        self.locks.current_position() != LockPosition::default()
    }

    /// Announces an object that is about to be written, see [`UploadAnnouncer::announce`].
    pub async fn announce_upload(&self, object: &str) -> Result<()> {
        self.uploads.announce(object).await
    }

    /// Returns the announcer for the tasks that write this transaction's objects.
    #[must_use]
    pub fn uploads(&self) -> UploadAnnouncer {
        self.uploads.clone()
    }

    /// Sets a savepoint; an older one of the same name remains, hidden by the new one.
    pub fn set_savepoint(&mut self, name: &str) {
        let mark = self.rollback_point();
        self.savepoints.push(Savepoint { name: name.to_owned(), rollback_point: mark });
    }

    /// Rolls back to the savepoint, which remains.
    pub fn rollback_to_savepoint(&mut self, name: &str) -> Result<()> {
        let index = self.find_savepoint(name)?;
        let savepoint = self.savepoints.drain(index..).next().ok_or_else(|| unknown_savepoint(name))?;
        let outcome = self.rollback_to_point(&savepoint.rollback_point);
        self.savepoints.push(savepoint);
        outcome
    }

    /// Returns the current position.
    #[must_use]
    pub fn rollback_point(&self) -> RollbackPoint {
        let (locks, naming) = (self.locks.current_position(), self.token.rollback_point());
        let savepoints = self.savepoints.len();
        RollbackPoint {
            staged_changes: self.staged_changes.len(),
            own_rows: self.own_rows.clone(),
            locks,
            token: naming,
            savepoints,
        }
    }

    /// Rolls back to a position and discards later savepoints.
    pub fn rollback_to_point(&mut self, mark: &RollbackPoint) -> Result<()> {
        self.savepoints.truncate(mark.savepoints);
        self.staged_changes.truncate(mark.staged_changes);
        if !InjectedBug::RollbackToSavepointKeepsRows.is_active() {
            self.own_rows = mark.own_rows.clone();
        }
        self.token.rollback_to(mark.token);
        self.locks.release_to(mark.locks);
        let mut view = CatalogState::clone(&self.base_snapshot.state);
        for change in &self.staged_changes {
            view = view.apply(change)?;
        }
        // The own rows are those of the mark, while the tables' definitions may have changed since.
        self.view = Arc::new(self.apply_own_rows(view, None)?);
        Ok(())
    }

    /// Discards the savepoint and later ones; their changes remain.
    pub fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let index = self.find_savepoint(name)?;
        self.savepoints.truncate(index);
        Ok(())
    }

    /// Commits the changes: durable first, then visible to all. Once this future has been polled, dropping it does not
    /// cancel the commit, which succeeds or fails unobserved.
    pub async fn commit(mut self) -> Result<CommitTs> {
        if self.transactions.is_poisoned() {
            return Err(Error::Poisoned);
        }
        if !self.is_dirty() {
            // Objects that it may have announced are deleted after the drop.
            return Ok(self.base_snapshot.ts);
        }
        let core = &self.transactions.core;
        let rows = self.own_rows.iter().map(|(table, own)| (table, &own.rows));
        core.disk_space.reserve_space(
            SpaceDemand::from_changes(&self.staged_changes, rows).with_bytes(self.token.stored_bytes()),
            &*core.clock,
        )?;
        let (named, running) = match self.token.take() {
            Some((token, written, running)) => (Some(Box::new(TokenWrites { token, written })), running),
            None => (None, None),
        };
        self.deletion_guards.extend(running.map(|running| running as DeletionGuard));
        let proposal = Proposal {
            base: Arc::clone(&self.base_snapshot.state),
            changes: std::mem::take(&mut self.staged_changes),
            rows: std::mem::take(&mut self.own_rows).into_iter().map(|(table, own)| (table, own.rows)).collect(),
            uploads: self.uploads.take(),
            reads: self.read_set.clone().map(|reads| (self.base_snapshot.ts, reads)),
            guards: std::mem::take(&mut self.deletion_guards),
            token_writes: named,
            _moves_pin: self.moves_pin.take(),
        };
        // The locks travel with the commit: dropping this future releases none before the commit is visible.
        let transactions = Arc::clone(&self.transactions);
        let empty_locks = TransactionLocks::new(&transactions.core, transactions.next_transaction());
        let holder = std::mem::replace(&mut self.locks, empty_locks);
        transactions.commit(proposal, holder).await
    }

    /// Rolls back all changes; the next cleaning deletes uploaded objects.
    pub fn rollback(self) {
        drop(self);
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| unknown_savepoint(name))
    }
}

fn unknown_savepoint(name: &str) -> Error {
    Error::UnknownSavepoint { name: name.to_owned() }
}

/// Rolls back, unless the changes were handed to the committer; uploaded objects are marked for deletion with the last
/// clone of [`UploadAnnouncer`].
impl Drop for Transaction {
    fn drop(&mut self) {
        self.uploads.end();
        if self.read_set.take().is_some() {
            self.transactions.core.write_log.end_reader();
        }
    }
}

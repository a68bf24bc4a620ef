//! One transaction: its view, what it has staged, its savepoints, its end.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{CatalogState, Change, RowPlace, TableRows};
use rowstore::{OwnRows, Row, Tuple};
use types::{CommitTs, Mutation, Oid, RowId, ShardId};

use crate::bind::bind;
use crate::group::{Held, Named, Proposal, ROW_BYTES_MAX};
use crate::holder::Holder;
use crate::locks::{KeyLock, LockError, LockMark, LockWait, Locked, RowLock, TableLock};
use crate::outcome::{Naming, NamingMark};
use crate::reads::{KeyRead, ReadSet};
use crate::room::Wanted;
use crate::transactions::Core;
use crate::{Error, Result, Snapshot, Transactions, Uploads, conflict};

#[cfg(test)]
mod tests;

/// The longest row: in its value of the store it has its commit before it.
const TUPLE_BYTES_MAX: usize = kv::VALUE_BYTES_MAX - 64;

/// What a transaction sees of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the transaction began.
    RepeatableRead,
    /// As [`Isolation::RepeatableRead`], and what was read is still so when it commits.
    Serializable,
}

/// What becomes of one row of a table.
#[derive(Debug, Clone)]
pub struct RowChange {
    pub id: RowId,
    /// Where the transaction sees it; `None` for a new row.
    pub was: Option<RowPlace>,
    /// Its new version; `None` deletes it.
    pub now: Option<Tuple>,
}

/// A transaction. Dropped without [`Transaction::commit`] it is rolled back.
#[derive(Debug)]
pub struct Transaction {
    transactions: Arc<Transactions>,
    isolation: Isolation,
    /// The commit that `staged` was made to.
    base: Snapshot,
    /// `base` with `staged`.
    view: Arc<CatalogState>,
    staged: Vec<Change>,
    /// The rows it has written, by table.
    own: BTreeMap<Oid, Own>,
    /// The oldest commit that rows of `own` were found at: how they moved since is not forgotten.
    anchor: Option<Snapshot>,
    /// What its staged changes copy from.
    held: Vec<Held>,
    savepoints: Vec<Savepoint>,
    uploads: Uploads,
    holder: Holder,
    /// What it has read, where it is serializable.
    reads: Option<ReadSet>,
    /// What it does under a client's token.
    pub(crate) naming: Naming,
}

#[derive(Debug, Clone)]
struct Own {
    rows: OwnRows,
    /// How often the table's rows had moved when `rows` was bound to them.
    moved: u64,
}

#[derive(Debug)]
struct Savepoint {
    name: String,
    mark: TransactionMark,
}

/// Position within a transaction, to which it can be rolled back.
#[derive(Debug)]
pub struct TransactionMark {
    /// The number of staged changes.
    staged: usize,
    own: BTreeMap<Oid, Own>,
    locks: LockMark,
    naming: NamingMark,
    /// The number of savepoints.
    savepoints: usize,
}

impl Transaction {
    pub(crate) fn new(transactions: Arc<Transactions>, isolation: Isolation) -> Self {
        let reads = (isolation == Isolation::Serializable).then(|| {
            transactions.core.writes.begin();
            ReadSet::default()
        });
        let base = transactions.current();
        let view = Arc::clone(&base.state);
        let uploads = Uploads::new(Arc::clone(&transactions));
        let holder = Holder::new(&transactions.core, transactions.next_transaction());
        Self {
            transactions,
            isolation,
            base,
            view,
            staged: Vec::new(),
            own: BTreeMap::new(),
            anchor: None,
            held: Vec::new(),
            savepoints: Vec::new(),
            uploads,
            holder,
            reads,
            naming: Naming::default(),
        }
    }

    /// What this transaction sees: committed states and its own changes.
    #[must_use]
    pub fn view(&self) -> Snapshot {
        self.base.with_state(Arc::clone(&self.view))
    }

    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// To be called before each statement. Under READ COMMITTED the view moves on to the newest commit, with the staged
    /// changes made to that; if they cannot be, it is a conflict and the transaction has to be rolled back.
    pub fn refresh(&mut self) -> Result<()> {
        if self.isolation != Isolation::ReadCommitted || self.sees_newest() {
            return Ok(());
        }
        let newest = self.transactions.current();
        for table in self.own.keys() {
            conflict::written_rows(&self.base.state, &newest.state, *table).map_err(Error::Conflict)?;
        }
        if self.staged.is_empty() && self.own.is_empty() {
            self.view = Arc::clone(&newest.state);
            self.base = newest;
            return Ok(());
        }
        let rebased = if self.staged.is_empty() {
            CatalogState::clone(&newest.state)
        } else {
            let rebased = conflict::rebase(&self.base.state, &newest.state, &self.staged, |_, _| ());
            rebased.map_err(Error::Conflict)?
        };
        self.base = newest;
        let indexed_for = Arc::clone(&self.view);
        self.view = Arc::new(self.with_own(rebased, Some(&indexed_for))?);
        if self.anchor.is_some() && self.savepoints.is_empty() {
            // The rows are bound to this commit now, and no savepoint keeps them as they were bound before.
            self.anchor = Some(self.base.clone());
        }
        Ok(())
    }

    /// The state of `base` with the rows that this transaction has written, whose index entries are those of the tables of `indexed_for`.
    fn with_own(&mut self, mut state: CatalogState, indexed_for: Option<&CatalogState>) -> Result<CatalogState> {
        let moves = &self.transactions.core.moves;
        for (table, own) in self.own.iter_mut() {
            let mut rows = TableRows::clone(state.rows(*table));
            if rows.history.moved != own.moved {
                *own =
                    Own { rows: bind(&own.rows, &rows, &moves.until(*table, self.base.ts)), moved: rows.history.moved };
            }
            if let Some(definition) = state.table(*table)
                && !indexed_for
                    .and_then(|state| state.table(*table))
                    .is_some_and(|known| Arc::ptr_eq(known, definition))
                && let Cow::Owned(indexed) = definition.indexed(&own.rows)?
            {
                own.rows = indexed;
            }
            rows.own = own.rows.clone();
            state.set_rows(*table, rows);
        }
        Ok(state)
    }

    /// Changes rows of a table, which the view has.
    ///
    /// # Errors
    /// Where a row is longer than the store's values can be, or all that the transaction changes more than one write; where the catalog
    /// says that a row older than a column has a value in it that is none. Nothing is changed then.
    pub fn write(&mut self, table: Oid, changes: impl IntoIterator<Item = RowChange>) -> Result<()> {
        let mut view = CatalogState::clone(&self.view);
        let definition =
            view.table(table).ok_or(catalog::Error::Missing { kind: catalog::ObjectKind::Table, oid: table })?;
        let mut rows = TableRows::clone(view.rows(table));
        let own = &mut rows.own;
        for RowChange { id, was, now } in changes {
            // A version of its own hides what lies below already.
            let is_own = own.layer.get(id).is_some();
            let hide = !is_own && was == Some(RowPlace::Fresh);
            if let Some(RowPlace::Shard { shard, ordinal }) = was.filter(|_| !is_own) {
                own.delete_from_shard(shard, ordinal);
            }
            match now {
                Some(tuple) => {
                    let bytes = tuple.as_bytes().len();
                    if TUPLE_BYTES_MAX < bytes {
                        return Err(Error::RowTooBig { bytes, most: TUPLE_BYTES_MAX });
                    }
                    let keys = definition.index_entries(id, &tuple)?;
                    own.layer.put(id, Arc::new(Row { ts: Row::UNCOMMITTED, tuple, keys }), hide);
                }
                None => own.layer.remove(id, hide),
            }
        }
        let others = self.own.iter().filter(|(other, _)| **other != table);
        let bytes = own.layer.stored_bytes() + others.map(|(_, own)| own.rows.layer.stored_bytes()).sum::<u64>();
        if ROW_BYTES_MAX < bytes {
            return Err(Error::CommitTooBig { bytes, most: ROW_BYTES_MAX });
        }
        if self.anchor.is_none() {
            self.anchor = Some(self.base.clone());
        }
        self.own.insert(table, Own { rows: rows.own.clone(), moved: rows.history.moved });
        view.set_rows(table, rows);
        self.view = Arc::new(view);
        Ok(())
    }

    /// Locks a table; it stays locked to the end of the transaction, or until a savepoint before it is rolled back to.
    ///
    /// # Errors
    /// Where another transaction is in the way and `wait` says not to wait, or not for so long; where waiting would never end.
    pub async fn lock_table(&self, table: Oid, mode: TableLock, wait: LockWait) -> Result<Locked, LockError> {
        self.holder.table(table, mode, wait).await
    }

    /// Locks rows of a table in the order given; as [`Transaction::lock_table`].
    ///
    /// # Errors
    /// As [`Transaction::lock_table`].
    pub async fn lock_rows(
        &self,
        table: Oid,
        rows: &[RowId],
        mode: RowLock,
        wait: LockWait,
    ) -> Result<Locked, LockError> {
        self.holder.rows(table, rows, mode, wait).await
    }

    /// Locks keys of an index, whether they are there or not; as [`Transaction::lock_table`].
    ///
    /// # Errors
    /// As [`Transaction::lock_table`].
    pub async fn lock_keys(
        &self,
        index: Oid,
        keys: &[Vec<u8>],
        mode: KeyLock,
        wait: LockWait,
    ) -> Result<Locked, LockError> {
        self.holder.keys(index, keys, mode, wait).await
    }

    /// Locks a token, as [`Transaction::lock_table`] does a table.
    pub(crate) async fn lock_token(&self, key: &[u8], wait: LockWait) -> Result<Locked, LockError> {
        self.holder.token(key, wait).await
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.transactions.core
    }

    /// A statement reads a whole table, or much of it.
    pub fn note_read(&mut self, table: Oid) {
        if let Some(reads) = &mut self.reads {
            reads.add_table(table);
        }
    }

    /// A statement reads what has a key.
    pub fn note_key_read(&mut self, read: impl FnOnce() -> KeyRead) {
        if let Some(reads) = &mut self.reads {
            reads.add_key(read());
        }
    }

    /// Whether nothing was committed since what this transaction sees.
    #[must_use]
    pub fn sees_newest(&self) -> bool {
        self.transactions.core.visible.newest() == self.base.ts
    }

    /// What is committed by now, whatever this transaction sees.
    #[must_use]
    pub fn newest(&self) -> Snapshot {
        self.transactions.current()
    }

    /// What happened to the rows of a table up to what this transaction sees of others; what it has staged itself does not count.
    #[must_use]
    pub fn history(&self, table: Oid) -> catalog::History {
        self.base.state.rows(table).history
    }

    /// The rows of a table as committed by now, under what this transaction has written.
    ///
    /// # Errors
    /// Where what it has written cannot be placed on what is committed by now.
    pub fn over_newest(&self, table: Oid) -> Result<Arc<TableRows>> {
        if self.sees_newest() {
            return Ok(Arc::clone(self.view.rows(table)));
        }
        let newest = self.newest();
        let rebased;
        let now = if self.staged.is_empty() {
            newest.state.rows(table)
        } else {
            rebased =
                conflict::rebase(&self.base.state, &newest.state, &self.staged, |_, _| ()).map_err(Error::Conflict)?;
            rebased.rows(table)
        };
        let Some(own) = self.own.get(&table) else { return Ok(Arc::clone(now)) };
        let mut rows = TableRows::clone(now);
        rows.own = bind(&own.rows, &rows, &self.transactions.core.moves.until(table, newest.ts));
        Ok(Arc::new(rows))
    }

    /// The first of `count` ids for new rows; see [`Transactions::allocate_row_ids`].
    #[must_use]
    pub fn allocate_row_ids(&self, count: u64) -> RowId {
        self.transactions.allocate_row_ids(count)
    }

    /// What became of a row since this transaction's view: another look at what is committed by now.
    #[must_use]
    pub fn row_now(&self, now: &Snapshot, table: Oid, id: RowId, place: RowPlace) -> crate::RowNow {
        let seen = self.view.rows(table);
        if seen.own.layer.get(id).is_some() {
            return crate::RowNow::Same(RowPlace::Fresh);
        }
        if let RowPlace::Shard { shard, .. } = place
            && self.has_added(table, shard)
        {
            // Nobody else sees it: it is new, or locked since this transaction wrote it.
            return crate::RowNow::Same(place);
        }
        let moves = self.transactions.core.moves.until(table, now.ts);
        crate::moves::row_now(seen, now.state.rows(table), &moves, id, place)
    }

    /// Whether the shard is one that this transaction has staged.
    fn has_added(&self, table: Oid, shard: ShardId) -> bool {
        self.staged.iter().any(|change| match change {
            Change::AddShards { table: of, shards, .. } => *of == table && shards.iter().any(|added| added.id == shard),
            _ => false,
        })
    }

    /// Makes all `changes` to the view, or none if one is refused.
    pub fn stage(&mut self, changes: Vec<Change>) -> Result<()> {
        let mut view = CatalogState::clone(&self.view);
        for change in &changes {
            view = view.apply(change)?;
        }
        for table in self.own.keys() {
            let (Some(known), Some(definition)) = (self.view.table(*table), view.table(*table)) else { continue };
            if Arc::ptr_eq(known, definition) {
                continue;
            }
            if let Cow::Owned(indexed) = definition.indexed(&view.rows(*table).own)? {
                let mut rows = TableRows::clone(view.rows(*table));
                rows.own = indexed;
                view.set_rows(*table, rows);
            }
        }
        if changes.iter().any(|change| matches!(change, Change::Clone { .. })) {
            self.held.push(Arc::new(self.base.clone()));
        }
        self.own = (self.own.keys().copied())
            .filter(|table| view.table(*table).is_some())
            .map(|table| {
                let rows = view.rows(table);
                (table, Own { rows: rows.own.clone(), moved: rows.history.moved })
            })
            .filter(|(_, own)| !own.rows.is_empty())
            .collect();
        self.view = Arc::new(view);
        self.staged.extend(changes);
        Ok(())
    }

    /// Keeps what `held` keeps until the transaction has committed or is rolled back.
    pub fn hold(&mut self, held: Held) {
        self.held.push(held);
    }

    /// Whether there is anything to commit.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        !self.staged.is_empty() || !self.own.is_empty() || self.naming.has_written()
    }

    /// Whether others may have to wait for its end.
    #[must_use]
    pub fn holds_locks(&self) -> bool {
        self.holder.mark() != LockMark::default()
    }

    /// See [`Uploads::announce`].
    pub async fn announce_upload(&self, object: &str) -> Result<()> {
        self.uploads.announce(object).await
    }

    /// What the tasks that write this transaction's objects announce them with.
    #[must_use]
    pub fn uploads(&self) -> Uploads {
        self.uploads.clone()
    }

    /// Sets a savepoint; one of the same name stays, hidden by the new one.
    pub fn savepoint(&mut self, name: &str) {
        let mark = self.mark();
        self.savepoints.push(Savepoint { name: name.to_owned(), mark });
    }

    /// Takes back everything since the savepoint, which stays.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let index = self.find(name)?;
        let savepoint = self.savepoints.drain(index..).next().ok_or_else(|| unknown(name))?;
        let outcome = self.roll_back_to(&savepoint.mark);
        self.savepoints.push(savepoint);
        outcome
    }

    /// Returns the current position.
    #[must_use]
    pub fn mark(&self) -> TransactionMark {
        let (locks, naming) = (self.holder.mark(), self.naming.mark());
        let savepoints = self.savepoints.len();
        TransactionMark { staged: self.staged.len(), own: self.own.clone(), locks, naming, savepoints }
    }

    /// Rolls back to a position. Savepoints that were set after it are gone.
    pub fn roll_back_to(&mut self, mark: &TransactionMark) -> Result<()> {
        self.savepoints.truncate(mark.savepoints);
        self.staged.truncate(mark.staged);
        if !Mutation::SavepointKeepsRows.is_on() {
            self.own = mark.own.clone();
        }
        self.naming.roll_back_to(mark.naming);
        self.holder.release_to(mark.locks);
        let mut view = CatalogState::clone(&self.base.state);
        for change in &self.staged {
            view = view.apply(change)?;
        }
        // The rows are those that were there at the savepoint, and the tables may have changed since.
        self.view = Arc::new(self.with_own(view, None)?);
        Ok(())
    }

    /// Forgets the savepoint and those set after it; their changes stay.
    pub fn release(&mut self, name: &str) -> Result<()> {
        let index = self.find(name)?;
        self.savepoints.truncate(index);
        Ok(())
    }

    /// Makes the changes durable, then visible to all. Once this has been polled, dropping it does not take the commit back:
    /// it happens or fails unseen.
    pub async fn commit(mut self) -> Result<CommitTs> {
        if self.transactions.is_poisoned() {
            return Err(Error::Poisoned);
        }
        if !self.is_dirty() {
            // Nothing to commit; objects it may have announced are deleted with the drop.
            return Ok(self.base.ts);
        }
        let core = &self.transactions.core;
        let rows = self.own.iter().map(|(table, own)| (table, &own.rows));
        core.room.take(Wanted::of(&self.staged, rows).and(self.naming.stored_bytes()), &*core.clock)?;
        let (named, running) = match self.naming.take() {
            Some((token, written, running)) => (Some(Box::new(Named { token, written })), running),
            None => (None, None),
        };
        self.held.extend(running.map(|running| running as Held));
        let proposal = Proposal {
            base: Arc::clone(&self.base.state),
            changes: std::mem::take(&mut self.staged),
            rows: std::mem::take(&mut self.own).into_iter().map(|(table, own)| (table, own.rows)).collect(),
            uploads: self.uploads.take(),
            reads: self.reads.clone().map(|reads| (self.base.ts, reads)),
            held: std::mem::take(&mut self.held),
            named,
            _anchor: self.anchor.take(),
        };
        // The locks go with the commit: whoever drops this future drops none of them before the commit is visible.
        let transactions = Arc::clone(&self.transactions);
        let none = Holder::new(&transactions.core, transactions.next_transaction());
        let holder = std::mem::replace(&mut self.holder, none);
        transactions.commit(proposal, holder).await
    }

    /// Takes everything back; what was uploaded is deleted by the next cleaning.
    pub fn rollback(self) {
        drop(self);
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> Error {
    Error::UnknownSavepoint { name: name.to_owned() }
}

/// A rollback, unless the changes were handed to the committer; what it uploaded goes with the last of [`Uploads`].
impl Drop for Transaction {
    fn drop(&mut self) {
        self.uploads.end();
        if self.reads.take().is_some() {
            self.transactions.core.writes.end();
        }
    }
}

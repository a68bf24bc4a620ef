//! Validates commits against the newest state and combines them into one write. Pure: works on states, changes and
//! keys, without I/O.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use catalog::{CatalogState, Change, ObjectKind, persistence};
use history::put_last_commit;
use kv::{BATCH_BYTES_MAX, Batch, VALUE_BYTES_MAX};
use rowstore::UncommittedRows;
use shards::ShardMeta;
use types::{CommitTs, InjectedBug, Oid};

use crate::garbage_records::{GarbageRecord, objects_removed};
use crate::outcome::{self, Outcome, StatementOutcome, Token};
use crate::read_validation::{ReadSet, WriteLog};
use crate::rebind_own_rows::rebind_rows;
use crate::row_moves::{RecordedMoves, RowMove};
use crate::{
    Conflict, ConflictReason, Error, Result, Snapshot, catalog_conflict, dropped_tables, upload_announcements,
};

/// Maximum bytes of rows that one transaction, or all transactions of a group together, can change; the remainder of a
/// batch is reserved for definitions.
pub(crate) const ROW_BYTES_MAX: u64 = (BATCH_BYTES_MAX - VALUE_BYTES_MAX) as u64;

/// Guard that keeps something from being deleted as long as it is held.
pub type DeletionGuard = Arc<dyn Any + Send + Sync>;

/// Everything that a transaction submits for commit.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The state that the changes were applied to.
    pub(crate) base: Arc<CatalogState>,
    pub(crate) changes: Vec<Change>,
    /// The rows that the transaction wrote, by table.
    pub(crate) rows: Vec<(Oid, UncommittedRows)>,
    /// The objects that were announced for the transaction.
    pub(crate) uploads: Vec<String>,
    /// Snapshot and read set of a serializable transaction; `None` at other isolation levels.
    pub(crate) reads: Option<(CommitTs, ReadSet)>,
    /// Guards of states that the transaction copies from, held until it is visible.
    pub(crate) guards: Vec<DeletionGuard>,
    /// Token and statements whose outcome is stored for the client; `None` without a token.
    pub(crate) token_writes: Option<Box<TokenWrites>>,
    /// Snapshot that keeps in memory the moves of the rows that the transaction wrote.
    pub(crate) _moves_pin: Option<Snapshot>,
}

/// The statements that a client has run under a token.
#[derive(Debug)]
pub(crate) struct TokenWrites {
    pub(crate) token: Token,
    pub(crate) written: Vec<StatementOutcome>,
}

/// Commits on top of the newest visible state, to be made durable by one write.
#[derive(Debug)]
pub(crate) struct CommitGroup {
    pub(crate) ts: CommitTs,
    pub(crate) state: Arc<CatalogState>,
    pub(crate) batch: Batch,
    /// Size of `batch`.
    bytes: usize,
    now_us: i64,
}

impl CommitGroup {
    /// Creates an empty group on top of the newest commit.
    pub(crate) fn new(ts: CommitTs, state: Arc<CatalogState>, now_us: i64) -> Self {
        Self { ts, state, batch: Batch::new(), bytes: 0, now_us }
    }

    /// Appends the proposal to the group, or returns the conflict with what was committed since its snapshot. `listed`
    /// holds the garbage records of the store, for a proposal that [copies rows](Proposal::clones).
    pub(crate) fn admit(
        &mut self,
        proposal: &Proposal,
        moves: &RecordedMoves,
        writes: &WriteLog,
        garbage_records: &[GarbageRecord],
    ) -> Result<CommitTs> {
        for (table, _) in &proposal.rows {
            catalog_conflict::check_written_rows(&proposal.base, &self.state, *table)?;
        }
        let changed = proposal.reads.as_ref().and_then(|(since, reads)| writes.first_changed_table(reads, *since));
        if let Some(oid) = changed {
            return Err(Conflict { kind: ObjectKind::Table, oid, reason: ConflictReason::ReadChanged }.into());
        }
        let ts = CommitTs(self.ts.0 + 1);
        let mut batch = Batch::new();
        // Announced objects that no change references become garbage with this commit, as do objects that it removes.
        let mut garbage: BTreeSet<String> = proposal.uploads.iter().cloned().collect();
        let mut moved = Vec::new();
        let mut revived = HashSet::new();
        let mut dropped = Vec::new();
        let mut after = catalog_conflict::rebase(&proposal.base, &self.state, &proposal.changes, |before, change| {
            persistence::write(before, change, ts, &mut batch);
            moved.extend(RowMove::from_change(before, change, ts));
            shards_added(change).iter().for_each(|shard| {
                garbage.remove(&shard.object);
            });
            garbage.extend(objects_removed(before, change));
            match change {
                Change::CloneRows { rows, .. } => revived.extend(rows.shards.shards.objects().map(Cow::into_owned)),
                Change::DropTable(oid) => dropped.extend(self.state.table(*oid).map(Arc::clone)),
                _ => {}
            }
        })?;
        let mut written = Vec::with_capacity(proposal.rows.len());
        for (table, own) in &proposal.rows {
            let rows = after.rows(*table);
            let definition = after.table(*table);
            let is_same = proposal.base.table(*table).zip(definition).is_some_and(|(base, now)| Arc::ptr_eq(base, now));
            let indexed = match definition {
                Some(definition) if !is_same => definition.with_current_indexes(own),
                _ => Ok(Cow::Borrowed(own)),
            };
            // `conflict::check_written_rows` has checked above that the table accepts the rows.
            let own = indexed.map_err(|_| Conflict {
                kind: ObjectKind::Table,
                oid: *table,
                reason: ConflictReason::Changed,
            })?;
            let bound = rebind_rows(&own, rows, &moves.until(*table, self.ts));
            persistence::rows::write(rows, *table, &bound, ts, &mut batch);
            let rows = rows.with_commit(&bound, ts);
            after.set_rows(*table, rows);
            written.push((*table, bound));
        }
        if let Some(named) = &proposal.token_writes {
            let outcome = Outcome { commit: ts, at_us: self.now_us, statements: named.written.clone() };
            outcome::put(&mut batch, &named.token, &outcome);
        }
        // The sizes are checked here because a write that the store refuses would stop the server.
        batch.check_sizes().map_err(Error::DefinitionTooBig)?;
        let bytes = batch.encoded_bytes_max();
        if BATCH_BYTES_MAX < self.bytes + bytes {
            return Err(Error::CommitTooBig { bytes: bytes as u64, limit: ROW_BYTES_MAX });
        }
        moved.into_iter().for_each(|(table, known)| moves.record(table, known));
        // Recorded before this is visible: a serializable transaction that begins earlier may have read these rows.
        writes.record(ts, &proposal.changes, written.iter().map(|(table, own)| (*table, own)));
        proposal.uploads.iter().for_each(|object| upload_announcements::delete_announcement(&mut batch, object));
        for object in garbage {
            let named_until_us = (!proposal.uploads.contains(&object)).then_some(self.now_us);
            GarbageRecord { garbage_since: ts, object, referenced_until_us: named_until_us }.put(&mut batch);
        }
        garbage_records
            .iter()
            .filter(|listed| revived.contains(&listed.object))
            .for_each(|listed| listed.delete(&mut batch));
        dropped.iter().for_each(|table| dropped_tables::put_drop(&mut batch, table, ts, self.now_us));
        put_last_commit(&mut batch, ts);
        self.bytes += bytes;
        self.batch.append(batch);
        self.ts = ts;
        self.state = Arc::new(after);
        Ok(ts)
    }

    /// Adds the announcement of an object to the batch.
    pub(crate) fn announce(&mut self, object: &str) {
        if !InjectedBug::UploadNotAnnounced.is_active() {
            upload_announcements::put_announcement(&mut self.batch, object);
        }
    }
}

impl Proposal {
    /// Returns an upper bound of the bytes that the rows and the stored outcome take in the store.
    pub(crate) fn max_stored_bytes(&self) -> u64 {
        let named = self.token_writes.as_ref().map_or(0, |named| outcome::stored_bytes(&named.written));
        self.rows.iter().map(|(_, own)| own.layer.stored_bytes_max()).sum::<u64>() + named
    }

    /// Returns whether a change copies the rows of another table.
    pub(crate) fn copies_rows(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::CloneRows { .. }))
    }

    /// Returns whether the commit must be the first of its group: it needs the preceding commit to be a state that time
    /// travel can reach, or reads records that earlier commits write.
    pub(crate) fn must_begin_group(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::CloneRows { .. } | Change::DropTable(_)))
    }
}

/// Returns the shards that a change adds to the catalog.
fn shards_added(change: &Change) -> &[Arc<ShardMeta>] {
    match change {
        Change::AddShards { shards, .. } => shards,
        Change::Flush { flushed, .. } => &flushed.shards,
        Change::CompactShards { compacted, .. } => &compacted.shards,
        _ => &[],
    }
}

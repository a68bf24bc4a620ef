//! Several commits as one write. Pure: states, changes and keys.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use catalog::{CatalogState, Change, ObjectKind, stored};
use history::put_last_commit;
use kv::{BATCH_BYTES_MAX, Batch, VALUE_BYTES_MAX};
use rowstore::OwnRows;
use shards::ShardMeta;
use types::{CommitTs, Mutation, Oid};

use crate::bind::bind;
use crate::garbage::{Garbage, objects_removed};
use crate::moves::{Move, Moves};
use crate::outcome::{self, Outcome, Token, Written};
use crate::reads::{ReadSet, Writes};
use crate::{Conflict, Error, Reason, Result, Snapshot, conflict, dropped, uploads};

/// Most bytes of rows that a transaction changes, and that the transactions of a group change together; the rest of a batch is for
/// definitions.
pub(crate) const ROW_BYTES_MAX: u64 = (BATCH_BYTES_MAX - VALUE_BYTES_MAX) as u64;

/// Keeps something from being deleted.
pub type Held = Arc<dyn Any + Send + Sync>;

/// What a transaction asks to be committed.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The state that the changes were made to.
    pub(crate) base: Arc<CatalogState>,
    pub(crate) changes: Vec<Change>,
    /// The rows it wrote, by table.
    pub(crate) rows: Vec<(Oid, OwnRows)>,
    /// The objects announced for it.
    pub(crate) uploads: Vec<String>,
    /// What a serializable transaction has read, and when it began.
    pub(crate) reads: Option<(CommitTs, ReadSet)>,
    /// Keeps the objects of states that it copies from, until it is visible.
    pub(crate) held: Vec<Held>,
    /// What its client is told of it by a token.
    pub(crate) named: Option<Box<Named>>,
    /// Keeps in memory how the rows it wrote moved.
    pub(crate) _anchor: Option<Snapshot>,
}

/// The statements that a client has run under a token.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) token: Token,
    pub(crate) written: Vec<Written>,
}

/// Commits on top of what is visible, to be made durable by one write.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) ts: CommitTs,
    pub(crate) state: Arc<CatalogState>,
    pub(crate) batch: Batch,
    /// Of the batch.
    bytes: usize,
    now_us: i64,
}

impl Group {
    /// An empty group after the newest commit.
    pub(crate) fn after(ts: CommitTs, state: Arc<CatalogState>, now_us: i64) -> Self {
        Self { ts, state, batch: Batch::new(), bytes: 0, now_us }
    }

    /// Puts the proposal after all that are in the group, or says why it cannot follow them.
    /// `listed` is what the store lists as garbage, for a proposal that [copies rows](Proposal::clones).
    pub(crate) fn admit(
        &mut self,
        proposal: &Proposal,
        moves: &Moves,
        writes: &Writes,
        listed: &[Garbage],
    ) -> Result<CommitTs> {
        for (table, _) in &proposal.rows {
            conflict::written_rows(&proposal.base, &self.state, *table)?;
        }
        let changed = proposal.reads.as_ref().and_then(|(since, reads)| writes.changed(reads, *since));
        if let Some(oid) = changed {
            return Err(Conflict { kind: ObjectKind::Table, oid, reason: Reason::ReadChanged }.into());
        }
        let ts = CommitTs(self.ts.0 + 1);
        let mut batch = Batch::new();
        // What was announced and is not part of the outcome is garbage from this commit on, as is what the commit removes.
        let mut garbage: BTreeSet<String> = proposal.uploads.iter().cloned().collect();
        let mut moved = Vec::new();
        let mut revived = HashSet::new();
        let mut dropped = Vec::new();
        let mut after = conflict::rebase(&proposal.base, &self.state, &proposal.changes, |before, change| {
            stored::write(before, change, ts, &mut batch);
            moved.extend(Move::of(before, change, ts));
            shards_added(change).iter().for_each(|shard| {
                garbage.remove(&shard.object);
            });
            garbage.extend(objects_removed(before, change));
            match change {
                Change::Clone { rows, .. } => revived.extend(rows.shards.shards.objects().map(Cow::into_owned)),
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
                Some(definition) if !is_same => definition.indexed(own),
                _ => Ok(Cow::Borrowed(own)),
            };
            // That the table takes the rows was asked above.
            let own =
                indexed.map_err(|_| Conflict { kind: ObjectKind::Table, oid: *table, reason: Reason::Changed })?;
            let bound = bind(&own, rows, &moves.until(*table, self.ts));
            stored::rows::write(rows, *table, &bound, ts, &mut batch);
            let rows = rows.after(&bound, ts);
            after.set_rows(*table, rows);
            written.push((*table, bound));
        }
        if let Some(named) = &proposal.named {
            let outcome = Outcome { commit: ts, at_us: self.now_us, statements: named.written.clone() };
            outcome::put(&mut batch, &named.token, &outcome);
        }
        // A write that the store refuses would end the server.
        batch.check_sizes().map_err(Error::DefinitionTooBig)?;
        let bytes = batch.byte_count();
        if BATCH_BYTES_MAX < self.bytes + bytes {
            return Err(Error::CommitTooBig { bytes: bytes as u64, most: ROW_BYTES_MAX });
        }
        moved.into_iter().for_each(|(table, known)| moves.note(table, known));
        // Where rows lie now: serializable transactions that begin before this is visible have found them there.
        writes.note(ts, &proposal.changes, written.iter().map(|(table, own)| (*table, own)));
        proposal.uploads.iter().for_each(|object| uploads::delete(&mut batch, object));
        for object in garbage {
            let named_until_us = (!proposal.uploads.contains(&object)).then_some(self.now_us);
            Garbage { since: ts, object, named_until_us }.put(&mut batch);
        }
        listed.iter().filter(|listed| revived.contains(&listed.object)).for_each(|listed| listed.delete(&mut batch));
        dropped.iter().for_each(|table| dropped::put(&mut batch, table, ts, self.now_us));
        put_last_commit(&mut batch, ts);
        self.bytes += bytes;
        self.batch.append(batch);
        self.ts = ts;
        self.state = Arc::new(after);
        Ok(ts)
    }

    /// Adds the announcement of an object.
    pub(crate) fn announce(&mut self, object: &str) {
        if !Mutation::UploadNotAnnounced.is_on() {
            uploads::put(&mut self.batch, object);
        }
    }
}

impl Proposal {
    /// What its rows, and what is told of it, take in the store at most.
    pub(crate) fn row_bytes(&self) -> u64 {
        let named = self.named.as_ref().map_or(0, |named| outcome::stored_bytes(&named.written));
        self.rows.iter().map(|(_, own)| own.layer.stored_bytes()).sum::<u64>() + named
    }

    /// Whether it gives tables the rows of others.
    pub(crate) fn clones(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::Clone { .. }))
    }

    /// Whether what was visible before it has to be a state that can be gone back to, or what it needs to know is in the store.
    pub(crate) fn begins_a_group(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::Clone { .. } | Change::DropTable(_)))
    }
}

/// The shards that a change brings into the catalog.
fn shards_added(change: &Change) -> &[Arc<ShardMeta>] {
    match change {
        Change::AddShards { shards, .. } => shards,
        Change::Settle { settled, .. } => &settled.shards,
        Change::Compact { compacted, .. } => &compacted.shards,
        _ => &[],
    }
}

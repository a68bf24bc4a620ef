//! Several commits as one write. Pure: states, changes and keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{CatalogState, Change, ObjectKind, stored};
use kv::Batch;
use rowstore::OwnRows;
use shards::ShardMeta;
use types::{CommitTs, Oid};

use crate::bind::bind;
use crate::garbage::{Garbage, objects_removed};
use crate::moves::{Move, Moves};
use crate::reads::{ReadSet, Writes};
use crate::recover::put_last_commit;
use crate::{Conflict, Reason, Snapshot, conflict, uploads};

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
    /// Keeps in memory how the rows it wrote moved.
    pub(crate) _anchor: Option<Snapshot>,
}

/// Commits on top of what is visible, to be made durable by one write.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) ts: CommitTs,
    pub(crate) state: Arc<CatalogState>,
    pub(crate) batch: Batch,
}

impl Group {
    /// An empty group after the newest commit.
    pub(crate) fn after(ts: CommitTs, state: Arc<CatalogState>) -> Self {
        Self { ts, state, batch: Batch::new() }
    }

    /// Puts the proposal after all that are in the group, or says why it cannot follow them.
    pub(crate) fn admit(&mut self, proposal: &Proposal, moves: &Moves, writes: &Writes) -> Result<CommitTs, Conflict> {
        for (table, _) in &proposal.rows {
            conflict::written_rows(&proposal.base, &self.state, *table)?;
        }
        let changed = proposal.reads.as_ref().and_then(|(since, reads)| writes.changed(reads, *since));
        if let Some(oid) = changed {
            return Err(Conflict { kind: ObjectKind::Table, oid, reason: Reason::ReadChanged });
        }
        let ts = CommitTs(self.ts.0 + 1);
        let mut batch = Batch::new();
        // What was announced and is not part of the outcome is garbage from this commit on, as is what the commit removes.
        let mut garbage: BTreeSet<String> = proposal.uploads.iter().cloned().collect();
        let mut moved = Vec::new();
        let mut after = conflict::rebase(&proposal.base, &self.state, &proposal.changes, |before, change| {
            stored::write(before, change, ts, &mut batch);
            moved.extend(Move::of(before, change, ts));
            shards_added(change).iter().for_each(|shard| {
                garbage.remove(&shard.object);
            });
            garbage.extend(objects_removed(before, change));
        })?;
        for (table, own) in &proposal.rows {
            let rows = after.rows(*table);
            let bound = bind(own, rows, &moves.until(*table, self.ts));
            stored::rows::write(rows, *table, &bound, ts, &mut batch);
            let rows = rows.after(&bound, ts);
            after.set_rows(*table, rows);
        }
        moved.into_iter().for_each(|(table, known)| moves.note(table, known));
        writes.note(ts, &proposal.changes, proposal.rows.iter().map(|(table, own)| (*table, own)));
        proposal.uploads.iter().for_each(|object| uploads::delete(&mut batch, object));
        garbage.into_iter().for_each(|object| Garbage { since: ts, object }.put(&mut batch));
        put_last_commit(&mut batch, ts);
        self.batch.append(batch);
        self.ts = ts;
        self.state = Arc::new(after);
        Ok(ts)
    }

    /// Adds the announcement of an object.
    pub(crate) fn announce(&mut self, object: &str) {
        uploads::put(&mut self.batch, object);
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

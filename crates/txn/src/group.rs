//! Several commits as one write. Pure: states, changes and keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{CatalogState, Change, stored};
use kv::Batch;
use types::CommitTs;

use crate::garbage::{Garbage, objects_removed};
use crate::recover::put_last_commit;
use crate::{Conflict, conflict, uploads};

/// What a transaction asks to be committed.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The state that the changes were made to.
    pub(crate) base: Arc<CatalogState>,
    pub(crate) changes: Vec<Change>,
    /// The objects announced for it.
    pub(crate) uploads: Vec<String>,
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
    pub(crate) fn admit(&mut self, proposal: &Proposal) -> Result<CommitTs, Conflict> {
        let ts = CommitTs(self.ts.0 + 1);
        let mut batch = Batch::new();
        // What was announced and is not part of the outcome is garbage from this commit on, as is what the commit removes.
        let mut garbage: BTreeSet<String> = proposal.uploads.iter().cloned().collect();
        let after = conflict::rebase(&proposal.base, &self.state, &proposal.changes, |before, change| {
            stored::write(before, change, ts, &mut batch);
            if let Change::AddShards { shards, .. } = change {
                shards.iter().for_each(|shard| {
                    garbage.remove(&shard.object);
                });
            }
            garbage.extend(objects_removed(before, change));
        })?;
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

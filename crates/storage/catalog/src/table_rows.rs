//! All rows of a table in one state: shards, fresh rows above them, and a transaction's own rows on top.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use roaring::RoaringBitmap;
use rowstore::{FreshRows, Layer, RowVersion, UncommittedRows};
use shards::ShardMeta;
use types::{CommitTs, InjectedBug, RowId, ShardId};

use crate::{CompactedShards, FlushedRows, PrunedShards, Result, ShardSize, Table, TableShards};

/// Rows of a table: the committed ones, accessible as fields by deref, and above them those of a transaction. Cloning
/// costs a pointer, and a few more if a transaction has written.
#[derive(Debug, Clone, Default)]
pub struct TableRows {
    committed: Arc<CommittedRows>,
    /// Rows that the transaction has written whose view this is; empty in a committed state.
    pub own_rows: UncommittedRows,
}

/// Committed rows of a table.
#[derive(Debug, Clone, Default)]
pub struct CommittedRows {
    pub shards: TableShards,
    pub fresh: FreshRows,
    /// Counts of changes since the catalog was read from the store.
    pub counters: RowCounters,
}

impl Deref for TableRows {
    type Target = CommittedRows;

    fn deref(&self) -> &CommittedRows {
        &self.committed
    }
}

impl From<CommittedRows> for TableRows {
    fn from(committed: CommittedRows) -> Self {
        Self { committed: Arc::new(committed), own_rows: UncommittedRows::default() }
    }
}

/// Change counters of a table's rows, by kind of change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounters {
    /// Number of times that all rows were removed.
    pub truncations: u64,
    /// Number of commits that added, changed or deleted rows.
    pub writes: u64,
    /// Number of flushes and compactions, which move rows.
    pub moves: u64,
}

/// Position of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPosition {
    /// Among the fresh rows, either committed or the transaction's own.
    Fresh,
    Shard {
        shard: ShardId,
        ordinal: u32,
    },
}

impl TableRows {
    /// Returns the shared instance without rows.
    pub(crate) fn empty() -> &'static Arc<TableRows> {
        static NONE: LazyLock<Arc<TableRows>> = LazyLock::new(Arc::default);
        &NONE
    }

    /// Creates the rows of an external table, which lie in files that no commit has added.
    #[must_use]
    pub fn from_files(files: &[Arc<ShardMeta>]) -> Self {
        CommittedRows { shards: TableShards::default().append(files, None), ..CommittedRows::default() }.into()
    }

    /// Returns the committed rows for modification, copied if other states share them.
    pub(crate) fn committed_mut(&mut self) -> &mut CommittedRows {
        Arc::make_mut(&mut self.committed)
    }

    /// Returns the number of visible rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        let fresh = self.fresh.len() + self.own_rows.layer.len() - self.own_rows.layer.hidden_len();
        self.shards.live_rows() - self.own_rows.deleted_in_shards_len() + fresh as u64
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether all rows lie in shards and none of them is deleted.
    #[must_use]
    pub fn is_fully_flushed(&self) -> bool {
        self.shards.deleted_rows == 0 && self.fresh.is_empty() && self.own_rows.is_empty()
    }

    /// Returns the fresh row with this id as the transaction sees it.
    #[must_use]
    pub fn fresh_row(&self, id: RowId) -> Option<&Arc<RowVersion>> {
        self.own_rows.layer.get(id).or_else(|| self.fresh.get(id).filter(|_| !self.own_rows.layer.hides(id)))
    }

    /// Iterates over the fresh rows as the transaction sees them, layer by layer from the newest.
    pub fn fresh_rows(&self) -> impl Iterator<Item = (RowId, &Arc<RowVersion>)> {
        let own = &self.own_rows.layer;
        let active = self.fresh.active.rows().filter(|(id, _)| !own.hides(*id));
        let sealed = self.fresh.sealed.iter().flat_map(|sealed| sealed.rows.rows());
        let sealed = sealed.filter(|(id, _)| !self.fresh.active.hides(*id) && !own.hides(*id));
        own.rows().chain(active).chain(sealed)
    }

    /// Returns the deleted positions of a shard; `None` if no row is deleted.
    #[must_use]
    pub fn deleted_positions(&self, shard: ShardId) -> Option<Cow<'_, RoaringBitmap>> {
        match (self.shards.deleted.get(&shard), self.own_rows.deleted_in_shards.get(&shard)) {
            (None, None) => None,
            (Some(committed), None) => Some(Cow::Borrowed(&committed.positions)),
            (None, Some(own)) => Some(Cow::Borrowed(own)),
            (Some(committed), Some(own)) => Some(Cow::Owned(&committed.positions | &**own)),
        }
    }

    /// Returns the first shards that together hold at least `rows` visible rows, or all shards, with their positions.
    #[must_use]
    pub fn first_shards(&self, rows: u64) -> PrunedShards {
        let mut found = 0;
        let shards = &self.shards.shards;
        let is_wanted = |size: &ShardSize| {
            let is_wanted = found < rows;
            found += size.rows - self.deleted_positions(size.id).map_or(0, |deleted| deleted.len());
            is_wanted
        };
        let wanted = shards.sizes().take_while(is_wanted).count();
        (0..wanted).filter_map(|number| Some((number, shards.get(number)?))).collect()
    }

    /// Returns only the sealed rows that are neither deleted nor changed.
    #[must_use]
    pub fn sealed_only(&self) -> Self {
        let mut active = Layer::default();
        for row in self.fresh.active.hidden() {
            active.remove(row, true);
        }
        let fresh = FreshRows { active, ..self.fresh.clone() };
        CommittedRows { fresh, ..CommittedRows::default() }.into()
    }

    /// Returns only these shards, without fresh rows or deletions by the transaction.
    #[must_use]
    pub fn shards_only(&self, kept: &[ShardId]) -> Self {
        CommittedRows { shards: self.shards.only_shards(kept), ..CommittedRows::default() }.into()
    }

    /// Returns the rows after a commit of `own`, which must be bound to exactly these rows.
    #[must_use]
    pub fn with_commit(&self, own: &UncommittedRows, ts: CommitTs) -> Self {
        let mut next = CommittedRows::clone(self);
        for id in own.layer.hidden().filter(|id| own.layer.get(*id).is_none()) {
            next.fresh.remove(id);
        }
        for (id, row) in own.layer.rows() {
            next.fresh.put(id, Arc::new(RowVersion { commit_ts: ts, ..RowVersion::clone(row) }));
        }
        for (shard, rows) in &own.deleted_in_shards {
            next.shards.mark_deleted(*shard, rows);
        }
        next.counters.writes += 1;
        next.into()
    }

    /// Returns the rows with the active layer sealed; `None` while another layer is sealed.
    pub(crate) fn seal_active_layer(&self) -> Option<Self> {
        let mut next = self.clone();
        self.fresh.sealed.is_none().then(|| next.committed_mut().fresh.begin_flush())?;
        Some(next)
    }

    /// Returns the rows with the sealed layer replaced by its shards. Rows that were changed or deleted since are
    /// deleted in the shards. `None` if another generation is sealed now.
    pub(crate) fn flush_sealed(&self, flushed: &FlushedRows) -> Option<Self> {
        self.fresh.sealed.as_ref().filter(|sealed| sealed.generation == flushed.generation)?;
        let mut next = self.clone();
        let committed = next.committed_mut();
        committed.fresh.finish_flush();
        committed.shards = committed.shards.append(&flushed.shards, flushed.sample.as_ref());
        for (shard, places) in self.deleted_when_flushed(flushed) {
            committed.shards.mark_deleted(shard, &places);
        }
        committed.counters.moves += 1;
        Some(next)
    }

    /// Returns the rows with old shards replaced by compacted ones. Rows deleted since the old ones were read are
    /// deleted in the new ones. `None` if an old shard is missing.
    pub(crate) fn replace_compacted_shards(&self, compacted: &CompactedShards) -> Option<Self> {
        let removed: Vec<ShardId> = compacted.removed.keys().copied().collect();
        if removed.iter().any(|shard| self.shards.shards.position(*shard).is_none()) {
            return None;
        }
        let mut next = self.clone();
        let committed = next.committed_mut();
        committed.shards = committed.shards.without_shards(&removed).append(&compacted.shards, None);
        for (shard, places) in self.deleted_when_compacted(compacted) {
            committed.shards.mark_deleted(shard, &places);
        }
        committed.counters.moves += 1;
        Some(next)
    }

    /// Returns the rows of the flushed shards that are deleted from the start: those that were changed or deleted since
    /// they were sealed.
    pub(crate) fn deleted_when_flushed(&self, flushed: &FlushedRows) -> BTreeMap<ShardId, RoaringBitmap> {
        if InjectedBug::FlushForgetsLateChanges.is_active() {
            return BTreeMap::new();
        }
        group_by_shard(self.fresh.active.hidden().filter_map(|row| flushed.position_of(row)))
    }

    /// Returns the rows of the compacted shards that are deleted from the start: those that were deleted since the old
    /// ones were read.
    pub(crate) fn deleted_when_compacted(&self, compacted: &CompactedShards) -> BTreeMap<ShardId, RoaringBitmap> {
        if InjectedBug::CompactionForgetsLateChanges.is_active() {
            return BTreeMap::new();
        }
        group_by_shard(compacted.removed.iter().flat_map(|(shard, seen)| {
            let deleted = self.shards.deleted.get(shard).map(|deleted| &deleted.positions - &**seen);
            deleted.unwrap_or_default().into_iter().filter_map(|ordinal| compacted.position_of(*shard, ordinal))
        }))
    }

    /// Returns the rows with index entries for the present indexes of `table`.
    pub(crate) fn rebuild_index_entries(&self, table: &Table) -> Result<Self> {
        let again = |layer: &Layer| layer.reindexed(|id, row| table.index_entries(id, &row.tuple));
        let mut next = self.clone();
        let fresh = &mut next.committed_mut().fresh;
        fresh.active = again(&self.fresh.active)?;
        if let Some(sealed) = &mut fresh.sealed {
            sealed.rows = again(&sealed.rows)?;
        }
        next.own_rows.layer = again(&self.own_rows.layer)?;
        Ok(next)
    }

    pub(crate) fn without_any_rows(&self) -> Self {
        let history = RowCounters { truncations: self.counters.truncations + 1, ..self.counters };
        CommittedRows {
            fresh: self.fresh.emptied_in_next_generation(),
            counters: history,
            shards: TableShards::default(),
        }
        .into()
    }
}

fn group_by_shard(places: impl Iterator<Item = (ShardId, u32)>) -> BTreeMap<ShardId, RoaringBitmap> {
    let mut shards: BTreeMap<ShardId, RoaringBitmap> = BTreeMap::new();
    for (shard, ordinal) in places {
        shards.entry(shard).or_default().insert(ordinal);
    }
    shards
}

/// Equal if they hold the same rows in the same positions.
impl PartialEq for TableRows {
    fn eq(&self, other: &Self) -> bool {
        self.shards == other.shards && self.fresh == other.fresh && self.own_rows == other.own_rows
    }
}

//! Moves of unchanged rows: fresh rows flushed to Parquet, and shards compacted to other shards.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use roaring::RoaringBitmap;
use shards::ShardMeta;
use types::{RowId, ShardId};

use crate::{RowPosition, Sample};

/// Result of a flush: the rows of a sealed layer, written to shards.
#[derive(Debug, Clone, PartialEq)]
pub struct FlushedRows {
    /// The generation of the sealed layer.
    pub generation: u64,
    pub shards: Vec<Arc<ShardMeta>>,
    /// Row id, shard (index in `shards`) and position in the shard of each row, ascending by row id.
    pub positions: Vec<(RowId, u32, u32)>,
    /// The table's new sample, which covers these rows; `None` to retain the old one.
    pub sample: Option<Arc<Sample>>,
}

/// Result of a compaction: shards whose rows were written to other shards.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactedShards {
    /// The old shards, each with the positions of its rows that were already deleted when it was read.
    pub removed: OrdMap<ShardId, Arc<RoaringBitmap>>,
    pub shards: Vec<Arc<ShardMeta>>,
    /// Old position, new shard (index in `shards`) and new position of each row, by old shard, ascending.
    pub positions: BTreeMap<ShardId, Vec<(u32, u32, u32)>>,
}

impl FlushedRows {
    /// Returns the new position of a row; `None` if it was not flushed.
    #[must_use]
    pub fn position_of(&self, row: RowId) -> Option<(ShardId, u32)> {
        let found = self.positions.binary_search_by_key(&row, |(row, ..)| *row).ok()?;
        let (_, shard, ordinal) = self.positions[found];
        Some((self.shards[shard as usize].id, ordinal))
    }
}

impl CompactedShards {
    /// Returns the new position of the row at this position of an old shard; `None` if it was deleted when the shard
    /// was read, or the shard was not compacted.
    #[must_use]
    pub fn position_of(&self, shard: ShardId, ordinal: u32) -> Option<(ShardId, u32)> {
        let places = self.positions.get(&shard)?;
        let found = places.binary_search_by_key(&ordinal, |(old, ..)| *old).ok()?;
        let (_, shard, ordinal) = places[found];
        Some((self.shards[shard as usize].id, ordinal))
    }
}

impl From<(ShardId, u32)> for RowPosition {
    fn from((shard, ordinal): (ShardId, u32)) -> Self {
        RowPosition::Shard { shard, ordinal }
    }
}

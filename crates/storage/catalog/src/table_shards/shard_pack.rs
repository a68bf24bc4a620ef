//! Packs of adjacent shards with their combined statistics.

use std::collections::HashSet;
use std::sync::Arc;

use shards::{PackedShards, ShardMeta};

use crate::column_summary::MergedStatistics;

/// Adjacent shards of a table, packed.
#[derive(Debug, Clone)]
pub(super) struct ShardPack {
    /// Position of its first shard in the table.
    pub(super) first_position: usize,
    pub(super) shards: Arc<PackedShards>,
    /// Statistics of the shards, including sketches that are not stored per shard.
    pub(super) statistics: Arc<MergedStatistics>,
}

impl ShardPack {
    pub(super) fn from_shards(start: usize, shards: &[Arc<ShardMeta>]) -> Self {
        let mut merged = MergedStatistics::default();
        shards.iter().for_each(|shard| merged.add(shard));
        merged.collapse_ranges();
        Self { first_position: start, shards: Arc::new(PackedShards::pack(shards)), statistics: Arc::new(merged) }
    }

    pub(super) fn without_positions(&self, places: &HashSet<usize>) -> Self {
        self.only_at((0..self.shards.len()).filter(|place| !places.contains(place)).collect())
    }

    /// Returns a pack of these shards. Sketches are retained as upper bounds, since they cannot be reduced to the
    /// remaining shards.
    pub(super) fn only_at(&self, places: Vec<usize>) -> Self {
        let shards = PackedShards::gather(&[(&*self.shards, places)]);
        let mut merged = MergedStatistics::default();
        (0..shards.len()).for_each(|place| merged.add(&shards.meta(place)));
        merged.take_sketches_from(&self.statistics);
        merged.collapse_ranges();
        Self { first_position: self.first_position, shards: Arc::new(shards), statistics: Arc::new(merged) }
    }

    /// Appends a pack unless it is empty. It is merged with the last one if both fit into one, which keeps the number
    /// of packs small.
    pub(super) fn append_to(packs: &mut Vec<Self>, mut pack: Self) {
        if pack.shards.is_empty() {
            return;
        }
        if let Some(before) = packs.pop_if(|last| last.has_room_for(&pack)) {
            pack = before.merge(&pack);
        }
        pack.first_position = packs.last().map_or(0, |last| last.first_position + last.shards.len());
        packs.push(pack);
    }

    /// Combines the statistics of all packs.
    pub(super) fn merge_statistics(packs: &[Self]) -> MergedStatistics {
        let mut merged = MergedStatistics::default();
        packs.iter().for_each(|pack| merged.merge(&pack.statistics));
        merged
    }

    fn has_room_for(&self, other: &Self) -> bool {
        self.shards.len() + other.shards.len() <= PackedShards::COUNT_MAX
    }

    fn merge(&self, other: &Self) -> Self {
        let all = |pack: &Self| (0..pack.shards.len()).collect();
        let shards = PackedShards::gather(&[(&*self.shards, all(self)), (&*other.shards, all(other))]);
        let mut merged = MergedStatistics::clone(&self.statistics);
        merged.merge(&other.statistics);
        merged.collapse_ranges();
        Self { first_position: self.first_position, shards: Arc::new(shards), statistics: Arc::new(merged) }
    }
}

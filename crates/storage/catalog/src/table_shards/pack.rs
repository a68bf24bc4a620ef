//! Packs of adjacent shards with their combined statistics.

use std::collections::HashSet;
use std::sync::Arc;

use shards::{PackedShards, ShardMeta};

use crate::summary::Merged;

/// Adjacent shards of a table, packed.
#[derive(Debug, Clone)]
pub(super) struct Pack {
    /// Position of its first shard in the table.
    pub(super) start: usize,
    pub(super) shards: Arc<PackedShards>,
    /// Statistics of the shards, including sketches that are not stored per shard.
    pub(super) merged: Arc<Merged>,
}

impl Pack {
    pub(super) fn of(start: usize, shards: &[Arc<ShardMeta>]) -> Self {
        let mut merged = Merged::default();
        shards.iter().for_each(|shard| merged.add(shard));
        merged.close();
        Self { start, shards: Arc::new(PackedShards::pack(shards)), merged: Arc::new(merged) }
    }

    pub(super) fn without(&self, places: &HashSet<usize>) -> Self {
        self.only((0..self.shards.len()).filter(|place| !places.contains(place)).collect())
    }

    /// Returns a pack of these shards. Sketches are retained as upper bounds, since they cannot be reduced to the
    /// remaining shards.
    pub(super) fn only(&self, places: Vec<usize>) -> Self {
        let shards = PackedShards::gather(&[(&*self.shards, places)]);
        let mut merged = Merged::default();
        (0..shards.len()).for_each(|place| merged.add(&shards.meta(place)));
        merged.sketch_as(&self.merged);
        merged.close();
        Self { start: self.start, shards: Arc::new(shards), merged: Arc::new(merged) }
    }

    /// Appends a pack unless it is empty. It is merged with the last one if both fit into one, which keeps the number
    /// of packs small.
    pub(super) fn push(packs: &mut Vec<Self>, mut pack: Self) {
        if pack.shards.is_empty() {
            return;
        }
        if let Some(before) = packs.pop_if(|last| last.has_room_for(&pack)) {
            pack = before.with(&pack);
        }
        pack.start = packs.last().map_or(0, |last| last.start + last.shards.len());
        packs.push(pack);
    }

    /// Combines the statistics of all packs.
    pub(super) fn merged_of(packs: &[Self]) -> Merged {
        let mut merged = Merged::default();
        packs.iter().for_each(|pack| merged.merge(&pack.merged));
        merged
    }

    fn has_room_for(&self, other: &Self) -> bool {
        self.shards.len() + other.shards.len() <= PackedShards::COUNT_MAX
    }

    fn with(&self, other: &Self) -> Self {
        let all = |pack: &Self| (0..pack.shards.len()).collect();
        let shards = PackedShards::gather(&[(&*self.shards, all(self)), (&*other.shards, all(other))]);
        let mut merged = Merged::clone(&self.merged);
        merged.merge(&other.merged);
        merged.close();
        Self { start: self.start, shards: Arc::new(shards), merged: Arc::new(merged) }
    }
}

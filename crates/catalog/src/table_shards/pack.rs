//! Shards that are packed together, and what is known of all of them.

use std::collections::HashSet;
use std::sync::Arc;

use shards::{PackedShards, ShardMeta};

use crate::summary::Merged;

/// Neighbours among a table's shards.
#[derive(Debug, Clone)]
pub(super) struct Pack {
    /// How many shards come before it.
    pub(super) start: usize,
    pub(super) shards: Arc<PackedShards>,
    /// Their statistics, with the sketches that are not kept by shard.
    pub(super) merged: Arc<Merged>,
}

impl Pack {
    pub(super) fn of(start: usize, shards: &[Arc<ShardMeta>]) -> Self {
        let mut merged = Merged::default();
        shards.iter().for_each(|shard| merged.add(shard));
        merged.close();
        Self { start, shards: Arc::new(PackedShards::pack(shards)), merged: Arc::new(merged) }
    }

    /// Sketches stay as they are: they tell what was there, which is not less.
    pub(super) fn without(&self, places: &HashSet<usize>) -> Self {
        let left: Vec<usize> = (0..self.shards.len()).filter(|place| !places.contains(place)).collect();
        let shards = PackedShards::gather(&[(&*self.shards, left)]);
        let mut merged = Merged::default();
        (0..shards.len()).for_each(|place| merged.add(&shards.meta(place)));
        merged.sketch_as(&self.merged);
        merged.close();
        Self { start: self.start, shards: Arc::new(shards), merged: Arc::new(merged) }
    }

    /// Small ones are put together, so that there are never many more than there must be.
    pub(super) fn has_room_for(&self, other: &Self) -> bool {
        self.shards.len() + other.shards.len() <= PackedShards::COUNT_MAX
    }

    pub(super) fn with(&self, other: &Self) -> Self {
        let all = |pack: &Self| (0..pack.shards.len()).collect();
        let shards = PackedShards::gather(&[(&*self.shards, all(self)), (&*other.shards, all(other))]);
        let mut merged = Merged::clone(&self.merged);
        merged.merge(&other.merged);
        merged.close();
        Self { start: self.start, shards: Arc::new(shards), merged: Arc::new(merged) }
    }
}

//! Rows that go from one place to another without changing: fresh rows that settle into shards, and shards made into others.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use roaring::RoaringBitmap;
use shards::ShardMeta;
use types::{RowId, ShardId};

use crate::{RowPlace, Sample};

/// The rows of a sealed layer, written to shards.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The generation that was sealed.
    pub generation: u64,
    pub shards: Vec<Arc<ShardMeta>>,
    /// For each row its shard's position in `shards` and its place there; ascending by row.
    pub places: Vec<(RowId, u32, u32)>,
    /// The table's sample with these rows; `None` where the one it has will do.
    pub sample: Option<Arc<Sample>>,
}

/// Shards whose rows were written to other shards.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// The shards that were read, each with the rows of it that were deleted by then.
    pub removed: OrdMap<ShardId, Arc<RoaringBitmap>>,
    pub shards: Vec<Arc<ShardMeta>>,
    /// For each row that was read: its old place, its new shard's position in `shards`, its new place; ascending.
    pub places: BTreeMap<ShardId, Vec<(u32, u32, u32)>>,
}

impl Settled {
    /// Where the row lies now; `None` if it was not among those that settled.
    #[must_use]
    pub fn place_of(&self, row: RowId) -> Option<(ShardId, u32)> {
        let found = self.places.binary_search_by_key(&row, |(row, ..)| *row).ok()?;
        let (_, shard, ordinal) = self.places[found];
        Some((self.shards[shard as usize].id, ordinal))
    }
}

impl Compacted {
    /// Where the row at that place of an old shard lies now; `None` if it was deleted by then, or the shard is not an old one.
    #[must_use]
    pub fn place_of(&self, shard: ShardId, ordinal: u32) -> Option<(ShardId, u32)> {
        let places = self.places.get(&shard)?;
        let found = places.binary_search_by_key(&ordinal, |(old, ..)| *old).ok()?;
        let (_, shard, ordinal) = places[found];
        Some((self.shards[shard as usize].id, ordinal))
    }
}

impl From<(ShardId, u32)> for RowPlace {
    fn from((shard, ordinal): (ShardId, u32)) -> Self {
        RowPlace::Shard { shard, ordinal }
    }
}

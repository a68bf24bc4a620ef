//! List of a table's shards in the order in which they were added. The newest are stored individually, the others
//! packed.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use imbl::Vector;
use shards::{Hll, PackedShards, Pruner, ShardMeta, ZoneMapEntry};
use types::{ColumnId, ShardId};

use super::shard_pack::ShardPack;
use crate::column_summary::MergedStatistics;

/// List of shards. Metadata of packed shards is decoded on each access, so ask only for the shards that are needed.
/// Cloning costs a few pointers.
#[derive(Debug, Clone, Default)]
pub struct ShardList {
    packed: Arc<Vec<ShardPack>>,
    /// Statistics of all packed shards.
    packed_statistics: Arc<MergedStatistics>,
    /// The individually stored shards, which follow the packed ones.
    unpacked: Vector<Arc<ShardMeta>>,
}

/// Size of a shard, available without decoding its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardSize {
    pub id: ShardId,
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
}

impl ShardList {
    #[must_use]
    pub fn len(&self) -> usize {
        self.packed_len() + self.unpacked.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the shard at this position.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<Arc<ShardMeta>> {
        match number.checked_sub(self.packed_len()) {
            Some(recent) => self.unpacked.get(recent).map(Arc::clone),
            None => {
                let pack = self.pack_at(number);
                Some(Arc::new(pack.shards.meta(number - pack.first_position)))
            }
        }
    }

    /// Returns the id of the shard at this position.
    #[must_use]
    pub fn id(&self, number: usize) -> Option<ShardId> {
        match number.checked_sub(self.packed_len()) {
            Some(recent) => self.unpacked.get(recent).map(|shard| shard.id),
            None => {
                let pack = self.pack_at(number);
                Some(pack.shards.ids()[number - pack.first_position])
            }
        }
    }

    /// Returns the id of the last added shard.
    #[must_use]
    pub fn newest(&self) -> Option<ShardId> {
        self.id(self.len().checked_sub(1)?)
    }

    /// Returns the number of rows of the shard at this position; 0 if there is none.
    #[must_use]
    pub fn rows(&self, number: usize) -> u64 {
        match number.checked_sub(self.packed_len()) {
            Some(recent) => self.unpacked.get(recent).map_or(0, |shard| shard.rows),
            None => {
                let pack = self.pack_at(number);
                pack.shards.rows(number - pack.first_position)
            }
        }
    }

    /// Returns a shard with its position.
    #[must_use]
    pub fn find(&self, id: ShardId) -> Option<(usize, Arc<ShardMeta>)> {
        let number = self.position(id)?;
        Some((number, self.get(number)?))
    }

    /// Returns the position of a shard.
    #[must_use]
    pub fn position(&self, id: ShardId) -> Option<usize> {
        let recent = || Some(self.packed_len() + self.unpacked.iter().position(|shard| shard.id == id)?);
        let packed = self.packed.iter().find_map(|pack| Some(pack.first_position + pack.shards.position(id)?));
        packed.or_else(recent)
    }

    /// Iterates over all shards. Each packed one is decoded, which is expensive for tables with many shards.
    pub fn iter(&self) -> impl Iterator<Item = Arc<ShardMeta>> {
        let packed = self
            .packed
            .iter()
            .flat_map(|pack| (0..pack.shards.len()).map(move |place| Arc::new(pack.shards.meta(place))));
        packed.chain(self.unpacked.iter().map(Arc::clone))
    }

    /// Iterates over the ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = ShardId> {
        let packed = self.packed.iter().flat_map(|pack| pack.shards.ids().iter().copied());
        packed.chain(self.unpacked.iter().map(|shard| shard.id))
    }

    /// Iterates over the file names, in order.
    pub fn objects(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let packed = self
            .packed
            .iter()
            .flat_map(|pack| (0..pack.shards.len()).map(move |place| Cow::Owned(pack.shards.object(place))));
        packed.chain(self.unpacked.iter().map(|shard| Cow::Borrowed(shard.object.as_str())))
    }

    /// Iterates over the sizes, in order.
    pub fn sizes(&self) -> impl Iterator<Item = ShardSize> {
        let packed = self.packed.iter().flat_map(|pack| {
            let ids = pack.shards.ids().iter().enumerate();
            ids.map(move |(place, id)| ShardSize {
                id: *id,
                rows: pack.shards.rows(place),
                bytes: pack.shards.bytes(place),
            })
        });
        let recent = self.unpacked.iter();
        packed.chain(recent.map(|shard| ShardSize { id: shard.id, rows: shard.rows, bytes: shard.bytes }))
    }

    /// Returns the positions of the shards that may contain rows which pass, by [`shards::prune::may_match`], in
    /// ascending order.
    #[must_use]
    pub fn matching(&self, pruner: &Pruner<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        for pack in self.packed.iter() {
            found.extend(pack.shards.matching(pruner).into_iter().map(|place| pack.first_position + place));
        }
        let recent = (self.packed_len()..).zip(&self.unpacked).filter(|(_, shard)| pruner.may_match(shard));
        found.extend(recent.map(|(number, _)| number));
        found
    }

    /// Returns the positions of the shards whose zone map of the column passes `ask`, and of those without the column,
    /// in ascending order. A zone that spans several shards must pass if one of them does, provided that its bounds are
    /// known.
    pub fn positions_by_zone<'a>(
        &'a self,
        column: ColumnId,
        ask: impl Fn(&ZoneMapEntry<'_>) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = usize> + 'a {
        let packed = self.packed.iter().flat_map(move |pack| {
            pack.shards.filter_by_zone(column, ask).map(move |place| pack.first_position + place)
        });
        let recent = (self.packed_len()..).zip(&self.unpacked).filter(move |(_, shard)| {
            shard.column(column).is_none_or(|stats| ask(&ZoneMapEntry::from_stats(shard.rows, stats)))
        });
        packed.chain(recent.map(|(number, _)| number))
    }

    /// Returns the estimated distinct values of a column in the shard at this position; `None` if it does not contain
    /// the column.
    #[must_use]
    pub fn distinct(&self, number: usize, column: ColumnId) -> Option<u64> {
        match number.checked_sub(self.packed_len()) {
            Some(recent) => Some(self.unpacked.get(recent)?.column(column)?.distinct.estimate()),
            None => {
                let pack = self.pack_at(number);
                pack.shards.distinct(number - pack.first_position, column)
            }
        }
    }

    /// Iterates over all shards in their form for the store. Sketches that exist only per pack are stored with its
    /// first shard.
    pub(crate) fn iter_for_store(&self) -> impl Iterator<Item = Arc<ShardMeta>> {
        let packed = self.packed.iter().flat_map(|pack| {
            let mut stored_columns = BTreeSet::new();
            (0..pack.shards.len()).map(move |place| {
                let mut shard = pack.shards.meta(place);
                for stats in shard.columns.iter_mut().filter(|stats| stored_columns.insert(stats.column)) {
                    if let Some((sketch, frequent)) = pack.statistics.sketch(stats.column) {
                        (stats.distinct, stats.heavy_hitters) = (sketch.clone(), frequent.to_vec());
                    }
                }
                Arc::new(shard)
            })
        });
        packed.chain(self.unpacked.iter().map(Arc::clone))
    }

    /// Returns the approximate bytes of memory of the packed shards, and their number.
    #[must_use]
    pub fn packed_memory(&self) -> (usize, usize) {
        (self.packed.iter().map(|pack| pack.shards.memory_bytes()).sum(), self.packed_len())
    }

    /// Returns the number of packed shards.
    pub(super) fn packed_len(&self) -> usize {
        self.packed.last().map_or(0, |pack| pack.first_position + pack.shards.len())
    }

    /// Returns the statistics of the packed shards.
    pub(super) fn packed_statistics(&self) -> &MergedStatistics {
        &self.packed_statistics
    }

    /// Iterates over the shards from this position on, none of which may be packed.
    pub(super) fn unpacked_from(&self, number: usize) -> impl Iterator<Item = &Arc<ShardMeta>> {
        self.unpacked.iter().skip(number - self.packed_len())
    }

    pub(super) fn append(&mut self, shards: &[Arc<ShardMeta>]) {
        for shard in shards {
            self.unpacked.push_back(Arc::clone(shard));
            if self.unpacked.len() == PackedShards::COUNT_MAX {
                let full: Vec<_> = std::mem::take(&mut self.unpacked).into_iter().collect();
                self.push(ShardPack::from_shards(self.packed_len(), &full));
            }
        }
    }

    fn push(&mut self, pack: ShardPack) {
        Arc::make_mut(&mut self.packed_statistics).merge(&pack.statistics);
        Arc::make_mut(&mut self.packed).push(pack);
    }

    /// Removes shards and returns the sizes of the removed ones.
    pub(super) fn remove(&mut self, removed: &[ShardId]) -> Vec<ShardSize> {
        let removed: HashSet<ShardId> = removed.iter().copied().collect();
        let mut gone = Vec::new();
        let mut left: Vec<ShardPack> = Vec::with_capacity(self.packed.len());
        for pack in self.packed.iter() {
            let ids = pack.shards.ids();
            let places: HashSet<usize> = removed.iter().filter_map(|id| pack.shards.position(*id)).collect();
            gone.extend(places.iter().map(|place| ShardSize {
                id: ids[*place],
                rows: pack.shards.rows(*place),
                bytes: pack.shards.bytes(*place),
            }));
            let pack = if places.is_empty() { pack.clone() } else { pack.without_positions(&places) };
            ShardPack::append_to(&mut left, pack);
        }
        let is_removed = |shard: &Arc<ShardMeta>| removed.contains(&shard.id);
        let recent = self.unpacked.iter().filter(|shard| is_removed(shard));
        let before = gone.len();
        gone.extend(recent.map(|shard| ShardSize { id: shard.id, rows: shard.rows, bytes: shard.bytes }));
        if before < gone.len() {
            self.unpacked.retain(|shard| !is_removed(shard));
        }
        if 0 < before {
            self.packed_statistics = Arc::new(ShardPack::merge_statistics(&left));
            self.packed = Arc::new(left);
        }
        gone
    }

    /// Returns only the shards at these positions, which must be ascending. Packed shards remain packed, with
    /// statistics recomputed from each.
    pub(super) fn only_at(&self, numbers: &[usize]) -> Self {
        let mut packed: Vec<ShardPack> = Vec::new();
        let (of_packs, of_recent) = numbers.split_at(numbers.partition_point(|number| *number < self.packed_len()));
        for of_pack in of_packs.chunk_by(|one, other| std::ptr::eq(self.pack_at(*one), self.pack_at(*other))) {
            let pack = self.pack_at(of_pack[0]);
            ShardPack::append_to(
                &mut packed,
                pack.only_at(of_pack.iter().map(|number| number - pack.first_position).collect()),
            );
        }
        let recent = of_recent.iter().filter_map(|number| self.unpacked.get(number - self.packed_len()));
        Self {
            packed_statistics: Arc::new(ShardPack::merge_statistics(&packed)),
            packed: Arc::new(packed),
            unpacked: recent.map(Arc::clone).collect(),
        }
    }

    fn pack_at(&self, number: usize) -> &ShardPack {
        let after = self.packed.partition_point(|pack| pack.first_position <= number);
        &self.packed[after - 1]
    }
}

impl<'a> FromIterator<&'a Arc<ShardMeta>> for ShardList {
    fn from_iter<I: IntoIterator<Item = &'a Arc<ShardMeta>>>(shards: I) -> Self {
        let mut list = Self::default();
        shards.into_iter().for_each(|shard| list.append(std::slice::from_ref(shard)));
        list
    }
}

/// Equal if they hold the same shards in the same order. Sketches and frequent values are ignored where a list has them
/// per pack only.
impl PartialEq for ShardList {
    fn eq(&self, other: &Self) -> bool {
        let plain = |shard: &ShardMeta| {
            let mut shard = shard.clone();
            for stats in &mut shard.columns {
                (stats.distinct, stats.heavy_hitters) = (Hll::default(), Vec::new());
            }
            shard
        };
        let packed = self.packed_len().max(other.packed_len());
        self.len() == other.len()
            && self.iter().zip(other.iter()).enumerate().all(|(number, (one, other))| {
                Arc::ptr_eq(&one, &other) || one == other || number < packed && plain(&one) == plain(&other)
            })
    }
}

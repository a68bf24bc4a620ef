//! Many shards' metadata in little memory: number by number instead of shard by shard, and looked through as such.
//!
//! Neighbours in a table are packed once and never change. What is known of a shard comes back as it was, but for sketches and frequent
//! values: these are put together for all before. Pruning skips all of them by what is known of them together, then looks at bounds alone
//! (`bounds.rs`), and asks the tests themselves about what is left, so that its answer is that of [`crate::prune::may_match`].

use std::sync::Arc;

use types::{ColumnId, RowId, ShardId};

use crate::packed::buckets::Buckets;
use crate::packed::column::PackedColumn;
use crate::packed::numbers::Numbers;
use crate::packed::objects::Objects;
use crate::{ColumnStats, RowGroupMeta, RowIds, ShardMeta};

mod bounds;
mod buckets;
mod chosen;
mod column;
mod numbers;
mod objects;
mod pruning;
mod reach;

#[cfg(test)]
mod tests;

/// Neighbouring shards of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedShards {
    ids: Box<[ShardId]>,
    /// Their places in the order of their ids.
    by_id: Box<[u16]>,
    objects: Objects,
    rows: Numbers,
    /// Of all of them.
    all_rows: u64,
    bytes: Numbers,
    tail_bytes: Numbers,
    tail_checksum: Numbers,
    /// 0 for none, 1 for stored ones, else 2 and the first id.
    row_ids: Numbers,
    /// Where each shard's row groups end among those of all.
    group_ends: Numbers,
    group_rows: Numbers,
    group_bytes: Numbers,
    buckets: Buckets,
    /// The columns of any of them.
    columns: Box<[PackedColumn]>,
    /// Which columns there are in a shard, in its order.
    layouts: Box<[Box<[u16]>]>,
    /// Of each shard which of these.
    layout: Numbers,
}

impl PackedShards {
    /// The most shards that are packed together.
    pub const COUNT_MAX: usize = 4_096;

    /// Packs shards, as many as [`PackedShards::COUNT_MAX`] or fewer, in their order.
    ///
    /// # Panics
    /// With more of them.
    #[must_use]
    pub fn pack(shards: &[Arc<ShardMeta>]) -> Self {
        let distinct = |stats: Option<&ColumnStats>| stats.map_or(0, |stats| stats.distinct.estimate());
        Self::pack_with(shards, &|place, column| distinct(shards[place].column(column)))
    }

    /// The shards at these places of several that are packed, in their order.
    ///
    /// # Panics
    /// As [`PackedShards::pack`].
    #[must_use]
    pub fn gather(packs: &[(&Self, Vec<usize>)]) -> Self {
        let all = packs.iter().flat_map(|(pack, places)| places.iter().map(move |place| (*pack, *place)));
        let all: Vec<(&Self, usize)> = all.collect();
        let shards: Vec<_> = all.iter().map(|(pack, place)| Arc::new(pack.meta(*place))).collect();
        Self::pack_with(&shards, &|place, column| {
            let (pack, place) = all[place];
            pack.distinct(place, column).unwrap_or(0)
        })
    }

    /// `distinct` says how many values a column has in the shard at a place.
    fn pack_with(shards: &[Arc<ShardMeta>], distinct: &dyn Fn(usize, ColumnId) -> u64) -> Self {
        assert!(shards.len() <= Self::COUNT_MAX, "a place has 16 bits");
        let numbers = |number: fn(&ShardMeta) -> u64| {
            let numbers: Vec<u64> = shards.iter().map(|shard| number(shard)).collect();
            Numbers::pack(&numbers)
        };
        let groups = |number: fn(&RowGroupMeta) -> u64| {
            let numbers: Vec<u64> = shards.iter().flat_map(|shard| &shard.row_groups).map(number).collect();
            Numbers::pack(&numbers)
        };
        let mut end = 0;
        let ends = shards.iter().map(|shard| {
            end += shard.row_groups.len() as u64;
            end
        });
        let ends: Vec<u64> = ends.collect();
        let ids: Box<[ShardId]> = shards.iter().map(|shard| shard.id).collect();
        let mut by_id: Box<[u16]> = (0..=u16::MAX).take(shards.len()).collect();
        by_id.sort_by_key(|place| ids[usize::from(*place)]);
        let mut columns: Vec<ColumnId> = Vec::new();
        let mut layouts: Vec<Box<[u16]>> = Vec::new();
        let mut layout = Vec::with_capacity(shards.len());
        for shard in shards {
            let place = |column: ColumnId| {
                let known = columns.iter().position(|known| *known == column);
                let place = known.unwrap_or_else(|| {
                    columns.push(column);
                    columns.len() - 1
                });
                u16::try_from(place).expect("a table has at most 1,600 columns")
            };
            let of: Box<[u16]> = shard.columns.iter().map(|stats| stats.column).map(place).collect();
            let known = layouts.iter().position(|known| *known == of);
            layout.push(known.unwrap_or(layouts.len()) as u64);
            if known.is_none() {
                layouts.push(of);
            }
        }
        Self {
            objects: Objects::pack(shards.iter().map(|shard| (shard.id, shard.object.as_str()))),
            by_id,
            ids,
            rows: numbers(|shard| shard.rows),
            all_rows: shards.iter().map(|shard| shard.rows).sum(),
            bytes: numbers(|shard| shard.bytes),
            tail_bytes: numbers(|shard| shard.tail_bytes),
            tail_checksum: numbers(|shard| shard.tail_checksum),
            row_ids: Numbers::pack(&shards.iter().map(|shard| number_of_row_ids(shard.row_ids)).collect::<Vec<_>>()),
            group_ends: Numbers::pack(&ends),
            group_rows: groups(|group| group.rows),
            group_bytes: groups(|group| group.bytes),
            buckets: Buckets::pack(shards.iter().map(|shard| shard.buckets.as_ref())),
            columns: columns.into_iter().map(|column| PackedColumn::pack(column, shards, distinct)).collect(),
            layouts: layouts.into(),
            layout: Numbers::pack(&layout),
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// What is known of a shard, by its place, but for sketches and frequent values.
    #[must_use]
    pub fn meta(&self, shard: usize) -> ShardMeta {
        let index = |number: u64| usize::try_from(number).expect("they lie in memory");
        let first = shard.checked_sub(1).map_or(0, |before| self.group_ends.get(before));
        let groups = index(first)..index(self.group_ends.get(shard));
        let group = |group| RowGroupMeta { rows: self.group_rows.get(group), bytes: self.group_bytes.get(group) };
        let layout = &self.layouts[index(self.layout.get(shard))];
        ShardMeta {
            id: self.ids[shard],
            object: self.object(shard),
            rows: self.rows(shard),
            bytes: self.bytes(shard),
            tail_bytes: self.tail_bytes.get(shard),
            tail_checksum: self.tail_checksum.get(shard),
            columns: layout.iter().map(|column| self.columns[usize::from(*column)].stats(shard)).collect(),
            row_groups: groups.map(group).collect(),
            row_ids: row_ids_of(self.row_ids.get(shard)),
            buckets: self.buckets.get(shard),
        }
    }

    /// In the order of their places.
    #[must_use]
    pub fn ids(&self) -> &[ShardId] {
        &self.ids
    }

    /// The place of the shard `id`.
    #[must_use]
    pub fn place(&self, id: ShardId) -> Option<usize> {
        let found = self.by_id.binary_search_by_key(&id, |place| self.ids[usize::from(*place)]);
        found.ok().map(|found| usize::from(self.by_id[found]))
    }

    /// The name of a shard's file, by its place.
    #[must_use]
    pub fn object(&self, shard: usize) -> String {
        self.objects.get(shard, self.ids[shard])
    }

    /// The rows of a shard, by its place.
    #[must_use]
    pub fn rows(&self, shard: usize) -> u64 {
        self.rows.get(shard)
    }

    /// The size of a shard's file, by its place.
    #[must_use]
    pub fn bytes(&self, shard: usize) -> u64 {
        self.bytes.get(shard)
    }

    /// Estimated distinct values of a column in a shard, by its place; `None` where the shard does not carry it.
    #[must_use]
    pub fn distinct(&self, shard: usize, column: ColumnId) -> Option<u64> {
        let column = self.column(column).filter(|column| column.is_carried_by(shard))?;
        Some(column.distinct(shard))
    }

    /// About how many bytes of memory they take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let numbers = [
            &self.rows,
            &self.bytes,
            &self.tail_bytes,
            &self.tail_checksum,
            &self.row_ids,
            &self.group_ends,
            &self.group_rows,
            &self.group_bytes,
            &self.layout,
        ];
        let columns = self.columns.iter().map(|column| size_of::<PackedColumn>() + column.heap_bytes());
        let layouts = self.layouts.iter().map(|layout| size_of_val(layout) + size_of_val(&**layout));
        size_of::<Self>()
            + size_of_val(&*self.ids)
            + size_of_val(&*self.by_id)
            + self.objects.heap_bytes()
            + self.buckets.heap_bytes()
            + numbers.into_iter().map(Numbers::heap_bytes).sum::<usize>()
            + columns.chain(layouts).sum::<usize>()
    }

    fn column(&self, column: ColumnId) -> Option<&PackedColumn> {
        self.columns.iter().find(|known| known.id == column)
    }
}

const NO_ROW_IDS: u64 = 0;
const STORED_ROW_IDS: u64 = 1;

fn number_of_row_ids(row_ids: RowIds) -> u64 {
    match row_ids {
        RowIds::None => NO_ROW_IDS,
        RowIds::Stored => STORED_ROW_IDS,
        RowIds::From(first) => first.0.checked_add(STORED_ROW_IDS + 1).expect("ids of rows end long before 2^64"),
    }
}

fn row_ids_of(number: u64) -> RowIds {
    match number {
        NO_ROW_IDS => RowIds::None,
        STORED_ROW_IDS => RowIds::Stored,
        first => RowIds::From(RowId(first - STORED_ROW_IDS - 1)),
    }
}

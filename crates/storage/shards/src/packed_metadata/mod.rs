//! Compact metadata of many shards, stored column by column and pruned in that form.
//!
//! Neighbouring shards of a table are packed once and never change. Metadata of a shard is restored exactly, except for
//! sketches and frequent values, which are merged over all packed shards before. Pruning first tests merged zone-map
//! entries, then bounds alone (`bounds.rs`), and applies the tests themselves to the shards left, so that the result is
//! that of [`crate::prune::may_match`].
//!
//! - `integer_packing.rs`: packed integers; `column.rs`: statistics of a column; `bounds.rs`: its minima and maxima.
//! - `object_names.rs`: names of files; `buckets.rs`: buckets of rows.
//! - `pruning.rs`: pruning; `value_range.rs`: range of values that can pass a test; `shard_set.rs`: sets of shards.

use std::sync::Arc;

use types::{ColumnId, RowId, ShardId};

use crate::packed_metadata::buckets::PackedBuckets;
use crate::packed_metadata::column::PackedColumn;
use crate::packed_metadata::integer_packing::PackedNumbers;
use crate::packed_metadata::object_names::PackedObjectNames;
use crate::{ColumnStats, RowGroupMeta, RowIds, ShardMeta};

mod bounds;
mod buckets;
mod column;
mod integer_packing;
mod object_names;
mod pruning;
mod shard_set;
mod value_range;

#[cfg(test)]
mod tests;

/// Packed metadata of neighbouring shards of a table. Shards are addressed by their position.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedShards {
    ids: Box<[ShardId]>,
    /// Positions in the order of shard ids.
    positions_by_id: Box<[u16]>,
    objects: PackedObjectNames,
    rows: PackedNumbers,
    /// Number of rows of all shards.
    total_rows: u64,
    bytes: PackedNumbers,
    tail_bytes: PackedNumbers,
    tail_checksum: PackedNumbers,
    /// 0 for no ids, 1 for stored ids, else the first id plus 2.
    row_ids: PackedNumbers,
    /// End of each shard's row groups in `row_group_rows` and `row_group_bytes`.
    row_group_ends: PackedNumbers,
    row_group_rows: PackedNumbers,
    row_group_bytes: PackedNumbers,
    buckets: PackedBuckets,
    /// Statistics of every column that any of the shards has.
    columns: Box<[PackedColumn]>,
    /// Distinct column layouts: indices into `columns`, in a shard's order.
    column_layouts: Box<[Box<[u16]>]>,
    /// Layout of each shard.
    column_layout_index: PackedNumbers,
}

impl PackedShards {
    /// Largest number of shards that are packed together.
    pub const COUNT_MAX: usize = 4_096;

    /// Packs up to [`PackedShards::COUNT_MAX`] shards in their order.
    ///
    /// # Panics
    /// If there are more.
    #[must_use]
    pub fn pack(shards: &[Arc<ShardMeta>]) -> Self {
        let distinct = |stats: Option<&ColumnStats>| stats.map_or(0, |stats| stats.distinct.estimate());
        Self::pack_with(shards, &|place, column| distinct(shards[place].column(column)))
    }

    /// Packs the shards at these positions of several packs, in this order.
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

    /// Packs shards; `distinct` returns the number of distinct values of a column in the shard at a position.
    fn pack_with(shards: &[Arc<ShardMeta>], distinct: &dyn Fn(usize, ColumnId) -> u64) -> Self {
        assert!(shards.len() <= Self::COUNT_MAX, "positions have 16 bits");
        let numbers = |number: fn(&ShardMeta) -> u64| {
            let numbers: Vec<u64> = shards.iter().map(|shard| number(shard)).collect();
            PackedNumbers::pack(&numbers)
        };
        let groups = |number: fn(&RowGroupMeta) -> u64| {
            let numbers: Vec<u64> = shards.iter().flat_map(|shard| &shard.row_groups).map(number).collect();
            PackedNumbers::pack(&numbers)
        };
        let mut end = 0;
        let ends = shards.iter().map(|shard| {
            end += shard.row_groups.len() as u64;
            end
        });
        let ends: Vec<u64> = ends.collect();
        let ids: Box<[ShardId]> = shards.iter().map(|shard| shard.id).collect();
        let mut positions_by_id: Box<[u16]> = (0..=u16::MAX).take(shards.len()).collect();
        positions_by_id.sort_by_key(|place| ids[usize::from(*place)]);
        let mut columns: Vec<ColumnId> = Vec::new();
        let mut column_layouts: Vec<Box<[u16]>> = Vec::new();
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
            let known = column_layouts.iter().position(|known| *known == of);
            layout.push(known.unwrap_or(column_layouts.len()) as u64);
            if known.is_none() {
                column_layouts.push(of);
            }
        }
        Self {
            objects: PackedObjectNames::pack(shards.iter().map(|shard| (shard.id, shard.object.as_str()))),
            positions_by_id,
            ids,
            rows: numbers(|shard| shard.rows),
            total_rows: shards.iter().map(|shard| shard.rows).sum(),
            bytes: numbers(|shard| shard.bytes),
            tail_bytes: numbers(|shard| shard.tail_bytes),
            tail_checksum: numbers(|shard| shard.tail_checksum),
            row_ids: PackedNumbers::pack(&shards.iter().map(|shard| encode_row_ids(shard.row_ids)).collect::<Vec<_>>()),
            row_group_ends: PackedNumbers::pack(&ends),
            row_group_rows: groups(|group| group.rows),
            row_group_bytes: groups(|group| group.bytes),
            buckets: PackedBuckets::pack(shards.iter().map(|shard| shard.buckets.as_ref())),
            columns: columns.into_iter().map(|column| PackedColumn::pack(column, shards, distinct)).collect(),
            column_layouts: column_layouts.into(),
            column_layout_index: PackedNumbers::pack(&layout),
        }
    }

    #[must_use]
    /// Returns the number of shards.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    #[must_use]
    /// Returns true if there are no shards.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Restores the metadata of the shard at a position, without sketches and frequent values.
    #[must_use]
    pub fn meta(&self, shard: usize) -> ShardMeta {
        let index = |number: u64| usize::try_from(number).expect("offsets into memory fit usize");
        let first = shard.checked_sub(1).map_or(0, |before| self.row_group_ends.get(before));
        let groups = index(first)..index(self.row_group_ends.get(shard));
        let group =
            |group| RowGroupMeta { rows: self.row_group_rows.get(group), bytes: self.row_group_bytes.get(group) };
        let layout = &self.column_layouts[index(self.column_layout_index.get(shard))];
        ShardMeta {
            id: self.ids[shard],
            object: self.object(shard),
            rows: self.rows(shard),
            bytes: self.bytes(shard),
            tail_bytes: self.tail_bytes.get(shard),
            tail_checksum: self.tail_checksum.get(shard),
            columns: layout.iter().map(|column| self.columns[usize::from(*column)].stats(shard)).collect(),
            row_groups: groups.map(group).collect(),
            row_ids: decode_row_ids(self.row_ids.get(shard)),
            buckets: self.buckets.get(shard),
        }
    }

    /// Returns the ids in the order of positions.
    #[must_use]
    pub fn ids(&self) -> &[ShardId] {
        &self.ids
    }

    /// Returns the position of the shard `id`.
    #[must_use]
    pub fn position(&self, id: ShardId) -> Option<usize> {
        let found = self.positions_by_id.binary_search_by_key(&id, |place| self.ids[usize::from(*place)]);
        found.ok().map(|found| usize::from(self.positions_by_id[found]))
    }

    /// Returns the file name of the shard at a position.
    #[must_use]
    pub fn object(&self, shard: usize) -> String {
        self.objects.get(shard, self.ids[shard])
    }

    /// Returns the number of rows of the shard at a position.
    #[must_use]
    pub fn rows(&self, shard: usize) -> u64 {
        self.rows.get(shard)
    }

    /// Returns the file size of the shard at a position.
    #[must_use]
    pub fn bytes(&self, shard: usize) -> u64 {
        self.bytes.get(shard)
    }

    /// Returns the estimated number of distinct values of a column in the shard at a position; `None` if the shard
    /// lacks the column.
    #[must_use]
    pub fn distinct(&self, shard: usize, column: ColumnId) -> Option<u64> {
        let column = self.column(column).filter(|column| column.is_in_shard(shard))?;
        Some(column.distinct(shard))
    }

    /// Returns the approximate memory size in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let numbers = [
            &self.rows,
            &self.bytes,
            &self.tail_bytes,
            &self.tail_checksum,
            &self.row_ids,
            &self.row_group_ends,
            &self.row_group_rows,
            &self.row_group_bytes,
            &self.column_layout_index,
        ];
        let columns = self.columns.iter().map(|column| size_of::<PackedColumn>() + column.heap_bytes());
        let column_layouts = self.column_layouts.iter().map(|layout| size_of_val(layout) + size_of_val(&**layout));
        size_of::<Self>()
            + size_of_val(&*self.ids)
            + size_of_val(&*self.positions_by_id)
            + self.objects.heap_bytes()
            + self.buckets.heap_bytes()
            + numbers.into_iter().map(PackedNumbers::heap_bytes).sum::<usize>()
            + columns.chain(column_layouts).sum::<usize>()
    }

    /// Returns the statistics of a column.
    fn column(&self, column: ColumnId) -> Option<&PackedColumn> {
        self.columns.iter().find(|known| known.id == column)
    }
}

const NO_ROW_IDS: u64 = 0;
const STORED_ROW_IDS: u64 = 1;

fn encode_row_ids(row_ids: RowIds) -> u64 {
    match row_ids {
        RowIds::None => NO_ROW_IDS,
        RowIds::Stored => STORED_ROW_IDS,
        RowIds::From(first) => first.0.checked_add(STORED_ROW_IDS + 1).expect("row ids stay far below 2^64"),
    }
}

fn decode_row_ids(number: u64) -> RowIds {
    match number {
        NO_ROW_IDS => RowIds::None,
        STORED_ROW_IDS => RowIds::Stored,
        first => RowIds::From(RowId(first - STORED_ROW_IDS - 1)),
    }
}

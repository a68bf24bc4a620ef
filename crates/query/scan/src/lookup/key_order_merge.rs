//! Merge of the rows in an index range, from layers of unflushed rows and from shards.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use catalog::{RowPosition, TableRows};
use roaring::RoaringBitmap;
use rowstore::{IndexEntry, Layer};
use types::{Oid, ShardId};

use super::LocatedRow;
use super::key_range::KeyRange;
use super::shard_key_index::ShardKeyIndex;

/// Iterator over the rows in a range of keys, in key order.
pub(super) struct KeyOrderMerge<'a> {
    sources: Vec<MergeInput<'a>>,
    backwards: bool,
}

/// Sorted input of the merge, with its next row.
struct MergeInput<'a> {
    next: Option<(Key<'a>, LocatedRow)>,
    remaining: RemainingRows<'a>,
}

/// Key of a row; keys of unflushed rows end with the row id.
type Key<'a> = Cow<'a, [u8]>;

/// Rows of an input that follow its next one.
enum RemainingRows<'a> {
    Layer {
        entries: Box<dyn Iterator<Item = &'a IndexEntry> + Send + 'a>,
        newer_layers: Vec<&'a Layer>,
    },
    Shard {
        shard: ShardId,
        keys: Arc<ShardKeyIndex>,
        remaining_positions: Range<usize>,
        deleted: [Option<&'a RoaringBitmap>; 2],
    },
}

impl<'a> KeyOrderMerge<'a> {
    /// Starts the merge over a range of the index; `shards` are the key indexes of the shards that may have matching
    /// rows.
    pub(super) fn new(
        rows: &'a TableRows,
        index: Oid,
        range: &'a KeyRange,
        shards: Vec<(ShardId, Arc<ShardKeyIndex>)>,
        backwards: bool,
    ) -> Self {
        let mut above: Vec<&Layer> = Vec::new();
        let mut sources = Vec::with_capacity(3 + shards.len());
        let layers = std::iter::once(&rows.own_rows.layer).chain(rows.fresh.layers());
        for layer in layers.filter(|layer| !layer.is_empty()) {
            let (from, to) = (range.from.as_slice(), range.to.as_slice());
            let entries: Box<dyn Iterator<Item = &IndexEntry> + Send> = if backwards {
                Box::new(layer.entries_backwards(index, from, to))
            } else {
                Box::new(layer.entries(index, from, to))
            };
            sources.push(RemainingRows::Layer { entries, newer_layers: above.clone() });
            above.push(layer);
        }
        for (shard, keys) in shards {
            let remaining_positions = keys.range(range);
            let committed = rows.shards.deleted.get(&shard).map(|deleted| &deleted.positions);
            let deleted = [committed, rows.own_rows.deleted_in_shards.get(&shard).map(|own| &**own)];
            sources.push(RemainingRows::Shard { shard, keys, remaining_positions, deleted });
        }
        let sources =
            sources.into_iter().map(|mut rest| MergeInput { next: rest.next(backwards), remaining: rest }).collect();
        Self { sources, backwards }
    }
}

impl Iterator for KeyOrderMerge<'_> {
    type Item = LocatedRow;

    fn next(&mut self) -> Option<LocatedRow> {
        let backwards = self.backwards;
        let order = |a: &(Key<'_>, LocatedRow), b: &(Key<'_>, LocatedRow)| -> Ordering {
            let order = a.0.cmp(&b.0).then(a.1.row.cmp(&b.1.row));
            if backwards { order.reverse() } else { order }
        };
        let filled = self.sources.iter_mut().filter(|source| source.next.is_some());
        let first = filled.min_by(|a, b| match (&a.next, &b.next) {
            (Some(a), Some(b)) => order(a, b),
            _ => Ordering::Equal,
        })?;
        let next = first.remaining.next(backwards);
        std::mem::replace(&mut first.next, next).map(|(_, found)| found)
    }
}

impl<'a> RemainingRows<'a> {
    fn next(&mut self, backwards: bool) -> Option<(Key<'a>, LocatedRow)> {
        match self {
            Self::Layer { entries, newer_layers } => loop {
                let entry = entries.next()?;
                let row = entry.row_id();
                if !newer_layers.iter().any(|layer| layer.hides(row)) {
                    return Some((Cow::Borrowed(entry.key()), LocatedRow { row, place: RowPosition::Fresh }));
                }
            },
            Self::Shard { shard, keys, remaining_positions, deleted } => loop {
                let position = if backwards { remaining_positions.next_back() } else { remaining_positions.next() }?;
                let (ordinal, row) = keys.row(position);
                if !deleted.iter().flatten().any(|deleted| deleted.contains(ordinal)) {
                    let key = Cow::Owned(keys.key(position).to_vec());
                    return Some((key, LocatedRow { row, place: RowPosition::Shard { shard: *shard, ordinal } }));
                }
            },
        }
    }
}

//! Merge of the rows in an index range, from layers of unflushed rows and from shards.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use catalog::{RowPlace, TableRows};
use roaring::RoaringBitmap;
use rowstore::{IndexEntry, Layer};
use types::{Oid, ShardId};

use super::Found;
use super::key_range::KeyRange;
use super::shard_keys::ShardKeys;

/// Iterator over the rows in a range of keys, in key order.
pub(super) struct InOrder<'a> {
    sources: Vec<Source<'a>>,
    backwards: bool,
}

/// Sorted input of the merge, with its next row.
struct Source<'a> {
    next: Option<(Key<'a>, Found)>,
    rest: Rest<'a>,
}

/// Key of a row; keys of unflushed rows end with the row id.
type Key<'a> = Cow<'a, [u8]>;

/// Rows of an input that follow its next one.
enum Rest<'a> {
    Layer { entries: Box<dyn Iterator<Item = &'a IndexEntry> + Send + 'a>, hidden_by: Vec<&'a Layer> },
    Shard { shard: ShardId, keys: Arc<ShardKeys>, left: Range<usize>, deleted: [Option<&'a RoaringBitmap>; 2] },
}

impl<'a> InOrder<'a> {
    /// Starts the merge over a range of the index; `shards` are the key indexes of the shards that may have matching
    /// rows.
    pub(super) fn new(
        rows: &'a TableRows,
        index: Oid,
        range: &'a KeyRange,
        shards: Vec<(ShardId, Arc<ShardKeys>)>,
        backwards: bool,
    ) -> Self {
        let mut above: Vec<&Layer> = Vec::new();
        let mut sources = Vec::with_capacity(3 + shards.len());
        let layers = std::iter::once(&rows.own.layer).chain(rows.fresh.layers());
        for layer in layers.filter(|layer| !layer.is_empty()) {
            let (from, to) = (range.from.as_slice(), range.to.as_slice());
            let entries: Box<dyn Iterator<Item = &IndexEntry> + Send> = if backwards {
                Box::new(layer.entries_backwards(index, from, to))
            } else {
                Box::new(layer.entries(index, from, to))
            };
            sources.push(Rest::Layer { entries, hidden_by: above.clone() });
            above.push(layer);
        }
        for (shard, keys) in shards {
            let left = keys.range(range);
            let committed = rows.shards.deleted.get(&shard).map(|deleted| &deleted.places);
            let deleted = [committed, rows.own.deleted.get(&shard).map(|own| &**own)];
            sources.push(Rest::Shard { shard, keys, left, deleted });
        }
        let sources = sources.into_iter().map(|mut rest| Source { next: rest.next(backwards), rest }).collect();
        Self { sources, backwards }
    }
}

impl Iterator for InOrder<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let backwards = self.backwards;
        let order = |a: &(Key<'_>, Found), b: &(Key<'_>, Found)| -> Ordering {
            let order = a.0.cmp(&b.0).then(a.1.row.cmp(&b.1.row));
            if backwards { order.reverse() } else { order }
        };
        let filled = self.sources.iter_mut().filter(|source| source.next.is_some());
        let first = filled.min_by(|a, b| match (&a.next, &b.next) {
            (Some(a), Some(b)) => order(a, b),
            _ => Ordering::Equal,
        })?;
        let next = first.rest.next(backwards);
        std::mem::replace(&mut first.next, next).map(|(_, found)| found)
    }
}

impl<'a> Rest<'a> {
    fn next(&mut self, backwards: bool) -> Option<(Key<'a>, Found)> {
        match self {
            Self::Layer { entries, hidden_by } => loop {
                let entry = entries.next()?;
                let row = entry.row();
                if !hidden_by.iter().any(|layer| layer.hides(row)) {
                    return Some((Cow::Borrowed(entry.key()), Found { row, place: RowPlace::Fresh }));
                }
            },
            Self::Shard { shard, keys, left, deleted } => loop {
                let position = if backwards { left.next_back() } else { left.next() }?;
                let (ordinal, row) = keys.row(position);
                if !deleted.iter().flatten().any(|deleted| deleted.contains(ordinal)) {
                    let key = Cow::Owned(keys.key(position).to_vec());
                    return Some((key, Found { row, place: RowPlace::Shard { shard: *shard, ordinal } }));
                }
            },
        }
    }
}

//! Positions of decoded rows in their shard, and which of them are deleted.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, BooleanBufferBuilder, Int64Array};
use roaring::RoaringBitmap;
use types::RowId;

/// Positions of the rows of a read, in the order in which they are decoded.
#[derive(Debug)]
pub(super) struct RowPositions {
    /// Positions that are left, ascending.
    remaining: VecDeque<Range<u32>>,
    deleted: Option<Arc<RoaringBitmap>>,
}

impl RowPositions {
    /// Creates the positions of the rows `kept` of a row group that starts at row `start` of the shard.
    pub(super) fn new(start: u64, selected: &[Range<usize>], deleted: Option<&Arc<RoaringBitmap>>) -> Self {
        let place = |row: usize| u32::try_from(start + row as u64).expect("a shard has fewer than 2^32 rows");
        let left: VecDeque<Range<u32>> = selected.iter().map(|range| place(range.start)..place(range.end)).collect();
        let any = |deleted: &&Arc<RoaringBitmap>| {
            let is_among = |range: &Range<u32>| !range.is_empty() && deleted.range_cardinality(range.clone()) > 0;
            left.iter().any(is_among)
        };
        let deleted = deleted.filter(any).map(Arc::clone);
        Self { remaining: left, deleted }
    }

    /// Takes the positions of the next `rows` rows.
    pub(super) fn take(&mut self, mut rows: usize) -> Vec<Range<u32>> {
        let mut taken = Vec::new();
        while 0 < rows
            && let Some(range) = self.remaining.front_mut()
        {
            let count = rows.min(range.len());
            let end = range.start + u32::try_from(count).expect("part of a range of u32");
            taken.push(range.start..end);
            rows -= count;
            range.start = end;
            if range.start == range.end {
                self.remaining.pop_front();
            }
        }
        taken
    }

    /// Returns true if all positions were taken.
    pub(super) fn is_finished(&self) -> bool {
        self.remaining.iter().all(Range::is_empty)
    }

    /// Returns a mask of the rows at `places` that are not deleted; `None` if no row is.
    pub(super) fn live_mask(&self, places: &[Range<u32>]) -> Option<BooleanArray> {
        let deleted = self.deleted.as_ref()?;
        let rows = places.iter().map(ExactSizeIterator::len).sum();
        let mut live = BooleanBufferBuilder::new(rows);
        live.append_n(rows, true);
        let mut before = 0;
        let mut any = false;
        for range in places {
            for place in deleted.range(range.clone()) {
                live.set_bit(before + (place - range.start) as usize, false);
                any = true;
            }
            before += range.len();
        }
        any.then(|| BooleanArray::new(live.finish(), None))
    }
}

/// Returns the positions as a column.
pub(super) fn ordinals(places: &[Range<u32>]) -> ArrayRef {
    ordinals_from_positions(places.iter().cloned().flatten())
}

/// The same for single positions.
pub(crate) fn ordinals_from_positions(places: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(places.map(i64::from)))
}

/// Returns the ids of the rows at the positions; `first` is the id of the shard's first row.
pub(super) fn row_ids(first: RowId, places: &[Range<u32>]) -> ArrayRef {
    row_ids_from_positions(first, places.iter().cloned().flatten())
}

/// The same for single positions.
pub(crate) fn row_ids_from_positions(first: RowId, places: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(places.map(|place| (first.0 + u64::from(place)).cast_signed())))
}

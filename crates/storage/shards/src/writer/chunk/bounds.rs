//! Bounds of pages and of the chunk for Parquet's column index and statistics.

use parquet::basic::{BoundaryOrder, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::metadata::ColumnIndexBuilder;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};

use crate::Datum;
use crate::datum::{text_lower_bound, text_upper_bound};
use crate::stats::MinMax;

/// Bounds of the pages so far.
pub(super) struct ChunkBounds {
    physical: Physical,
    column_index: ColumnIndexBuilder,
    nulls: u64,
    /// Bounds of all values.
    chunk_bounds: Option<MinMax>,
    /// Bounds of the last page with values.
    last_page_bounds: Option<MinMax>,
    /// True while no page has lesser bounds than the one before; `descending` while none has greater ones.
    ascending: bool,
    descending: bool,
}

impl ChunkBounds {
    pub(super) fn new(physical: Physical) -> Self {
        let index = ColumnIndexBuilder::new(physical);
        Self {
            physical,
            column_index: index,
            nulls: 0,
            chunk_bounds: None,
            last_page_bounds: None,
            ascending: true,
            descending: true,
        }
    }

    /// Adds a page; `bounds` are `None` if it has NULLs only.
    pub(super) fn add(&mut self, bounds: Option<&MinMax>, nulls: u64) {
        self.nulls += nulls;
        let null_count = i64::try_from(nulls).expect("a page has fewer rows");
        let Some(MinMax { min, max }) = bounds else {
            return self.column_index.append(true, Vec::new(), Vec::new(), null_count);
        };
        let (lower, upper) = (lower_bound_bytes(min, self.physical).0, upper_bound_bytes(max, self.physical).0);
        self.column_index.append(false, lower, upper, null_count);
        if let Some(last) = &self.last_page_bounds {
            self.ascending &= last.min <= *min && last.max <= *max;
            self.descending &= *min <= last.min && *max <= last.max;
        }
        let page = MinMax { min: min.clone(), max: max.clone() };
        self.last_page_bounds = Some(page.clone());
        self.chunk_bounds = Some(match self.chunk_bounds.take() {
            Some(all) => all.merge(page),
            None => page,
        });
    }

    /// Returns column index and chunk statistics for the footer.
    pub(super) fn finish(mut self) -> Result<(ColumnIndexMetaData, Statistics)> {
        self.column_index.set_boundary_order(match (self.ascending, self.descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        });
        let min = self.chunk_bounds.as_ref().map(|all| lower_bound_bytes(&all.min, self.physical));
        let max = self.chunk_bounds.as_ref().map(|all| upper_bound_bytes(&all.max, self.physical));
        let nulls = Some(self.nulls);
        let statistics = match self.physical {
            Physical::INT32 => {
                Statistics::int32(bound_as_i32(min.as_ref()), bound_as_i32(max.as_ref()), None, nulls, false)
            }
            Physical::INT64 => {
                Statistics::int64(bound_as_i64(min.as_ref()), bound_as_i64(max.as_ref()), None, nulls, false)
            }
            _ => {
                let is_exact = |bound: &Option<(Vec<u8>, bool)>| bound.as_ref().is_none_or(|(_, is_exact)| *is_exact);
                let (min_is_exact, max_is_exact) = (is_exact(&min), is_exact(&max));
                let bytes = |bound: Option<(Vec<u8>, bool)>| bound.map(|(bytes, _)| ByteArray::from(bytes));
                let statistics = ValueStatistics::new(bytes(min), bytes(max), None, nulls, false);
                let statistics = statistics.with_min_is_exact(min_is_exact).with_max_is_exact(max_is_exact);
                Statistics::ByteArray(statistics)
            }
        };
        Ok((self.column_index.build()?, statistics))
    }
}

/// Returns a lower bound short enough for a footer, and whether it is the value itself.
fn lower_bound_bytes(value: &Datum, physical: Physical) -> (Vec<u8>, bool) {
    match value {
        Datum::Text(text) => {
            let bound = text_lower_bound(text);
            (bound.as_bytes().to_vec(), bound.len() == text.len())
        }
        number => (number_bytes(number, physical), true),
    }
}

/// Returns a short upper bound, the value itself if there is none shorter, and whether it is the value itself.
fn upper_bound_bytes(value: &Datum, physical: Physical) -> (Vec<u8>, bool) {
    match value {
        Datum::Text(text) => {
            let bound = text_upper_bound(text).unwrap_or_else(|| text.clone());
            let is_exact = bound == *text;
            (bound.into_bytes(), is_exact)
        }
        number => (number_bytes(number, physical), true),
    }
}

fn number_bytes(number: &Datum, physical: Physical) -> Vec<u8> {
    let bytes = match number {
        Datum::Int(value) => i128::from(*value),
        Datum::Decimal(value) => *value,
        Datum::Bool(_) | Datum::Float(_) | Datum::Text(_) | Datum::Bytes(_) => {
            unreachable!("only columns of numbers and strings have bounds here")
        }
    }
    .to_le_bytes();
    let count = if physical == Physical::INT32 { 4 } else { 8 };
    bytes[..count].to_vec()
}

fn bound_as_i32(bound: Option<&(Vec<u8>, bool)>) -> Option<i32> {
    bound.map(|(bytes, _)| i32::from_le_bytes(bytes.as_slice().try_into().expect("bounds have the column's width")))
}

fn bound_as_i64(bound: Option<&(Vec<u8>, bool)>) -> Option<i64> {
    bound.map(|(bytes, _)| i64::from_le_bytes(bytes.as_slice().try_into().expect("bounds have the column's width")))
}

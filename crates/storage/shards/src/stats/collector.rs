//! Collects the statistics of a column page by page.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, StringViewArray};
use types::{ColumnId, SqlType};

use super::value_visitor::{ValueVisitor, visit};
use crate::datum::{bytes_lower_bound, bytes_upper_bound, text_lower_bound, text_upper_bound};
use crate::{ColumnStats, Datum, Hll, Result};

/// Statistics of a column's values so far.
#[derive(Debug)]
pub(crate) struct ColumnStatsCollector {
    column: ColumnId,
    sql_type: SqlType,
    state: State,
}

#[derive(Debug)]
/// Statistics so far.
struct State {
    rows: u64,
    nulls: u64,
    /// Number of runs of equal neighbours.
    run_count: u64,
    distinct: Hll,
    /// Recently added hashes, so that repeated values do not reach the sketch.
    recent_hashes: Box<[u64; RECENT_HASHES]>,
    ascending: bool,
    strictly_ascending: bool,
    /// Bounds of completed pages.
    bounds: Option<MinMax>,
    /// Bounds of the current page.
    page_bounds: Option<MinMax>,
    /// Last row; `None` before the first.
    previous_value: Option<PreviousValue>,
}

/// Number of slots for recent hashes, indexed by a hash's lowest bits.
const RECENT_HASHES: usize = 1 << 10;

/// Minimum and maximum.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MinMax {
    pub(crate) min: Datum,
    pub(crate) max: Datum,
}

impl MinMax {
    /// Merges two bounds.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            min: if other.min < self.min { other.min } else { self.min },
            max: if self.max < other.max { other.max } else { self.max },
        }
    }
}

/// Value of a row, as far as comparison with the next row needs it.
#[derive(Debug, PartialEq, PartialOrd)]
enum PreviousValue {
    Null,
    Value(Datum),
    /// Hash of a value without an order.
    Hash(u64),
}

impl ColumnStatsCollector {
    pub(crate) fn new(column: ColumnId, sql_type: SqlType) -> Self {
        let state = State {
            rows: 0,
            nulls: 0,
            run_count: 0,
            distinct: Hll::default(),
            // Initial values that no hash with this slot can equal.
            recent_hashes: Box::new(std::array::from_fn(|place| !(place as u64))),
            ascending: true,
            strictly_ascending: true,
            bounds: None,
            page_bounds: None,
            previous_value: None,
        };
        Self { column, sql_type, state }
    }

    /// Adds the next values.
    pub(crate) fn add(&mut self, values: &ArrayRef) -> Result<()> {
        visit(values, &self.sql_type, &mut self.state)
    }

    /// Returns the estimated number of distinct values so far.
    pub(crate) fn distinct(&self) -> u64 {
        self.state.distinct.estimate()
    }

    /// Returns true if there was no NULL so far and no value less than the one before it.
    pub(crate) fn is_ascending(&self) -> bool {
        self.state.ascending
    }

    /// Ends a page; returns its bounds, or `None` if it has no ordered values.
    pub(crate) fn end_page(&mut self) -> Option<MinMax> {
        let page = self.state.page_bounds.take();
        widen(&mut self.state.bounds, page.clone());
        page
    }

    /// Returns the final statistics; `bytes` is the column's size in the file.
    pub(crate) fn finish(mut self, bytes: u64, heavy_hitters: Vec<(Datum, u64)>) -> ColumnStats {
        self.end_page();
        let state = self.state;
        let (min, max) = state.bounds.map_or((None, None), |MinMax { min, max }| (Some(min), Some(max)));
        let (min, min_exact) = min.map_or((None, true), lower_bound);
        let (max, max_exact) = max.map_or((None, true), upper_bound);
        ColumnStats {
            nulls_guessed: false,
            column: self.column,
            nulls: state.nulls,
            bounds_exact: min_exact && max_exact,
            min,
            max,
            distinct: state.distinct,
            ascending: state.ascending,
            strictly_ascending: state.strictly_ascending,
            average_run: (state.rows as f64 / state.run_count.max(1) as f64).max(1.0) as f32,
            heavy_hitters,
            bytes,
        }
    }
}

impl ValueVisitor for &mut State {
    type Output = ();

    fn visit_ordered<T: Copy>(
        self,
        mut values: impl Iterator<Item = Option<T>>,
        order: impl Fn(T, T) -> Ordering,
        hash: impl Fn(T) -> u64,
        datum: impl Fn(T) -> Datum,
    ) {
        let row = |value: Option<T>| value.map_or(PreviousValue::Null, |value| PreviousValue::Value(datum(value)));
        let Some(first) = values.next() else { return };
        self.add_row_and_compare(row(first));
        if let Some(first) = first {
            self.add_hash(hash(first));
        }
        // Minimum and maximum of this array, merged into the page's bounds in the end.
        let (mut least, mut greatest) = (first, first);
        let mut previous = first;
        for value in values {
            self.rows += 1;
            match (previous, value) {
                (_, None) => {
                    self.nulls += 1;
                    self.run_count += u64::from(previous.is_some());
                    self.ascending = false;
                }
                (Some(before), Some(current)) if order(before, current) == Ordering::Equal => {
                    self.strictly_ascending = false;
                }
                (before, Some(current)) => {
                    self.run_count += 1;
                    self.ascending &= before.is_none_or(|before| order(before, current) == Ordering::Less);
                    self.add_hash(hash(current));
                    if least.is_none_or(|least| order(current, least) == Ordering::Less) {
                        least = Some(current);
                    }
                    if greatest.is_none_or(|greatest| order(current, greatest) == Ordering::Greater) {
                        greatest = Some(current);
                    }
                }
            }
            previous = value;
        }
        self.strictly_ascending &= self.ascending;
        self.previous_value = Some(row(previous));
        if let (Some(least), Some(greatest)) = (least, greatest) {
            widen(&mut self.page_bounds, Some(MinMax { min: datum(least), max: datum(greatest) }));
        }
    }

    fn visit_numbers<T: Copy + Ord>(self, values: &[T], hash: impl Fn(T) -> u64, datum: impl Fn(T) -> Datum) {
        let [first, rest @ ..] = values else { return };
        self.add_row_and_compare(PreviousValue::Value(datum(*first)));
        let (mut changes, mut descents) = (0_u64, 0_u64);
        let (mut least, mut greatest) = (*first, *first);
        for (before, value) in values.iter().zip(rest) {
            changes += u64::from(before != value);
            descents += u64::from(value < before);
            least = least.min(*value);
            greatest = greatest.max(*value);
        }
        values.iter().for_each(|value| self.add_hash(hash(*value)));
        self.add_rows(rest.len() as u64, changes, descents);
        self.previous_value = values.last().map(|last| PreviousValue::Value(datum(*last)));
        widen(&mut self.page_bounds, Some(MinMax { min: datum(least), max: datum(greatest) }));
    }

    fn visit_texts(self, values: &StringViewArray, hash: impl Fn(&[u8]) -> u64) {
        let text = |row: usize| PrefixedText::new(values.views()[row], values.value(row));
        let datum = |text: PrefixedText| Datum::Text(text.text.to_owned());
        if values.is_empty() {
            return;
        }
        let first = text(0);
        self.add_row_and_compare(PreviousValue::Value(datum(first)));
        self.add_hash(hash(first.text.as_bytes()));
        let (mut changes, mut descents) = (0, 0);
        let (mut least, mut greatest, mut before) = (first, first, first);
        for row in 1..values.len() {
            let value = text(row);
            let order = value.compare(before);
            descents += u64::from(order == Ordering::Less);
            if order != Ordering::Equal {
                changes += 1;
                self.add_hash(hash(value.text.as_bytes()));
                if value.compare(least) == Ordering::Less {
                    least = value;
                }
                if value.compare(greatest) == Ordering::Greater {
                    greatest = value;
                }
            }
            before = value;
        }
        self.add_rows(values.len() as u64 - 1, changes, descents);
        self.previous_value = Some(PreviousValue::Value(datum(before)));
        widen(&mut self.page_bounds, Some(MinMax { min: datum(least), max: datum(greatest) }));
    }

    fn visit_unordered(self, hashes: impl Iterator<Item = Option<u64>>) {
        for hash in hashes {
            if let Some(hash) = hash {
                self.add_hash(hash);
            }
            self.add_row_and_compare(hash.map_or(PreviousValue::Null, PreviousValue::Hash));
        }
        (self.ascending, self.strictly_ascending) = (false, false);
    }
}

/// String with its first eight bytes as a number of the same order.
#[derive(Clone, Copy)]
struct PrefixedText<'a> {
    first_bytes: u64,
    view: u128,
    text: &'a str,
}

impl<'a> PrefixedText<'a> {
    /// Largest length of strings stored in their view, behind the length.
    const INLINE_BYTES_MAX: usize = 12;

    #[inline]
    fn new(view: u128, whole: &'a str) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the first eight bytes of it")]
        let inline = (view >> 32) as u64;
        let head = match whole.as_bytes().first_chunk::<8>() {
            Some(head) if Self::INLINE_BYTES_MAX < whole.len() => u64::from_be_bytes(*head),
            _ => inline.swap_bytes(),
        };
        Self { first_bytes: head, view, text: whole }
    }

    #[inline]
    fn compare(self, other: Self) -> Ordering {
        self.first_bytes.cmp(&other.first_bytes).then_with(|| {
            let are_same = self.view == other.view && self.text.len() <= Self::INLINE_BYTES_MAX;
            if are_same { Ordering::Equal } else { self.text.as_bytes().cmp(other.text.as_bytes()) }
        })
    }
}

/// Extends bounds by those of more values.
fn widen(bounds: &mut Option<MinMax>, more: Option<MinMax>) {
    *bounds = match (bounds.take(), more) {
        (Some(bounds), Some(more)) => Some(bounds.merge(more)),
        (bounds, more) => bounds.or(more),
    };
}

impl State {
    /// Adds a value's hash to the sketch.
    #[inline]
    fn add_hash(&mut self, hash: u64) {
        let seen = &mut self.recent_hashes[hash as usize % RECENT_HASHES];
        if *seen != hash {
            *seen = hash;
            self.distinct.add_hash(hash);
        }
    }

    /// Adds rows after the first: the number that differ from the row before them, and that are less.
    fn add_rows(&mut self, rows: u64, changes: u64, descents: u64) {
        self.rows += rows;
        self.run_count += changes;
        self.ascending &= descents == 0;
        self.strictly_ascending &= self.ascending && changes == rows;
    }

    /// Adds a row and compares it with the one before.
    fn add_row_and_compare(&mut self, row: PreviousValue) {
        self.rows += 1;
        match (&self.previous_value, &row) {
            (before, PreviousValue::Null) => {
                self.nulls += 1;
                self.run_count += u64::from(*before != Some(PreviousValue::Null));
                self.ascending = false;
            }
            (Some(before), row) if before == row => self.strictly_ascending = false,
            (before, row) => {
                self.run_count += 1;
                if let (Some(PreviousValue::Value(before)), PreviousValue::Value(value)) = (before, row) {
                    self.ascending &= before < value;
                }
            }
        }
        self.strictly_ascending &= self.ascending;
        self.previous_value = Some(row);
    }
}

/// Returns a short lower bound of the value, and whether it is the value itself.
fn lower_bound(value: Datum) -> (Option<Datum>, bool) {
    match value {
        Datum::Text(text) => {
            let bound = text_lower_bound(&text);
            let exact = bound.len() == text.len();
            (Some(Datum::Text(bound.to_owned())), exact)
        }
        Datum::Bytes(bytes) => {
            let bound = bytes_lower_bound(&bytes);
            let exact = bound.len() == bytes.len();
            (Some(Datum::Bytes(bound.to_vec())), exact)
        }
        other => (Some(other), true),
    }
}

/// Returns a short upper bound of the value if there is one, and whether it is the value itself.
fn upper_bound(value: Datum) -> (Option<Datum>, bool) {
    match value {
        Datum::Text(text) => {
            let bound = text_upper_bound(&text);
            let exact = bound.as_ref() == Some(&text);
            (bound.map(Datum::Text), exact)
        }
        Datum::Bytes(bytes) => {
            let bound = bytes_upper_bound(&bytes);
            let exact = bound.as_ref() == Some(&bytes);
            (bound.map(Datum::Bytes), exact)
        }
        other => (Some(other), true),
    }
}

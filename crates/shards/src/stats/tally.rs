//! The running statistics of one column, page by page.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use types::{ColumnId, SqlType};

use super::values::{Visit, visit};
use crate::datum::{bytes_lower_bound, bytes_upper_bound, text_lower_bound, text_upper_bound};
use crate::{ColumnStats, Datum, Hll, Result};

/// What the values of a column so far say.
#[derive(Debug)]
pub(crate) struct Tally {
    column: ColumnId,
    sql_type: SqlType,
    state: State,
}

#[derive(Debug)]
struct State {
    rows: u64,
    nulls: u64,
    /// Groups of equal neighbours.
    runs: u64,
    distinct: Hll,
    ascending: bool,
    strictly_ascending: bool,
    min: Option<Datum>,
    max: Option<Datum>,
    /// The row before; `None` before the first.
    previous: Option<Row>,
}

/// One row's value, as far as the row behind it has to know it.
#[derive(Debug, PartialEq, PartialOrd)]
enum Row {
    Null,
    Value(Datum),
    /// The hash of a value that is only told apart.
    Hash(u64),
}

impl Tally {
    pub(crate) fn new(column: ColumnId, sql_type: SqlType) -> Self {
        let state = State {
            rows: 0,
            nulls: 0,
            runs: 0,
            distinct: Hll::default(),
            ascending: true,
            strictly_ascending: true,
            min: None,
            max: None,
            previous: None,
        };
        Self { column, sql_type, state }
    }

    /// Counts the next values.
    pub(crate) fn add(&mut self, values: &ArrayRef) -> Result<()> {
        visit(values, &self.sql_type, &mut self.state)
    }

    /// Estimated distinct values so far.
    pub(crate) fn distinct(&self) -> u64 {
        self.state.distinct.estimate()
    }

    /// No NULL so far, and no value less than the one before.
    pub(crate) fn is_ascending(&self) -> bool {
        self.state.ascending
    }

    /// What was found; `bytes` is what the column takes in the file.
    pub(crate) fn finish(self, bytes: u64, heavy_hitters: Vec<(Datum, u64)>) -> ColumnStats {
        let state = self.state;
        let (min, min_exact) = state.min.map_or((None, true), lower_bound);
        let (max, max_exact) = state.max.map_or((None, true), upper_bound);
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
            average_run: (state.rows as f64 / state.runs.max(1) as f64).max(1.0) as f32,
            heavy_hitters,
            bytes,
        }
    }
}

impl Visit for &mut State {
    type Output = ();

    fn ordered<T: Copy>(
        self,
        mut values: impl Iterator<Item = Option<T>>,
        order: impl Fn(T, T) -> Ordering,
        hash: impl Fn(T) -> u64,
        datum: impl Fn(T) -> Datum,
    ) {
        let row = |value: Option<T>| value.map_or(Row::Null, |value| Row::Value(datum(value)));
        let Some(first) = values.next() else { return };
        self.begin(row(first));
        if let Some(first) = first {
            self.distinct.add_hash(hash(first));
        }
        // Least and greatest of this array; those of all rows are brought in at its end.
        let (mut least, mut greatest) = (first, first);
        let mut previous = first;
        for value in values {
            self.rows += 1;
            match (previous, value) {
                (_, None) => {
                    self.nulls += 1;
                    self.runs += u64::from(previous.is_some());
                    self.ascending = false;
                }
                (Some(before), Some(current)) if order(before, current) == Ordering::Equal => {
                    self.strictly_ascending = false;
                }
                (before, Some(current)) => {
                    self.runs += 1;
                    self.ascending &= before.is_none_or(|before| order(before, current) == Ordering::Less);
                    self.distinct.add_hash(hash(current));
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
        self.previous = Some(row(previous));
        if let (Some(least), Some(greatest)) = (least, greatest) {
            let (least, greatest) = (datum(least), datum(greatest));
            if self.min.as_ref().is_none_or(|min| least < *min) {
                self.min = Some(least);
            }
            if self.max.as_ref().is_none_or(|max| greatest > *max) {
                self.max = Some(greatest);
            }
        }
    }

    fn unordered(self, hashes: impl Iterator<Item = Option<u64>>) {
        for hash in hashes {
            if let Some(hash) = hash {
                self.distinct.add_hash(hash);
            }
            self.begin(hash.map_or(Row::Null, Row::Hash));
        }
        (self.ascending, self.strictly_ascending) = (false, false);
    }
}

impl State {
    /// Counts a row, with its order to the one before it.
    fn begin(&mut self, row: Row) {
        self.rows += 1;
        match (&self.previous, &row) {
            (before, Row::Null) => {
                self.nulls += 1;
                self.runs += u64::from(*before != Some(Row::Null));
                self.ascending = false;
            }
            (Some(before), row) if before == row => self.strictly_ascending = false,
            (before, row) => {
                self.runs += 1;
                if let (Some(Row::Value(before)), Row::Value(value)) = (before, row) {
                    self.ascending &= before < value;
                }
            }
        }
        self.strictly_ascending &= self.ascending;
        self.previous = Some(row);
    }
}

/// A short bound not above the value, and whether it is the value.
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

/// A short bound not below the value if there is one, and whether it is the value.
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

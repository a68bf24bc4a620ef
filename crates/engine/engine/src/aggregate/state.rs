//! Aggregate states of groups: counts, sums, moments, minimum and maximum.

use std::ops::Range;
use std::sync::Arc;

use super::least::Least;
use super::moments::Moments;
use super::sum256::Sums256;
use super::totals::{Rows, add_counts, add_floats, add_ints, add_wide, float_sum, numeric_overflow};
use crate::{Bits, Bounds, Column, Data, Error, Form, Result};

/// One aggregate of a group: its kind, input column and FILTER column.
#[derive(Debug, Clone)]
pub struct StateSpec {
    /// Aggregate to compute.
    pub kept: Kept,
    /// Input column, whose NULLs are skipped; `None` counts rows.
    pub column: Option<usize>,
    /// Boolean column of the FILTER clause: only rows for which it is true are aggregated.
    pub filter: Option<usize>,
}

/// Aggregate that is computed for each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// Number of rows or of non-NULL values, as 64-bit integers.
    Count,
    /// Sum of integers or of unscaled numerics, as 128-bit integers; 0 if there are no values.
    Sum,
    /// Sum of exact numbers, or of their squares, as a 256-bit integer; 0 if there are no values. The result column has
    /// binary values, which [`super::sums256_from_binary`] decodes.
    Sum256 { of_squares: bool },
    /// Sum of `float8`; 0 if there are no values.
    FloatSum,
    /// Count, mean and sum of squared deviations of `float8`, as binary values that [`Moments::of_array`] decodes.
    Moments,
    /// Minimum of a column of this form; NULL if there are no values.
    Min(Form),
    /// Maximum of a column of this form; NULL if there are no values.
    Max(Form),
}

/// States of one aggregate, indexed by group.
#[derive(Debug)]
pub(super) enum State {
    Count(Vec<i64>),
    Sum(Vec<i128>),
    Sum256(Sums256),
    FloatSum(Vec<f64>),
    Moments(Vec<Moments>),
    Least { values: Least, is_max: bool },
}

impl State {
    pub(super) fn new(kept: Kept) -> Self {
        match kept {
            Kept::Count => Self::Count(Vec::new()),
            Kept::Sum => Self::Sum(Vec::new()),
            Kept::Sum256 { of_squares } => Self::Sum256(Sums256::new(of_squares)),
            Kept::FloatSum => Self::FloatSum(Vec::new()),
            Kept::Moments => Self::Moments(Vec::new()),
            Kept::Min(form) => Self::Least { values: Least::new(form), is_max: false },
            Kept::Max(form) => Self::Least { values: Least::new(form), is_max: true },
        }
    }

    /// Grows to `groups` groups; new ones have the state of no rows.
    pub(super) fn resize(&mut self, groups: usize) {
        match self {
            Self::Count(counts) => counts.resize(groups, 0),
            Self::Sum(sums) => sums.resize(groups, 0),
            Self::Sum256(sums) => sums.resize(groups),
            Self::FloatSum(sums) => sums.resize(groups, 0.0),
            Self::Moments(moments) => moments.resize(groups, Moments::default()),
            Self::Least { values, .. } => values.resize(groups),
        }
    }

    /// Adds the value of each row to the state of the row's group. Only rows whose bit in `counts` is set are added;
    /// all without `counts`.
    pub(super) fn add(&mut self, rows: &Rows<'_>, column: Option<&Column>, counts: Option<&Bits>) -> Result<()> {
        let groups = rows.groups;
        match self {
            Self::Count(totals) => {
                add_counts(totals, rows, counts);
                Ok(())
            }
            Self::Sum(sums) => match &column.ok_or(Error::Form("a sum without an input column"))?.data {
                Data::Ints { values, bounds } => add_ints(sums, groups, values, *bounds, counts),
                Data::Wide(values) => add_wide(sums, groups, values, counts),
                _ => Err(Error::Form("the input of an exact sum is not an exact number")),
            },
            Self::FloatSum(sums) => {
                let Data::Floats(values) = &column.ok_or(Error::Form("a sum without an input column"))?.data else {
                    return Err(Error::Form("the input of a float8 sum is not float8"));
                };
                add_floats(sums, groups, values, counts)
            }
            Self::Sum256(sums) => sums.add(groups, column.ok_or(Error::Form("a sum without an input column"))?, counts),
            Self::Moments(moments) => match &column.ok_or(Error::Form("a variance without an input column"))?.data {
                Data::Floats(values) => {
                    each(counts, groups.len(), |row| moments[groups[row] as usize].add(values[row]));
                    Ok(())
                }
                Data::Opaque(array) => {
                    let others = Moments::of_array(array)?;
                    each(counts, groups.len(), |row| moments[groups[row] as usize].merge(others[row]));
                    Ok(())
                }
                _ => Err(Error::Form("the input of a variance is neither float8 nor partial states")),
            },
            Self::Least { values, is_max } => {
                values.add(*is_max, groups, column.ok_or(Error::Form("MIN or MAX without an input column"))?, counts)
            }
        }
    }

    /// Merges the states of the groups `some` of `other`, each into the group at the same index of `groups`.
    pub(super) fn merge(&mut self, groups: &[u32], other: &Self, some: &[u32]) -> Result<()> {
        let pairs = || some.iter().map(|from| *from as usize).zip(groups.iter().map(|group| *group as usize));
        match (self, other) {
            (Self::Count(mine), Self::Count(theirs)) => pairs().for_each(|(from, to)| mine[to] += theirs[from]),
            (Self::Sum(mine), Self::Sum(theirs)) => {
                for (from, to) in pairs() {
                    mine[to] = mine[to].checked_add(theirs[from]).ok_or_else(numeric_overflow)?;
                }
            }
            (Self::Sum256(mine), Self::Sum256(theirs)) => mine.merge(theirs, pairs())?,
            (Self::FloatSum(mine), Self::FloatSum(theirs)) => {
                for (from, to) in pairs() {
                    mine[to] = float_sum(mine[to], theirs[from])?;
                }
            }
            (Self::Moments(mine), Self::Moments(theirs)) => pairs().for_each(|(from, to)| mine[to].merge(theirs[from])),
            (Self::Least { values, is_max }, Self::Least { values: theirs, .. }) => {
                values.merge(*is_max, groups, theirs, some)?
            }
            _ => return Err(Error::Form("merged states are of different aggregates")),
        }
        Ok(())
    }

    /// Removes the states of some groups and returns them in the order of `groups`. What remains for these groups is
    /// undefined.
    pub(super) fn take(&mut self, groups: &[u32]) -> Self {
        match self {
            Self::Count(counts) => Self::Count(picked(counts, groups)),
            Self::Sum(sums) => Self::Sum(picked(sums, groups)),
            Self::Sum256(sums) => Self::Sum256(sums.picked(groups)),
            Self::FloatSum(sums) => Self::FloatSum(picked(sums, groups)),
            Self::Moments(moments) => Self::Moments(picked(moments, groups)),
            Self::Least { values, is_max } => Self::Least { values: values.take(groups), is_max: *is_max },
        }
    }

    /// Copies the states of a range of groups.
    pub(super) fn part(&self, groups: Range<usize>) -> Self {
        match self {
            Self::Count(counts) => Self::Count(counts[groups].to_vec()),
            Self::Sum(sums) => Self::Sum(sums[groups].to_vec()),
            Self::Sum256(sums) => Self::Sum256(sums.part(groups)),
            Self::FloatSum(sums) => Self::FloatSum(sums[groups].to_vec()),
            Self::Moments(moments) => Self::Moments(moments[groups].to_vec()),
            Self::Least { values, is_max } => Self::Least { values: values.part(groups), is_max: *is_max },
        }
    }

    /// Converts the states to a column of `groups` rows.
    pub(super) fn column(self, groups: usize) -> Result<Column> {
        let mut state = self;
        state.resize(groups);
        Ok(match state {
            Self::Count(counts) => ints(counts),
            Self::Sum(sums) => Column::new(narrowest(sums)),
            Self::Sum256(sums) => Column::new(Data::Opaque(sums.array()?)),
            Self::FloatSum(sums) => Column::new(Data::Floats(Arc::new(sums))),
            Self::Moments(moments) => Column::new(Data::Opaque(Moments::array(&moments))),
            Self::Least { values, .. } => values.column(),
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Count(counts) => counts.capacity() * 8,
            Self::Sum(sums) => sums.capacity() * 16,
            Self::Sum256(sums) => sums.memory_bytes(),
            Self::FloatSum(sums) => sums.capacity() * 8,
            Self::Moments(moments) => moments.capacity() * size_of::<Moments>(),
            Self::Least { values, .. } => values.memory_bytes(),
        }
    }
}

pub(super) fn picked<T: Copy>(values: &[T], groups: &[u32]) -> Vec<T> {
    groups.iter().map(|group| values[*group as usize]).collect()
}

/// Creates a column of integers, whose bounds include 0.
pub(crate) fn ints(values: Vec<i64>) -> Column {
    let (min, max) = values.iter().fold((0, 0), |(min, max), value| (*value.min(&min), *value.max(&max)));
    Column::new(Data::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } })
}

/// Stores integers in 64 bits if all fit, else in 128 bits.
pub(crate) fn narrowest(sums: Vec<i128>) -> Data {
    let (min, max) = sums.iter().fold((0, 0), |(min, max), sum| (*sum.min(&min), *sum.max(&max)));
    let bounds = Bounds { min, max };
    if !bounds.are_narrow() {
        return Data::Wide(Arc::new(sums));
    }
    #[expect(clippy::cast_possible_truncation, reason = "all lie within bounds of 64 bits")]
    let values = sums.iter().map(|sum| *sum as i64).collect();
    Data::Ints { values: Arc::new(values), bounds }
}

/// Calls `tell` with each row whose bit in `counts` is set, or with every row if there is no `counts`.
pub(super) fn each(counts: Option<&Bits>, rows: usize, tell: impl FnMut(usize)) {
    match counts {
        None => (0..rows).for_each(tell),
        Some(bits) => bits.ones().for_each(tell),
    }
}

//! Aggregate states of groups: counts, sums, moments, minimum and maximum.

use std::ops::Range;
use std::sync::Arc;

use super::min_max::MinMax;
use super::sum256::Sums256;
use super::sums::{RowGroups, add_counts, add_floats, add_ints, add_wide, checked_float_add, numeric_overflow};
use super::variance_moments::Moments;
use crate::{Bitmap, Bounds, Column, ColumnData, Error, PhysicalType, Result};

/// One aggregate of a group: its kind, input column and FILTER column.
#[derive(Debug, Clone)]
pub struct StateSpec {
    /// Aggregate to compute.
    pub kind: AggregateKind,
    /// Input column, whose NULLs are skipped; `None` counts rows.
    pub column: Option<usize>,
    /// Boolean column of the FILTER clause: only rows for which it is true are aggregated.
    pub filter: Option<usize>,
}

/// Aggregate that is computed for each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// Number of rows or of non-NULL values, as 64-bit integers.
    Count,
    /// Sum of integers or of unscaled numerics, as 128-bit integers; 0 if there are no values.
    Sum,
    /// Sum of exact numbers, or of their squares, as a 256-bit integer; 0 if there are no values. The result column has
    /// binary values, which [`super::sums256_from_binary`] decodes.
    Sum256 { sums_squares: bool },
    /// Sum of `float8`; 0 if there are no values.
    FloatSum,
    /// Count, mean and sum of squared deviations of `float8`, as binary values that [`Moments::from_array`] decodes.
    Moments,
    /// Minimum of a column of this form; NULL if there are no values.
    Min(PhysicalType),
    /// Maximum of a column of this form; NULL if there are no values.
    Max(PhysicalType),
}

/// States of one aggregate, indexed by group.
#[derive(Debug)]
pub(super) enum State {
    Count(Vec<i64>),
    Sum(Vec<i128>),
    Sum256(Sums256),
    FloatSum(Vec<f64>),
    Moments(Vec<Moments>),
    MinMax { values: MinMax, is_max: bool },
}

impl State {
    pub(super) fn new(kept: AggregateKind) -> Self {
        match kept {
            AggregateKind::Count => Self::Count(Vec::new()),
            AggregateKind::Sum => Self::Sum(Vec::new()),
            AggregateKind::Sum256 { sums_squares } => Self::Sum256(Sums256::new(sums_squares)),
            AggregateKind::FloatSum => Self::FloatSum(Vec::new()),
            AggregateKind::Moments => Self::Moments(Vec::new()),
            AggregateKind::Min(form) => Self::MinMax { values: MinMax::new(form), is_max: false },
            AggregateKind::Max(form) => Self::MinMax { values: MinMax::new(form), is_max: true },
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
            Self::MinMax { values, .. } => values.resize(groups),
        }
    }

    /// Adds the value of each row to the state of the row's group. Only rows whose bit in `counts` is set are added;
    /// all without `counts`.
    pub(super) fn add(
        &mut self,
        rows: &RowGroups<'_>,
        column: Option<&Column>,
        counted: Option<&Bitmap>,
    ) -> Result<()> {
        let groups = rows.groups;
        match self {
            Self::Count(totals) => {
                add_counts(totals, rows, counted);
                Ok(())
            }
            Self::Sum(sums) => match &column.ok_or(Error::Internal("a sum without an input column"))?.data {
                ColumnData::Ints { values, bounds } => add_ints(sums, groups, values, *bounds, counted),
                ColumnData::WideInts(values) => add_wide(sums, groups, values, counted),
                _ => Err(Error::Internal("the input of an exact sum is not an exact number")),
            },
            Self::FloatSum(sums) => {
                let ColumnData::Floats(values) = &column.ok_or(Error::Internal("a sum without an input column"))?.data
                else {
                    return Err(Error::Internal("the input of a float8 sum is not float8"));
                };
                add_floats(sums, groups, values, counted)
            }
            Self::Sum256(sums) => {
                sums.add(groups, column.ok_or(Error::Internal("a sum without an input column"))?, counted)
            }
            Self::Moments(moments) => {
                match &column.ok_or(Error::Internal("a variance without an input column"))?.data {
                    ColumnData::Floats(values) => {
                        for_each_counted_row(counted, groups.len(), |row| {
                            moments[groups[row] as usize].add(values[row])
                        });
                        Ok(())
                    }
                    ColumnData::Opaque(array) => {
                        let others = Moments::from_array(array)?;
                        for_each_counted_row(counted, groups.len(), |row| {
                            moments[groups[row] as usize].merge(others[row])
                        });
                        Ok(())
                    }
                    _ => Err(Error::Internal("the input of a variance is neither float8 nor partial states")),
                }
            }
            Self::MinMax { values, is_max } => values.add(
                *is_max,
                groups,
                column.ok_or(Error::Internal("MIN or MAX without an input column"))?,
                counted,
            ),
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
                    mine[to] = checked_float_add(mine[to], theirs[from])?;
                }
            }
            (Self::Moments(mine), Self::Moments(theirs)) => pairs().for_each(|(from, to)| mine[to].merge(theirs[from])),
            (Self::MinMax { values, is_max }, Self::MinMax { values: theirs, .. }) => {
                values.merge(*is_max, groups, theirs, some)?
            }
            _ => return Err(Error::Internal("the aggregate states to be merged belong to different aggregates")),
        }
        Ok(())
    }

    /// Removes the states of some groups and returns them in the order of `groups`. What remains for these groups is
    /// undefined.
    pub(super) fn take(&mut self, groups: &[u32]) -> Self {
        match self {
            Self::Count(counts) => Self::Count(gather(counts, groups)),
            Self::Sum(sums) => Self::Sum(gather(sums, groups)),
            Self::Sum256(sums) => Self::Sum256(sums.gather(groups)),
            Self::FloatSum(sums) => Self::FloatSum(gather(sums, groups)),
            Self::Moments(moments) => Self::Moments(gather(moments, groups)),
            Self::MinMax { values, is_max } => Self::MinMax { values: values.take(groups), is_max: *is_max },
        }
    }

    /// Copies the states of a range of groups.
    pub(super) fn slice(&self, groups: Range<usize>) -> Self {
        match self {
            Self::Count(counts) => Self::Count(counts[groups].to_vec()),
            Self::Sum(sums) => Self::Sum(sums[groups].to_vec()),
            Self::Sum256(sums) => Self::Sum256(sums.slice(groups)),
            Self::FloatSum(sums) => Self::FloatSum(sums[groups].to_vec()),
            Self::Moments(moments) => Self::Moments(moments[groups].to_vec()),
            Self::MinMax { values, is_max } => Self::MinMax { values: values.slice(groups), is_max: *is_max },
        }
    }

    /// Converts the states to a column of `groups` rows.
    pub(super) fn into_column(self, groups: usize) -> Result<Column> {
        let mut state = self;
        state.resize(groups);
        Ok(match state {
            Self::Count(counts) => int_column(counts),
            Self::Sum(sums) => Column::new(narrowest_data(sums)),
            Self::Sum256(sums) => Column::new(ColumnData::Opaque(sums.to_array()?)),
            Self::FloatSum(sums) => Column::new(ColumnData::Floats(Arc::new(sums))),
            Self::Moments(moments) => Column::new(ColumnData::Opaque(Moments::to_array(&moments))),
            Self::MinMax { values, .. } => values.into_column(),
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Count(counts) => counts.capacity() * 8,
            Self::Sum(sums) => sums.capacity() * 16,
            Self::Sum256(sums) => sums.memory_bytes(),
            Self::FloatSum(sums) => sums.capacity() * 8,
            Self::Moments(moments) => moments.capacity() * size_of::<Moments>(),
            Self::MinMax { values, .. } => values.memory_bytes(),
        }
    }
}

pub(super) fn gather<T: Copy>(values: &[T], groups: &[u32]) -> Vec<T> {
    groups.iter().map(|group| values[*group as usize]).collect()
}

/// Creates a column of integers, whose bounds include 0.
pub(crate) fn int_column(values: Vec<i64>) -> Column {
    let (min, max) = values.iter().fold((0, 0), |(min, max), value| (*value.min(&min), *value.max(&max)));
    Column::new(ColumnData::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } })
}

/// Stores integers in 64 bits if all fit, else in 128 bits.
pub(crate) fn narrowest_data(sums: Vec<i128>) -> ColumnData {
    let (min, max) = sums.iter().fold((0, 0), |(min, max), sum| (*sum.min(&min), *sum.max(&max)));
    let bounds = Bounds { min, max };
    if !bounds.fit_i64() {
        return ColumnData::WideInts(Arc::new(sums));
    }
    #[expect(clippy::cast_possible_truncation, reason = "all lie within bounds of 64 bits")]
    let values = sums.iter().map(|sum| *sum as i64).collect();
    ColumnData::Ints { values: Arc::new(values), bounds }
}

/// Calls `tell` with each row whose bit in `counts` is set, or with every row if there is no `counts`.
pub(super) fn for_each_counted_row(counted: Option<&Bitmap>, rows: usize, visit: impl FnMut(usize)) {
    match counted {
        None => (0..rows).for_each(visit),
        Some(bits) => bits.ones().for_each(visit),
    }
}

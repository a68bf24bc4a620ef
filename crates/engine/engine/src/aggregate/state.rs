//! What is kept of each group: counts, totals, the least and the greatest.

use std::ops::Range;
use std::sync::Arc;

use super::least::Least;
use super::moments::Moments;
use super::sum256::Sums256;
use super::totals::{Rows, add_counts, add_floats, add_ints, add_wide, float_sum, numeric_overflow};
use crate::{Bits, Bounds, Column, Data, Error, Form, Result};

/// A thing that is kept of the rows of a group.
#[derive(Debug, Clone)]
pub struct StateSpec {
    pub kept: Kept,
    /// The column whose values it is of; of rows alone without one. NULLs do not count.
    pub column: Option<usize>,
    /// A column that is true for the rows that count.
    pub filter: Option<usize>,
}

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// How many there are. Gives integers.
    Count,
    /// The sum of integers or of digits of numerics; 0 of none. Gives 128 bits.
    Sum,
    /// The sum of exact numbers, or of their squares, as a 256-bit integer; 0 of none. Gives binary values, which [`super::sums256_from_binary`]
    /// decodes.
    Sum256 { of_squares: bool },
    /// The sum of `float8`; 0 of none.
    FloatSum,
    /// How `float8` are spread, which [`Moments::of_array`] reads.
    Moments,
    /// The least value of a column of this form; NULL of none.
    Min(Form),
    /// The greatest value of a column of this form; NULL of none.
    Max(Form),
}

/// What is kept of all groups.
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

    /// Makes room for so many groups.
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

    /// Adds rows: the group of each, and its value. `counts` are the rows that do, all without it.
    pub(super) fn add(&mut self, rows: &Rows<'_>, column: Option<&Column>, counts: Option<&Bits>) -> Result<()> {
        let groups = rows.groups;
        match self {
            Self::Count(totals) => {
                add_counts(totals, rows, counts);
                Ok(())
            }
            Self::Sum(sums) => match &column.ok_or(Error::Form("a sum of nothing"))?.data {
                Data::Ints { values, bounds } => add_ints(sums, groups, values, *bounds, counts),
                Data::Wide(values) => add_wide(sums, groups, values, counts),
                _ => Err(Error::Form("a sum of what is no exact number")),
            },
            Self::FloatSum(sums) => {
                let Data::Floats(values) = &column.ok_or(Error::Form("a sum of nothing"))?.data else {
                    return Err(Error::Form("a sum of what is no float8"));
                };
                add_floats(sums, groups, values, counts)
            }
            Self::Sum256(sums) => sums.add(groups, column.ok_or(Error::Form("a sum of nothing"))?, counts),
            Self::Moments(moments) => match &column.ok_or(Error::Form("the spread of nothing"))?.data {
                Data::Floats(values) => {
                    each(counts, groups.len(), |row| moments[groups[row] as usize].add(values[row]));
                    Ok(())
                }
                Data::Opaque(array) => {
                    let others = Moments::of_array(array)?;
                    each(counts, groups.len(), |row| moments[groups[row] as usize].merge(others[row]));
                    Ok(())
                }
                _ => Err(Error::Form("the spread of what is no float8")),
            },
            Self::Least { values, is_max } => {
                values.add(*is_max, groups, column.ok_or(Error::Form("the least of nothing"))?, counts)
            }
        }
    }

    /// Adds some of another's groups, each to the one named for it.
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
            _ => return Err(Error::Form("states of another kind")),
        }
        Ok(())
    }

    /// Takes the states of some groups away, in their order.
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

    /// The states of some neighbouring groups.
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

    /// The state of each group as a column.
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

/// Integers, 0 among their bounds.
pub(crate) fn ints(values: Vec<i64>) -> Column {
    let (min, max) = values.iter().fold((0, 0), |(min, max), value| (*value.min(&min), *value.max(&max)));
    Column::new(Data::Ints { values: Arc::new(values), bounds: Bounds { min: min.into(), max: max.into() } })
}

/// Integers that need 128 bits only where one of them does.
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

/// Tells of each row that counts.
pub(super) fn each(counts: Option<&Bits>, rows: usize, tell: impl FnMut(usize)) {
    match counts {
        None => (0..rows).for_each(tell),
        Some(bits) => bits.ones().for_each(tell),
    }
}

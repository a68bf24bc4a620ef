//! States of MIN and MAX.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{StringViewArray, StringViewBuilder};

use super::aggregate_state::{for_each_counted_row, gather, int_column, narrowest_data};
use crate::expression::float_order;
use crate::{Bitmap, Column, ColumnData, Error, PhysicalType, Result};

/// Minimum or maximum of each group; `None` for groups without a value so far.
#[derive(Debug)]
pub(super) enum MinMax {
    /// Booleans; false sorts first.
    Bools(Vec<Option<bool>>),
    Ints(Vec<Option<i64>>),
    Wide(Vec<Option<i128>>),
    Floats(Vec<Option<f64>>),
    Texts {
        values: Vec<Option<Box<str>>>,
        /// Total length of the strings, in bytes.
        bytes: usize,
    },
}

impl MinMax {
    /// Creates the state of no groups, for columns of a form.
    pub(super) fn new(form: PhysicalType) -> Self {
        match form {
            PhysicalType::Bools => Self::Bools(Vec::new()),
            // Starts with 64 bits, which most numbers fit; the first 128-bit column widens it.
            PhysicalType::Ints | PhysicalType::WideInts => Self::Ints(Vec::new()),
            PhysicalType::Floats => Self::Floats(Vec::new()),
            // Opaque values cannot be compared: `add` fails on the first batch.
            PhysicalType::Texts | PhysicalType::Opaque => Self::Texts { values: Vec::new(), bytes: 0 },
        }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        match self {
            Self::Bools(values) => values.resize(groups, None),
            Self::Ints(values) => values.resize(groups, None),
            Self::Wide(values) => values.resize(groups, None),
            Self::Floats(values) => values.resize(groups, None),
            Self::Texts { values, .. } => values.resize(groups, None),
        }
    }

    /// Converts 64-bit values to 128 bits if the column has 128-bit values.
    fn widen(&mut self, data: &ColumnData) {
        if let (Self::Ints(values), ColumnData::WideInts(_)) = (&*self, data) {
            *self = Self::Wide(values.iter().map(|value| value.map(i128::from)).collect());
        }
    }

    pub(super) fn add(&mut self, is_max: bool, groups: &[u32], column: &Column, counts: Option<&Bitmap>) -> Result<()> {
        self.widen(&column.data);
        let wanted = if is_max { Ordering::Greater } else { Ordering::Less };
        let rows = groups.len();
        match (self, &column.data) {
            (Self::Bools(least), ColumnData::Bools(values)) => for_each_counted_row(counts, rows, |row| {
                replace_if_better(&mut least[groups[row] as usize], values.get(row), |new, old| new.cmp(old) == wanted);
            }),
            (Self::Ints(least), ColumnData::Ints { values, .. }) => for_each_counted_row(counts, rows, |row| {
                replace_if_better(&mut least[groups[row] as usize], values[row], |new, old| new.cmp(old) == wanted);
            }),
            (Self::Wide(least), ColumnData::Ints { values, .. }) => for_each_counted_row(counts, rows, |row| {
                replace_if_better(&mut least[groups[row] as usize], values[row].into(), |new, old| {
                    new.cmp(old) == wanted
                });
            }),
            (Self::Wide(least), ColumnData::WideInts(values)) => for_each_counted_row(counts, rows, |row| {
                replace_if_better(&mut least[groups[row] as usize], values[row], |new, old| new.cmp(old) == wanted);
            }),
            (Self::Floats(least), ColumnData::Floats(values)) => for_each_counted_row(counts, rows, |row| {
                replace_if_better(&mut least[groups[row] as usize], values[row], |new, old| {
                    float_order(*new, *old) == wanted
                });
            }),
            (Self::Texts { values: least, bytes }, ColumnData::Dictionary { indices: codes, dictionary: strings }) => {
                for_each_counted_row(counts, rows, |row| {
                    replace_text_if_better(&mut least[groups[row] as usize], strings.get(codes[row]), wanted, bytes);
                })
            }
            (Self::Texts { values: least, bytes }, ColumnData::Texts(texts)) => {
                for_each_counted_row(counts, rows, |row| {
                    replace_text_if_better(&mut least[groups[row] as usize], texts.value(row), wanted, bytes);
                })
            }
            _ => return Err(Error::Internal("the input of MIN or MAX changed its physical type between batches")),
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, is_max: bool, groups: &[u32], other: &Self, some: &[u32]) -> Result<()> {
        let wanted = if is_max { Ordering::Greater } else { Ordering::Less };
        if let (Self::Ints(values), Self::Wide(_)) = (&*self, other) {
            *self = Self::Wide(values.iter().map(|value| value.map(i128::from)).collect());
        }
        match (self, other) {
            (Self::Bools(mine), Self::Bools(theirs)) => merge(mine, groups, theirs, some, |least, value| {
                replace_if_better(least, *value, |new, old| new.cmp(old) == wanted);
            }),
            (Self::Ints(mine), Self::Ints(theirs)) => merge(mine, groups, theirs, some, |least, value| {
                replace_if_better(least, *value, |new, old| new.cmp(old) == wanted);
            }),
            (Self::Wide(mine), Self::Ints(theirs)) => merge(mine, groups, theirs, some, |least, value| {
                replace_if_better(least, (*value).into(), |new, old| new.cmp(old) == wanted);
            }),
            (Self::Wide(mine), Self::Wide(theirs)) => merge(mine, groups, theirs, some, |least, value| {
                replace_if_better(least, *value, |new, old| new.cmp(old) == wanted);
            }),
            (Self::Floats(mine), Self::Floats(theirs)) => merge(mine, groups, theirs, some, |least, value| {
                replace_if_better(least, *value, |new, old| float_order(*new, *old) == wanted);
            }),
            (Self::Texts { values: mine, bytes }, Self::Texts { values: theirs, .. }) => {
                merge(mine, groups, theirs, some, |least, value| replace_text_if_better(least, value, wanted, bytes));
            }
            _ => return Err(Error::Internal("merged states of MIN or MAX have different physical types")),
        }
        Ok(())
    }

    /// Removes the values of some groups and returns them in the order of `groups`. Strings are moved, other values
    /// copied.
    pub(super) fn take(&mut self, groups: &[u32]) -> Self {
        match self {
            Self::Bools(values) => Self::Bools(gather(values, groups)),
            Self::Ints(values) => Self::Ints(gather(values, groups)),
            Self::Wide(values) => Self::Wide(gather(values, groups)),
            Self::Floats(values) => Self::Floats(gather(values, groups)),
            Self::Texts { values, .. } => {
                let values: Vec<Option<Box<str>>> = groups.iter().map(|group| values[*group as usize].take()).collect();
                let bytes = values.iter().flatten().map(|text| text.len()).sum();
                Self::Texts { values, bytes }
            }
        }
    }

    /// Copies the values of a range of groups.
    pub(super) fn slice(&self, groups: Range<usize>) -> Self {
        match self {
            Self::Bools(values) => Self::Bools(values[groups].to_vec()),
            Self::Ints(values) => Self::Ints(values[groups].to_vec()),
            Self::Wide(values) => Self::Wide(values[groups].to_vec()),
            Self::Floats(values) => Self::Floats(values[groups].to_vec()),
            Self::Texts { values, .. } => {
                let values = values[groups].to_vec();
                let bytes = values.iter().flatten().map(|text| text.len()).sum();
                Self::Texts { values, bytes }
            }
        }
    }

    pub(super) fn into_column(self) -> Column {
        match self {
            Self::Bools(least) => {
                let values = Bitmap::from_fn(least.len(), |row| least[row].unwrap_or_default());
                Column { data: ColumnData::Bools(Arc::new(values)), validity: validity(&least) }
            }
            Self::Ints(least) => {
                let validity = validity(&least);
                Column { validity, ..int_column(least.into_iter().map(Option::unwrap_or_default).collect()) }
            }
            Self::Wide(least) => {
                let validity = validity(&least);
                Column { data: narrowest_data(least.into_iter().map(Option::unwrap_or_default).collect()), validity }
            }
            Self::Floats(least) => {
                let validity = validity(&least);
                let values = least.into_iter().map(Option::unwrap_or_default).collect();
                Column { data: ColumnData::Floats(Arc::new(values)), validity }
            }
            Self::Texts { values: least, .. } => {
                let validity = validity(&least);
                let mut builder = StringViewBuilder::with_capacity(least.len());
                least.iter().for_each(|value| builder.append_value(value.as_deref().unwrap_or_default()));
                let texts: StringViewArray = builder.finish();
                Column { data: ColumnData::Texts(texts), validity }
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Bools(values) => values.capacity(),
            Self::Ints(values) => values.capacity() * 16,
            Self::Wide(values) => values.capacity() * 32,
            Self::Floats(values) => values.capacity() * 16,
            Self::Texts { values, bytes } => values.capacity() * 16 + bytes,
        }
    }
}

fn validity<T>(values: &[Option<T>]) -> Option<Arc<Bitmap>> {
    let has_none = values.iter().any(Option::is_none);
    has_none.then(|| Arc::new(Bitmap::from_fn(values.len(), |row| values[row].is_some())))
}

/// Calls `replace` for the values of the groups `some` of `theirs`, each with the value of the group at the same index
/// of `groups`.
fn merge<T, U>(
    mine: &mut [Option<T>],
    groups: &[u32],
    theirs: &[Option<U>],
    some: &[u32],
    mut replace: impl FnMut(&mut Option<T>, &U),
) {
    for (group, from) in groups.iter().zip(some) {
        if let Some(value) = &theirs[*from as usize] {
            replace(&mut mine[*group as usize], value);
        }
    }
}

fn replace_if_better<T>(least: &mut Option<T>, value: T, is_wanted: impl Fn(&T, &T) -> bool) {
    if least.as_ref().is_none_or(|old| is_wanted(&value, old)) {
        *least = Some(value);
    }
}

/// Replaces a string if the new value sorts before it (MIN) or after it (MAX); `bytes` is the total length of all
/// strings.
fn replace_text_if_better(least: &mut Option<Box<str>>, value: &str, wanted: Ordering, bytes: &mut usize) {
    if least.as_ref().is_none_or(|old| value.cmp(old) == wanted) {
        *bytes = *bytes + value.len() - least.as_ref().map_or(0, |old| old.len());
        *least = Some(value.into());
    }
}

//! Physical types: the representation of a column's values in memory.

use std::sync::Arc;

use arrow::array::StringViewArray;

use super::{Bits, Bounds, Column, Data, opaque};

/// Physical type of a column, for columns that have no batch yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Boolean values.
    Bools,
    /// Numbers stored in 64 bits; batches with large values may use 128 bits.
    Ints,
    /// Numbers stored in 128 bits; batches whose values fit may use 64 bits.
    Wide,
    /// Floating-point values.
    Floats,
    /// Strings, plain or dictionary-encoded.
    Texts,
    /// Values of any other type, which are passed through but neither compared nor computed with.
    Opaque,
}

impl Form {
    /// Returns the physical type of a column.
    #[must_use]
    pub fn of(column: &Column) -> Self {
        match &column.data {
            Data::Bools(_) => Self::Bools,
            Data::Ints { .. } => Self::Ints,
            Data::Wide(_) => Self::Wide,
            Data::Floats(_) => Self::Floats,
            Data::Codes { .. } | Data::Texts(_) => Self::Texts,
            Data::Opaque(_) => Self::Opaque,
        }
    }

    /// Returns a column of NULLs.
    #[must_use]
    pub fn nulls(self, rows: usize) -> Column {
        let data = match self {
            Self::Bools => Data::Bools(Arc::new(Bits::all(rows, false))),
            Self::Ints => Data::Ints { values: Arc::new(vec![0; rows]), bounds: Bounds::of(0) },
            Self::Wide => Data::Wide(Arc::new(vec![0; rows])),
            Self::Floats => Data::Floats(Arc::new(vec![0.0; rows])),
            Self::Texts => Data::Texts(StringViewArray::from_iter_values(std::iter::repeat_n("", rows))),
            Self::Opaque => Data::Opaque(opaque::none(rows)),
        };
        Column { data, validity: Some(Arc::new(Bits::all(rows, false))) }
    }

    /// Returns whether values of both types are comparable and may share a column.
    pub(crate) fn is_like(self, other: Self) -> bool {
        let family = |form| if form == Self::Wide { Self::Ints } else { form };
        family(self) == family(other)
    }
}

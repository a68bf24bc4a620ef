//! Physical types: the representation of a column's values in memory.

use std::sync::Arc;

use arrow::array::StringViewArray;

use super::{Bitmap, Bounds, Column, ColumnData, opaque_arrays};

/// Physical type of a column, for columns that have no batch yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhysicalType {
    /// Boolean values.
    Bools,
    /// Numbers stored in 64 bits; batches with large values may use 128 bits.
    Ints,
    /// Numbers stored in 128 bits; batches whose values fit may use 64 bits.
    WideInts,
    /// Floating-point values.
    Floats,
    /// Strings, plain or dictionary-encoded.
    Texts,
    /// Values of any other type, which are passed through but neither compared nor computed with.
    Opaque,
}

impl PhysicalType {
    /// Returns the physical type of a column.
    #[must_use]
    pub fn from_column(column: &Column) -> Self {
        match &column.data {
            ColumnData::Bools(_) => Self::Bools,
            ColumnData::Ints { .. } => Self::Ints,
            ColumnData::WideInts(_) => Self::WideInts,
            ColumnData::Floats(_) => Self::Floats,
            ColumnData::Dictionary { .. } | ColumnData::Texts(_) => Self::Texts,
            ColumnData::Opaque(_) => Self::Opaque,
        }
    }

    /// Returns a column of NULLs.
    #[must_use]
    pub fn null_column(self, rows: usize) -> Column {
        let data = match self {
            Self::Bools => ColumnData::Bools(Arc::new(Bitmap::filled(rows, false))),
            Self::Ints => ColumnData::Ints { values: Arc::new(vec![0; rows]), bounds: Bounds::from_value(0) },
            Self::WideInts => ColumnData::WideInts(Arc::new(vec![0; rows])),
            Self::Floats => ColumnData::Floats(Arc::new(vec![0.0; rows])),
            Self::Texts => ColumnData::Texts(StringViewArray::from_iter_values(std::iter::repeat_n("", rows))),
            Self::Opaque => ColumnData::Opaque(opaque_arrays::untyped_nulls(rows)),
        };
        Column { data, validity: Some(Arc::new(Bitmap::filled(rows, false))) }
    }

    /// Returns whether values of both types are comparable and may share a column.
    pub(crate) fn is_compatible_with(self, other: Self) -> bool {
        let family = |form| if form == Self::WideInts { Self::Ints } else { form };
        family(self) == family(other)
    }
}

//! How values are held, of columns whose batches are still to come.

use std::sync::Arc;

use arrow::array::StringViewArray;

use super::{Bits, Bounds, Column, Data, opaque};

/// How values of a column are held where no batch tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Truth values.
    Bools,
    /// Numbers, also of columns that are sometimes wide.
    Ints,
    /// Numbers, also of columns that are sometimes narrow.
    Wide,
    /// `float8`.
    Floats,
    /// Strings, also those with codes.
    Texts,
    /// Values of any other type, which are neither compared nor computed with.
    Opaque,
}

impl Form {
    /// The form of a column.
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

    /// A column of NULLs.
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

    /// Whether values of both can be compared and be in one column.
    pub(crate) fn is_like(self, other: Self) -> bool {
        let family = |form| if form == Self::Wide { Self::Ints } else { form };
        family(self) == family(other)
    }
}

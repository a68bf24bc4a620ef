//! Decides which columns are decoded directly into blocks.

use arrow::datatypes::DataType;
use blocks::Kind;
use parquet::basic::{Encoding, Type};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::cache::block::NARROW_DIGITS_MAX;

/// Physical form of a column's values: their encoding in pages and the block they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Booleans.
    Truth,
    /// Integers, and the kind of their blocks.
    Numbers(Kind, Width),
    /// 32-bit floats.
    Single,
    /// 64-bit floats.
    Double,
    Text,
}

/// Width of a plain number in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Four,
    FourUnsigned,
    Eight,
}

impl Form {
    /// Returns the form of a column chunk that Arrow reads as `data_type`; `None` if it must be decoded through Arrow.
    pub(super) fn of(chunk: &ColumnChunkMetaData, data_type: &DataType) -> Option<Self> {
        let column = chunk.column_descr();
        if column.max_rep_level() != 0 || 1 < column.max_def_level() {
            return None;
        }
        let form = match (data_type, chunk.column_type()) {
            (DataType::Boolean, Type::BOOLEAN) => Self::Truth,
            (DataType::Int16 | DataType::Int32 | DataType::Date32, Type::INT32) => {
                Self::Numbers(Kind::Int32, Width::Four)
            }
            (DataType::UInt32, Type::INT32) => Self::Numbers(Kind::Int64, Width::FourUnsigned),
            (DataType::Decimal128(digits, _), Type::INT32) if *digits <= NARROW_DIGITS_MAX => {
                Self::Numbers(Kind::Int64, Width::Four)
            }
            (DataType::Decimal128(digits, _), Type::INT64) if *digits <= NARROW_DIGITS_MAX => {
                Self::Numbers(Kind::Int64, Width::Eight)
            }
            (DataType::Int64 | DataType::Time64(_) | DataType::Timestamp(..), Type::INT64) => {
                Self::Numbers(Kind::Int64, Width::Eight)
            }
            (DataType::Float32, Type::FLOAT) => Self::Single,
            (DataType::Float64, Type::DOUBLE) => Self::Double,
            (DataType::Utf8View, Type::BYTE_ARRAY) => Self::Text,
            _ => return None,
        };
        chunk.encodings().all(|encoding| form.knows(encoding)).then_some(form)
    }

    /// Returns true if pages of this form can be decoded from an encoding.
    fn knows(self, encoding: Encoding) -> bool {
        match encoding {
            Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY => true,
            Encoding::DELTA_BINARY_PACKED => matches!(self, Self::Numbers(..)),
            _ => false,
        }
    }

    /// Returns the width of plain numbers; `None` if values are not plain numbers.
    pub(super) fn width(self) -> Option<Width> {
        match self {
            Self::Numbers(_, width) => Some(width),
            Self::Single => Some(Width::FourUnsigned),
            Self::Double => Some(Width::Eight),
            Self::Truth | Self::Text => None,
        }
    }
}

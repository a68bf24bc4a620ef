//! Which columns are decoded straight into blocks.

use arrow::datatypes::DataType;
use blocks::Kind;
use parquet::basic::{Encoding, Type};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::cache::block::NARROW_DIGITS_MAX;

/// What the values of a column are in its pages, and become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Truth,
    /// Whole numbers of blocks of this kind.
    Numbers(Kind, Width),
    Single,
    Double,
    Text,
}

/// How many bytes of a page a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Four,
    FourUnsigned,
    Eight,
}

impl Form {
    /// Of a chunk whose values are of this type for Arrow; `None` where they have to go through it.
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

    fn knows(self, encoding: Encoding) -> bool {
        match encoding {
            Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY => true,
            Encoding::DELTA_BINARY_PACKED => matches!(self, Self::Numbers(..)),
            _ => false,
        }
    }

    /// How many bytes a number is that is one value after the other.
    pub(super) fn width(self) -> Option<Width> {
        match self {
            Self::Numbers(_, width) => Some(width),
            Self::Single => Some(Width::FourUnsigned),
            Self::Double => Some(Width::Eight),
            Self::Truth | Self::Text => None,
        }
    }
}

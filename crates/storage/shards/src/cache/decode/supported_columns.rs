//! Decides which columns are decoded directly into blocks.

use arrow::datatypes::DataType;
use blocks::ValueKind;
use parquet::basic::{Encoding, Type};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::cache::block::I64_DECIMAL_DIGITS_MAX;

/// Physical form of a column's values: their encoding in pages and the block they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageForm {
    /// Booleans.
    Boolean,
    /// Integers, and the kind of their blocks.
    Numbers(ValueKind, PlainWidth),
    /// 32-bit floats.
    Float32,
    /// 64-bit floats.
    Float64,
    Text,
}

/// Width of a plain number in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainWidth {
    FourBytes,
    FourBytesUnsigned,
    EightBytes,
}

impl PageForm {
    /// Returns the form of a column chunk that Arrow reads as `data_type`; `None` if it must be decoded through Arrow.
    pub(super) fn from_chunk(chunk: &ColumnChunkMetaData, data_type: &DataType) -> Option<Self> {
        let column = chunk.column_descr();
        if column.max_rep_level() != 0 || 1 < column.max_def_level() {
            return None;
        }
        let form = match (data_type, chunk.column_type()) {
            (DataType::Boolean, Type::BOOLEAN) => Self::Boolean,
            (DataType::Int16 | DataType::Int32 | DataType::Date32, Type::INT32) => {
                Self::Numbers(ValueKind::Int32, PlainWidth::FourBytes)
            }
            (DataType::UInt32, Type::INT32) => Self::Numbers(ValueKind::Int64, PlainWidth::FourBytesUnsigned),
            (DataType::Decimal128(digits, _), Type::INT32) if *digits <= I64_DECIMAL_DIGITS_MAX => {
                Self::Numbers(ValueKind::Int64, PlainWidth::FourBytes)
            }
            (DataType::Decimal128(digits, _), Type::INT64) if *digits <= I64_DECIMAL_DIGITS_MAX => {
                Self::Numbers(ValueKind::Int64, PlainWidth::EightBytes)
            }
            (DataType::Int64 | DataType::Time64(_) | DataType::Timestamp(..), Type::INT64) => {
                Self::Numbers(ValueKind::Int64, PlainWidth::EightBytes)
            }
            (DataType::Float32, Type::FLOAT) => Self::Float32,
            (DataType::Float64, Type::DOUBLE) => Self::Float64,
            (DataType::Utf8View, Type::BYTE_ARRAY) => Self::Text,
            _ => return None,
        };
        chunk.encodings().all(|encoding| form.supports(encoding)).then_some(form)
    }

    /// Returns true if pages of this form can be decoded from an encoding.
    fn supports(self, encoding: Encoding) -> bool {
        match encoding {
            Encoding::PLAIN | Encoding::RLE | Encoding::RLE_DICTIONARY => true,
            Encoding::DELTA_BINARY_PACKED => matches!(self, Self::Numbers(..)),
            _ => false,
        }
    }

    /// Returns the width of plain numbers; `None` if values are not plain numbers.
    pub(super) fn width(self) -> Option<PlainWidth> {
        match self {
            Self::Numbers(_, width) => Some(width),
            Self::Float32 => Some(PlainWidth::FourBytesUnsigned),
            Self::Float64 => Some(PlainWidth::EightBytes),
            Self::Boolean | Self::Text => None,
        }
    }
}

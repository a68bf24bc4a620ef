//! Arrow columns as PostgreSQL value bytes, text and binary: for rows on the wire and for COPY TO.
//!
//! A column is prepared once per batch (one downcast, one zone), then each value costs one match and no allocation.

mod array;
mod binary;
mod numeric;
mod prepare;
mod stored;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::BytesMut;
use types::{ObjectNames, SessionZone, SqlResult, SqlType};

pub use binary::BinaryEncoder;
pub(crate) use binary::{JSONB_VERSION, POSTGRES_EPOCH_DAYS, POSTGRES_EPOCH_US};
pub use stored::StoredEncoder;
pub use text::TextEncoder;

/// The two forms of a value in PostgreSQL's protocol and in COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// What people type and read.
    #[default]
    Text,
    /// What `typsend` and `typreceive` exchange: big-endian, fixed width where the type is.
    Binary,
}

/// What the text of a value depends on besides the value.
#[derive(Debug, Clone)]
pub struct TextStyle {
    /// Shows `timestamptz`.
    pub zone: SessionZone,
    /// Shows `regclass` and its like.
    pub names: Arc<dyn ObjectNames>,
}

/// One column of a batch, ready to be written row by row in either format.
#[derive(Debug)]
pub enum ColumnEncoder {
    /// Values as text.
    Text(TextEncoder),
    /// Values as `typsend` would send them.
    Binary(BinaryEncoder),
}

impl ColumnEncoder {
    /// Prepares `column`, whose values are of `sql_type`, for text in `style`.
    ///
    /// # Errors
    /// When the column's Arrow type cannot be shown as `sql_type`, or a value does not fit it.
    pub fn new(format: Format, column: &ArrayRef, sql_type: &SqlType, style: &TextStyle) -> SqlResult<Self> {
        Ok(match format {
            Format::Text => Self::Text(TextEncoder::new(column, sql_type, style)?),
            Format::Binary => Self::Binary(BinaryEncoder::new(column, sql_type)?),
        })
    }

    /// Appends the value of `row` as DataRow and binary COPY carry it: four bytes of length (-1 for NULL), then the bytes.
    pub fn write_field(&mut self, row: usize, out: &mut BytesMut) {
        match self {
            Self::Text(encoder) => encoder.write_field(row, out),
            Self::Binary(encoder) => encoder.write_field(row, out),
        }
    }
}

/// Length field of a NULL.
const NULL_LENGTH: i32 = -1;

/// A value's length as the protocol counts it; a value is part of a message and messages stay below 2 GB.
fn wire_length(length: usize) -> i32 {
    i32::try_from(length).expect("a value is shorter than 2 GB, as Arrow's offsets are")
}

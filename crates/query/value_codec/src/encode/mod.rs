//! Encodes Arrow columns as PostgreSQL values, text and binary, for rows on the wire and for COPY TO.
//!
//! A column is prepared once per batch (one downcast, one zone), then each value costs one match and no allocation.
//!
//! - `prepare_column.rs`: casts and downcasts a column to the Arrow form of its SQL type.
//! - `text.rs`: [`TextEncoder`]; `binary.rs`: [`BinaryEncoder`]; `array.rs` and `numeric.rs`: values of these types.
//! - `stored_row.rs`: [`StoredEncoder`], which encodes rows of the row store directly.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new type must not compile until text and binary say what they do with it"
)]

mod array;
mod binary;
mod numeric;
mod prepare_column;
mod stored_row;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::BytesMut;
use types::{ObjectNames, SessionZone, SqlResult, SqlType};

pub use binary::BinaryEncoder;
pub(crate) use binary::{JSONB_VERSION, POSTGRES_EPOCH_DAYS, POSTGRES_EPOCH_US};
pub use stored_row::StoredEncoder;
pub use text::TextEncoder;

/// The two forms of a value in PostgreSQL's protocol and in COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text, as input and output functions read and write it.
    #[default]
    Text,
    /// Binary, as `typsend` and `typreceive` exchange it: big-endian, of fixed width for fixed-width types.
    Binary,
}

/// Session state that the text of a value depends on.
#[derive(Debug, Clone)]
pub struct TextStyle {
    /// Time zone in which `timestamptz` is printed.
    pub zone: SessionZone,
    /// Names of objects, with which `regclass` and the like are printed.
    pub names: Arc<dyn ObjectNames>,
}

/// Encoder of one column of a batch, in either format.
#[derive(Debug)]
pub enum ColumnEncoder {
    /// Encoder of text.
    Text(TextEncoder),
    /// Encoder of the binary format of `typsend`.
    Binary(BinaryEncoder),
}

impl ColumnEncoder {
    /// Prepares `column`, whose values are of `sql_type`; `style` applies to text.
    ///
    /// # Errors
    /// `XX000` if the column's Arrow type cannot be cast to that of `sql_type`, or a value does not fit it.
    pub fn new(format: Format, column: &ArrayRef, sql_type: &SqlType, style: &TextStyle) -> SqlResult<Self> {
        Ok(match format {
            Format::Text => Self::Text(TextEncoder::new(column, sql_type, style)?),
            Format::Binary => Self::Binary(BinaryEncoder::new(column, sql_type)?),
        })
    }

    /// Appends the value of `row` as in DataRow and binary COPY: four bytes of length (-1 for NULL), then the value.
    pub fn write_field(&mut self, row: usize, out: &mut BytesMut) {
        match self {
            Self::Text(encoder) => encoder.write_field(row, out),
            Self::Binary(encoder) => encoder.write_field(row, out),
        }
    }
}

/// Length field of a NULL.
const NULL_LENGTH: i32 = -1;

/// Converts a length to the protocol's 32 bits; values are parts of messages, which stay below 2 GB.
fn wire_length(length: usize) -> i32 {
    i32::try_from(length).expect("a value is shorter than 2 GB, as Arrow's offsets are")
}

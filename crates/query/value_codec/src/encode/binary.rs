//! Encodes values in binary, as PostgreSQL's `typsend` functions do.

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use bytes::{BufMut, BytesMut};
use types::{SqlResult, SqlType};

use super::numeric::write_numeric;
use super::prepare_column::{TypedColumn, prepare};
use super::{NULL_LENGTH, array, wire_length};

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
pub(crate) const POSTGRES_EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub(crate) const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;
/// Version byte of `jsonb`'s binary form, which precedes the text.
pub(crate) const JSONB_VERSION: u8 = 1;

/// Encoder of one column of a batch in binary.
#[derive(Debug)]
pub struct BinaryEncoder {
    values: TypedColumn,
    nulls: Option<NullBuffer>,
    /// Encoder of a list's elements, and their type's OID.
    items: Option<(Box<BinaryEncoder>, u32)>,
}

impl BinaryEncoder {
    /// Prepares `column`, whose values are of `sql_type`.
    ///
    /// # Errors
    /// `XX000` if the column's Arrow type cannot be cast to that of `sql_type`, or a value does not fit it.
    pub fn new(column: &ArrayRef, sql_type: &SqlType) -> SqlResult<Self> {
        let (values, nulls) = prepare(column, sql_type)?;
        let items = if let TypedColumn::List { items, element, .. } = &values {
            Some((Box::new(Self::new(items, element)?), element.oid()))
        } else {
            None
        };
        Ok(Self { values, nulls, items })
    }

    /// Returns whether `row` is NULL.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value of `row`, preceded by its length, or -1 for NULL.
    pub fn write_field(&mut self, row: usize, out: &mut BytesMut) {
        if self.is_null(row) {
            out.put_i32(NULL_LENGTH);
            return;
        }
        match &self.values {
            TypedColumn::Null => out.put_i32(NULL_LENGTH),
            TypedColumn::Bool(values) => {
                out.put_i32(1);
                out.put_u8(u8::from(values.value(row)));
            }
            TypedColumn::Int2(values) => {
                out.put_i32(2);
                out.put_i16(values.value(row));
            }
            TypedColumn::Int4(values) => {
                out.put_i32(4);
                out.put_i32(values.value(row));
            }
            TypedColumn::Int8(values) => {
                out.put_i32(8);
                out.put_i64(values.value(row));
            }
            TypedColumn::Oid(values) | TypedColumn::Object(values, _) => {
                out.put_i32(4);
                out.put_u32(values.value(row));
            }
            TypedColumn::Numeric(values, scale) => {
                write_with_length(out, |out| write_numeric(values.value(row), *scale, out));
            }
            TypedColumn::Float4(values) => {
                out.put_i32(4);
                out.put_f32(values.value(row));
            }
            TypedColumn::Float8(values) => {
                out.put_i32(8);
                out.put_f64(values.value(row));
            }
            TypedColumn::Text(values) => write_bytes(values.value(row).as_bytes(), out),
            TypedColumn::Jsonb(values) => {
                let text = values.value(row).as_bytes();
                out.put_i32(wire_length(text.len() + 1));
                out.put_u8(JSONB_VERSION);
                out.put_slice(text);
            }
            TypedColumn::Date(values) => {
                out.put_i32(4);
                out.put_i32(values.value(row).saturating_sub(POSTGRES_EPOCH_DAYS));
            }
            TypedColumn::Time(values) => {
                out.put_i32(8);
                out.put_i64(values.value(row));
            }
            TypedColumn::Timestamp(values) | TypedColumn::TimestampTz(values) => {
                out.put_i32(8);
                out.put_i64(values.value(row).saturating_sub(POSTGRES_EPOCH_US));
            }
            TypedColumn::Interval(values) => {
                let value = values.value(row);
                out.put_i32(16);
                out.put_i64(value.nanoseconds / 1_000);
                out.put_i32(value.days);
                out.put_i32(value.months);
            }
            TypedColumn::Bytea(values) => write_bytes(values.value(row), out),
            TypedColumn::Uuid(values) => write_bytes(values.value(row), out),
            TypedColumn::List { offsets, form, .. } => {
                let (items, oid) = self.items.as_mut().expect("BinaryEncoder::new prepares the elements of lists");
                let range = array::list_range(offsets, row);
                write_with_length(out, |out| array::write_binary(items, *oid, *form, range, out));
            }
        }
    }
}

fn write_bytes(bytes: &[u8], out: &mut BytesMut) {
    out.put_i32(wire_length(bytes.len()));
    out.put_slice(bytes);
}

/// Appends the output of `write`, preceded by its length.
pub(super) fn write_with_length(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_i32(0);
    write(out);
    let length = wire_length(out.len() - start - 4);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

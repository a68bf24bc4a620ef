//! Encodes values in text, as PostgreSQL's output functions do.

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use bytes::{BufMut, BytesMut};
use types::{Interval, SqlResult, SqlType, text};

use super::prepare_column::{TypedColumn, prepare};
use super::{NULL_LENGTH, TextStyle, array, wire_length};

/// Encoder of one column of a batch in text.
#[derive(Debug)]
pub struct TextEncoder {
    values: TypedColumn,
    nulls: Option<NullBuffer>,
    style: TextStyle,
    /// Encoder of a list's elements.
    items: Option<Box<TextEncoder>>,
    /// Buffer with the last formatted value.
    scratch: String,
}

impl TextEncoder {
    /// Prepares `column`, whose values are of `sql_type`, for text in `style`.
    ///
    /// # Errors
    /// `XX000` if the column's Arrow type cannot be cast to that of `sql_type`, or a value does not fit it.
    pub fn new(column: &ArrayRef, sql_type: &SqlType, style: &TextStyle) -> SqlResult<Self> {
        let (values, nulls) = prepare(column, sql_type)?;
        let items = if let TypedColumn::List { items, element, .. } = &values {
            Some(Box::new(Self::new(items, element, style)?))
        } else {
            None
        };
        Ok(Self { values, nulls, style: style.clone(), items, scratch: String::new() })
    }

    /// Returns the text of `row`, `None` for NULL; valid until the next call.
    pub fn text(&mut self, row: usize) -> Option<&str> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let out = &mut self.scratch;
        out.clear();
        match &self.values {
            TypedColumn::Null => return None,
            TypedColumn::Text(values) | TypedColumn::Jsonb(values) => return Some(values.value(row)),
            TypedColumn::Bool(values) => text::format_bool(values.value(row), out),
            TypedColumn::Int2(values) => text::format_int(i64::from(values.value(row)), out),
            TypedColumn::Int4(values) => text::format_int(i64::from(values.value(row)), out),
            TypedColumn::Int8(values) => text::format_int(values.value(row), out),
            TypedColumn::Oid(values) => text::format_int(i64::from(values.value(row)), out),
            TypedColumn::Object(values, sql_type) => {
                out.push_str(&self.style.names.format(sql_type, values.value(row)))
            }
            TypedColumn::Numeric(values, scale) => text::format_numeric(values.value(row), *scale, out),
            TypedColumn::Float4(values) => text::format_float4(values.value(row), out),
            TypedColumn::Float8(values) => text::format_float8(values.value(row), out),
            TypedColumn::Date(values) => text::format_date(values.value(row), out),
            TypedColumn::Time(values) => text::format_time(values.value(row), out),
            TypedColumn::Timestamp(values) => text::format_timestamp(values.value(row), out),
            TypedColumn::TimestampTz(values) => text::format_timestamptz(values.value(row), &self.style.zone, out),
            TypedColumn::Interval(values) => {
                let value = values.value(row);
                let interval =
                    Interval { months: value.months, days: value.days, microseconds: value.nanoseconds / 1_000 };
                text::format_interval(&interval, out);
            }
            TypedColumn::Bytea(values) => text::format_bytea(values.value(row), out),
            TypedColumn::Uuid(values) => {
                let bytes = values.value(row).try_into().expect("a uuid column has 16 bytes per value");
                text::format_uuid(bytes, out);
            }
            TypedColumn::List { offsets, form, .. } => {
                let items = self.items.as_mut().expect("TextEncoder::new prepares the elements of lists");
                array::write_text(items, *form, array::list_range(offsets, row), out);
            }
        }
        Some(&self.scratch)
    }

    /// Appends the value of `row`, preceded by its length, or -1 for NULL.
    pub fn write_field(&mut self, row: usize, out: &mut BytesMut) {
        match self.text(row) {
            None => out.put_i32(NULL_LENGTH),
            Some(text) => {
                out.put_i32(wire_length(text.len()));
                out.put_slice(text.as_bytes());
            }
        }
    }
}

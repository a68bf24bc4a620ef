//! Encodes rows of the row store directly as PostgreSQL values, without Arrow columns, for the primary-key fast path.

use bytes::{BufMut, BytesMut};
use rowstore::{StoredColumn, Tuple, Value};
use types::{Interval, SessionZone, SqlType, text};

use super::binary::{JSONB_VERSION, POSTGRES_EPOCH_DAYS, POSTGRES_EPOCH_US, write_with_length};
use super::numeric::write_numeric;
use super::{Format, NULL_LENGTH, wire_length};

/// Encoder of columns of stored rows.
#[derive(Debug)]
pub struct StoredEncoder {
    fields: Vec<StoredField>,
    zone: SessionZone,
    /// Buffer for the value that is being formatted.
    scratch: String,
}

/// Column of the output.
#[derive(Debug)]
struct StoredField {
    column: StoredColumn,
    /// Position of the column in the last row, where it is tried first in the next.
    position: usize,
    form: StoredForm,
    scale: u8,
    format: Format,
}

impl StoredEncoder {
    /// Creates an encoder for `columns`, each with the type and format in which it is sent; `None` if one has a type
    /// that this encoder does not support.
    #[must_use]
    pub fn new<'a>(
        columns: &[StoredColumn],
        sent: impl IntoIterator<Item = (&'a SqlType, Format)>,
        zone: SessionZone,
    ) -> Option<Self> {
        let field = |(column, (sql_type, format)): (&StoredColumn, (&SqlType, Format))| {
            let scale = if let SqlType::Numeric { scale, .. } = column.sql_type { scale } else { 0 };
            let form = StoredForm::from_sql_type(sql_type)?;
            Some(StoredField { column: column.clone(), position: 0, form, scale, format })
        };
        let fields = columns.iter().zip(sent).map(field).collect::<Option<Vec<_>>>()?;
        Some(Self { fields, zone, scratch: String::new() })
    }

    /// Appends the row's values, each preceded by its length, or -1 for NULL.
    pub fn write_row(&mut self, row: &Tuple, out: &mut BytesMut) {
        let row = row.reader();
        for field in &mut self.fields {
            let value = match row.find(field.column.id, field.position) {
                Some(position) => {
                    field.position = position;
                    row.value(position)
                }
                None => field.missing(),
            };
            match field.format {
                _ if value.is_null() => out.put_i32(NULL_LENGTH),
                Format::Binary => field.write_binary(value, out),
                Format::Text => field.write_text(value, &self.zone, &mut self.scratch, out),
            }
        }
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.fields.len()
    }
}

/// Form in which values of a type are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredForm {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Numeric,
    Float4,
    Float8,
    Text,
    Jsonb,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Bytea,
    Uuid,
}

impl StoredForm {
    /// Returns the form of a type; `None` for lists and types whose values are printed by name, which need arrays.
    fn from_sql_type(sql_type: &SqlType) -> Option<Self> {
        Some(match sql_type {
            SqlType::Bool => Self::Bool,
            SqlType::Int2 => Self::Int2,
            SqlType::Int4 => Self::Int4,
            SqlType::Int8 => Self::Int8,
            SqlType::Oid => Self::Oid,
            SqlType::Numeric { .. } => Self::Numeric,
            SqlType::Float4 => Self::Float4,
            SqlType::Float8 => Self::Float8,
            SqlType::Text
            | SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Json
            | SqlType::Name
            | SqlType::InternalChar
            | SqlType::Unknown => Self::Text,
            SqlType::Jsonb => Self::Jsonb,
            SqlType::Date => Self::Date,
            SqlType::Time => Self::Time,
            SqlType::Timestamp => Self::Timestamp,
            SqlType::TimestampTz => Self::TimestampTz,
            SqlType::Interval => Self::Interval,
            SqlType::Bytea => Self::Bytea,
            SqlType::Uuid => Self::Uuid,
            SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator
            | SqlType::Array(_)
            | SqlType::Int2Vector
            | SqlType::OidVector => return None,
        })
    }
}

/// Pattern of the forms whose values are not stored as integers.
macro_rules! not_an_integer {
    () => {
        StoredForm::Bool
            | StoredForm::Numeric
            | StoredForm::Float4
            | StoredForm::Float8
            | StoredForm::Text
            | StoredForm::Jsonb
            | StoredForm::Interval
            | StoredForm::Bytea
            | StoredForm::Uuid
    };
}

impl StoredField {
    /// Returns the value of the column in rows that were written before it was added.
    fn missing(&self) -> Value<'_> {
        let value = self.column.default_value.as_ref().map(|array| Value::from_array(array.as_ref(), 0));
        value.map_or(Value::Null, |value| value.expect("the default of an added column has a stored form"))
    }

    fn write_binary(&self, value: Value<'_>, out: &mut BytesMut) {
        match value {
            Value::Null | Value::List(_) => out.put_i32(NULL_LENGTH),
            Value::Bool(value) => {
                out.put_i32(1);
                out.put_u8(u8::from(value));
            }
            Value::Int(value) => match self.form {
                StoredForm::Int2 => write_sized(out, &i16::try_from(value).unwrap_or_default().to_be_bytes()),
                StoredForm::Int4 => write_sized(out, &i32::try_from(value).unwrap_or_default().to_be_bytes()),
                StoredForm::Oid => write_sized(out, &u32::try_from(value).unwrap_or_default().to_be_bytes()),
                StoredForm::Date => {
                    let days = i32::try_from(value).unwrap_or_default().saturating_sub(POSTGRES_EPOCH_DAYS);
                    write_sized(out, &days.to_be_bytes());
                }
                StoredForm::Timestamp | StoredForm::TimestampTz => {
                    write_sized(out, &value.saturating_sub(POSTGRES_EPOCH_US).to_be_bytes());
                }
                StoredForm::Int8 | StoredForm::Time | not_an_integer!() => write_sized(out, &value.to_be_bytes()),
            },
            Value::Decimal(value) => write_with_length(out, |out| write_numeric(value, self.scale, out)),
            Value::Float4(value) => write_sized(out, &value.to_be_bytes()),
            Value::Float8(value) => write_sized(out, &value.to_be_bytes()),
            Value::Text(text) if self.form == StoredForm::Jsonb => {
                out.put_i32(wire_length(text.len() + 1));
                out.put_u8(JSONB_VERSION);
                out.put_slice(text.as_bytes());
            }
            Value::Text(text) => write_sized(out, text.as_bytes()),
            Value::Bytes(bytes) => write_sized(out, bytes),
            Value::Interval { months, days, nanos } => {
                out.put_i32(16);
                out.put_i64(nanos / 1_000);
                out.put_i32(days);
                out.put_i32(months);
            }
        }
    }

    fn write_text(&self, value: Value<'_>, zone: &SessionZone, scratch: &mut String, out: &mut BytesMut) {
        scratch.clear();
        match value {
            Value::Text(text) => return write_sized(out, text.as_bytes()),
            Value::Null | Value::List(_) => return out.put_i32(NULL_LENGTH),
            Value::Bool(value) => text::format_bool(value, scratch),
            Value::Int(value) => match self.form {
                StoredForm::Date => text::format_date(i32::try_from(value).unwrap_or_default(), scratch),
                StoredForm::Time => text::format_time(value, scratch),
                StoredForm::Timestamp => text::format_timestamp(value, scratch),
                StoredForm::TimestampTz => text::format_timestamptz(value, zone, scratch),
                StoredForm::Int2 | StoredForm::Int4 | StoredForm::Int8 | StoredForm::Oid | not_an_integer!() => {
                    text::format_int(value, scratch);
                }
            },
            Value::Decimal(value) => text::format_numeric(value, self.scale, scratch),
            Value::Float4(value) => text::format_float4(value, scratch),
            Value::Float8(value) => text::format_float8(value, scratch),
            Value::Bytes(bytes) if self.form == StoredForm::Uuid => {
                text::format_uuid(bytes.try_into().expect("a uuid is stored as 16 bytes"), scratch);
            }
            Value::Bytes(bytes) => text::format_bytea(bytes, scratch),
            Value::Interval { months, days, nanos } => {
                text::format_interval(&Interval { months, days, microseconds: nanos / 1_000 }, scratch);
            }
        }
        write_sized(out, scratch.as_bytes());
    }
}

/// Appends bytes, preceded by their length.
fn write_sized(out: &mut BytesMut, bytes: &[u8]) {
    out.put_i32(wire_length(bytes.len()));
    out.put_slice(bytes);
}

//! Appends values in PostgreSQL's text form to a column.

use arrow::datatypes::IntervalMonthDayNano;
use types::text;
use types::{Condition, Interval, SqlError, SqlResult, SqlType};

use super::column::{ColumnBuilder, Values, arrow_offset, fit_text};

impl ColumnBuilder {
    /// Parses `text` and appends the value.
    ///
    /// # Errors
    /// Errors of the type's input function, in PostgreSQL's words.
    pub fn push_text(&mut self, text: &str) -> SqlResult<()> {
        match &mut self.values {
            Values::Int16(values) => values.push(text::parse_int2(text)?),
            Values::Int32(values) if self.sql_type == SqlType::Date => {
                values.push(text::parse_date_in(text, &self.dates)?);
            }
            Values::Int32(values) => values.push(text::parse_int4(text)?),
            Values::Int64(values) => values.push(match &self.sql_type {
                SqlType::Time => text::parse_time(text)?,
                SqlType::Timestamp => text::parse_timestamp_in(text, &self.dates)?,
                SqlType::TimestampTz => text::parse_timestamptz_in(text, &self.dates)?,
                _ => text::parse_int8(text)?,
            }),
            Values::Decimal(values) => {
                let SqlType::Numeric { precision, scale } = self.sql_type else {
                    unreachable!("decimals are built for numeric alone");
                };
                values.push(text::parse_numeric(text, precision, scale)?);
            }
            Values::Text(values) => match &self.sql_type {
                SqlType::Text | SqlType::Varchar(None) | SqlType::Unknown => values.append_value(text),
                SqlType::Json => {
                    text::check_json(text)?;
                    values.append_value(text);
                }
                SqlType::Jsonb => values.append_value(text::normalize_jsonb(text)?),
                SqlType::Name => values.append_value(truncate_to_bytes(text, NAME_BYTES)),
                SqlType::InternalChar => values.append_value(truncate_to_bytes(text, 1)),
                _ => values.append_value(fit_text(text, &self.sql_type, &mut String::new())?),
            },
            Values::Bool(values) => values.append(text::parse_bool(text)?),
            Values::UInt32(values) => values.push(parse_oid(text, &self.sql_type)?),
            Values::Float32(values) => values.push(text::parse_float4(text)?),
            Values::Float64(values) => values.push(text::parse_float8(text)?),
            Values::Interval(values) => values.push(to_month_day_nano(text::parse_interval(text)?)?),
            Values::Bytes { offsets, data } => {
                data.extend_from_slice(&text::parse_bytea(text)?);
                offsets.push(arrow_offset(data.len()));
            }
            Values::Uuid(values) => values.extend_from_slice(&text::parse_uuid(text)?),
            Values::List { offsets, items } => {
                if matches!(self.sql_type, SqlType::Int2Vector | SqlType::OidVector) {
                    text.split_ascii_whitespace().try_for_each(|element| items.push_text(element))?;
                } else {
                    text::parse_array(text, &mut |element| {
                        match element {
                            Some(element) => items.push_text(element)?,
                            None => items.push_null(),
                        }
                        Ok(())
                    })?;
                }
                offsets.push(arrow_offset(items.len()));
            }
        }
        self.mark_valid();
        Ok(())
    }
}

/// Bytes of a `name` without its terminator.
const NAME_BYTES: usize = 63;

/// Returns at most `limit` bytes of a text, cut between characters.
fn truncate_to_bytes(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Parses the number of an object; a name of a `reg…` type is not supported, because lookup needs the catalog.
fn parse_oid(text: &str, sql_type: &SqlType) -> SqlResult<u32> {
    match sql_type {
        SqlType::Oid => text::parse_oid(text),
        _ if text == "-" => Ok(0),
        _ => text::parse_oid(text).map_err(|_| SqlError::unsupported(format!("a {sql_type} value given by name"))),
    }
}

/// Converts an interval to Arrow's form.
///
/// # Errors
/// 22008 if its time exceeds 64 bits of nanoseconds.
pub(super) fn to_month_day_nano(interval: Interval) -> SqlResult<IntervalMonthDayNano> {
    let nanoseconds = interval
        .microseconds
        .checked_mul(1_000)
        .ok_or_else(|| SqlError::new(Condition::DatetimeFieldOverflow, "interval out of range"))?;
    Ok(IntervalMonthDayNano { months: interval.months, days: interval.days, nanoseconds })
}

//! Appends values in PostgreSQL's text form to a column.

use arrow::datatypes::IntervalMonthDayNano;
use types::text;
use types::{Condition, Interval, SqlError, SqlResult, SqlType};

use super::column::{ColumnBuilder, TextRule, Values, arrow_offset, fit_text};

impl ColumnBuilder {
    /// Parses `text` and appends the value.
    ///
    /// # Errors
    /// Errors of the type's input function, in PostgreSQL's words.
    pub fn push_text(&mut self, text: &str) -> SqlResult<()> {
        match &mut self.values {
            Values::Int2(values) => values.push(text::parse_int2(text)?),
            Values::Int4(values) => values.push(text::parse_int4(text)?),
            Values::Int8(values) => values.push(text::parse_int8(text)?),
            Values::Date(values) => values.push(text::parse_date_in(text, &self.dates)?),
            Values::Time(values) => values.push(text::parse_time(text)?),
            Values::Timestamp(values) => values.push(text::parse_timestamp_in(text, &self.dates)?),
            Values::TimestampTz(values) => values.push(text::parse_timestamptz_in(text, &self.dates)?),
            Values::Numeric { values, precision, scale } => {
                values.push(text::parse_numeric(text, *precision, *scale)?);
            }
            Values::Text { values, rule } => match rule {
                TextRule::Any => values.append_value(text),
                TextRule::Limited(limit) => {
                    values.append_value(fit_text(text, *limit, &self.sql_type, &mut String::new())?);
                }
                TextRule::Json => {
                    text::check_json(text)?;
                    values.append_value(text);
                }
                TextRule::Jsonb => values.append_value(text::normalize_jsonb(text)?),
                TextRule::Name => values.append_value(truncate_to_bytes(text, NAME_BYTES)),
                TextRule::InternalChar => values.append_value(truncate_to_bytes(text, 1)),
            },
            Values::Bool(values) => values.append(text::parse_bool(text)?),
            Values::Oid(values) => values.push(text::parse_oid(text)?),
            Values::Object(values) => values.push(parse_object(text, &self.sql_type)?),
            Values::Float4(values) => values.push(text::parse_float4(text)?),
            Values::Float8(values) => values.push(text::parse_float8(text)?),
            Values::Interval(values) => values.push(to_month_day_nano(text::parse_interval(text)?)?),
            Values::Bytes { offsets, data } => {
                data.extend_from_slice(&text::parse_bytea(text)?);
                offsets.push(arrow_offset(data.len()));
            }
            Values::Uuid(values) => values.extend_from_slice(&text::parse_uuid(text)?),
            Values::Array { offsets, items } => {
                text::parse_array(text, &mut |element| {
                    match element {
                        Some(element) => items.push_text(element)?,
                        None => items.push_null(),
                    }
                    Ok(())
                })?;
                offsets.push(arrow_offset(items.len()));
            }
            Values::Vector { offsets, items } => {
                text.split_ascii_whitespace().try_for_each(|element| items.push_text(element))?;
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

/// Parses the number of an object of a `reg…` type; a name is not supported, because lookup needs the catalog.
fn parse_object(text: &str, sql_type: &SqlType) -> SqlResult<u32> {
    if text == "-" {
        return Ok(0);
    }
    text::parse_oid(text).map_err(|_| SqlError::unsupported(format!("a {sql_type} value given by name")))
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

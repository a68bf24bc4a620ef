//! Appends values in PostgreSQL's binary form to a column.

use types::text::{
    DATE_DAYS_MAX, DATE_DAYS_MIN, TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY, check_json, normalize_jsonb,
};
use types::{Condition, Interval, SqlError, SqlResult};

use super::column::{ColumnBuilder, TextRule, Values, arrow_offset, excess_bytes, fit_text, too_short};
use super::text::to_month_day_nano;
use super::{array, check_utf8, numeric};
use crate::encode::{JSONB_VERSION, POSTGRES_EPOCH_DAYS, POSTGRES_EPOCH_US};

impl ColumnBuilder {
    /// Decodes `bytes` as the type's `typreceive` function does, and appends the value.
    ///
    /// # Errors
    /// 22P03 for excess or malformed bytes, 08P01 for missing bytes, and the type's errors for values out of range.
    pub fn push_binary(&mut self, bytes: &[u8]) -> SqlResult<()> {
        match &mut self.values {
            Values::Bool(values) => values.append(exact_bytes::<1>(bytes)? != [0]),
            Values::Int2(values) => values.push(i16::from_be_bytes(exact_bytes(bytes)?)),
            Values::Int4(values) => values.push(i32::from_be_bytes(exact_bytes(bytes)?)),
            Values::Int8(values) => values.push(i64::from_be_bytes(exact_bytes(bytes)?)),
            Values::Date(values) => values.push(convert_date(i32::from_be_bytes(exact_bytes(bytes)?))?),
            Values::Time(values) => values.push(check_time(i64::from_be_bytes(exact_bytes(bytes)?))?),
            Values::Timestamp(values) | Values::TimestampTz(values) => {
                values.push(convert_timestamp(i64::from_be_bytes(exact_bytes(bytes)?))?);
            }
            Values::Oid(values) | Values::Object(values) => values.push(u32::from_be_bytes(exact_bytes(bytes)?)),
            Values::Float4(values) => values.push(f32::from_be_bytes(exact_bytes(bytes)?)),
            Values::Float8(values) => values.push(f64::from_be_bytes(exact_bytes(bytes)?)),
            Values::Numeric { values, precision, scale } => {
                values.push(numeric::read(bytes)?.value(*precision, *scale)?);
            }
            Values::Interval(values) => {
                let bytes = exact_bytes::<16>(bytes)?;
                let mut parts = Reader(&bytes);
                values.push(to_month_day_nano(Interval {
                    microseconds: parts.i64()?,
                    days: parts.i32()?,
                    months: parts.i32()?,
                })?);
            }
            Values::Text { values, rule } => match rule {
                TextRule::Json => {
                    let text = check_utf8(bytes)?;
                    check_json(text)?;
                    values.append_value(text);
                }
                TextRule::Jsonb => {
                    let (version, text) = bytes.split_first().ok_or_else(too_short)?;
                    if *version != JSONB_VERSION {
                        return Err(SqlError::new(
                            Condition::InternalError,
                            format!("unsupported jsonb version number {version}"),
                        ));
                    }
                    values.append_value(normalize_jsonb(check_utf8(text)?)?);
                }
                TextRule::Limited(limit) => {
                    let text = check_utf8(bytes)?;
                    values.append_value(fit_text(text, *limit, &self.sql_type, &mut String::new())?);
                }
                TextRule::Any | TextRule::Name | TextRule::InternalChar => values.append_value(check_utf8(bytes)?),
            },
            Values::Bytes { offsets, data } => {
                data.extend_from_slice(bytes);
                offsets.push(arrow_offset(data.len()));
            }
            Values::Uuid(values) => values.extend_from_slice(&exact_bytes::<16>(bytes)?),
            Values::Array { offsets, items } | Values::Vector { offsets, items } => {
                array::append_binary_array(bytes, items)?;
                offsets.push(arrow_offset(items.len()));
            }
        }
        self.mark_valid();
        Ok(())
    }
}

/// Reader of big-endian values from the front of bytes; fails with 08P01 at their end.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> SqlResult<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> SqlResult<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("take(N) returns N bytes"))
    }

    pub(super) fn u16(&mut self) -> SqlResult<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn i16(&mut self) -> SqlResult<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> SqlResult<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> SqlResult<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> SqlResult<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }
}

/// Returns `bytes` as an array of exactly `N` bytes.
fn exact_bytes<const N: usize>(bytes: &[u8]) -> SqlResult<[u8; N]> {
    bytes.try_into().map_err(|_| if bytes.len() < N { too_short() } else { excess_bytes() })
}

/// Converts days since 2000-01-01 to days since 1970-01-01, within the range of Kiln's dates.
fn convert_date(days: i32) -> SqlResult<i32> {
    refuse_infinity("date", days, i32::MIN, i32::MAX)?;
    days.checked_add(POSTGRES_EPOCH_DAYS)
        .filter(|days| (DATE_DAYS_MIN..=DATE_DAYS_MAX).contains(days))
        .ok_or_else(|| out_of_range("date"))
}

/// Checks that microseconds are within a day, including 24:00.
fn check_time(us: i64) -> SqlResult<i64> {
    if (0..=US_PER_DAY).contains(&us) { Ok(us) } else { Err(out_of_range("time")) }
}

/// Converts microseconds since 2000-01-01 to microseconds since 1970-01-01, within the range of Kiln's timestamps.
fn convert_timestamp(us: i64) -> SqlResult<i64> {
    refuse_infinity("timestamp", us, i64::MIN, i64::MAX)?;
    us.checked_add(POSTGRES_EPOCH_US)
        .filter(|us| (TIMESTAMP_US_MIN..=TIMESTAMP_US_MAX).contains(us))
        .ok_or_else(|| out_of_range("timestamp"))
}

/// Rejects the smallest and the largest number, which encode -infinity and infinity (asyncpg's `date.min`, `date.max`).
fn refuse_infinity<T: PartialEq>(what: &str, value: T, past: T, future: T) -> SqlResult<()> {
    let name = if value == future {
        "infinity"
    } else if value == past {
        "-infinity"
    } else {
        return Ok(());
    };
    Err(SqlError::unsupported(format_args!("{what} value \"{name}\"")))
}

fn out_of_range(what: &str) -> SqlError {
    SqlError::new(Condition::DatetimeFieldOverflow, format!("{what} out of range"))
}

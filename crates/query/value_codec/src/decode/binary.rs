//! One value in PostgreSQL's binary form into a column.

use types::text::{
    DATE_DAYS_MAX, DATE_DAYS_MIN, TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY, check_json, normalize_jsonb,
};
use types::{Condition, Interval, SqlError, SqlResult, SqlType};

use super::column::{ColumnBuilder, Values, arrow_offset, fit_text, left_over, too_short};
use super::text::month_day_nano;
use super::{array, numeric, utf8};
use crate::encode::{JSONB_VERSION, POSTGRES_EPOCH_DAYS, POSTGRES_EPOCH_US};

impl ColumnBuilder {
    /// Appends the value that `typreceive` would read from `bytes`.
    ///
    /// # Errors
    /// 22P03 for bytes left over or malformed, 08P01 for bytes missing, else what the type reports for a value it cannot hold.
    pub fn push_binary(&mut self, bytes: &[u8]) -> SqlResult<()> {
        match &mut self.values {
            Values::Bool(values) => values.append(fixed::<1>(bytes)? != [0]),
            Values::Int16(values) => values.push(i16::from_be_bytes(fixed(bytes)?)),
            Values::Int32(values) => {
                let value = i32::from_be_bytes(fixed(bytes)?);
                values.push(if self.sql_type == SqlType::Date { date(value)? } else { value });
            }
            Values::Int64(values) => {
                let value = i64::from_be_bytes(fixed(bytes)?);
                values.push(match &self.sql_type {
                    SqlType::Time => time(value)?,
                    SqlType::Timestamp | SqlType::TimestampTz => timestamp(value)?,
                    _ => value,
                });
            }
            Values::UInt32(values) => values.push(u32::from_be_bytes(fixed(bytes)?)),
            Values::Float32(values) => values.push(f32::from_be_bytes(fixed(bytes)?)),
            Values::Float64(values) => values.push(f64::from_be_bytes(fixed(bytes)?)),
            Values::Decimal(values) => {
                let SqlType::Numeric { precision, scale } = self.sql_type else {
                    unreachable!("decimals are built for numeric alone");
                };
                values.push(numeric::read(bytes)?.value(precision, scale)?);
            }
            Values::Interval(values) => {
                let bytes = fixed::<16>(bytes)?;
                let mut parts = Reader(&bytes);
                values.push(month_day_nano(Interval {
                    microseconds: parts.i64()?,
                    days: parts.i32()?,
                    months: parts.i32()?,
                })?);
            }
            Values::Text(values) => match &self.sql_type {
                SqlType::Json => {
                    let text = utf8(bytes)?;
                    check_json(text)?;
                    values.append_value(text);
                }
                SqlType::Jsonb => {
                    let (version, text) = bytes.split_first().ok_or_else(too_short)?;
                    if *version != JSONB_VERSION {
                        return Err(SqlError::new(
                            Condition::InternalError,
                            format!("unsupported jsonb version number {version}"),
                        ));
                    }
                    values.append_value(normalize_jsonb(utf8(text)?)?);
                }
                sql_type => values.append_value(fit_text(utf8(bytes)?, sql_type, &mut String::new())?),
            },
            Values::Bytes { offsets, data } => {
                data.extend_from_slice(bytes);
                offsets.push(arrow_offset(data.len()));
            }
            Values::Uuid(values) => values.extend_from_slice(&fixed::<16>(bytes)?),
            Values::List { offsets, items } => {
                array::read_binary(bytes, items)?;
                offsets.push(arrow_offset(items.len()));
            }
        }
        self.accept();
        Ok(())
    }
}

/// Bytes read from the front; 08P01 when they run out.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> SqlResult<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> SqlResult<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("exactly as many bytes were taken"))
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

/// All of `bytes`, which must be exactly `N`.
fn fixed<const N: usize>(bytes: &[u8]) -> SqlResult<[u8; N]> {
    bytes.try_into().map_err(|_| if bytes.len() < N { too_short() } else { left_over() })
}

/// Days since 2000-01-01 as days since 1970-01-01, within the years Kiln holds.
fn date(days: i32) -> SqlResult<i32> {
    refuse_infinity("date", days, i32::MIN, i32::MAX)?;
    days.checked_add(POSTGRES_EPOCH_DAYS)
        .filter(|days| (DATE_DAYS_MIN..=DATE_DAYS_MAX).contains(days))
        .ok_or_else(|| out_of_range("date"))
}

/// Microseconds of a day, 24:00 included.
fn time(us: i64) -> SqlResult<i64> {
    if (0..=US_PER_DAY).contains(&us) { Ok(us) } else { Err(out_of_range("time")) }
}

/// Microseconds since 2000-01-01 as microseconds since 1970-01-01, within the years Kiln holds.
fn timestamp(us: i64) -> SqlResult<i64> {
    refuse_infinity("timestamp", us, i64::MIN, i64::MAX)?;
    us.checked_add(POSTGRES_EPOCH_US)
        .filter(|us| (TIMESTAMP_US_MIN..=TIMESTAMP_US_MAX).contains(us))
        .ok_or_else(|| out_of_range("timestamp"))
}

/// The ends of the number range stand for the ends of time: `date.min` and `date.max` of asyncpg.
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

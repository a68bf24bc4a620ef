//! Iterator over the values of one series.

use serde::{Deserialize, Serialize};
use types::{Condition, Interval, SessionZone, SqlError, SqlResult, SqlType};

/// Element type of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SeriesType {
    Int4,
    Int8,
    /// Numerics of this precision and scale.
    Numeric {
        precision: u8,
        scale: u8,
    },
    Timestamp,
    /// Timestamps that advance by the calendar of this zone.
    TimestampTz(SessionZone),
}

impl SeriesType {
    /// Returns the element type for a SQL type; `None` if there is no series of it.
    pub fn from_sql_type(sql_type: &SqlType, zone: SessionZone) -> Option<Self> {
        Some(match sql_type {
            SqlType::Int4 => Self::Int4,
            SqlType::Int8 => Self::Int8,
            SqlType::Numeric { precision, scale } => Self::Numeric { precision: *precision, scale: *scale },
            SqlType::Timestamp => Self::Timestamp,
            SqlType::TimestampTz => Self::TimestampTz(zone),
            _ => return None,
        })
    }
}

/// Distance between two values.
#[derive(Debug, Clone, Copy)]
enum Step {
    Number(i128),
    Span(Interval, Option<SessionZone>),
}

/// Series from a first to a last value, ascending or descending: integers, unscaled numerics, or microseconds.
#[derive(Debug, Clone, Copy)]
pub struct SeriesIter {
    next: Option<i128>,
    last: i128,
    is_upward: bool,
    step: Step,
}

impl SeriesIter {
    /// Creates a series of numbers.
    ///
    /// # Errors
    /// SQLSTATE 22023 for a step of zero.
    pub fn numbers(first: i128, last: i128, step: i128) -> SqlResult<Self> {
        let is_upward = direction(step.signum())?;
        Ok(Self { next: Some(first), last, is_upward, step: Step::Number(step) })
    }

    /// Creates a series of timestamps, in the calendar of a zone if one is given.
    ///
    /// # Errors
    /// SQLSTATE 22023 for a step of zero length.
    pub fn times(first: i64, last: i64, step: Interval, zone: Option<SessionZone>) -> SqlResult<Self> {
        let is_upward = direction(step.span_us().signum())?;
        Ok(Self { next: Some(first.into()), last: last.into(), is_upward, step: Step::Span(step, zone) })
    }

    /// Appends the next values, at most `count` of them.
    pub fn fill(&mut self, count: usize, values: &mut Vec<i128>) -> SqlResult<()> {
        let end = values.len() + count;
        while values.len() < end {
            let Some(value) = self.next()? else { break };
            values.push(value);
        }
        Ok(())
    }

    fn next(&mut self) -> SqlResult<Option<i128>> {
        let Some(value) = self.next else { return Ok(None) };
        if if self.is_upward { self.last < value } else { value < self.last } {
            self.next = None;
            return Ok(None);
        }
        self.next = match self.step {
            Step::Number(step) => value.checked_add(step),
            Step::Span(step, zone) => {
                let from = i64::try_from(value)
                    .map_err(|_| SqlError::internal("generate_series: a timestamp exceeds 64 bits"))?;
                let next = match zone {
                    Some(zone) => step.add_to_timestamptz(from, &zone),
                    None => step.add_to_timestamp(from),
                };
                Some(next?.into())
            }
        };
        Ok(Some(value))
    }
}

fn direction(sign: i128) -> SqlResult<bool> {
    if sign == 0 {
        return Err(SqlError::new(Condition::InvalidParameterValue, "step size cannot equal zero"));
    }
    Ok(0 < sign)
}

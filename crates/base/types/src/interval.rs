//! The type `interval`: separate months, days and microseconds, with PostgreSQL's arithmetic.

use crate::text::{TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY, civil_from_days, days_from_civil, days_in_month};
use crate::{Condition, SessionZone, SqlError, SqlResult};

#[cfg(test)]
mod tests;

const DAYS_PER_MONTH: i64 = 30;

/// A time interval. `==` compares the parts; SQL compares [`Interval::span_us`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub microseconds: i64,
}

impl Interval {
    /// Creates an interval of these parts.
    #[must_use]
    pub const fn new(months: i32, days: i32, microseconds: i64) -> Self {
        Self { months, days, microseconds }
    }

    /// Returns the length in microseconds with 30-day months and 24-hour days, by which SQL compares and groups
    /// intervals.
    #[must_use]
    pub fn span_us(&self) -> i128 {
        let days = i64::from(self.months) * DAYS_PER_MONTH + i64::from(self.days);
        i128::from(days) * i128::from(US_PER_DAY) + i128::from(self.microseconds)
    }

    /// Adds part by part; `22008` on overflow.
    pub fn checked_add(self, other: Interval) -> SqlResult<Interval> {
        Self::from_parts(
            self.months.checked_add(other.months),
            self.days.checked_add(other.days),
            self.microseconds.checked_add(other.microseconds),
        )
    }

    /// Subtracts part by part; `22008` on overflow.
    pub fn checked_sub(self, other: Interval) -> SqlResult<Interval> {
        Self::from_parts(
            self.months.checked_sub(other.months),
            self.days.checked_sub(other.days),
            self.microseconds.checked_sub(other.microseconds),
        )
    }

    /// Negates every part; `22008` on overflow.
    pub fn checked_neg(self) -> SqlResult<Interval> {
        Interval::default().checked_sub(self)
    }

    /// Multiplies by a factor: fractions of months become days, fractions of days microseconds.
    pub fn multiply(self, factor: f64) -> SqlResult<Interval> {
        self.scale(|part| part * factor)
    }

    /// Divides by a number; a zero divisor is `22012`.
    pub fn divide(self, divisor: f64) -> SqlResult<Interval> {
        if divisor == 0.0 {
            return Err(SqlError::new(Condition::DivisionByZero, "division by zero"));
        }
        self.scale(|part| part / divisor)
    }

    #[expect(clippy::cast_possible_truncation, reason = "ranges are checked before each cast")]
    #[expect(clippy::cast_precision_loss, reason = "PostgreSQL scales intervals in double precision too")]
    fn scale(self, apply: impl Fn(f64) -> f64) -> SqlResult<Interval> {
        let round = |value: f64| (value * 1e6).round_ties_even() / 1e6;
        let fits = |value: f64| value.is_finite() && value.abs() < f64::from(i32::MAX);
        let months_exact = apply(f64::from(self.months));
        let days_exact = apply(f64::from(self.days));
        if !fits(months_exact) || !fits(days_exact) {
            return Err(out_of_range());
        }
        let (months, mut days) = (months_exact.trunc(), days_exact.trunc());
        let days_of_months = round((months_exact - months) * DAYS_PER_MONTH as f64);
        let mut seconds = round((days_exact - days + days_of_months - days_of_months.trunc()) * 86_400.0);
        if 86_400.0 <= seconds.abs() {
            let whole = (seconds / 86_400.0).trunc();
            days += whole;
            seconds -= whole * 86_400.0;
        }
        days += days_of_months.trunc();
        let microseconds = (apply(self.microseconds as f64) + seconds * 1e6).round_ties_even();
        if !fits(days) || !microseconds.is_finite() || 9.2e18 < microseconds.abs() {
            return Err(out_of_range());
        }
        Ok(Interval::new(months as i32, days as i32, microseconds as i64))
    }

    /// Computes `justify_hours`: every 24 hours become a day.
    pub fn justify_hours(self) -> SqlResult<Interval> {
        let whole_days = self.microseconds / US_PER_DAY;
        let mut result = Self::from_parts(
            Some(self.months),
            i32::try_from(whole_days).ok().and_then(|whole| self.days.checked_add(whole)),
            Some(self.microseconds % US_PER_DAY),
        )?;
        if 0 < result.days && result.microseconds < 0 {
            result.microseconds += US_PER_DAY;
            result.days -= 1;
        } else if result.days < 0 && 0 < result.microseconds {
            result.microseconds -= US_PER_DAY;
            result.days += 1;
        }
        Ok(result)
    }

    /// Computes `justify_days`: every 30 days become a month.
    pub fn justify_days(self) -> SqlResult<Interval> {
        let mut result =
            Self::from_parts(self.months.checked_add(self.days / 30), Some(self.days % 30), Some(self.microseconds))?;
        if 0 < result.months && result.days < 0 {
            result.days += 30;
            result.months -= 1;
        } else if result.months < 0 && 0 < result.days {
            result.days -= 30;
            result.months += 1;
        }
        Ok(result)
    }

    /// Computes `justify_interval`: both, and all parts get the same sign.
    pub fn justify(self) -> SqlResult<Interval> {
        let whole_days = i64::from(self.days) + self.microseconds / US_PER_DAY;
        let mut months = i64::from(self.months) + whole_days / 30;
        let mut days = whole_days % 30;
        let mut microseconds = self.microseconds % US_PER_DAY;
        if 0 < months && (days < 0 || (days == 0 && microseconds < 0)) {
            days += 30;
            months -= 1;
        } else if months < 0 && (0 < days || (days == 0 && 0 < microseconds)) {
            days -= 30;
            months += 1;
        }
        if 0 < days && microseconds < 0 {
            microseconds += US_PER_DAY;
            days -= 1;
        } else if days < 0 && 0 < microseconds {
            microseconds -= US_PER_DAY;
            days += 1;
        }
        Self::from_parts(i32::try_from(months).ok(), i32::try_from(days).ok(), Some(microseconds))
    }

    /// Computes `timestamp + interval`: adds months first (clamping the day to the month's end), then days, then
    /// microseconds.
    pub fn add_to_timestamp(self, timestamp_us: i64) -> SqlResult<i64> {
        self.add_to_local(timestamp_us).filter(in_timestamp_range).ok_or_else(timestamp_out_of_range)
    }

    /// Computes `timestamptz + interval`: adds months and days in the local time of `zone`, microseconds in universal
    /// time.
    pub fn add_to_timestamptz(self, universal_us: i64, zone: &SessionZone) -> SqlResult<i64> {
        let moved = if self.months == 0 && self.days == 0 {
            Some(universal_us)
        } else {
            let calendar = Interval { microseconds: 0, ..self };
            calendar.add_to_local(zone.to_local(universal_us)).map(|local| zone.to_universal(local))
        };
        moved
            .and_then(|universal| universal.checked_add(self.microseconds))
            .filter(in_timestamp_range)
            .ok_or_else(timestamp_out_of_range)
    }

    fn add_to_local(self, timestamp_us: i64) -> Option<i64> {
        let mut us = timestamp_us;
        if self.months != 0 {
            let days = i32::try_from(us.div_euclid(US_PER_DAY)).ok()?;
            us = i64::from(add_months(days, self.months)?) * US_PER_DAY + us.rem_euclid(US_PER_DAY);
        }
        us.checked_add(i64::from(self.days).checked_mul(US_PER_DAY)?)?.checked_add(self.microseconds)
    }

    /// Computes `age(end, start)`: the calendar difference in months, days and time.
    #[must_use]
    pub fn age(end_us: i64, start_us: i64) -> Interval {
        let is_negative = end_us < start_us;
        let (late, early) = if is_negative { (start_us, end_us) } else { (end_us, start_us) };
        let civil = |us: i64| civil_from_days(i32::try_from(us.div_euclid(US_PER_DAY)).unwrap_or(i32::MAX));
        let (to, from) = (civil(late), civil(early));
        let mut microseconds = late.rem_euclid(US_PER_DAY) - early.rem_euclid(US_PER_DAY);
        let mut days = i64::from(to.day) - i64::from(from.day);
        let mut months = (i64::from(to.year) - i64::from(from.year)) * 12 + i64::from(to.month) - i64::from(from.month);
        if microseconds < 0 {
            microseconds += US_PER_DAY;
            days -= 1;
        }
        while days < 0 {
            // Days are borrowed from the month of the earlier time.
            days += i64::from(days_in_month(from.year, from.month));
            months -= 1;
        }
        let sign = if is_negative { -1 } else { 1 };
        Interval::new(
            i32::try_from(months * sign).unwrap_or_default(),
            i32::try_from(days * sign).unwrap_or_default(),
            microseconds * sign,
        )
    }

    /// Converts to Arrow's month-day-nano; `22008` if nanoseconds overflow (292 years of hours).
    pub fn to_month_day_nano(self) -> SqlResult<(i32, i32, i64)> {
        let nanoseconds = self.microseconds.checked_mul(1000).ok_or_else(out_of_range)?;
        Ok((self.months, self.days, nanoseconds))
    }

    /// Converts from Arrow's month-day-nano, truncating to microseconds.
    #[must_use]
    pub const fn from_month_day_nano(months: i32, days: i32, nanoseconds: i64) -> Self {
        Self { months, days, microseconds: nanoseconds / 1000 }
    }

    pub(crate) fn from_parts(months: Option<i32>, days: Option<i32>, microseconds: Option<i64>) -> SqlResult<Interval> {
        match (months, days, microseconds) {
            (Some(months), Some(days), Some(microseconds)) => Ok(Interval { months, days, microseconds }),
            _ => Err(out_of_range()),
        }
    }
}

/// Adds months to a date (days since 1970-01-01), clamping the day to the month's end; `None` outside of 32 bits.
#[must_use]
pub fn add_months(days: i32, months: i32) -> Option<i32> {
    let civil = civil_from_days(days);
    let total = i64::from(civil.year) * 12 + i64::from(civil.month) - 1 + i64::from(months);
    let year = i32::try_from(total.div_euclid(12)).ok().filter(|year| (-4000..=300_000).contains(year))?;
    let month = u32::try_from(total.rem_euclid(12)).expect("rem_euclid(12) is 0 to 11") + 1;
    Some(days_from_civil(year, month, civil.day.min(days_in_month(year, month))))
}

fn in_timestamp_range(us: &i64) -> bool {
    (TIMESTAMP_US_MIN..=TIMESTAMP_US_MAX).contains(us)
}

fn out_of_range() -> SqlError {
    SqlError::new(Condition::DatetimeFieldOverflow, "interval out of range")
}

fn timestamp_out_of_range() -> SqlError {
    SqlError::new(Condition::DatetimeFieldOverflow, "timestamp out of range")
}

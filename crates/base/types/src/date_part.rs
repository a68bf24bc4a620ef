//! Fields of dates and times of day.

use crate::text::{civil_from_days, days_from_civil};

/// Field that EXTRACT returns, in the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatePart {
    Year,
    Quarter,
    Month,
    Day,
    /// Day of the week, from 0 for Sunday.
    DayOfWeek,
    /// ISO day of the week, from 1 for Monday.
    IsoDayOfWeek,
    /// Day of the year, from 1.
    DayOfYear,
    Hour,
    Minute,
}

impl DatePart {
    /// Returns the field's value for a day, counted from 1970-01-01, and a time of day in microseconds.
    #[inline]
    #[must_use]
    pub fn extract(self, days: i32, time_us: i64) -> i64 {
        let weekday = |first: i64| (i64::from(days) + first).rem_euclid(7);
        match self {
            Self::Year => civil_from_days(days).year.into(),
            Self::Quarter => (i64::from(civil_from_days(days).month) - 1) / 3 + 1,
            Self::Month => civil_from_days(days).month.into(),
            Self::Day => civil_from_days(days).day.into(),
            // 1970 began on a Thursday.
            Self::DayOfWeek => weekday(4),
            Self::IsoDayOfWeek => weekday(3) + 1,
            Self::DayOfYear => i64::from(days - days_from_civil(civil_from_days(days).year, 1, 1)) + 1,
            Self::Hour => time_us / 3_600_000_000,
            Self::Minute => time_us / 60_000_000 % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_days() {
        let leap = days_from_civil(2024, 2, 29);
        let before = days_from_civil(1969, 12, 31);
        for (part, days, expected) in [
            (DatePart::Year, leap, 2024),
            (DatePart::Quarter, leap, 1),
            (DatePart::Month, before, 12),
            (DatePart::Day, leap, 29),
            (DatePart::DayOfYear, leap, 60),
            (DatePart::DayOfWeek, leap, 4),
            (DatePart::DayOfWeek, before, 3),
            (DatePart::IsoDayOfWeek, leap, 4),
        ] {
            assert_eq!(part.extract(days, 0), expected, "{part:?} of {days}");
        }
    }
}

//! Arithmetic of the proleptic Gregorian calendar.

/// Number of microseconds in a day.
pub const US_PER_DAY: i64 = 86_400_000_000;
/// Minimum date, 0001-01-01, as days since 1970-01-01.
pub const DATE_DAYS_MIN: i32 = -719_162;
/// Maximum date, 9999-12-31, as days since 1970-01-01.
pub const DATE_DAYS_MAX: i32 = 2_932_896;
/// Minimum timestamp: the first microsecond of [`DATE_DAYS_MIN`].
pub const TIMESTAMP_US_MIN: i64 = DATE_DAYS_MIN as i64 * US_PER_DAY;
/// Maximum timestamp: the last microsecond of [`DATE_DAYS_MAX`].
pub const TIMESTAMP_US_MAX: i64 = (DATE_DAYS_MAX as i64 + 1) * US_PER_DAY - 1;

/// Calendar date: month 1–12, day 1–31.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CivilDate {
    pub year: i32,
    pub month: u32,
    pub day: u32,
}

/// Converts a valid calendar date to days since 1970-01-01.
#[must_use]
pub const fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    // In years that start in March the leap day is last, so a month's first day is a linear formula.
    let shifted_year = year as i64 - (month <= 2) as i64;
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let month_from_march = (month as i64 + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468) as i32
}

/// Converts days since 1970-01-01 to a calendar date.
#[must_use]
pub const fn civil_from_days(days: i32) -> CivilDate {
    let shifted = days as i64 + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    let year = (year_of_era + era * 400 + (month <= 2) as i64) as i32;
    CivilDate { year, month, day }
}

/// Returns the number of days in a month.
#[must_use]
pub const fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 => 28 + ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0) as u32,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

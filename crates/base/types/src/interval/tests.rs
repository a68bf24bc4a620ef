use super::*;
use crate::text::{format_interval, parse_interval, parse_timestamp};

fn spell(value: SqlResult<Interval>) -> String {
    let mut text = String::new();
    format_interval(&value.unwrap(), &mut text);
    text
}

fn at(text: &str) -> i64 {
    parse_timestamp(text).unwrap()
}

fn span(text: &str) -> Interval {
    parse_interval(text).unwrap()
}

#[test]
fn ages_are_told_by_the_calendar() {
    for (end, start, expected) in [
        ("2024-03-31", "2024-02-29", "1 mon 2 days"),
        ("2024-02-29", "2024-03-31", "-1 mons -2 days"),
        ("2024-01-15", "2023-12-31", "15 days"),
        ("2023-12-31", "2024-01-15", "-15 days"),
        ("2024-03-01", "2024-01-31", "1 mon 1 day"),
        ("2024-01-31", "2024-03-01", "-1 mons -1 days"),
        ("2001-04-10", "1957-06-13", "43 years 9 mons 27 days"),
        ("2024-01-02 00:00", "2024-01-01 12:00", "12:00:00"),
    ] {
        assert_eq!(spell(Ok(Interval::age(at(end), at(start)))), expected, "{end} {start}");
    }
}

#[test]
fn fractions_spill_downwards() {
    assert_eq!(spell(span("1 month").multiply(1.5)), "1 mon 15 days");
    assert_eq!(spell(span("1 day").divide(3.0)), "08:00:00");
    assert_eq!(spell(span("1 mon 1 day").multiply(0.3)), "9 days 07:12:00");
    assert_eq!(spell(span("1 year").divide(7.0)), "1 mon 21 days 10:17:08.5344");
    assert_eq!(span("1 day").divide(0.0).unwrap_err().condition, Condition::DivisionByZero);
    assert_eq!(span("1 day").multiply(1e30).unwrap_err().condition, Condition::DatetimeFieldOverflow);
}

#[test]
fn justifying_carries_upwards() {
    assert_eq!(spell(span("35 days").justify_days()), "1 mon 5 days");
    assert_eq!(spell(span("27 hours").justify_hours()), "1 day 03:00:00");
    assert_eq!(spell(span("1 mon -1 hour").justify()), "29 days 23:00:00");
}

#[test]
fn adding_clamps_to_the_months_end() {
    assert_eq!(span("1 month").add_to_timestamp(at("2024-01-31")), Ok(at("2024-02-29")));
    assert_eq!(span("-1 month 1 day").add_to_timestamp(at("2024-03-31")), Ok(at("2024-03-01")));
    assert_eq!(span("1 day").add_to_timestamp(at("9999-12-31 12:00")).unwrap_err().message, "timestamp out of range");
}

#[test]
fn days_move_the_clock_and_hours_the_instant() {
    let zone = SessionZone::parse("America/New_York").unwrap();
    let before = zone.to_universal(at("2024-03-09 12:00"));
    assert_eq!(span("1 day").add_to_timestamptz(before, &zone).map(|us| zone.to_local(us)), Ok(at("2024-03-10 12:00")));
    assert_eq!(
        span("24 hours").add_to_timestamptz(before, &zone).map(|us| zone.to_local(us)),
        Ok(at("2024-03-10 13:00"))
    );
}

use proptest::prelude::*;

use super::*;
use crate::Condition;
use crate::text::{DATE_DAYS_MAX, DATE_DAYS_MIN, DateOrder};

fn iso(days: i32) -> String {
    let mut text = String::new();
    format_date(days, &mut text);
    text
}

#[track_caller]
fn check(text: &str, order: DateOrder, expected: &str) {
    let context = DateContext { order, ..DateContext::default() };
    assert_eq!(parse_date_in(text, &context).map(iso), Ok(expected.to_owned()), "{text}");
}

#[test]
fn spellings_of_postgresqls_manual_are_read() {
    use DateOrder::{DayMonthYear, MonthDayYear, YearMonthDay};
    check("1999-01-08", MonthDayYear, "1999-01-08");
    check("January 8, 1999", MonthDayYear, "1999-01-08");
    check("1/8/1999", MonthDayYear, "1999-01-08");
    check("1/8/1999", DayMonthYear, "1999-08-01");
    check("1/18/1999", MonthDayYear, "1999-01-18");
    check("01/02/03", MonthDayYear, "2003-01-02");
    check("01/02/03", DayMonthYear, "2003-02-01");
    check("01/02/03", YearMonthDay, "2001-02-03");
    check("1999-Jan-08", MonthDayYear, "1999-01-08");
    check("Jan-08-1999", MonthDayYear, "1999-01-08");
    check("08-Jan-1999", MonthDayYear, "1999-01-08");
    check("08-Jan-99", MonthDayYear, "1999-01-08");
    check("19990108", MonthDayYear, "1999-01-08");
    check("990108", MonthDayYear, "1999-01-08");
    check("31.01.2024", DayMonthYear, "2024-01-31");
    check("31 Jan 2024", MonthDayYear, "2024-01-31");
    check("2024 Jan 31", MonthDayYear, "2024-01-31");
    check("Wed Jan 31 10:00:00 2024", MonthDayYear, "2024-01-31");
    check("2024-01-31 23:59:59.9", MonthDayYear, "2024-01-31");
    check("2024-1-3", MonthDayYear, "2024-01-03");
    check("epoch", MonthDayYear, "1970-01-01");
    check(" 2024-01-31 ", MonthDayYear, "2024-01-31");
    check("0001-01-01", MonthDayYear, "0001-01-01");
    check("9999-12-31", MonthDayYear, "9999-12-31");
}

#[test]
fn days_that_do_not_exist_are_out_of_range() {
    for text in [
        "2024-02-30",
        "2023-02-29",
        "2024-13-01",
        "2024-00-01",
        "2024-01-00",
        "0000-01-01",
        "10000-01-01",
        "0044-03-15 BC",
        "13/13/2024",
    ] {
        assert_eq!(parse_date(text).unwrap_err().condition, Condition::DatetimeFieldOverflow, "{text}");
    }
}

#[test]
fn what_is_no_date_is_refused() {
    for text in
        ["", "abc", "2024", "2024-01", "2024-01-31 2024-01-31", "10:00", "2024-foo-01", "1999-01-08x", "2024-01-31;"]
    {
        assert_eq!(parse_date(text).unwrap_err().condition, Condition::InvalidDatetimeFormat, "{text}");
    }
    assert_eq!(parse_date("infinity").unwrap_err().condition, Condition::FeatureNotSupported);
    assert_eq!(parse_date("today").unwrap_err().condition, Condition::FeatureNotSupported);
}

#[test]
fn today_is_the_sessions_day() {
    let zone = SessionZone::parse("Asia/Tokyo").unwrap();
    // 2024-01-31 20:00 UTC is the first of February in Tokyo.
    let context = DateContext { zone, now_us: Some(1_706_731_200_000_000), ..DateContext::default() };
    assert_eq!(parse_date_in("today", &context).map(iso), Ok("2024-02-01".to_owned()));
    assert_eq!(parse_date_in("yesterday", &context).map(iso), Ok("2024-01-31".to_owned()));
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(days in DATE_DAYS_MIN..=DATE_DAYS_MAX) {
        prop_assert_eq!(parse_date(&iso(days)), Ok(days));
    }

    #[test]
    fn no_text_panics(text in "[ 0-9A-Za-z:./+,-]{0,24}") {
        let _ = parse_date(&text);
        let _ = crate::text::parse_timestamptz(&text, &SessionZone::UTC);
        let _ = crate::text::parse_time(&text);
        let _ = crate::text::parse_interval(&text);
    }

    #[test]
    fn no_text_of_any_kind_panics(text: String) {
        let _ = parse_date(&text);
        let _ = crate::text::parse_interval(&text);
        let _ = crate::text::parse_array(&text, &mut |_| Ok(()));
        let _ = crate::text::normalize_jsonb(&text);
        let _ = crate::text::parse_uuid(&text);
        let _ = crate::text::parse_bytea(&text);
        let _ = SessionZone::parse(&text);
        let _ = SessionZone::parse_in_value(&text);
    }
}

#[test]
fn an_offset_after_a_date_is_dropped() {
    for text in ["2024-01-31 +00", "2024-01-31+02", "2024-01-31 -05:30"] {
        assert_eq!(parse_date(text), parse_date("2024-01-31"), "{text}");
    }
    assert!(parse_date("2024-01-31 +").is_err());
    assert!(parse_date("2024-01-31 +0x").is_err());
}

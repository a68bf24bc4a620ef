use proptest::prelude::*;

use super::*;

fn spell(value: Interval) -> String {
    let mut text = String::new();
    format_interval(&value, &mut text);
    text
}

#[test]
fn spellings_mean_what_postgresql_says() {
    for (text, expected) in [
        ("1.5 months", "1 mon 15 days"),
        ("1.5 years", "1 year 6 mons"),
        ("1.5 weeks", "10 days 12:00:00"),
        ("1.15 years", "1 year 2 mons"),
        ("5", "00:00:05"),
        ("3 4:05", "3 days 04:05:00"),
        ("1-2 3 4:5:6", "1 year 2 mons 3 days 04:05:06"),
        ("-1-2", "-1 years -2 mons"),
        ("1 day -02:03", "1 day -02:03:00"),
        ("-1 day 02:03", "-1 days +02:03:00"),
        ("1 day 02:03:04", "1 day 02:03:04"),
        ("P1DT2H", "1 day 02:00:00"),
        ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
        ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("P1W", "7 days"),
        ("PT36H", "36:00:00"),
        ("@ 1 day ago", "-1 days"),
        ("@ 1 hour 30 mins", "01:30:00"),
        ("1 decade 2 centuries", "210 years"),
        ("04:05.5", "00:04:05.5"),
        ("100:05:06", "100:05:06"),
        ("5.678 sec", "00:00:05.678"),
        ("1h30m", "01:30:00"),
        ("250 ms", "00:00:00.25"),
        ("0", "00:00:00"),
        ("1 year -1 day", "1 year -1 days"),
        ("-1 year +1 day", "-1 years +1 day"),
    ] {
        assert_eq!(parse_interval(text).map(spell), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn fields_give_units_and_cut() {
    use IntervalUnits as U;
    for (text, units, expected) in [
        ("90", U::Day, "90 days"),
        ("1", U::Year, "1 year"),
        ("3", U::Minute, "00:03:00"),
        ("1.5", U::Hour, "01:00:00"),
        ("1 2", U::DayToHour, "1 day 02:00:00"),
        ("1:2", U::MinuteToSecond, "00:01:02"),
        ("1-2", U::YearToMonth, "1 year 2 mons"),
        ("1 day 02:03:04", U::Minute, "1 day 02:03:00"),
    ] {
        assert_eq!(parse_interval_in(text, Some(units)).map(spell), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn what_is_no_interval_is_refused() {
    for text in ["", "abc", "1 foo", "day", "P", "PT", "P1", "1:2:3:4", "ago", "@"] {
        let error = parse_interval(text).unwrap_err();
        assert_eq!(error.message, format!("invalid input syntax for type interval: \"{text}\""));
    }
    assert_eq!(parse_interval("99999999999 years").unwrap_err().condition, Condition::IntervalFieldOverflow);
    assert_eq!(parse_interval("10:75").unwrap_err().condition, Condition::IntervalFieldOverflow);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(months in -100_000_i32..100_000, days in -100_000_i32..100_000, us in -9_000_000_000_000_000_i64..9_000_000_000_000_000) {
        let value = Interval::new(months, days, us);
        prop_assert_eq!(parse_interval(&spell(value)), Ok(value));
    }
}

use proptest::prelude::*;

use super::*;

fn spell(us: i64) -> String {
    let mut text = String::new();
    format_timestamp(us, &mut text);
    text
}

fn spell_in(us: i64, zone: &SessionZone) -> String {
    let mut text = String::new();
    format_timestamptz(us, zone, &mut text);
    text
}

#[test]
fn timestamps_are_read_in_many_spellings() {
    for (text, expected) in [
        ("2024-01-31 10:00", "2024-01-31 10:00:00"),
        ("2024-01-31T10:00:00", "2024-01-31 10:00:00"),
        ("2024-01-31", "2024-01-31 00:00:00"),
        ("2024-01-31 10:00:00.1234567", "2024-01-31 10:00:00.123457"),
        ("Jan 31 2024 10:00 PM", "2024-01-31 22:00:00"),
        ("20240131T100000", "2024-01-31 10:00:00"),
        ("20240131 100000", "2024-01-31 10:00:00"),
        ("2024-01-31 10:00:00+05", "2024-01-31 10:00:00"),
        ("2024-01-31 24:00:00", "2024-02-01 00:00:00"),
        ("0001-01-01 00:00:00", "0001-01-01 00:00:00"),
        ("9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"),
        ("Wed Jan 31 10:00:00 2024 PST", "2024-01-31 10:00:00"),
    ] {
        assert_eq!(parse_timestamp(text).map(spell), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn zones_move_timestamps_to_universal_time() {
    let new_york = SessionZone::parse("america/new_york").unwrap();
    for (text, zone, expected) in [
        ("2024-01-31 10:00:00", &SessionZone::UTC, "2024-01-31 10:00:00+00"),
        ("2024-01-31 10:00:00+05:30", &SessionZone::UTC, "2024-01-31 04:30:00+00"),
        ("2024-01-31 10:00:00-0530", &SessionZone::UTC, "2024-01-31 15:30:00+00"),
        ("2024-01-31T10:00:00Z", &SessionZone::UTC, "2024-01-31 10:00:00+00"),
        ("2024-01-31 10:00 PST", &SessionZone::UTC, "2024-01-31 18:00:00+00"),
        ("2024-01-31 10:00 PST8PDT", &SessionZone::UTC, "2024-01-31 18:00:00+00"),
        ("2024-01-31 10:00 Europe/Paris", &SessionZone::UTC, "2024-01-31 09:00:00+00"),
        ("2024-07-01 10:00", &new_york, "2024-07-01 10:00:00-04"),
        ("2024-03-10 02:30", &new_york, "2024-03-10 03:30:00-04"),
        ("2024-11-03 01:30", &new_york, "2024-11-03 01:30:00-05"),
        ("1850-01-01 00:00", &new_york, "1850-01-01 00:00:00-04:56:02"),
    ] {
        assert_eq!(parse_timestamptz(text, zone).map(|us| spell_in(us, zone)), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn bad_timestamps_are_refused() {
    for (text, condition) in [
        ("2024-02-30 10:00", Condition::DatetimeFieldOverflow),
        ("2024-01-31 25:00", Condition::DatetimeFieldOverflow),
        ("2024-01-31 10:00 Mars/Olympus", Condition::InvalidParameterValue),
        ("2024-01-31 10:00 foo", Condition::InvalidDatetimeFormat),
        ("-infinity", Condition::InvalidDatetimeFormat),
        ("10:00", Condition::InvalidDatetimeFormat),
        ("", Condition::InvalidDatetimeFormat),
    ] {
        assert_eq!(parse_timestamptz(text, &SessionZone::UTC).unwrap_err().condition, condition, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(us in TIMESTAMP_US_MIN + US_PER_DAY..=TIMESTAMP_US_MAX - US_PER_DAY) {
        prop_assert_eq!(parse_timestamp(&spell(us)), Ok(us));
        for zone in [SessionZone::UTC, SessionZone::Fixed(-12_600), SessionZone::parse("Europe/Berlin").expect("exists")] {
            prop_assert_eq!(parse_timestamptz(&spell_in(us, &zone), &zone), Ok(us));
        }
    }
}

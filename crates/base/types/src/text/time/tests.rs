use proptest::prelude::*;

use super::*;
use crate::Condition;

fn spell(us: i64) -> String {
    let mut text = String::new();
    format_time(us, &mut text);
    text
}

#[test]
fn spellings_of_postgresqls_manual_are_read() {
    for (text, expected) in [
        ("04:05:06.789", "04:05:06.789"),
        ("04:05:06", "04:05:06"),
        ("04:05", "04:05:00"),
        ("040506", "04:05:06"),
        ("0405", "04:05:00"),
        ("04:05 AM", "04:05:00"),
        ("04:05 PM", "16:05:00"),
        ("12:00 am", "00:00:00"),
        ("12:30 pm", "12:30:00"),
        ("24:00:00", "24:00:00"),
        ("23:59:60", "24:00:00"),
        ("04:05:06-08:00", "04:05:06"),
        ("2024-01-31 04:05:06 PST", "04:05:06"),
        ("10:00:00.1234565", "10:00:00.123456"),
    ] {
        assert_eq!(parse_time(text).map(spell), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn bad_times_are_refused() {
    for (text, condition) in [
        ("25:00", Condition::DatetimeFieldOverflow),
        ("10:60", Condition::DatetimeFieldOverflow),
        ("13:00 PM", Condition::DatetimeFieldOverflow),
        ("1 PM", Condition::InvalidDatetimeFormat),
        ("abc", Condition::InvalidDatetimeFormat),
        ("", Condition::InvalidDatetimeFormat),
    ] {
        assert_eq!(parse_time(text).unwrap_err().condition, condition, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(us in 0_i64..=86_400_000_000) {
        prop_assert_eq!(parse_time(&spell(us)), Ok(us));
    }
}

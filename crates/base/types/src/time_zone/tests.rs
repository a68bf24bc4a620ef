use super::*;

#[test]
fn settings_are_read_in_postgresqls_spellings() {
    for (text, name) in [
        ("utc", "UTC"),
        ("Europe/Paris", "Europe/Paris"),
        ("america/NEW_YORK", "America/New_York"),
        ("-7", "<-07>+07"),
        ("5.5", "<+05:30>-05:30"),
        ("UTC+3", "<-03>+03"),
        ("<-07>+07", "<-07>+07"),
    ] {
        assert_eq!(SessionZone::parse(text).map(|zone| zone.name()), Ok(name.to_owned()), "{text}");
    }
    assert!(SessionZone::parse("Mars/Olympus").is_err());
}

#[test]
fn zones_in_values_are_abbreviations_first_and_signs_are_west() {
    assert_eq!(SessionZone::parse_in_value("EST"), Ok(SessionZone::Fixed(-18_000)));
    assert_eq!(SessionZone::parse_in_value("-05"), Ok(SessionZone::Fixed(18_000)));
    assert_eq!(SessionZone::parse_in_value("+05:30"), Ok(SessionZone::Fixed(-19_800)));
    assert_eq!(SessionZone::parse_in_value("nowhere").unwrap_err().message, "time zone \"nowhere\" not recognized");
}

use super::*;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn options_are_split_as_a_command_line() {
    let cases = [
        ("-c search_path=a,b", pairs(&[("search_path", "a,b")])),
        ("-csearch_path=a  --statement-timeout=5s", pairs(&[("search_path", "a"), ("statement_timeout", "5s")])),
        (r"-c application_name=a\ b\\c", pairs(&[("application_name", r"a b\c")])),
        ("", pairs(&[])),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_options(text), Ok(expected), "{text}");
    }
    assert!(parse_options("-c").is_err());
    assert!(parse_options("-z 5").is_err());
}

#[test]
fn the_database_defaults_to_the_user() {
    let asked = parse_startup(3, 0, pairs(&[("user", "ada"), ("TimeZone", "UTC")])).unwrap();
    assert_eq!(asked.database, "ada");
    assert_eq!(asked.settings, pairs(&[("TimeZone", "UTC")]));
    assert_eq!(asked.negotiation, None);
}

#[test]
fn a_newer_protocol_or_an_unknown_option_is_negotiated() {
    let asked = parse_startup(3, 9999, pairs(&[("user", "ada"), ("_pq_.tea", "1")])).unwrap();
    assert_eq!(asked.minor, NEWEST_MINOR);
    assert_eq!(asked.negotiation, Some(Negotiation { unknown_options: vec!["_pq_.tea".into()] }));
    assert_eq!(parse_startup(3, 2, pairs(&[("user", "ada")])).unwrap().negotiation, None);
}

#[test]
fn no_user_another_protocol_and_replication_are_refused() {
    assert_eq!(parse_startup(3, 0, vec![]).unwrap_err().condition, Condition::InvalidAuthorization);
    assert_eq!(parse_startup(2, 0, pairs(&[("user", "a")])).unwrap_err().condition, Condition::FeatureNotSupported);
    let replication = pairs(&[("user", "a"), ("replication", "database")]);
    assert_eq!(parse_startup(3, 0, replication).unwrap_err().condition, Condition::FeatureNotSupported);
}

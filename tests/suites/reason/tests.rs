use super::*;

fn failure(sqlstate: &str, message: &str) -> Failure {
    Failure { sqlstate: sqlstate.to_owned(), message: message.to_owned() }
}

#[test]
fn keys_have_neither_names_nor_numbers() {
    for (sqlstate, message, expected) in [
        ("42P01", "relation \"t1\" does not exist", "42P01 relation \"…\" does not exist"),
        ("42883", "function f(int4, text) does not exist", "42883 function f(int4, text) does not exist"),
        ("22003", "value 12.5 isn't in range 1..7\nmore", "22003 value N isn't in range N"),
        ("42601", "syntax error at or near \"QUALIFY\"", "42601 syntax error at or near \"QUALIFY\""),
        ("42704", "unrecognized configuration parameter \"x\"", "42704 unrecognized configuration parameter \"x\""),
        ("0A000", "the operator \" is not supported", "0A000 the operator \" is not supported"),
    ] {
        assert_eq!(key(&failure(sqlstate, message)), expected);
    }
}

#[test]
fn refusals_that_name_no_feature_are_to_do() {
    let refused = failure("0A000", "TABLESAMPLE is not supported");
    assert_eq!(reason(&refused, "SELECT 1"), Reason::ToDo("0A000 TABLESAMPLE is not supported".to_owned()));
    let refused = failure("0A000", "CREATE TYPE is not supported");
    assert_eq!(reason(&refused, "CREATE TYPE t"), Reason::Feature(Feature::UserDefined));
}

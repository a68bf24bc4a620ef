use types::Condition;

use super::Settings;
use super::definition::{ChangeLevel, DEFINITIONS};

/// Sets a setting and returns the output of SHOW, or the condition and message of the error.
fn check(name: &str, value: &str, expected: Result<&str, (Condition, &str)>) {
    let mut settings = Settings::default();
    let result = settings.set(name, value).map_err(|error| (error.condition, error.message));
    match expected {
        Ok(shown) => {
            assert_eq!(result, Ok(()), "{name} = {value}");
            assert_eq!(settings.get(name).unwrap(), shown, "{name} = {value}");
        }
        Err((condition, message)) => {
            assert_eq!(result, Err((condition, message.to_owned())), "{name} = {value}");
        }
    }
}

/// Accessors parse built-in values and set ones alike, so both are in canonical form.
#[test]
fn built_in_values_are_canonical_and_names_sorted() {
    for definition in DEFINITIONS.iter().filter(|definition| definition.source == ChangeLevel::Session) {
        let canonical = definition.canonicalize(definition.boot).map_err(|error| error.message);
        assert_eq!(canonical.as_deref(), Ok(definition.boot), "{}", definition.name);
    }
    assert!(DEFINITIONS.is_sorted_by_key(|definition| definition.name.to_lowercase()));
}

#[test]
fn values_are_checked_and_shown_in_one_form() {
    check("statement_timeout", "5s", Ok("5s"));
    check("statement_timeout", "90000", Ok("90s"));
    check("statement_timeout", "1500", Ok("1500ms"));
    check("Statement_Timeout", "2min", Ok("2min"));
    check("kiln.query_memory", "512MB", Ok("512MB"));
    check("kiln.query_memory", "1048576", Ok("1GB"));
    check("kiln.query_memory", "1500kB", Ok("1500kB"));
    check("kiln.query_memory", "0", Ok("0"));
    check("timezone", "europe/berlin", Ok("Europe/Berlin"));
    check("search_path", "\"A b\", public,x", Ok("\"A b\", public, x"));
    check("datestyle", "iso, dmy", Ok("ISO, DMY"));
    check("client_encoding", "utf-8", Ok("UTF8"));
    check("client_encoding", "'utf-8'", Ok("UTF8"));
    check("default_transaction_isolation", "REPEATABLE READ", Ok("repeatable read"));
    check("my.own", "Value", Ok("Value"));
    check("standard_conforming_strings", "true", Ok("on"));
}

#[test]
fn what_cannot_be_is_refused() {
    let invalid = Condition::InvalidParameterValue;
    check("statement_timeout", "soon", Err((invalid, "invalid value for parameter \"statement_timeout\": \"soon\"")));
    check(
        "statement_timeout",
        "-2",
        Err((invalid, "-2 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)")),
    );
    check("kiln.query_memory", "5s", Err((invalid, "invalid value for parameter \"kiln.query_memory\": \"5s\"")));
    check("row_security", "maybe", Err((invalid, "parameter \"row_security\" requires a Boolean value")));
    check("TimeZone", "Mars/Olympus", Err((invalid, "invalid value for parameter \"TimeZone\": \"Mars/Olympus\"")));
    check("no_such", "1", Err((Condition::UndefinedObject, "unrecognized configuration parameter \"no_such\"")));
    check(
        "kiln.nothing",
        "1",
        Err((Condition::UndefinedObject, "unrecognized configuration parameter \"kiln.nothing\"")),
    );
    check(
        "server_version",
        "9",
        Err((Condition::CantChangeRuntimeParam, "parameter \"server_version\" cannot be changed")),
    );
    check(
        "bytea_output",
        "escape",
        Err((Condition::FeatureNotSupported, "setting \"bytea_output\" to \"escape\" is not supported")),
    );
}

#[test]
fn reset_goes_back_to_what_the_session_started_with() {
    let mut settings = Settings::default();
    settings.set_default("TimeZone", "Asia/Tokyo").unwrap();
    settings.set("TimeZone", "UTC").unwrap();
    settings.set("application_name", "x").unwrap();
    settings.reset("timezone").unwrap();
    assert_eq!(settings.get("TimeZone").unwrap(), "Asia/Tokyo");
    settings.reset_all();
    assert_eq!(settings.application_name(), "");
    assert_eq!(settings.search_path(), ["$user", "public"]);
}

#[test]
fn a_list_of_names_is_read_as_it_is_written() {
    let names = ["public", "$user", "Mixed Case", "with, comma", "with \"quotes\"", "a1_b"].map(str::to_owned);
    assert_eq!(super::split_list(&syntax::quote_list(&names)), Some(names.to_vec()));
}

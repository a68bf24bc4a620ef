use super::*;

fn feature(sqlstate: &str, message: &str, sql: &str) -> Option<Feature> {
    Feature::named_by(&Failure { sqlstate: sqlstate.to_owned(), message: message.to_owned() }, sql)
}

#[test]
fn errors_that_name_a_feature_have_it_as_their_reason() {
    for (sqlstate, message, sql, expected) in [
        ("0A000", "CREATE FUNCTION is not supported", "", Feature::UserDefined),
        ("0A000", "DO is not supported", "", Feature::UserDefined),
        ("0A000", "GRANT is not supported", "", Feature::Privileges),
        ("0A000", "DROP TRIGGER is not supported", "", Feature::TriggersAndRules),
        ("0A000", "ALTER TABLE … ENABLE is not supported", "ALTER TABLE t ENABLE TRIGGER x", Feature::TriggersAndRules),
        (
            "0A000",
            "ALTER TABLE … ENABLE is not supported",
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
            Feature::Privileges,
        ),
        ("55000", "cannot insert into view \"v\"", "", Feature::UpdatableViews),
        ("0A000", "PARTITION of a table is not supported", "", Feature::InheritanceAndPartitions),
        (
            "0A000",
            "CREATE TABLE OF is not supported",
            "CREATE TABLE a PARTITION OF b",
            Feature::InheritanceAndPartitions,
        ),
        ("0A000", "CREATE TABLE OF is not supported", "CREATE TABLE a OF b", Feature::UserDefined),
        ("0A000", "the type inet is not supported", "", Feature::SpecialTypes),
        ("42704", "type \"int4multirange\" does not exist", "", Feature::SpecialTypes),
        ("42883", "function to_tsvector(unknown) does not exist", "", Feature::SpecialTypes),
        ("42883", "operator does not exist: text @@ text", "", Feature::SpecialTypes),
        ("42883", "function pg_catalog.lo_create(integer) does not exist", "", Feature::LargeObjects),
        ("0A000", "CREATE SERVER is not supported", "", Feature::ForeignData),
        ("0A000", "LISTEN is not supported", "", Feature::Listen),
        ("0A000", "numeric of more than 38 digits is not supported", "", Feature::WideNumeric),
        ("22003", "value \"1\" has more than 38 digits", "", Feature::WideNumeric),
        ("0A000", "CREATE PUBLICATION is not supported", "", Feature::Publications),
    ] {
        assert_eq!(feature(sqlstate, message, sql), Some(expected), "{message}");
    }
}

#[test]
fn other_errors_have_none() {
    for (sqlstate, message) in [
        ("0A000", "TABLESAMPLE is not supported"),
        ("0A000", "CREATE MATERIALIZED VIEW is not supported"),
        ("0A000", "the type jsonpath is not supported"),
        ("42P01", "relation \"point\" does not exist"),
        ("42704", "role \"box\" does not exist"),
        ("42883", "function regexp_matches(text, text) does not exist"),
        ("42601", "syntax error at or near \"trigger\""),
        ("22003", "integer out of range"),
    ] {
        assert_eq!(feature(sqlstate, message, "SELECT 1"), None, "{message}");
    }
}

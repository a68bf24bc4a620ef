//! Conformance of casts: the samples of every type go to text and JSON, and come back from text.

use rowstore::sample_values::all_samples;
use types::sample_values::all_types;
use types::text::{DateOrder, parse_json};

use super::*;
use crate::json::JsonWriter;

/// Returns a session in UTC. In other zones the text of the greatest timestamps is beyond the dates that are read.
fn session() -> EvaluationContext {
    EvaluationContext::without_context(types::SessionZone::UTC, DateOrder::MonthDayYear, 0, 0)
}

#[test]
fn all_samples_come_back_from_text() {
    let session = session();
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        let text = cast_array(&column, &sql_type, &SqlType::Text, CastKind::Explicit, &session)
            .unwrap_or_else(|error| panic!("{sql_type} to text: {error}"));
        assert_eq!(text.data_type(), &SqlType::Text.arrow_type(), "{sql_type}");
        let back = cast_array(&text, &SqlType::Text, &sql_type, CastKind::Explicit, &session);
        if sql_type.needs_catalog() {
            // Names are looked up in the catalog, which this session does not have.
            back.expect_err("names without a catalog");
            continue;
        }
        let back = back.unwrap_or_else(|error| panic!("text to {sql_type}: {error}"));
        assert_eq!(&back, &column, "{sql_type}");
    }
}

/// A default of an added column is stored as its text, from which rows that are older than the column get it.
#[test]
fn all_samples_come_back_as_defaults_of_added_columns() {
    let session = session();
    for sql_type in all_types() {
        if matches!(sql_type.group(), types::TypeGroup::Vector) {
            // A type of system tables, to which nobody adds columns.
            continue;
        }
        let column = all_samples(&sql_type);
        let text =
            cast_array(&column, &sql_type, &SqlType::Text, CastKind::Explicit, &session).expect("any type has text");
        let texts = text.as_string_view();
        for row in 0..column.len() {
            let value = shards::missing_value(&sql_type, (!texts.is_null(row)).then(|| texts.value(row)));
            let value = value.unwrap_or_else(|error| panic!("{sql_type}: {error}"));
            assert_eq!(&value, &column.slice(row, 1), "{sql_type}");
        }
    }
}

#[test]
fn the_json_of_all_samples_is_valid() {
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        let writer = JsonWriter::new(&column, &sql_type, types::SessionZone::UTC);
        for row in 0..column.len() {
            let mut json = String::new();
            writer.write(row, &mut json);
            parse_json(&json).unwrap_or_else(|error| panic!("{sql_type}: {json}: {error}"));
            assert_eq!(
                json == "null",
                column.is_null(row) || is_json_null(&column, &sql_type, row),
                "{sql_type}: {json}"
            );
        }
    }
}

/// Returns whether the value is JSON's null, which is not NULL.
fn is_json_null(column: &ArrayRef, sql_type: &SqlType, row: usize) -> bool {
    sql_type.group() == types::TypeGroup::Json && column.as_string_view().value(row) == "null"
}

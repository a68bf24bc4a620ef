use super::SqlType;
use crate::sample_values::all_types;

#[test]
fn numbers_and_modifiers_survive_the_way_through_postgres() {
    for sql_type in all_types() {
        assert_eq!(SqlType::from_oid(sql_type.oid(), sql_type.typmod()), Some(sql_type));
    }
}

#[test]
fn the_names_of_all_types_differ() {
    let types = all_types();
    for (position, sql_type) in types.iter().enumerate() {
        for other in &types[..position] {
            assert_ne!(sql_type.to_string(), other.to_string());
        }
    }
}

#[test]
fn names_are_those_of_format_type() {
    let cases = [
        (SqlType::Numeric { precision: 12, scale: 2 }, "numeric(12,2)"),
        (SqlType::BARE_NUMERIC, "numeric"),
        (SqlType::Varchar(Some(20)), "character varying(20)"),
        (SqlType::Char(Some(1)), "character(1)"),
        (SqlType::Array(Box::new(SqlType::Int4)), "integer[]"),
    ];
    for (sql_type, name) in cases {
        assert_eq!(sql_type.to_string(), name);
    }
}

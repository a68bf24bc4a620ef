use super::SqlType;

#[test]
fn numbers_and_modifiers_survive_the_way_through_postgres() {
    let modified = [
        SqlType::Numeric { precision: 12, scale: 2 },
        SqlType::Varchar(Some(20)),
        SqlType::Char(Some(3)),
        SqlType::Array(Box::new(SqlType::Numeric { precision: 5, scale: 0 })),
    ];
    for sql_type in SqlType::scalars().chain(modified) {
        assert_eq!(SqlType::from_oid(sql_type.oid(), sql_type.typmod()), Some(sql_type));
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

//! The `pg_…_is_visible` functions, which tell whether an unqualified name finds the object.

use super::function_declaration::{FunctionDeclaration, function};
use super::scalar_function::FunctionCall;
use crate::format_type;
use crate::pg_catalog::routine_by_oid;
use crate::row_builder::Cell;
use crate::sql_text::is_visible;
use functions::catalog_entry;

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("pg_table_is_visible", "is table visible in search path?", 1..=1, "bool", |call| {
        let relation = call.relations().find_by_oid(call.oid(0)?);
        Ok(relation.map(|relation| is_visible(call.relations(), &relation)).into())
    })
    .in_catalog(&[catalog_entry(2079, "oid", "bool").stable()]),
    function("pg_type_is_visible", "is type visible in search path?", 1..=1, "bool", |call| {
        Ok(format_type::format_type(call.oid(0)?.0, -1).map(|_| true).into())
    })
    .in_catalog(&[catalog_entry(2080, "oid", "bool").stable()]),
    function("pg_function_is_visible", "is function visible in search path?", 1..=1, "bool", |call| {
        Ok(routine_by_oid(call.oid(0)?).map(|_| true).into())
    })
    .in_catalog(&[catalog_entry(2081, "oid", "bool").stable()]),
    function("pg_operator_is_visible", "is operator visible in search path?", 1..=1, "bool", always_visible)
        .in_catalog(&[catalog_entry(2082, "oid", "bool").stable()]),
    function("pg_opclass_is_visible", "is opclass visible in search path?", 1..=1, "bool", always_visible)
        .in_catalog(&[catalog_entry(2083, "oid", "bool").stable()]),
    function("pg_opfamily_is_visible", "is opfamily visible in search path?", 1..=1, "bool", always_visible)
        .in_catalog(&[catalog_entry(3829, "oid", "bool").stable()]),
    function("pg_collation_is_visible", "is collation visible in search path?", 1..=1, "bool", always_visible)
        .in_catalog(&[catalog_entry(3815, "oid", "bool").stable()]),
    function("pg_conversion_is_visible", "is conversion visible in search path?", 1..=1, "bool", always_visible)
        .in_catalog(&[catalog_entry(2093, "oid", "bool").stable()]),
    function(
        "pg_statistics_obj_is_visible",
        "is statistics object visible in search path?",
        1..=1,
        "bool",
        always_visible,
    )
    .in_catalog(&[catalog_entry(3403, "oid", "bool").stable()]),
    function(
        "pg_ts_config_is_visible",
        "is text search configuration visible in search path?",
        1..=1,
        "bool",
        always_visible,
    )
    .in_catalog(&[catalog_entry(3758, "oid", "bool").stable()]),
    function(
        "pg_ts_dict_is_visible",
        "is text search dictionary visible in search path?",
        1..=1,
        "bool",
        always_visible,
    )
    .in_catalog(&[catalog_entry(3757, "oid", "bool").stable()]),
    function("pg_ts_parser_is_visible", "is text search parser visible in search path?", 1..=1, "bool", always_visible)
        .in_catalog(&[catalog_entry(3756, "oid", "bool").stable()]),
    function(
        "pg_ts_template_is_visible",
        "is text search template visible in search path?",
        1..=1,
        "bool",
        always_visible,
    )
    .in_catalog(&[catalog_entry(3768, "oid", "bool").stable()]),
    function("pg_relation_is_publishable", "can the table be part of a publication?", 1..=1, "bool", |_| {
        Ok(Cell::Bool(false))
    })
    .in_catalog(&[catalog_entry(6121, "regclass", "bool").stable()]),
];

/// Returns true: the objects are in `pg_catalog`, which is in every search path.
fn always_visible(_: &FunctionCall<'_>) -> types::SqlResult<Cell> {
    Ok(Cell::Bool(true))
}

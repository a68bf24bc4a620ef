//! The `pg_…_is_visible` functions, which tell whether an unqualified name finds the object.

use super::call::Call;
use super::declaration::{FunctionDeclaration, function};
use crate::pg_catalog::routine_by_oid;
use crate::rows::Cell;
use crate::text::is_visible;
use crate::type_name;

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("pg_table_is_visible", "is table visible in search path?", 1..=1, "bool", |call| {
        let relation = call.relations().find_by_oid(call.oid(0)?);
        Ok(relation.map(|relation| is_visible(call.relations(), &relation)).into())
    }),
    function("pg_type_is_visible", "is type visible in search path?", 1..=1, "bool", |call| {
        Ok(type_name::format_type(call.oid(0)?.0, -1).map(|_| true).into())
    }),
    function("pg_function_is_visible", "is function visible in search path?", 1..=1, "bool", |call| {
        Ok(routine_by_oid(call.oid(0)?).map(|_| true).into())
    }),
    function("pg_operator_is_visible", "is operator visible in search path?", 1..=1, "bool", always_visible),
    function("pg_opclass_is_visible", "is opclass visible in search path?", 1..=1, "bool", always_visible),
    function("pg_opfamily_is_visible", "is opfamily visible in search path?", 1..=1, "bool", always_visible),
    function("pg_collation_is_visible", "is collation visible in search path?", 1..=1, "bool", always_visible),
    function("pg_conversion_is_visible", "is conversion visible in search path?", 1..=1, "bool", always_visible),
    function(
        "pg_statistics_obj_is_visible",
        "is statistics object visible in search path?",
        1..=1,
        "bool",
        always_visible,
    ),
    function(
        "pg_ts_config_is_visible",
        "is text search configuration visible in search path?",
        1..=1,
        "bool",
        always_visible,
    ),
    function(
        "pg_ts_dict_is_visible",
        "is text search dictionary visible in search path?",
        1..=1,
        "bool",
        always_visible,
    ),
    function("pg_ts_parser_is_visible", "is text search parser visible in search path?", 1..=1, "bool", always_visible),
    function(
        "pg_ts_template_is_visible",
        "is text search template visible in search path?",
        1..=1,
        "bool",
        always_visible,
    ),
    function("pg_relation_is_publishable", "can the table be part of a publication?", 1..=1, "bool", |_| {
        Ok(Cell::Bool(false))
    }),
];

/// Returns true: the objects are in `pg_catalog`, which is in every search path.
fn always_visible(_: &Call<'_>) -> types::SqlResult<Cell> {
    Ok(Cell::Bool(true))
}

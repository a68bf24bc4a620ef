//! Descriptions of objects as text: types, expressions, definitions and comments.

use functions::catalog_entry;
use types::{ColumnId, Oid};

use super::function_declaration::{FunctionDeclaration, function};
use super::scalar_function::FunctionCall;
use crate::format_type;
use crate::pg_catalog::routine_by_oid;
use crate::row_builder::Cell;
use crate::row_source::{self, RelationObject};
use crate::sql_text::{constraint_definition, index_definition};
use crate::view_definition::view_definition;

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("format_type", "format a type oid and atttypmod to canonical SQL", 2..=2, "text", |call| {
        if *call.cell(0) == Cell::Null {
            return Ok(Cell::Null);
        }
        let modifier = if *call.cell(1) == Cell::Null { -1 } else { i32::try_from(call.number(1)?).unwrap_or(-1) };
        let oid = call.oid(0)?;
        let unknown = if oid == Oid(0) { "-" } else { "???" };
        Ok(format_type::format_type(oid.0, modifier).unwrap_or_else(|| unknown.to_owned()).into())
    })
    .in_catalog(&[catalog_entry(1081, "oid,int4", "text").stable().called_on_null()])
    .with_nulls(),
    // Expressions are stored as SQL text, so the value of a `pg_node_tree` column is returned unchanged.
    function("pg_get_expr", "deparse an encoded expression", 2..=3, "text", |call| Ok(call.text(0).into()))
        .in_catalog(&[]),
    function("pg_get_constraintdef", "constraint description", 1..=2, "text", |call| {
        let found = row_source::find_constraint(call.state(), call.oid(0)?);
        let written = found.map(|(table, constraint)| constraint_definition(call.relations(), table, constraint));
        Ok(written.map(|written| if call.bool(1) { pretty(written) } else { written }).into())
    })
    .in_catalog(&[catalog_entry(1387, "oid", "text").stable(), catalog_entry(2508, "oid,bool", "text").stable()]),
    function("pg_get_indexdef", "index description", 1..=3, "text", |call| {
        let Some(relation) = call.relation(0)? else { return Ok(Cell::Null) };
        let RelationObject::KeyOrIndex(key) = relation.object else { return Ok(Cell::Null) };
        let column = usize::try_from(if call.len() > 1 { call.number(1)? } else { 0 }).unwrap_or(0);
        Ok(index_definition(call.state(), key, column).into())
    })
    .in_catalog(&[catalog_entry(1643, "oid", "text").stable(), catalog_entry(2507, "oid,int4,bool", "text").stable()]),
    function("pg_get_viewdef", "select statement of a view", 1..=2, "text", |call| {
        Ok(call.relation(0)?.and_then(|relation| view_definition(call.relations(), &relation)).into())
    })
    .in_catalog(&[
        catalog_entry(1640, "text", "text").stable(),
        catalog_entry(1641, "oid", "text").stable(),
        catalog_entry(2505, "text,bool", "text").stable(),
        catalog_entry(2506, "oid,bool", "text").stable(),
        catalog_entry(3159, "oid,int4", "text").stable(),
    ]),
    function("pg_get_ruledef", "source text of a rule", 1..=2, "text", |call| {
        let Some(relation) = call.relation(0)? else { return Ok(Cell::Null) };
        let name = crate::sql_text::relation_name(call.relations(), &relation);
        let definition = view_definition(call.relations(), &relation);
        Ok(definition.map(|query| format!("CREATE RULE \"_RETURN\" AS ON SELECT TO {name} DO INSTEAD {query}")).into())
    })
    .in_catalog(&[catalog_entry(1573, "oid", "text").stable(), catalog_entry(2504, "oid,bool", "text").stable()]),
    function("pg_get_triggerdef", "trigger description", 1..=2, "text", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(1662, "oid", "text").stable(), catalog_entry(2730, "oid,bool", "text").stable()]),
    function("pg_get_statisticsobjdef", "extended statistics object description", 1..=1, "text", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(3415, "oid", "text").stable()]),
    function("pg_get_statisticsobjdef_columns", "extended statistics columns", 1..=1, "text", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(6174, "oid", "text").stable()]),
    function("pg_get_partkeydef", "partition key description", 1..=1, "text", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(3352, "oid", "text").stable()]),
    function("pg_get_partition_constraintdef", "partition constraint description", 1..=1, "text", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(3408, "oid", "text").stable()]),
    function("pg_get_function_sqlbody", "function SQL body", 1..=1, "text", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(6197, "oid", "text").stable()]),
    function("pg_get_functiondef", "definition of a function", 1..=1, "text", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(2098, "oid", "text").stable()]),
    function("pg_get_function_result", "result type of a function", 1..=1, "text", |call| {
        let routine = routine_by_oid(call.oid(0)?);
        Ok(routine
            .map(|routine| {
                let set = if routine.returns_set { "SETOF " } else { "" };
                format!("{set}{}", format_type::format_type(routine.result, -1).unwrap_or_default())
            })
            .into())
    })
    .in_catalog(&[catalog_entry(2165, "oid", "text").stable()]),
    function("pg_get_function_arguments", "argument list of a function", 1..=1, "text", arguments)
        .in_catalog(&[catalog_entry(2162, "oid", "text").stable()]),
    function("pg_get_function_identity_arguments", "identity argument list of a function", 1..=1, "text", arguments)
        .in_catalog(&[catalog_entry(2232, "oid", "text").stable()]),
    function("oidvectortypes", "print type names of oidvector field", 1..=1, "text", |call| {
        let Cell::List(items) = call.cell(0) else { return Ok(Cell::Null) };
        let numbers = items.iter().filter_map(Cell::as_number::<u32>);
        Ok(numbers.filter_map(|oid| format_type::format_type(oid, -1)).collect::<Vec<_>>().join(", ").into())
    })
    .in_catalog(&[catalog_entry(1349, "oidvector", "text").stable()]),
    function("obj_description", "get description for object id and catalog name", 1..=2, "text", |call| {
        let oid = call.oid(0)?;
        let of = |catalog: &str| call.len() == 1 || call.text(1) == catalog;
        let relation = call.relations().find_by_oid(oid).filter(|_| of("pg_class"));
        let schema = call.state().schema(oid).filter(|_| of("pg_namespace"));
        let constraint = row_source::find_constraint(call.state(), oid).filter(|_| of("pg_constraint"));
        let comment = relation.and_then(|relation| relation.comment());
        let comment = comment.or_else(|| schema.and_then(|schema| schema.comment.as_deref()));
        let comment = comment.or_else(|| constraint.and_then(|(_, constraint)| constraint.comment.as_deref()));
        Ok(comment.or_else(|| routine_by_oid(oid).map(|it| it.description).filter(|_| of("pg_proc"))).into())
    })
    .in_catalog(&[catalog_entry(1215, "oid,name", "text").stable(), catalog_entry(1348, "oid", "text").stable()]),
    function("col_description", "get description for table column", 2..=2, "text", |call| {
        let number = ColumnId(i32::try_from(call.number(1)?).unwrap_or(0));
        let oid = call.oid(0)?;
        let view = call.state().view(oid).and_then(|view| view.column_comments.get(&number));
        let column = call.state().table(oid).and_then(|table| row_source::find_column(table, number));
        Ok(view.map(String::as_str).or_else(|| column.and_then(|column| column.comment.as_deref())).into())
    })
    .in_catalog(&[catalog_entry(1216, "oid,int4", "text").stable()]),
    function("shobj_description", "get description for object id and shared catalog name", 2..=2, "text", |call| {
        let oid = call.oid(0)?;
        Ok(match call.text(1) {
            "pg_database" => call.state().database().comment.as_deref(),
            "pg_authid" => call.state().role(oid).and_then(|role| role.comment.as_deref()),
            _ => None,
        }
        .into())
    })
    .in_catalog(&[catalog_entry(1993, "oid,name", "text").stable()]),
    function("pg_describe_object", "get identification of SQL object", 3..=3, "text", |call| {
        let Some(relation) = call.relations().find_by_oid(call.oid(1)?) else { return Ok(Cell::Null) };
        let kind = match relation.kind() {
            "v" => "view",
            "i" => "index",
            "S" => "sequence",
            _ => "table",
        };
        Ok(format!("{kind} {}", crate::sql_text::relation_name(call.relations(), &relation)).into())
    })
    .in_catalog(&[catalog_entry(3537, "oid,oid,int4", "text").stable()]),
];

fn arguments(call: &FunctionCall<'_>) -> types::SqlResult<Cell> {
    let routine = routine_by_oid(call.oid(0)?);
    Ok(routine
        .map(|routine| {
            let names = routine.arguments.iter().filter_map(|oid| format_type::format_type(*oid, -1));
            names.collect::<Vec<_>>().join(", ")
        })
        .into())
}

/// Removes the inner parentheses from the definition of a CHECK, as PostgreSQL's pretty-printing does.
fn pretty(definition: String) -> String {
    let inner = definition.strip_prefix("CHECK ((").and_then(|rest| rest.strip_suffix("))"));
    inner.map_or_else(|| definition.clone(), |inner| format!("CHECK ({inner})"))
}

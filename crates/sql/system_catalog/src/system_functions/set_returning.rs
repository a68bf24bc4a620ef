//! Set-returning functions over arrays, options and partitions: they return the set as a list to be unnested.

use types::SqlResult;
use types::text::parse_array;

use super::function_declaration::{FunctionDeclaration, function};
use super::scalar_function::FunctionCall;
use crate::row_builder::Cell;

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("generate_subscripts_list", "subscripts of an array as a list", 2..=3, "int4[]", |call| {
        let Cell::List(items) = call.cell(0) else { return Ok(Cell::Null) };
        if call.number(1)? != 1 {
            return Ok(Cell::List(Vec::new()));
        }
        let mut subscripts: Vec<Cell> = (1..=items.len()).map(Cell::from).collect();
        if call.bool(2) {
            subscripts.reverse();
        }
        Ok(Cell::List(subscripts))
    }),
    // Each row is an array of two numbers, element and subscript, which `rewrite` reads as fields.
    function(
        "_pg_expandarray_list",
        "elements of an array with their subscripts as a list",
        1..=1,
        "int4[][]",
        |call| {
            let Cell::List(items) = call.cell(0) else { return Ok(Cell::Null) };
            let rows = items.iter().zip(1..).map(|(item, at)| Cell::List(vec![item.clone(), Cell::Int(at)]));
            Ok(Cell::List(rows.collect()))
        },
    ),
    // A table is its own only ancestor.
    function("pg_partition_ancestors_list", "partition ancestors of a table as a list", 1..=1, "regclass[]", |call| {
        Ok(Cell::List(call.relation(0)?.map(|relation| relation.oid).into_iter().map(Cell::from).collect()))
    }),
    // Kiln has no partitioned tables.
    function("pg_partition_tree_relid", "column relid of pg_partition_tree as a list", 1..=1, "regclass[]", no_rows),
    function(
        "pg_partition_tree_parentrelid",
        "column parentrelid of pg_partition_tree as a list",
        1..=1,
        "regclass[]",
        no_rows,
    ),
    function("pg_partition_tree_isleaf", "column isleaf of pg_partition_tree as a list", 1..=1, "bool[]", no_rows),
    function("pg_partition_tree_level", "column level of pg_partition_tree as a list", 1..=1, "int4[]", no_rows),
    function(
        "pg_options_to_table_option_name",
        "column option_name of pg_options_to_table as a list",
        1..=1,
        "text[]",
        |call| options(call, |name, _| name.into()),
    ),
    function(
        "pg_options_to_table_option_value",
        "column option_value of pg_options_to_table as a list",
        1..=1,
        "text[]",
        |call| options(call, |_, value| value.into()),
    ),
];

fn no_rows(call: &FunctionCall<'_>) -> SqlResult<Cell> {
    call.relation(0).map(|_| Cell::List(Vec::new()))
}

/// Returns the names or the values of options `name=value`.
fn options(call: &FunctionCall<'_>, side: fn(&str, Option<&str>) -> Cell) -> SqlResult<Cell> {
    let mut found = Vec::new();
    let mut add = |option: &str| {
        found.push(match option.split_once('=') {
            Some((name, value)) => side(name, Some(value)),
            None => side(option, None),
        });
    };
    match call.cell(0) {
        Cell::List(items) => items.iter().filter_map(Cell::as_text).for_each(&mut add),
        // A string constant without a type.
        Cell::Text(text) => parse_array(text, &mut |option| {
            option.into_iter().for_each(&mut add);
            Ok(())
        })?,
        _ => {}
    }
    Ok(Cell::List(found))
}

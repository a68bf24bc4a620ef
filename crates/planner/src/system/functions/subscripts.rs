//! Functions over arrays and ancestors that return sets: here, the set as a list to be unnested.

use super::{Declaration, function};
use crate::system::rows::Cell;

pub(super) const FUNCTIONS: &[Declaration] = &[
    function("generate_subscripts_list", 2..=3, "int4[]", |call| {
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
    // Rows of element and subscript, as arrays of two: `rewrite` reads their fields so.
    function("_pg_expandarray_list", 1..=1, "int4[][]", |call| {
        let Cell::List(items) = call.cell(0) else { return Ok(Cell::Null) };
        let rows = items.iter().zip(1..).map(|(item, at)| Cell::List(vec![item.clone(), Cell::Int(at)]));
        Ok(Cell::List(rows.collect()))
    }),
    // A table is its own only ancestor.
    function("pg_partition_ancestors_list", 1..=1, "regclass[]", |call| {
        Ok(Cell::List(call.relation(0)?.map(|relation| relation.oid).into_iter().map(Cell::from).collect()))
    }),
];

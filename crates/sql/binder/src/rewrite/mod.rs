//! Rewrites PostgreSQL syntax that DataFusion cannot plan to syntax that it can, before names are resolved.
//!
//! Each rewrite is independent of the session. Start at [`rewrite_query`].
//!
//! - `set_function.rs` with `unnest_names.rs`: set-returning functions become UNNEST of a list,
//! - `any_all_arrays.rs`: ANY and ALL over literal arrays become IN, ARRAY(subquery) becomes a call,
//! - `row_comparison.rs`: rows are compared field by field,
//! - `comparison_chains.rs`: long chains of comparisons with constants become lists,
//! - `collate_clause.rs`: COLLATE clauses without an effect are removed.

pub(crate) mod any_all_arrays;
mod collate_clause;
mod comparison_chains;
pub(crate) mod row_comparison;
mod set_function;
mod unnest_names;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, VisitorMut};
use syntax::Walk;
use types::{SqlError, SqlResult};

/// Rewrites a query and everything in it. Output names must be determined before, because calls change.
///
/// # Errors
/// SQLSTATE 42704 for a collation that does not exist, 0A000 for unsupported calls of set-returning functions.
pub(crate) fn rewrite_query(query: &mut Query) -> SqlResult<()> {
    finish(query.walk_mut(&mut QueryRewriter))
}

/// Rewrites a standalone expression. See [`rewrite_query`].
///
/// # Errors
/// Those of [`rewrite_query`].
pub(crate) fn rewrite_expr(expr: &mut Expr) -> SqlResult<()> {
    finish(expr.walk_mut(&mut QueryRewriter))
}

fn finish(flow: ControlFlow<SqlError>) -> SqlResult<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct QueryRewriter;

impl VisitorMut for QueryRewriter {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        flow(row_comparison::rewrite_where(select))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        flow(set_function::rewrite_from(select))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        comparison_chains::rewrite_chain(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        flow(collate_clause::strip(expr).map(|()| {
            any_all_arrays::rewrite_any_all(expr);
            any_all_arrays::array_of_subquery(expr);
            set_function::rewrite_field_access(expr);
            set_function::rewrite_call(expr);
        }))?;
        flow(row_comparison::rewrite_comparison(expr))
    }
}

fn flow(result: SqlResult<()>) -> ControlFlow<SqlError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

//! PostgreSQL's syntax that DataFusion has no plan for, brought into syntax it has, before names are bound.
//!
//! Each rewrite means the same for every query, whoever sends it: set-returning functions become UNNEST of a list
//! (`set_function.rs`), ARRAY(subquery) a call around the subquery, ANY and ALL over written-out lists become IN, rows are
//! compared field by field (`row.rs`), long chains of comparisons with constants become lists (`constants.rs`), and a COLLATE that changes nothing goes.
//! Start at [`query`].

mod collation;
mod constants;
pub(crate) mod list;
pub(crate) mod row;
mod set_function;
mod unnest_names;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, VisitorMut};
use syntax::Walk;
use types::{SqlError, SqlResult};

/// Rewrites a query and everything in it. Output names must be taken before: calls change.
///
/// # Errors
/// `42704` for a collation that does not exist, `0A000` for set-returning calls where Kiln has no rows for them.
pub(crate) fn query(query: &mut Query) -> SqlResult<()> {
    finish(query.walk_mut(&mut Rewrite))
}

/// As [`query`], for an expression that stands alone.
///
/// # Errors
/// As for queries.
pub(crate) fn expr(expr: &mut Expr) -> SqlResult<()> {
    finish(expr.walk_mut(&mut Rewrite))
}

fn finish(flow: ControlFlow<SqlError>) -> SqlResult<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Rewrite;

impl VisitorMut for Rewrite {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        flow(row::in_where(select))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        flow(set_function::in_from(select))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        constants::shorten(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        flow(collation::strip(expr).map(|()| {
            list::quantified(expr);
            list::array_of_subquery(expr);
            set_function::field(expr);
            set_function::call(expr);
        }))?;
        flow(row::comparison(expr))
    }
}

fn flow(result: SqlResult<()>) -> ControlFlow<SqlError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

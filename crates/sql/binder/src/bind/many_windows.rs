//! Keeps the work for a SELECT with many window calls from growing with the cube of their number.
//!
//! DataFusion plans an operator for each window, and looks for each column of the SELECT list through the columns of all these operators, unless another
//! operator stands between. A filter that lets everything pass does; the optimizer takes it away, and the window that it reads.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, Select, Value, VisitorMut, WindowSpec, WindowType};
use syntax::Walk;

use crate::semantics::call;

/// A SELECT with more window calls than this gets a filter above its windows.
const CALLS_MAX: usize = 32;

/// Puts a filter above the windows of each SELECT that has many calls of them.
pub(super) fn add_filters(query: &mut Query) {
    let _ = query.walk_mut(&mut WindowCallCounter::default());
}

#[derive(Default)]
struct WindowCallCounter {
    /// Window calls so far, of each query and SELECT around the visited expression: those of ORDER BY are the query's.
    calls: Vec<usize>,
}

impl VisitorMut for WindowCallCounter {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.calls.push(0);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.calls.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.calls.push(0);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if self.calls.pop().is_some_and(|calls| calls > CALLS_MAX) {
            select.qualify = Some(always_true());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let (Expr::Function(call), Some(calls)) = (expr, self.calls.last_mut()) {
            *calls += usize::from(call.over.is_some());
        }
        ControlFlow::Continue(())
    }
}

/// `row_number() OVER () IS NULL OR true`: DataFusion takes no QUALIFY without a window call in it.
fn always_true() -> Expr {
    let window = WindowSpec { window_name: None, partition_by: Vec::new(), order_by: Vec::new(), window_frame: None };
    let mut row_number = call("row_number", Vec::new());
    if let Expr::Function(row_number) = &mut row_number {
        row_number.over = Some(WindowType::WindowSpec(window));
    }
    let left = Box::new(Expr::IsNull(Box::new(row_number)));
    let right = Box::new(Expr::Value(Value::Boolean(true).into()));
    Expr::BinaryOp { left, op: BinaryOperator::Or, right }
}

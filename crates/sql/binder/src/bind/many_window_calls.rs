//! Workaround for SELECTs with many window calls, whose planning would take time cubic in their number.
//!
//! DataFusion plans an operator per window, and searches each column of the SELECT list in the columns of all these
//! operators unless another operator stands between. A filter that is always true does; the optimizer removes it and
//! the window that it reads.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, Select, Value, VisitorMut, WindowSpec, WindowType};
use syntax::Walk;

use crate::semantics::function_call;

/// Number of window calls above which a SELECT gets a filter above its windows.
const WINDOW_CALLS_MAX: usize = 32;

/// Adds a filter above the windows of each SELECT with many window calls.
pub(super) fn add_filters(query: &mut Query) {
    let _ = query.walk_mut(&mut WindowCallCounter::default());
}

#[derive(Default)]
struct WindowCallCounter {
    /// Window calls so far of each query and SELECT around the visited expression; those of ORDER BY belong to the
    /// query.
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
        if self.calls.pop().is_some_and(|calls| calls > WINDOW_CALLS_MAX) {
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

/// Returns `row_number() OVER () IS NULL OR true`: DataFusion requires a window call in QUALIFY.
fn always_true() -> Expr {
    let window = WindowSpec { window_name: None, partition_by: Vec::new(), order_by: Vec::new(), window_frame: None };
    let mut row_number = function_call("row_number", Vec::new());
    if let Expr::Function(row_number) = &mut row_number {
        row_number.over = Some(WindowType::WindowSpec(window));
    }
    let left = Box::new(Expr::IsNull(Box::new(row_number)));
    let right = Box::new(Expr::Value(Value::Boolean(true).into()));
    Expr::BinaryOp { left, op: BinaryOperator::Or, right }
}

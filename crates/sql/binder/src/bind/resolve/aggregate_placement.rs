//! Checks that aggregates and window functions are used only where they are allowed, and with clauses they accept.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments, Query, Visitor,
};
use syntax::Walk;
use types::{Condition, SqlError, SqlResult};

/// Clause of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    Select,
    Where,
    Join,
    GroupBy,
    Having,
    Values,
    Limit,
    Offset,
    /// SET of an UPDATE.
    Update,
    MergeWhen,
    /// VALUES of MERGE's INSERT, which can refer to the source only.
    MergeInsert,
    Returning,
}

impl Clause {
    fn name(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::Where => "WHERE",
            Clause::Join => "JOIN conditions",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::Values => "VALUES",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Update => "UPDATE",
            Clause::MergeWhen => "MERGE WHEN conditions",
            Clause::MergeInsert => "VALUES",
            Clause::Returning => "RETURNING",
        }
    }

    fn allows_aggregates(self) -> bool {
        matches!(self, Clause::Select | Clause::Having)
    }

    fn allows_windows(self) -> bool {
        self == Clause::Select
    }

    fn rejects_set_functions(self) -> bool {
        matches!(self, Clause::Update | Clause::MergeWhen | Clause::MergeInsert | Clause::Returning)
    }
}

/// Rejects calls in `expr` that are not allowed in `clause`; subqueries are not searched.
pub(super) fn check_calls(expr: &Expr, clause: Clause) -> SqlResult<()> {
    let mut checker = CallPlacementChecker { clause, subquery_depth: 0, enclosing_calls: Vec::new() };
    match expr.walk(&mut checker) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Scalar,
    Aggregate,
    Window,
}

struct CallPlacementChecker {
    clause: Clause,
    /// Number of subqueries around the visited node.
    subquery_depth: usize,
    /// Function calls around it.
    enclosing_calls: Vec<CallKind>,
}

impl Visitor for CallPlacementChecker {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Box<SqlError>> {
        self.subquery_depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Box<SqlError>> {
        self.subquery_depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<SqlError>> {
        if let Expr::Function(function) = expr
            && self.subquery_depth == 0
        {
            match self.enter(function) {
                Ok(kind) => self.enclosing_calls.push(kind),
                Err(error) => return ControlFlow::Break(Box::new(error)),
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<SqlError>> {
        if matches!(expr, Expr::Function(_)) && self.subquery_depth == 0 {
            self.enclosing_calls.pop();
        }
        ControlFlow::Continue(())
    }
}

impl CallPlacementChecker {
    fn enter(&self, function: &Function) -> SqlResult<CallKind> {
        let kind = kind_of(function)?;
        let place = self.clause.name();
        let error = |condition, message: String| Err(SqlError::new(condition, message));
        match kind {
            CallKind::Scalar if self.clause.rejects_set_functions() && is_set_returning(function) => {
                let message = format!("set-returning functions are not allowed in {place}");
                return error(Condition::FeatureNotSupported, message);
            }
            CallKind::Scalar => {}
            CallKind::Aggregate if !self.clause.allows_aggregates() => {
                return error(Condition::GroupingError, format!("aggregate functions are not allowed in {place}"));
            }
            CallKind::Aggregate if self.enclosing_calls.contains(&CallKind::Aggregate) => {
                return error(Condition::GroupingError, "aggregate function calls cannot be nested".to_owned());
            }
            CallKind::Window if !self.clause.allows_windows() => {
                return error(Condition::WindowingError, format!("window functions are not allowed in {place}"));
            }
            CallKind::Window if self.enclosing_calls.contains(&CallKind::Aggregate) => {
                let message = "aggregate function calls cannot contain window function calls";
                return error(Condition::GroupingError, message.to_owned());
            }
            CallKind::Window if self.enclosing_calls.contains(&CallKind::Window) => {
                return error(Condition::WindowingError, "window function calls cannot be nested".to_owned());
            }
            CallKind::Aggregate | CallKind::Window => {}
        }
        Ok(kind)
    }
}

/// Returns whether it is `unnest`, to which every call of a set-returning function is rewritten.
fn is_set_returning(function: &Function) -> bool {
    function.name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| name.value == "unnest")
}

/// Classifies a call by its name and clauses.
fn kind_of(function: &Function) -> SqlResult<CallKind> {
    let Some(name) = function.name.0.last().and_then(|part| part.as_ident()) else { return Ok(CallKind::Scalar) };
    let name = name.value.to_lowercase();
    let is_aggregate = functions::aggregate(&name).is_some() && name != "grouping";
    let is_window = functions::window(&name).is_some();
    let wrong = |message: String| Err(SqlError::new(Condition::WrongObjectType, message));
    if function.over.is_some() {
        if is_aggregate || is_window {
            for (is_given, clause) in
                [(is_distinct(function), "DISTINCT"), (is_ordered(function), "aggregate ORDER BY")]
            {
                if is_given {
                    let message = format!("{clause} is not implemented for window functions");
                    return Err(SqlError::new(Condition::FeatureNotSupported, message));
                }
            }
            return Ok(CallKind::Window);
        }
        let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
        return wrong(message);
    }
    if is_aggregate {
        return Ok(CallKind::Aggregate);
    }
    if is_window {
        return wrong(format!("window function {name} requires an OVER clause"));
    }
    for (is_given, clause) in [
        (is_distinct(function), "DISTINCT"),
        (function.filter.is_some(), "FILTER"),
        (!function.within_group.is_empty(), "WITHIN GROUP"),
    ] {
        if is_given {
            return wrong(format!("{clause} specified, but {name} is not an aggregate function"));
        }
    }
    Ok(CallKind::Scalar)
}

/// Returns whether a query calls a volatile function.
pub(super) fn is_volatile(query: &Query) -> bool {
    let flow = query.walk_expressions(|expr| {
        let name = match expr {
            Expr::Function(function) => function.name.0.last().and_then(|part| part.as_ident()),
            _ => None,
        };
        let found = name.is_some_and(|name| functions::is_volatile(&name.value.to_lowercase()));
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    flow.is_break()
}

fn is_ordered(function: &Function) -> bool {
    let is_order = |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    matches!(&function.args, FunctionArguments::List(list) if list.clauses.iter().any(is_order))
}

fn is_distinct(function: &Function) -> bool {
    matches!(&function.args, FunctionArguments::List(list)
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
}

//! Limit on the cost of type inference in DataFusion.
//!
//! DataFusion infers the type and the nullability of a CASE in two separate recursions, and a function call inside it
//! starts both again for the next CASE. The cost doubles with every such level: thirty levels take minutes. This
//! module estimates the number of recursive calls in `ExprSchemable` and `predicate_bounds` of `datafusion-expr`,
//! from above, and rejects a statement that needs too many.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value,
    Visitor,
};
use syntax::Walk;
use types::SqlResult;
use types::stack_limit::too_complex_error;

/// Limit on the inference calls of a statement: about a second of planning.
const CALLS_MAX: u64 = 1 << 16;
/// Additional calls allowed per expression of the statement. An expression needs fewer unless its cost doubles with
/// each level.
const CALLS_PER_EXPRESSION: u64 = 8;

/// Inference calls per argument of a COALESCE that becomes a CASE, as measured.
const COALESCE_CALLS: u64 = 4;

/// Checks that the expressions of a query, or a single one, need few enough inference calls.
///
/// # Errors
/// SQLSTATE 54001.
pub(super) fn check_inference_cost(expressions: &impl Walk) -> SqlResult<()> {
    let mut counter = CallCounter::default();
    let walked = expressions.walk(&mut counter);
    let most = CALLS_MAX.saturating_add(counter.expressions.saturating_mul(CALLS_PER_EXPRESSION));
    if walked.is_continue() && counter.calls <= most { Ok(()) } else { Err(too_complex_error()) }
}

/// Number of inference calls that an expression causes, by the kind of the first call.
#[derive(Clone, Copy)]
struct InferenceCalls {
    /// `get_type`.
    get_type: u64,
    /// `nullable`.
    nullable: u64,
    /// `to_field`.
    to_field: u64,
    /// `PredicateBoundsEvaluator::is_null`.
    is_null: u64,
    /// `evaluate_bounds`, as the condition of a CASE.
    evaluate_bounds: u64,
}

#[derive(Default)]
struct CallCounter {
    /// The enclosing expressions, each with the counts of its visited operands.
    enclosing_expressions: Vec<Vec<InferenceCalls>>,
    expressions: u64,
    calls: u64,
}

impl Visitor for CallCounter {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.enclosing_expressions.push(Vec::new());
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let below = self.enclosing_expressions.pop().expect("pre_visit_expr pushed an entry");
        let calls = InferenceCalls::new(expr, &below);
        self.expressions += 1;
        match self.enclosing_expressions.last_mut() {
            Some(around) => around.push(calls),
            None => self.calls = self.calls.saturating_add(calls.to_field),
        }
        ControlFlow::Continue(())
    }
}

/// Adds up counts, and one for the expression itself.
fn sum_plus_one(all: impl Iterator<Item = u64>) -> u64 {
    all.fold(1, u64::saturating_add)
}

impl InferenceCalls {
    /// Counts the calls of an expression; `below` are the counts of its operands, in the order of the text.
    fn new(expr: &Expr, below: &[Self]) -> Self {
        match expr {
            Expr::Nested(_) if !below.is_empty() => below[0],
            Expr::Case { operand, conditions, .. } => match operand {
                None => Self::count_case(conditions, below, |condition| condition.evaluate_bounds),
                // A cheap operand is compared with each WHEN; any other is computed only once and compared as a
                // value.
                Some(operand) if is_plain(operand) => {
                    let compared = |when: &Self| Self::count_comparison(&[below[0], *when]).evaluate_bounds;
                    Self::count_case(conditions, &below[1..], compared)
                }
                Some(_) => Self::count_case(conditions, &below[1..], |_| 0),
            },
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
            | Expr::UnaryOp { op: UnaryOperator::Not, .. }
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_) => Self {
                evaluate_bounds: sum_plus_one(below.iter().map(|inner| inner.evaluate_bounds)),
                ..Self::count_call(below)
            },
            Expr::IsNull(_) | Expr::IsNotNull(_) => {
                let all = |inner: &Self| {
                    inner
                        .nullable
                        .saturating_add(inner.get_type)
                        .saturating_add(inner.is_null.max(inner.evaluate_bounds))
                };
                Self { evaluate_bounds: sum_plus_one(below.iter().map(all)), ..Self::count_call(below) }
            }
            Expr::BinaryOp { op, .. } if is_comparison(op) => Self::count_comparison(below),
            Expr::Cast { .. } | Expr::Like { .. } | Expr::ILike { .. } => Self::count_comparison(below),
            // BETWEEN is two comparisons.
            Expr::Between { .. } if below.len() == 3 => {
                let sides =
                    [Self::count_comparison(&[below[0], below[1]]), Self::count_comparison(&[below[0], below[2]])];
                Self {
                    evaluate_bounds: sum_plus_one(sides.iter().map(|side| side.evaluate_bounds)),
                    ..Self::count_call(&sides)
                }
            }
            Expr::Function(function) if becomes_case(function) => {
                // The arguments of a COALESCE become arguments of the one around it (`semantics/coalesce.rs`).
                let own = arguments(function).zip(below).map(|(argument, inner)| match argument {
                    Some(Expr::Function(inner_call)) if becomes_case(inner_call) => inner.to_field,
                    _ => inner.to_field.saturating_mul(COALESCE_CALLS),
                });
                let field = sum_plus_one(own);
                Self { get_type: field, nullable: field, to_field: field, is_null: field, evaluate_bounds: field }
            }
            _ => Self::count_call(below),
        }
    }

    fn count_call(below: &[Self]) -> Self {
        let field = sum_plus_one(below.iter().map(|inner| inner.to_field));
        Self { get_type: field, nullable: field, to_field: field, is_null: field, evaluate_bounds: field }
    }

    /// Counts the calls of an operator that returns NULL for a NULL operand: `is_null` descends into its operands.
    fn count_comparison(below: &[Self]) -> Self {
        let call = Self::count_call(below);
        let certain = below.iter().fold(call.to_field, |sum, inner| sum.saturating_add(inner.is_null));
        Self { is_null: certain, evaluate_bounds: certain, ..call }
    }

    /// Counts the calls of a CASE; `branches` are conditions and results in turn, then ELSE. `asked` returns the
    /// calls of a condition.
    fn count_case(conditions: &[CaseWhen], branches: &[Self], asked: impl Fn(&Self) -> u64) -> Self {
        let count = conditions.len();
        let results = branches.iter().skip(1).step_by(2).take(count).chain(branches.get(2 * count));
        // The first result decides the type, unless it is NULL.
        let untyped = conditions.iter().take_while(|when| is_null(&when.result)).count();
        let kind = sum_plus_one(results.clone().skip(untyped).take(1).map(|result| result.get_type));
        let null = branches.iter().step_by(2).take(count).map(asked);
        let null = null.fold(sum_plus_one(results.map(|result| result.nullable)), u64::saturating_add);
        Self {
            get_type: kind,
            nullable: null,
            to_field: kind.saturating_add(null),
            is_null: null,
            evaluate_bounds: null,
        }
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq)
}

/// Returns whether the expression is a column or a constant.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_plain(inner),
        Expr::Cast { expr: inner, .. } => is_plain(inner),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::TypedString(_) => true,
        _ => false,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}

/// Returns the arguments of a call; `None` for those that are not expressions.
fn arguments(function: &Function) -> impl Iterator<Item = Option<&Expr>> {
    let list = if let FunctionArguments::List(list) = &function.args { list.args.as_slice() } else { &[] };
    list.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
}

/// Returns whether a call is a COALESCE that becomes a CASE even inside of another one (`semantics/coalesce.rs`).
fn becomes_case(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_costly = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => !is_plain(expr),
        _ => false,
    };
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| name.value == "coalesce") && list.args.iter().skip(1).any(is_costly)
}

//! How often DataFusion asks for the types of expressions, wherever it makes a plan of them.
//!
//! It asks a CASE for its type and for whether it may be NULL, each of which asks what is in it, and a function there asks the next CASE for both again. So
//! what is in such a CASE is asked twice as often with each level, and in thirty levels for minutes. This counts what `ExprSchemable` and
//! `predicate_bounds` of `datafusion-expr` ask, rather too many than too few.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value,
    Visit, Visitor,
};
use types::SqlResult;
use types::stack::too_complex;

/// Questions that a statement may cost: they take about a second, all in all.
const QUESTIONS_MAX: u64 = 1 << 16;
/// What they may be more for each of its expressions. Where nothing doubles, an expression costs fewer.
const QUESTIONS_EACH: u64 = 8;

/// How often a COALESCE that becomes a CASE asks what is in it.
const COALESCE_QUESTIONS: u64 = 4;

/// Checks that expressions, or those of a query, cost few enough questions.
///
/// # Errors
/// `54001`.
pub(super) fn check(expressions: &impl Visit) -> SqlResult<()> {
    let mut asked = Asked::default();
    let walked = expressions.visit(&mut asked);
    let most = QUESTIONS_MAX.saturating_add(asked.expressions.saturating_mul(QUESTIONS_EACH));
    if walked.is_continue() && asked.questions <= most { Ok(()) } else { Err(too_complex()) }
}

/// What an expression asks, itself and those in it.
#[derive(Clone, Copy)]
struct Questions {
    /// When it is asked for its type.
    kind: u64,
    /// For whether it may be NULL.
    null: u64,
    /// For its field.
    field: u64,
    /// For whether it is NULL for sure.
    certain: u64,
    /// For what it can be as a condition.
    bounds: u64,
}

#[derive(Default)]
struct Asked {
    /// The expressions around the one that is visited, each with those in it that have been.
    open: Vec<Vec<Questions>>,
    expressions: u64,
    questions: u64,
}

impl Visitor for Asked {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.open.push(Vec::new());
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let below = self.open.pop().expect("it was opened before what is in it");
        let questions = Questions::of(expr, &below);
        self.expressions += 1;
        match self.open.last_mut() {
            Some(around) => around.push(questions),
            None => self.questions = self.questions.saturating_add(questions.field),
        }
        ControlFlow::Continue(())
    }
}

/// One more than all of them.
fn one_more(all: impl Iterator<Item = u64>) -> u64 {
    all.fold(1, u64::saturating_add)
}

impl Questions {
    /// `below` are those in the expression, in the order of the text.
    fn of(expr: &Expr, below: &[Self]) -> Self {
        match expr {
            Expr::Nested(_) if !below.is_empty() => below[0],
            Expr::Case { operand, conditions, .. } => match operand {
                None => Self::case(conditions, below, |condition| condition.bounds),
                // One that costs nothing is compared with each WHEN; another stays what all are compared with.
                Some(operand) if is_plain(operand) => {
                    let compared = |when: &Self| Self::comparison(&[below[0], *when]).bounds;
                    Self::case(conditions, &below[1..], compared)
                }
                Some(_) => Self::case(conditions, &below[1..], |_| 0),
            },
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
            | Expr::UnaryOp { op: UnaryOperator::Not, .. }
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_) => {
                Self { bounds: one_more(below.iter().map(|inner| inner.bounds)), ..Self::call(below) }
            }
            Expr::IsNull(_) | Expr::IsNotNull(_) => {
                let all = |inner: &Self| {
                    inner.null.saturating_add(inner.kind).saturating_add(inner.certain.max(inner.bounds))
                };
                Self { bounds: one_more(below.iter().map(all)), ..Self::call(below) }
            }
            Expr::BinaryOp { op, .. } if is_comparison(op) => Self::comparison(below),
            Expr::Cast { .. } | Expr::Like { .. } | Expr::ILike { .. } => Self::comparison(below),
            // It is two comparisons.
            Expr::Between { .. } if below.len() == 3 => {
                let sides = [Self::comparison(&[below[0], below[1]]), Self::comparison(&[below[0], below[2]])];
                Self { bounds: one_more(sides.iter().map(|side| side.bounds)), ..Self::call(&sides) }
            }
            Expr::Function(function) if becomes_case(function) => {
                let call = Self::call(below);
                let field = call.field.saturating_mul(COALESCE_QUESTIONS);
                Self { kind: field, null: field, field, certain: field, bounds: field }
            }
            _ => Self::call(below),
        }
    }

    fn call(below: &[Self]) -> Self {
        let field = one_more(below.iter().map(|inner| inner.field));
        Self { kind: field, null: field, field, certain: field, bounds: field }
    }

    /// An operator of DataFusion's that is NULL where one in it is.
    fn comparison(below: &[Self]) -> Self {
        let call = Self::call(below);
        let certain = below.iter().fold(call.field, |sum, inner| sum.saturating_add(inner.certain));
        Self { certain, bounds: certain, ..call }
    }

    /// A CASE of conditions, each followed by its result, and what comes last; `asked` says what a condition costs.
    fn case(conditions: &[CaseWhen], branches: &[Self], asked: impl Fn(&Self) -> u64) -> Self {
        let count = conditions.len();
        let results = branches.iter().skip(1).step_by(2).take(count).chain(branches.get(2 * count));
        // The first result decides the type, unless it is NULL.
        let untyped = conditions.iter().take_while(|when| is_null(&when.result)).count();
        let kind = one_more(results.clone().skip(untyped).take(1).map(|result| result.kind));
        let null = branches.iter().step_by(2).take(count).map(asked);
        let null = null.fold(one_more(results.map(|result| result.null)), u64::saturating_add);
        Self { kind, null, field: kind.saturating_add(null), certain: null, bounds: null }
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq)
}

/// A column or a constant.
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

/// Whether a call is a COALESCE that becomes a CASE even where another lies in it (`semantics/coalesce.rs`).
fn becomes_case(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_costly = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => !is_plain(expr),
        _ => false,
    };
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| name.value == "coalesce") && list.args.iter().skip(1).any(is_costly)
}

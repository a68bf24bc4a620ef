//! Rewrites long chains of comparisons with constants: `x = 1 OR x = 2 OR …` becomes IN, `x <> 1 AND x <> 2 AND …`
//! becomes NOT IN. The planner then handles one list instead of a condition per constant.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};
use syntax::balance_operands;

/// Minimum length of a run of comparisons that becomes a list.
const COMPARISON_RUN_MIN: usize = 16;
/// Number of digits up to which numbers certainly have the type `integer`.
const INTEGER_DIGITS_MAX: usize = 9;

/// Kind of a constant. A list of one kind compares each constant as a single comparison would.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConstantKind {
    Integer,
    Text,
}

/// Rewrites `expr` if it is a chain of OR or AND. The visitor visits its inner nodes again, which is cheap: the
/// parser builds balanced trees of long chains.
pub(super) fn rewrite_chain(expr: &mut Expr) {
    let Some((word, compares)) = chain_operators(expr) else { return };
    if !has_run(expr, &word, &compares) {
        return;
    }
    let parts = chain_operands(std::mem::replace(expr, Expr::Value(Value::Null.into())), &word);
    *expr = balance_operands(combine_runs(parts, &compares), &word);
}

/// Returns the operator of a chain, OR or AND, and the comparison that can be combined into a list.
fn chain_operators(expr: &Expr) -> Option<(BinaryOperator, BinaryOperator)> {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => Some((BinaryOperator::Or, BinaryOperator::Eq)),
        Expr::BinaryOp { op: BinaryOperator::And, .. } => Some((BinaryOperator::And, BinaryOperator::NotEq)),
        _ => None,
    }
}

/// Tests whether a chain contains a run that is long enough.
fn has_run(chain: &Expr, word: &BinaryOperator, compares: &BinaryOperator) -> bool {
    let (mut length, mut before, mut open) = (0, None, vec![chain]);
    while let Some(next) = open.pop() {
        match next {
            Expr::BinaryOp { left, op, right } if op == word => open.extend([right.as_ref(), left.as_ref()]),
            part => {
                let compared = column_and_kind(part, compares);
                length = if compared.is_some() && compared == before { length + 1 } else { 1 };
                if COMPARISON_RUN_MIN <= length {
                    return true;
                }
                before = compared;
            }
        }
    }
    false
}

/// Takes a chain apart into its operands, in order.
fn chain_operands(chain: Expr, word: &BinaryOperator) -> Vec<Expr> {
    let (mut parts, mut open) = (Vec::new(), vec![chain]);
    while let Some(next) = open.pop() {
        match next {
            Expr::BinaryOp { left, op, right } if op == *word => open.extend([*right, *left]),
            part => parts.push(part),
        }
    }
    parts
}

/// Replaces each run that is long enough by a list.
fn combine_runs(parts: Vec<Expr>, compares: &BinaryOperator) -> Vec<Expr> {
    let mut shortened = Vec::new();
    let mut rest = parts.into_iter().peekable();
    while let Some(first) = rest.next() {
        let mut run = vec![first];
        while let Some(next) = rest.peek()
            && column_and_kind(next, compares).is_some()
            && column_and_kind(next, compares) == column_and_kind(&run[0], compares)
        {
            run.extend(rest.next());
        }
        if run.len() < COMPARISON_RUN_MIN {
            shortened.extend(run);
        } else {
            shortened.extend(build_list(run, *compares == BinaryOperator::NotEq));
        }
    }
    shortened
}

/// Builds the list of a run.
fn build_list(comparisons: Vec<Expr>, negated: bool) -> Option<Expr> {
    let sides = |comparison| match comparison {
        Expr::BinaryOp { left, right, .. } => Some((left, *right)),
        _ => None,
    };
    let (columns, list): (Vec<Box<Expr>>, Vec<Expr>) = comparisons.into_iter().filter_map(sides).unzip();
    Some(Expr::InList { expr: columns.into_iter().next()?, list, negated })
}

/// Returns the column that an operand compares with a constant, and the kind of the constant.
fn column_and_kind<'a>(part: &'a Expr, compares: &BinaryOperator) -> Option<(&'a Expr, ConstantKind)> {
    let Expr::BinaryOp { left, .. } = part else { return None };
    Some((left, constant(part, compares)?))
}

/// Returns the kind of the constant that a column is compared with.
fn constant(part: &Expr, compares: &BinaryOperator) -> Option<ConstantKind> {
    let Expr::BinaryOp { left, op, right } = part else { return None };
    let is_column = matches!(left.as_ref(), Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    if !is_column || op != compares {
        return None;
    }
    let Expr::Value(value) = right.as_ref() else { return None };
    match &value.value {
        Value::Number(digits, _)
            if digits.len() <= INTEGER_DIGITS_MAX && digits.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            Some(ConstantKind::Integer)
        }
        Value::SingleQuotedString(_) => Some(ConstantKind::Text),
        _ => None,
    }
}

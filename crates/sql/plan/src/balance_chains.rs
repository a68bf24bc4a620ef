//! Balances chains of AND, OR and `||`.
//!
//! DataFusion builds left-deep chains: n conditions have n levels, which recursion descends. AND and OR are
//! associative, including NULLs and the order of evaluation, so that a balanced tree of log n levels is equivalent.
//! So is `||`, whose left-deep chain would also copy its first text n times.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

/// Levels up to which chains stay as they are.
const LEVELS_MAX: usize = 32;

/// Joins `operands` in order by `operator`, as a balanced tree; `None` without operands.
pub fn balance(operands: Vec<Expr>, operator: Operator) -> Option<Expr> {
    let mut joined = operands;
    // Join neighbours until one expression is left.
    while joined.len() > 1 {
        let mut operands = joined.into_iter();
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        while let Some(left) = operands.next() {
            pairs.push(match operands.next() {
                Some(right) => Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right))),
                None => left,
            });
        }
        joined = pairs;
    }
    joined.pop()
}

/// Balances long chains of `||` in an expression.
///
/// # Errors
/// None for well-formed expressions.
pub fn balance_concatenations(expr: Expr) -> Result<Expr> {
    let flattened = expr.transform_down(|mut part| {
        let is_changed = balance_chain(&mut part, |operator| operator == Operator::StringConcat);
        Ok(Transformed::new_transformed(part, is_changed))
    });
    flattened.map(|flattened| flattened.data)
}

/// Balances long chains in the condition of a filter or a join; its inputs stay as they are.
pub fn balance_conditions(plan: &mut LogicalPlan) {
    match plan {
        LogicalPlan::Filter(filter) => {
            balance_chain(&mut filter.predicate, joins_conditions);
        }
        LogicalPlan::Join(join) => {
            if let Some(filter) = &mut join.filter {
                balance_chain(filter, joins_conditions);
            }
        }
        _ => {}
    }
}

fn joins_conditions(operator: Operator) -> bool {
    matches!(operator, Operator::And | Operator::Or)
}

/// Balances a long chain of one of these operators; returns whether it was one.
fn balance_chain(expr: &mut Expr, is_meant: fn(Operator) -> bool) -> bool {
    let Expr::BinaryExpr(BinaryExpr { op: operator, .. }) = expr else { return false };
    let operator = *operator;
    if !is_meant(operator) || levels(expr, operator) <= LEVELS_MAX {
        return false;
    }
    if let Some(balanced) = balance(operands(std::mem::take(expr), operator), operator) {
        *expr = balanced;
    }
    true
}

/// Returns the operands of a chain, in order.
fn operands(chain: Expr, operator: Operator) -> Vec<Expr> {
    let mut operands = Vec::new();
    let mut open = vec![chain];
    while let Some(next) = open.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op == operator => open.extend([*right, *left]),
            operand => operands.push(operand),
        }
    }
    operands
}

/// Returns the depth of a chain along its left side.
fn levels(mut expr: &Expr, operator: Operator) -> usize {
    let mut levels = 0;
    while let Expr::BinaryExpr(BinaryExpr { left, op, .. }) = expr
        && *op == operator
    {
        levels += 1;
        expr = left;
    }
    levels
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::logical_expr::{Filter, LogicalPlanBuilder, col, lit};

    use super::*;

    #[test]
    fn a_long_chain_keeps_its_conditions_in_order_under_few_levels() {
        for count in [2_i32, 33, 34, 1_000, 4_097] {
            let conditions: Vec<Expr> = (0..count).map(|number| lit(number).eq(lit(1)).or(lit(true))).collect();
            let chain = conditions.iter().cloned().reduce(Expr::and).expect("there is one");
            let input = LogicalPlanBuilder::empty(true).build().expect("a plan of one row");
            let mut plan = LogicalPlan::Filter(Filter::try_new(chain, Arc::new(input)).expect("a condition"));
            balance_conditions(&mut plan);
            let LogicalPlan::Filter(filter) = plan else { panic!("it stays a filter") };
            assert!(levels(&filter.predicate, Operator::And) <= LEVELS_MAX, "{count}");
            assert_eq!(operands(filter.predicate, Operator::And), conditions, "{count}");
        }
    }

    #[test]
    fn long_concatenations_anywhere_keep_their_texts_in_order_under_few_levels() {
        let join = |left: Expr, right: Expr| {
            Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::StringConcat, Box::new(right)))
        };
        let texts: Vec<Expr> = (0..1_000_i32).map(lit).collect();
        let chain = texts.iter().cloned().reduce(join).expect("there is one");
        let within = balance_concatenations(chain.eq(lit(1))).expect("nothing fails");
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, .. }) = within else {
            panic!("it stays a comparison")
        };
        assert!(levels(&left, Operator::StringConcat) <= LEVELS_MAX);
        assert_eq!(operands(*left, Operator::StringConcat), texts);
    }

    #[test]
    fn operands_of_another_operator_are_not_taken_apart() {
        let either = || col("a").or(col("b"));
        assert_eq!(operands(either().and(either()), Operator::And), [either(), either()]);
        assert_eq!(balance(Vec::new(), Operator::Or), None);
        assert_eq!(balance(vec![col("a")], Operator::Or), Some(col("a")));
    }
}

//! Quick check for repeated expressions in a node. Most plans have none, and DataFusion's rule that eliminates common
//! subexpressions rebuilds all expressions to find that out.

use std::hash::{BuildHasher, Hash, Hasher};
use std::mem::discriminant;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{HashSet, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::rule_runner::with_stack;

/// Returns whether some node of a plan may compute an expression twice. Expressions that differ only in the order of
/// their operands count as equal.
pub(super) fn may_repeat(plan: &LogicalPlan) -> Result<bool> {
    let mut repeats = false;
    // DataFusion's rule treats adjacent window nodes as one.
    let mut of_windows = HashSet::new();
    plan.apply_with_subqueries(|node| {
        let mut of_node = HashSet::new();
        let seen = if matches!(node, LogicalPlan::Window(_)) { &mut of_windows } else { &mut of_node };
        node.apply_expressions(|expr| {
            hash_expr(expr, seen, &mut repeats)?;
            Ok(if repeats { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(if repeats { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(repeats)
}

/// Returns a hash that does not depend on the order of operands. Adds the hashes of the expression and its parts,
/// except columns, literals and aliases, to `seen`, and sets `repeats` if one is there already.
fn hash_expr(expr: &Expr, seen: &mut HashSet<u64>, repeats: &mut bool) -> Result<u64> {
    let mut hasher = seen.hasher().build_hasher();
    match expr {
        Expr::Column(column) => {
            column.name.hash(&mut hasher);
            return Ok(hasher.finish());
        }
        Expr::Literal(value, _) => {
            value.hash(&mut hasher);
            return Ok(hasher.finish());
        }
        Expr::Alias(alias) => return hash_expr(&alias.expr, seen, repeats),
        Expr::BinaryExpr(binary) => binary.op.hash(&mut hasher),
        Expr::ScalarFunction(call) => call.func.name().hash(&mut hasher),
        Expr::AggregateFunction(call) => call.func.name().hash(&mut hasher),
        _ => {}
    }
    discriminant(expr).hash(&mut hasher);
    let mut parts = 0_u64;
    expr.apply_children(|part| {
        parts = parts.wrapping_add(with_stack(|| hash_expr(part, seen, repeats))?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    parts.hash(&mut hasher);
    let digest = hasher.finish();
    *repeats |= !seen.insert(digest);
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};

    use super::*;

    fn repeats(exprs: Vec<Expr>) -> bool {
        let rows = LogicalPlanBuilder::values(vec![vec![lit(1), lit(2)]]).unwrap();
        may_repeat(&rows.project(exprs).unwrap().build().unwrap()).unwrap()
    }

    #[test]
    fn what_is_computed_twice_is_found_whatever_the_order_of_its_parts() {
        let (a, b) = (|| col("column1"), || col("column2"));
        assert!(!repeats(vec![a(), a().alias("again"), b()]));
        assert!(!repeats(vec![(a() + b()).alias("sum"), (a() * b()).alias("product")]));
        assert!(!repeats(vec![(a() + lit(1)).alias("one"), (a() + lit(2)).alias("two")]));
        assert!(repeats(vec![(a() + b()).alias("sum"), (b() + a()).alias("other")]));
        assert!(repeats(vec![((a() + b()) * (a() + b())).alias("square")]));
    }
}

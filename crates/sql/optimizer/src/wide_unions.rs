//! Splits unions of many inputs into trees of unions: building DataFusion's union operator takes time quadratic in the
//! number of its inputs, and it is rebuilt often.

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{LogicalPlan, Union};

/// Limit of inputs of one union.
const UNION_INPUTS_MAX: usize = 64;

/// Splits the unions of `plan` that have more inputs than the limit. Runs after the optimizer, which would flatten
/// nested unions.
///
/// # Errors
/// None that well-formed plans meet.
pub(crate) fn split_wide_unions(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut has_wide = false;
    plan.apply_with_subqueries(|node| {
        has_wide |= matches!(node, LogicalPlan::Union(union) if UNION_INPUTS_MAX < union.inputs.len());
        Ok(if has_wide { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !has_wide {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| Ok(split_union(node))).map(|divided| divided.data)
}

fn split_union(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Union(Union { mut inputs, schema }) = plan else { return Transformed::no(plan) };
    if inputs.len() <= UNION_INPUTS_MAX {
        return Transformed::no(LogicalPlan::Union(Union { inputs, schema }));
    }
    while UNION_INPUTS_MAX < inputs.len() {
        let union = |inputs: &[Arc<LogicalPlan>]| match inputs {
            [input] => Arc::clone(input),
            _ => Arc::new(LogicalPlan::Union(Union { inputs: inputs.to_vec(), schema: Arc::clone(&schema) })),
        };
        inputs = inputs.chunks(UNION_INPUTS_MAX).map(union).collect();
    }
    Transformed::yes(LogicalPlan::Union(Union { inputs, schema }))
}

#[cfg(test)]
mod tests {
    use datafusion::common::Spans;
    use datafusion::common::tree_node::TreeNode;
    use datafusion::logical_expr::{Expr, LogicalPlanBuilder, Subquery, lit};

    use super::*;

    /// Returns a union of constants.
    fn union(inputs: usize) -> LogicalPlan {
        let row = |number| LogicalPlanBuilder::empty(true).project([lit(number).alias("n")]).unwrap().build().unwrap();
        let inputs: Vec<_> = (0..inputs).map(|number| Arc::new(row(number as i32))).collect();
        let schema = Arc::clone(inputs[0].schema());
        LogicalPlan::Union(Union { inputs, schema })
    }

    /// Returns the constants in order, and the largest number of inputs of a union.
    fn shape(plan: &LogicalPlan) -> (Vec<String>, usize) {
        let (mut rows, mut widest) = (Vec::new(), 0);
        plan.apply(|node| {
            match node {
                LogicalPlan::Union(union) => widest = widest.max(union.inputs.len()),
                LogicalPlan::Projection(row) => rows.push(row.expr[0].to_string()),
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        (rows, widest)
    }

    #[test]
    fn few_inputs_stay_side_by_side() {
        let plan = union(UNION_INPUTS_MAX);
        assert_eq!(split_wide_unions(plan.clone()).unwrap(), plan);
    }

    #[test]
    fn many_inputs_keep_their_order() {
        for count in
            [UNION_INPUTS_MAX + 1, UNION_INPUTS_MAX * UNION_INPUTS_MAX, UNION_INPUTS_MAX * UNION_INPUTS_MAX + 1]
        {
            let plan = union(count);
            let divided = split_wide_unions(plan.clone()).unwrap();
            assert_eq!(shape(&divided).0, shape(&plan).0);
            assert_eq!(shape(&divided).1, UNION_INPUTS_MAX);
        }
    }

    #[test]
    fn unions_in_subqueries_are_divided() {
        let subquery = Subquery { subquery: Arc::new(union(100)), outer_ref_columns: Vec::new(), spans: Spans::new() };
        let plan = LogicalPlanBuilder::empty(true).project([Expr::ScalarSubquery(subquery).alias("s")]).unwrap();
        let LogicalPlan::Projection(divided) = split_wide_unions(plan.build().unwrap()).unwrap() else {
            panic!("a projection")
        };
        let mut widest = 0;
        divided.expr[0]
            .apply(|part| {
                if let Expr::ScalarSubquery(subquery) = part {
                    widest = shape(&subquery.subquery).1;
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
        assert_eq!(widest, UNION_INPUTS_MAX);
    }
}

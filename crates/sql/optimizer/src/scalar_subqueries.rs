//! Uncorrelated scalar subqueries of an optimized plan: a caller can run them first and replace them by their values.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::common_subplans::OptimizedPlan;

/// Uncorrelated scalar subquery of a plan.
#[derive(Debug)]
pub struct ScalarSubquery(Arc<LogicalPlan>);

impl ScalarSubquery {
    /// Returns the subquery's own plan, of one column.
    #[must_use]
    pub fn optimized(&self) -> OptimizedPlan {
        OptimizedPlan { plan: self.0.as_ref().clone(), shared: Vec::new() }
    }
}

impl OptimizedPlan {
    /// Returns the distinct scalar subqueries of the plan, without those in the plans of shared tables.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn scalar_subqueries(&self) -> Result<Vec<ScalarSubquery>> {
        let mut found: Vec<ScalarSubquery> = Vec::new();
        self.plan.apply(|node| {
            node.apply_expressions(|expression| {
                expression.apply(|part| {
                    if let Expr::ScalarSubquery(subquery) = part
                        && !found.iter().any(|known| known.0 == subquery.subquery)
                    {
                        found.push(ScalarSubquery(Arc::clone(&subquery.subquery)));
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(found)
    }

    /// Replaces scalar subqueries by their values.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn with_values(self, values: &[(ScalarSubquery, ScalarValue)]) -> Result<Self> {
        let plan = self.plan.transform_down(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let with_values = expression.transform_down(|part| {
                    let Expr::ScalarSubquery(subquery) = &part else { return Ok(Transformed::no(part)) };
                    let value = values.iter().find(|(known, _)| known.0 == subquery.subquery);
                    Ok(match value {
                        Some((_, value)) => Transformed::yes(Expr::Literal(value.clone(), None)),
                        None => Transformed::no(part),
                    })
                })?;
                Ok(with_values.update_data(|expression| name.restore(expression)))
            })
        })?;
        Ok(Self { plan: plan.data, shared: self.shared })
    }

    /// Returns the Arrow schema of the query's rows.
    #[must_use]
    pub fn schema(&self) -> arrow::datatypes::SchemaRef {
        Arc::clone(self.plan.schema().inner())
    }
}

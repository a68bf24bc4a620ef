//! Wrapper of DataFusion's rule `decorrelate_lateral_join` that handles nested lateral joins.
//!
//! DataFusion's rule skips the inputs of a lateral join that it has decorrelated, although they may have lateral joins
//! too. Its join also has more columns than the lateral one had; nodes above with a schema of their own, such as
//! windows, do not expect them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::datafusion_rules::RuleKind;

/// DataFusion's rule `decorrelate_lateral_join`, applied to nested lateral joins too and with the plan's schema
/// preserved.
#[derive(Debug)]
pub(super) struct NestedLateralJoins {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl NestedLateralJoins {
    /// Wraps `rule` if it is `decorrelate_lateral_join`; returns other rules unchanged.
    pub(super) fn wrap(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
        if RuleKind::DecorrelateLateralJoin.matches(rule.as_ref()) { Arc::new(Self { rule }) } else { rule }
    }
}

impl OptimizerRule for NestedLateralJoins {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = Arc::clone(plan.schema());
        let mut rewritten = self.rule.rewrite(plan, config)?;
        if rewritten.tnr == TreeNodeRecursion::Jump {
            rewritten.tnr = TreeNodeRecursion::Continue;
        }
        if !rewritten.transformed || *rewritten.data.schema() == schema {
            return Ok(rewritten);
        }
        rewritten.map_data(|joined| {
            let columns = schema.iter().map(Expr::from).collect();
            Projection::try_new(columns, Arc::new(joined)).map(LogicalPlan::Projection)
        })
    }
}

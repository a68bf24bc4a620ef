//! Lateral joins below lateral joins: DataFusion's rule makes a join of one and then asks for its inputs to be left out, where others may be. The join has
//! columns that the lateral one had not, which nodes above with fields of their own, as windows, do not expect.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// DataFusion's rule, shown every lateral join.
#[derive(Debug)]
pub(super) struct AllLateralJoins {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl AllLateralJoins {
    /// `rule`, or this in its place.
    pub(super) fn instead_of(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
        if rule.name() == "decorrelate_lateral_join" { Arc::new(Self { rule }) } else { rule }
    }
}

impl OptimizerRule for AllLateralJoins {
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

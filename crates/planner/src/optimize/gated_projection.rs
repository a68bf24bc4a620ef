//! DataFusion's rule that pushes filters of operators down, kept from writing them larger than [`NODES_MAX`]: `grown_filters.rs` for operators.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::grown_filters::NODES_MAX;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// A rule that sees projections that compute as gates.
#[derive(Debug)]
pub(super) struct Gated {
    rule: Rule,
}

impl Gated {
    pub(super) fn around(rule: Rule) -> Rule {
        Arc::new(Self { rule })
    }
}

impl PhysicalOptimizerRule for Gated {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let gated = plan.transform_up(|operator| {
            let gate = Gate::before(&operator);
            Ok(gate.map_or_else(|| Transformed::no(operator), |gate| Transformed::yes(Arc::new(gate) as _)))
        })?;
        let done = self.rule.optimize(gated.data, config)?;
        if !gated.transformed {
            return Ok(done);
        }
        let open = done.transform_up(|operator| {
            let projection = operator.downcast_ref::<Gate>().map(|gate| Arc::clone(&gate.projection));
            Ok(projection.map_or_else(|| Transformed::no(operator), Transformed::yes))
        });
        open.map(|open| open.data)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Stands for a projection while filters are pushed down: it lets them pass if they stay small.
#[derive(Debug)]
struct Gate {
    projection: Arc<dyn ExecutionPlan>,
    /// Nodes of the expression of each column.
    nodes: Vec<usize>,
}

impl Gate {
    /// `None` before operators that compute nothing.
    fn before(operator: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let projection = operator.downcast_ref::<ProjectionExec>()?;
        let nodes: Vec<usize> =
            projection.expr().iter().map(|column| nodes(&column.expr, &|_| 1, usize::MAX)).collect();
        nodes.iter().any(|nodes| 1 < *nodes).then(|| Self { projection: Arc::clone(operator), nodes })
    }

    /// The nodes of a filter above the projection, and below it.
    fn sizes(&self, filter: &Arc<dyn PhysicalExpr>) -> (usize, usize) {
        let below = |column: &Column| self.nodes.get(column.index()).copied().unwrap_or(1);
        let own = nodes(filter, &|_| 1, usize::MAX);
        (own, nodes(filter, &below, own.max(NODES_MAX)))
    }
}

/// The nodes of an expression whose columns have so many, counted until there are more than `most`.
fn nodes(expr: &Arc<dyn PhysicalExpr>, of_column: &dyn Fn(&Column) -> usize, most: usize) -> usize {
    let (mut count, mut open) = (0_usize, vec![expr]);
    while let Some(part) = open.pop() {
        count = count.saturating_add(part.downcast_ref::<Column>().map_or(1, of_column));
        if most < count {
            break;
        }
        open.extend(part.children());
    }
    count
}

impl DisplayAs for Gate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl ExecutionPlan for Gate {
    fn name(&self) -> &'static str {
        "Gate"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.projection.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.projection.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = replace_children_if_necessary(Arc::clone(&self.projection), children)?;
        Ok(Arc::new(Self { projection, nodes: self.nodes.clone() }))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.projection.apply_expressions(visit)
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let sizes = filters.iter().map(|filter| self.sizes(filter));
        let (own, below) = sizes.fold((0_usize, 0_usize), |(own, below), (filter, grown)| {
            (own.saturating_add(filter), below.saturating_add(grown))
        });
        if own < below && NODES_MAX < below {
            return Ok(FilterDescription::all_unsupported(&filters, &self.children()));
        }
        self.projection.gather_filters_for_pushdown(phase, filters, config)
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        self.projection.handle_child_pushdown_result(phase, result, config)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.projection.execute(partition, context)
    }
}

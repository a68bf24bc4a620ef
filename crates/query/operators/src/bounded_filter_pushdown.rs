//! Size limit for filter pushdown on physical plans, as `optimizer::filter_pushdown_limit` has it for logical plans.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, InListExpr, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, StatisticsArgs,
};
use optimizer::filter_pushdown_limit::{FILTER_NODES_MAX, too_large_to_push};

/// DataFusion's rule `FilterPushdown`, run on a plan whose computing projections are [`BoundedProjection`]s.
#[derive(Debug)]
pub(crate) struct BoundedFilterPushdownRule {
    rule: FilterPushdown,
    /// True if the rule pushes filters that operators produce while they run.
    is_dynamic: bool,
}

impl BoundedFilterPushdownRule {
    /// Wraps the rule that pushes the filters of a plan.
    pub(crate) fn for_static_filters(rule: FilterPushdown) -> Self {
        Self { rule, is_dynamic: false }
    }

    /// Wraps the rule that pushes filters which operators produce while they run.
    pub(crate) fn for_dynamic_filters(rule: FilterPushdown) -> Self {
        Self { rule, is_dynamic: true }
    }
}

/// Returns true if a filter of the plan could be pushed further. Filters directly above leaves cannot: no leaf of
/// Kiln's plans accepts a filter at planning time. The check avoids DataFusion's comparison of each filter with its
/// remainder.
fn may_push_filters(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|operator| {
        let is_over_leaf = |filter: &FilterExec| filter.input().children().is_empty();
        Ok(operator.downcast_ref::<FilterExec>().is_some_and(|filter| !is_over_leaf(filter)))
    })
}

impl PhysicalOptimizerRule for BoundedFilterPushdownRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.is_dynamic && !may_push_filters(&plan)? {
            return Ok(plan);
        }
        let bounded = plan.transform_up(|operator| {
            let bounded = BoundedProjection::try_new(&operator);
            Ok(bounded.map_or_else(|| Transformed::no(operator), |bounded| Transformed::yes(Arc::new(bounded) as _)))
        })?;
        let pushed = self.rule.optimize(bounded.data, config)?;
        if !bounded.transformed {
            return Ok(pushed);
        }
        let plain = pushed.transform_up(|operator| {
            let projection =
                operator.downcast_ref::<BoundedProjection>().map(|bounded| Arc::clone(&bounded.projection));
            Ok(projection.map_or_else(|| Transformed::no(operator), Transformed::yes))
        });
        plain.map(|plain| plain.data)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Projection that refuses filters which would become too large below it; it exists only while filters are pushed down.
#[derive(Debug)]
struct BoundedProjection {
    projection: Arc<dyn ExecutionPlan>,
    /// Number of nodes of each column's expression.
    sizes: Vec<usize>,
}

impl BoundedProjection {
    /// Wraps a projection; `None` for other operators, and if it only passes columns.
    fn try_new(operator: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let projection = operator.downcast_ref::<ProjectionExec>()?;
        let sizes: Vec<usize> =
            projection.expr().iter().map(|column| count_nodes(&column.expr, &|_| 1, usize::MAX)).collect();
        sizes.iter().any(|size| 1 < *size).then(|| Self { projection: Arc::clone(operator), sizes })
    }

    /// Returns the number of nodes that a filter has below the projection, if it grows there.
    fn grown_size(&self, filter: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let of_column = |column: &Column| self.sizes.get(column.index()).copied().unwrap_or(1);
        let above = count_nodes(filter, &|_| 1, usize::MAX);
        let below = count_nodes(filter, &of_column, above.max(FILTER_NODES_MAX));
        (above < below).then_some(below)
    }
}

/// Counts the nodes of an expression in which each column counts as `of_column` says; stops beyond `most`. Lists of
/// literals, which no projection enlarges, do not count.
fn count_nodes(expr: &Arc<dyn PhysicalExpr>, of_column: &dyn Fn(&Column) -> usize, nodes_max: usize) -> usize {
    let (mut count, mut open) = (0_usize, vec![expr]);
    while let Some(part) = open.pop() {
        count = count.saturating_add(part.downcast_ref::<Column>().map_or(1, of_column));
        if nodes_max < count {
            break;
        }
        match part.downcast_ref::<InListExpr>() {
            Some(list) => {
                open.push(list.expr());
                open.extend(list.list().iter().filter(|item| !item.is::<Literal>()));
            }
            None => open.extend(part.children()),
        }
    }
    count
}

/// Returns a filter of a column that does not exist, which a projection refuses.
fn impossible_filter() -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new("\u{0}refused", usize::MAX))
}

impl DisplayAs for BoundedProjection {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoundedProjection")
    }
}

impl ExecutionPlan for BoundedProjection {
    fn name(&self) -> &'static str {
        "BoundedProjection"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.projection.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.projection.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = replace_children_if_necessary(Arc::clone(&self.projection), children)?;
        Ok(Arc::new(Self { projection, sizes: self.sizes.clone() }))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.projection.apply_expressions(visit)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.projection.child_stats_requests(partition)
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.projection.statistics_from_inputs(inputs, args)
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let grown: Vec<Option<usize>> = filters.iter().map(|filter| self.grown_size(filter)).collect();
        let refused = too_large_to_push(&grown);
        let filters = filters.into_iter().zip(refused);
        let filters = filters.map(|(filter, is_refused)| if is_refused { impossible_filter() } else { filter });
        self.projection.gather_filters_for_pushdown(phase, filters.collect(), config)
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

//! Conversion of operators to the displayed tree: operators that only pass batches on are left out, and filters are
//! shown at the scan below them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use ::exchange::{LocalExchangeExec, PreparedQuery, RouteToOwnersExec, ShownOperator, TaskReports, shown_operator};
use binder::ExplainPlan;
use compile::FragmentExec;
use compile::estimate::{Estimate, Estimates, ShownOperators, expected_rows};
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::{ExecutionPlan, expressions::Column};
use operators::{SharedRows, SharedScanExec};
use scan::{ShardScanExec, counter};
use settings::Settings;

use crate::arrow_expressions::ArrowExpressions;
use crate::measurements::{ActualRun, Measurements};
use crate::plan_node::{EngineUse, Node, NodeKind, Property, Value};
use crate::{exchange_properties, expressions, measurements, operator_description};

/// Returns the tree of a query's operators, with measurements if they were run.
pub(crate) fn build_tree(prepared: &PreparedQuery, plan: &ExplainPlan, settings: &Settings) -> Node {
    build(&prepared.operators, prepared, plan, settings)
}

fn build(root: &Arc<dyn ExecutionPlan>, prepared: &PreparedQuery, plan: &ExplainPlan, settings: &Settings) -> Node {
    let operators = ShownOperators::from_plan(root);
    let clock = plan.analyze.then(|| Measurements::collect(root, &operators));
    let over_arrays = ArrowExpressions::collect(&operators);
    // Without Kiln's optimizer rules, DataFusion's statistics determine the join order.
    let expected = if plan.costs && settings.optimizer() {
        expected_rows(&prepared.optimized.estimate_rows(), root, &operators)
    } else {
        HashMap::new()
    };
    let estimates = Estimates::new(&operators, expected);
    let engine = Cell::new(EngineUse::Off);
    let reports = prepared.distributed.as_ref().filter(|_| plan.analyze).map(|place| place.reports.as_ref());
    let shared = RefCell::default();
    TreeBuilder {
        plan,
        operators: &operators,
        measurements: clock,
        arrow_expressions: over_arrays,
        estimates,
        engine,
        reports,
        shown_shared_rows: shared,
    }
    .build_node(root)
}

/// Returns the tree of the input of a statement that changes or locks rows, without the projections that compute the
/// new rows.
pub(crate) fn build_input_tree(prepared: &PreparedQuery, plan: &ExplainPlan, settings: &Settings) -> Node {
    let mut operators = &prepared.operators;
    while !plan.verbose
        && let Some(projection) = operators.downcast_ref::<ProjectionExec>()
    {
        operators = projection.input();
    }
    build(operators, prepared, plan, settings)
}

/// Builder of the tree.
struct TreeBuilder<'a> {
    plan: &'a ExplainPlan,
    operators: &'a ShownOperators,
    /// Measurements, with ANALYZE.
    measurements: Option<Measurements>,
    arrow_expressions: ArrowExpressions,
    estimates: Estimates<'a>,
    /// Engine state of the operators that are being converted.
    engine: Cell<EngineUse>,
    /// Reports of tasks on workers, with ANALYZE.
    reports: Option<&'a TaskReports>,
    /// Shared rows whose operators are in the tree already.
    shown_shared_rows: RefCell<Vec<*const SharedRows>>,
}

impl TreeBuilder<'_> {
    fn build_node(&self, operator: &Arc<dyn ExecutionPlan>) -> Node {
        match self.operators.replacement(operator) {
            Some(outside) => self.with_engine(EngineUse::Off, || self.build_running_node(outside)),
            None => self.build_running_node(operator),
        }
    }

    fn with_engine(&self, engine: EngineUse, show: impl FnOnce() -> Node) -> Node {
        let before = self.engine.replace(engine);
        let node = show();
        self.engine.set(before);
        node
    }

    /// Converts an operator that nothing replaces at run time.
    fn build_running_node(&self, operator: &Arc<dyn ExecutionPlan>) -> Node {
        if let Some(fragment) = operator.downcast_ref::<FragmentExec>() {
            return self.fragment_node(fragment);
        }
        match shown_operator(operator) {
            Some(ShownOperator::As(other)) => return self.build_node(other),
            Some(ShownOperator::Exchange { name, stage, tasks, input }) => {
                let node = self.with_engine(EngineUse::Workers, || self.build_node(input));
                return self.exchange_node(name, stage, tasks, node);
            }
            None => {}
        }
        if let Some(input) = self.pass_through_input(operator) {
            return self.build_node(input);
        }
        if let Some(node) = self.filtered_scan_node(operator) {
            return node;
        }
        if let Some(subqueries) = operator.downcast_ref::<ScalarSubqueryExec>() {
            let mut node = self.build_node(subqueries.input());
            node.init_plans = subqueries.subqueries().iter().map(|subquery| self.build_node(&subquery.plan)).collect();
            return node;
        }
        if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
            return self.operator_node(operator, self.shared_rows_nodes(shared));
        }
        let children = match operator.downcast_ref::<HashJoinExec>() {
            Some(join) => vec![self.build_node(join.right()), self.hash_node(join)],
            None => operator.children().into_iter().map(|child| self.build_node(child)).collect(),
        };
        self.operator_node(operator, children)
    }

    /// Returns the operators that compute shared rows, at the first of their readers only.
    fn shared_rows_nodes(&self, shared: &SharedScanExec) -> Vec<Node> {
        let rows = Arc::as_ptr(shared.rows());
        let is_shown = self.shown_shared_rows.borrow().contains(&rows);
        if is_shown {
            return Vec::new();
        }
        self.shown_shared_rows.borrow_mut().push(rows);
        vec![self.build_node(shared.rows().operators())]
    }

    /// Converts the operators that a fragment replaces.
    fn fragment_node(&self, fragment: &FragmentExec) -> Node {
        self.with_engine(EngineUse::On, || self.build_running_node(fragment.original()))
    }

    /// Creates the node of an exchange between processes, over the stage that sends the rows.
    fn exchange_node(&self, name: &str, stage: usize, tasks: usize, input: Node) -> Node {
        let reports = self.reports.map(|reports| reports.stage_reports(stage)).unwrap_or_default();
        let rows = (!reports.is_empty()).then(|| reports.iter().map(|report| report.rows).sum());
        Node {
            name: name.to_owned(),
            kind: NodeKind::Other,
            relation: None,
            properties: exchange_properties::stage_properties(stage, tasks, &reports, self.plan),
            estimate: input.estimate,
            engine: None,
            actual: rows.map(|rows| ActualRun { rows, time_ms: None }),
            init_plans: Vec::new(),
            children: vec![input],
        }
    }

    fn operator_node(&self, operator: &Arc<dyn ExecutionPlan>, children: Vec<Node>) -> Node {
        let shown = operator_description::describe(operator.as_ref());
        let mut properties = shown.properties;
        if let Some(removed) = self.removed_by_filter(operator) {
            properties.push(removed);
        }
        if self.plan.verbose {
            properties.insert(0, Property::list("Output", expressions::output(operator.as_ref())));
        }
        properties.extend(self.arrow_expressions.property(operator.as_ref()));
        if self.plan.analyze {
            properties.extend(measurements::properties(operator.as_ref(), self.plan));
            properties.extend(
                self.measurements.iter().flat_map(|clock| clock.engine_properties(operator.as_ref(), self.plan)),
            );
        }
        Node {
            name: shown.name,
            kind: shown.kind,
            relation: shown.relation,
            properties,
            estimate: self.estimate(operator),
            engine: self.engine_of(operator.as_ref()),
            actual: self.measurements.as_ref().and_then(|clock| clock.actual(operator.as_ref())),
            init_plans: Vec::new(),
            children,
        }
    }

    fn engine_of(&self, operator: &dyn ExecutionPlan) -> Option<EngineUse> {
        let only_reads = operator.children().is_empty() && self.engine.get() == EngineUse::Off;
        (!only_reads).then(|| self.engine.get())
    }

    /// Returns the estimate, which is computed only if it is shown.
    fn estimate(&self, operator: &Arc<dyn ExecutionPlan>) -> Estimate {
        if self.plan.costs { self.estimates.estimate(operator) } else { Estimate::default() }
    }

    /// Creates a Hash node for the build side of a join.
    fn hash_node(&self, join: &HashJoinExec) -> Node {
        let input = self.build_node(join.left());
        let taken =
            self.measurements.as_ref().and_then(|clock| clock.memory(join)).or_else(|| measurements::memory(join));
        let taken = taken.filter(|_| self.plan.analyze);
        let properties = taken.map(|bytes| Property::new("Memory", Value::Bytes(bytes))).into_iter().collect();
        let total = input.estimate.total;
        Node {
            name: "Hash".to_owned(),
            kind: NodeKind::Other,
            relation: None,
            properties,
            estimate: Estimate { startup: total, ..input.estimate },
            engine: self.engine_of(join),
            actual: input.actual.clone(),
            init_plans: Vec::new(),
            children: vec![input],
        }
    }

    /// Merges a filter directly above a scan into the scan's node.
    fn filtered_scan_node(&self, operator: &Arc<dyn ExecutionPlan>) -> Option<Node> {
        let filter = operator.downcast_ref::<FilterExec>()?;
        let mut input = filter.input();
        while let Some(below) = self.pass_through_input(input) {
            input = below;
        }
        input.downcast_ref::<ShardScanExec>()?;
        let mut node = self.operator_node(input, Vec::new());
        let output = usize::from(self.plan.verbose);
        node.properties.insert(output, Property::text("Filter", expressions::sql(filter.predicate())));
        node.properties.extend(self.arrow_expressions.property(operator.as_ref()));
        node.estimate = self.estimate(operator);
        if let Some(clock) = &self.measurements {
            node.actual = clock.actual(operator.as_ref());
        }
        if let Some(removed) = self.removed_by_filter(operator) {
            node.properties.insert(output + 1, removed);
        }
        Some(node)
    }

    /// Returns the number of rows that a filter removed, with ANALYZE.
    fn removed_by_filter(&self, operator: &Arc<dyn ExecutionPlan>) -> Option<Property> {
        let filter = operator.downcast_ref::<FilterExec>()?;
        let clock = self.measurements.as_ref()?;
        let mut input = filter.input();
        while let Some(below) = self.pass_through_input(input) {
            input = below;
        }
        let rows = |operator: &Arc<dyn ExecutionPlan>| clock.actual(operator.as_ref()).map_or(0, |actual| actual.rows);
        let removed = self.removed_by_scan(input) + rows(input).saturating_sub(rows(operator));
        Some(Property::new("Rows Removed by Filter", Value::Count(removed)))
    }

    /// Returns the number of rows that the scan below has left out itself, because its pages can evaluate the filter.
    fn removed_by_scan(&self, operator: &Arc<dyn ExecutionPlan>) -> u64 {
        let mut scan = operator;
        while let Some(below) =
            self.pass_through_input(scan).or_else(|| scan.downcast_ref::<RepartitionExec>().map(RepartitionExec::input))
        {
            scan = below;
        }
        let metrics = scan.metrics().filter(|_| scan.is::<ShardScanExec>());
        let left_out = metrics.and_then(|metrics| metrics.sum_by_name(counter::ROWS_REMOVED));
        left_out.map_or(0, |count| count.as_usize() as u64)
    }

    /// Returns the input of an operator that only passes rows on.
    fn pass_through_input<'b>(&self, operator: &'b Arc<dyn ExecutionPlan>) -> Option<&'b Arc<dyn ExecutionPlan>> {
        let is_between_threads = operator.is::<LocalExchangeExec>() && !self.plan.verbose;
        let is_plain = operator.is::<CooperativeExec>() || operator.is::<RouteToOwnersExec>();
        if is_plain || operator.is::<BufferExec>() || is_between_threads {
            return operator.children().first().copied();
        }
        if let Some(gather) = operator.downcast_ref::<CoalescePartitionsExec>() {
            let partitions = gather.input().properties().output_partitioning().partition_count();
            return (partitions == 1 && gather.fetch().is_none()).then(|| gather.input());
        }
        let projection = operator.downcast_ref::<ProjectionExec>()?;
        let is_plain = projection.expr().iter().all(|output| output.expr.is::<Column>());
        (is_plain && !self.plan.verbose).then(|| projection.input())
    }
}

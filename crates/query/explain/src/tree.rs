//! Conversion of operators to the displayed tree: operators that only pass batches on are left out, and filters are
//! shown at the scan below them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use ::exchange::{Prepared, Reports, Shown, ToOwnersExec, WithinTasksExec, shown};
use binder::ExplainPlan;
use compile::FragmentExec;
use compile::estimate::{Estimate, Estimates, Operators, expected};
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

use crate::actual::{Actual, Clock};
use crate::arrow::OverArrays;
use crate::node::{Engine, Node, Property, Value};
use crate::{actual, exchange, expressions, operator};

/// Returns the tree of a query's operators, with measurements if they were run.
pub(crate) fn tree(prepared: &Prepared, plan: &ExplainPlan, settings: &Settings) -> Node {
    of(&prepared.operators, prepared, plan, settings)
}

fn of(root: &Arc<dyn ExecutionPlan>, prepared: &Prepared, plan: &ExplainPlan, settings: &Settings) -> Node {
    let operators = Operators::of(root);
    let clock = plan.analyze.then(|| Clock::of(root, &operators));
    let over_arrays = OverArrays::of(&operators);
    // Without Kiln's optimizer rules, DataFusion's statistics determine the join order.
    let expected = if plan.costs && settings.optimizer() {
        expected(&prepared.optimized.expected(), root, &operators)
    } else {
        HashMap::new()
    };
    let estimates = Estimates::new(&operators, expected);
    let engine = Cell::new(Engine::Off);
    let reports = prepared.place.as_ref().filter(|_| plan.analyze).map(|place| place.reports.as_ref());
    let shared = RefCell::default();
    Shower { plan, operators: &operators, clock, over_arrays, estimates, engine, reports, shared }.show(root)
}

/// Returns the tree of the input of a statement that changes or locks rows, without the projections that compute the
/// new rows.
pub(crate) fn input(prepared: &Prepared, plan: &ExplainPlan, settings: &Settings) -> Node {
    let mut operators = &prepared.operators;
    while !plan.verbose
        && let Some(projection) = operators.downcast_ref::<ProjectionExec>()
    {
        operators = projection.input();
    }
    of(operators, prepared, plan, settings)
}

/// Builder of the tree.
struct Shower<'a> {
    plan: &'a ExplainPlan,
    operators: &'a Operators,
    /// Measurements, with ANALYZE.
    clock: Option<Clock>,
    over_arrays: OverArrays,
    estimates: Estimates<'a>,
    /// Engine state of the operators that are being converted.
    engine: Cell<Engine>,
    /// Reports of tasks on workers, with ANALYZE.
    reports: Option<&'a Reports>,
    /// Shared rows whose operators are in the tree already.
    shared: RefCell<Vec<*const SharedRows>>,
}

impl Shower<'_> {
    fn show(&self, operator: &Arc<dyn ExecutionPlan>) -> Node {
        match self.operators.instead(operator) {
            Some(outside) => self.on(Engine::Off, || self.running(outside)),
            None => self.running(operator),
        }
    }

    fn on(&self, engine: Engine, show: impl FnOnce() -> Node) -> Node {
        let before = self.engine.replace(engine);
        let node = show();
        self.engine.set(before);
        node
    }

    /// Converts an operator that nothing replaces at run time.
    fn running(&self, operator: &Arc<dyn ExecutionPlan>) -> Node {
        if let Some(fragment) = operator.downcast_ref::<FragmentExec>() {
            return self.fragment(fragment);
        }
        match shown(operator) {
            Some(Shown::Other(other)) => return self.show(other),
            Some(Shown::Exchange { name, stage, tasks, input }) => {
                let node = self.on(Engine::Workers, || self.show(input));
                return self.exchange(name, stage, tasks, node);
            }
            None => {}
        }
        if let Some(input) = self.handed_on(operator) {
            return self.show(input);
        }
        if let Some(node) = self.filtered_scan(operator) {
            return node;
        }
        if let Some(subqueries) = operator.downcast_ref::<ScalarSubqueryExec>() {
            let mut node = self.show(subqueries.input());
            node.init_plans = subqueries.subqueries().iter().map(|subquery| self.show(&subquery.plan)).collect();
            return node;
        }
        if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
            return self.node(operator, self.makes(shared));
        }
        let children = match operator.downcast_ref::<HashJoinExec>() {
            Some(join) => vec![self.show(join.right()), self.hash(join)],
            None => operator.children().into_iter().map(|child| self.show(child)).collect(),
        };
        self.node(operator, children)
    }

    /// Returns the operators that compute shared rows, at the first of their readers only.
    fn makes(&self, shared: &SharedScanExec) -> Vec<Node> {
        let rows = Arc::as_ptr(shared.rows());
        let is_shown = self.shared.borrow().contains(&rows);
        if is_shown {
            return Vec::new();
        }
        self.shared.borrow_mut().push(rows);
        vec![self.show(shared.rows().operators())]
    }

    /// Converts the operators that a fragment replaces.
    fn fragment(&self, fragment: &FragmentExec) -> Node {
        self.on(Engine::On, || self.running(fragment.covered()))
    }

    /// Creates the node of an exchange between processes, over the stage that sends the rows.
    fn exchange(&self, name: &str, stage: usize, tasks: usize, input: Node) -> Node {
        let reports = self.reports.map(|reports| reports.of_stage(stage)).unwrap_or_default();
        let rows = (!reports.is_empty()).then(|| reports.iter().map(|report| report.rows).sum());
        Node {
            name: name.to_owned(),
            relation: None,
            properties: exchange::properties(stage, tasks, &reports, self.plan),
            estimate: input.estimate,
            engine: None,
            actual: rows.map(|rows| Actual { rows, time_ms: None }),
            init_plans: Vec::new(),
            children: vec![input],
        }
    }

    fn node(&self, operator: &Arc<dyn ExecutionPlan>, children: Vec<Node>) -> Node {
        let shown = operator::describe(operator.as_ref());
        let mut properties = shown.properties;
        if let Some(removed) = self.removed_by_filter(operator) {
            properties.push(removed);
        }
        if self.plan.verbose {
            properties.insert(0, Property::list("Output", expressions::output(operator.as_ref())));
        }
        properties.extend(self.over_arrays.property(operator.as_ref()));
        if self.plan.analyze {
            properties.extend(actual::properties(operator.as_ref(), self.plan));
            properties
                .extend(self.clock.iter().flat_map(|clock| clock.engine_properties(operator.as_ref(), self.plan)));
        }
        Node {
            name: shown.name,
            relation: shown.relation,
            properties,
            estimate: self.estimate(operator),
            engine: self.engine_of(operator.as_ref()),
            actual: self.clock.as_ref().and_then(|clock| clock.actual(operator.as_ref())),
            init_plans: Vec::new(),
            children,
        }
    }

    fn engine_of(&self, operator: &dyn ExecutionPlan) -> Option<Engine> {
        let only_reads = operator.children().is_empty() && self.engine.get() == Engine::Off;
        (!only_reads).then(|| self.engine.get())
    }

    /// Returns the estimate, which is computed only if it is shown.
    fn estimate(&self, operator: &Arc<dyn ExecutionPlan>) -> Estimate {
        if self.plan.costs { self.estimates.of(operator) } else { Estimate::default() }
    }

    /// Creates a Hash node for the build side of a join.
    fn hash(&self, join: &HashJoinExec) -> Node {
        let input = self.show(join.left());
        let taken = self.clock.as_ref().and_then(|clock| clock.memory(join)).or_else(|| actual::memory(join));
        let taken = taken.filter(|_| self.plan.analyze);
        let properties = taken.map(|bytes| Property::new("Memory", Value::Bytes(bytes))).into_iter().collect();
        let total = input.estimate.total;
        Node {
            name: "Hash".to_owned(),
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
    fn filtered_scan(&self, operator: &Arc<dyn ExecutionPlan>) -> Option<Node> {
        let filter = operator.downcast_ref::<FilterExec>()?;
        let mut input = filter.input();
        while let Some(below) = self.handed_on(input) {
            input = below;
        }
        input.downcast_ref::<ShardScanExec>()?;
        let mut node = self.node(input, Vec::new());
        let output = usize::from(self.plan.verbose);
        node.properties.insert(output, Property::text("Filter", expressions::sql(filter.predicate())));
        node.properties.extend(self.over_arrays.property(operator.as_ref()));
        node.estimate = self.estimate(operator);
        if let Some(clock) = &self.clock {
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
        let clock = self.clock.as_ref()?;
        let mut input = filter.input();
        while let Some(below) = self.handed_on(input) {
            input = below;
        }
        let rows = |operator: &Arc<dyn ExecutionPlan>| clock.actual(operator.as_ref()).map_or(0, |actual| actual.rows);
        let removed = self.left_out_by(input) + rows(input).saturating_sub(rows(operator));
        Some(Property::new("Rows Removed by Filter", Value::Count(removed)))
    }

    /// Returns the number of rows that the scan below has left out itself, because its pages can evaluate the filter.
    fn left_out_by(&self, operator: &Arc<dyn ExecutionPlan>) -> u64 {
        let mut scan = operator;
        while let Some(below) =
            self.handed_on(scan).or_else(|| scan.downcast_ref::<RepartitionExec>().map(RepartitionExec::input))
        {
            scan = below;
        }
        let metrics = scan.metrics().filter(|_| scan.is::<ShardScanExec>());
        let left_out = metrics.and_then(|metrics| metrics.sum_by_name(counter::ROWS_REMOVED));
        left_out.map_or(0, |count| count.as_usize() as u64)
    }

    /// Returns the input of an operator that only passes rows on.
    fn handed_on<'b>(&self, operator: &'b Arc<dyn ExecutionPlan>) -> Option<&'b Arc<dyn ExecutionPlan>> {
        let is_between_threads = operator.is::<WithinTasksExec>() && !self.plan.verbose;
        let is_plain = operator.is::<CooperativeExec>() || operator.is::<ToOwnersExec>();
        if is_plain || operator.name() == "BufferExec" || is_between_threads {
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

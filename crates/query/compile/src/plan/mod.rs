//! Compiles operators into pipelines.
//!
//! In reading order:
//!
//! - `lowered.rs` is the result: a program of pipelines and the inputs that they read.
//! - `scan.rs` compiles scans and filters, which are evaluated by the scan where possible; `project.rs`, `join.rs`,
//!   `sort.rs`, `window.rs`, `limit.rs`, `union.rs` and `aggregate/` compile the other operators.
//! - `order.rs` determines the order that a plan declares, `dependencies.rs` finds group keys that functionally depend
//!   on others, `ahead.rs` the pipelines that can read groups before all groups are complete.
//! - `operators.rs` maps steps back to operators, for EXPLAIN.

mod aggregate;
mod ahead;
mod dependencies;
mod join;
mod limit;
mod lowered;
mod operators;
mod order;
mod project;
mod scan;
mod sort;
mod union;
mod window;

use std::sync::Arc;

use ::scan::ShardScanExec;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use engine::arrow_form::has_form;
use engine::pipeline::{Pipeline, Program, Sink, Source, Step};

use self::dependencies::{Dependencies, SourceColumn};
use self::join::JoinOperator;
use self::limit::Limit;
pub use self::lowered::OperatorId;
pub(crate) use self::lowered::{ForeignInput, Input, Lowered, Mark, ScanFilter, ScanInput};
pub(crate) use self::order::{declared_order, ordered, unordered};
use self::window::Windows;
use crate::cover::cover_with;
use crate::refusals::Refusals;
use crate::top::Top;

/// Name of the operator that removes rows before a window by its rank condition. It is skipped: a sort in the engine is
/// faster than the check.
const RANK_LIMIT: &str = "RankLimitExec";

/// Compiles a plan; `None` if the engine cannot run it or would do nothing but filter.
pub(super) fn lower(plan: &Arc<dyn ExecutionPlan>, refusals: &Refusals<'_>) -> Option<Lowered> {
    let (mut lowered, _) = lowered(plan, refusals).filter(|(_, has_work)| *has_work)?;
    // Only now: many plans turn out not to be compilable halfway, and their inputs are then partitioned with the
    // operators above.
    let pipelines = &lowered.program.pipelines;
    for (number, input) in lowered.inputs.iter_mut().enumerate() {
        if let Input::Foreign(input) = input {
            let reads_it = |source: &Source| matches!(source, Source::Input(read) if *read == number);
            let in_order = pipelines.iter().any(|pipeline| pipeline.in_order && reads_it(&pipeline.source));
            input.partition(in_order, refusals).ok()?;
        }
    }
    Some(lowered)
}

/// Compiles a plan that only filters a scan; `None` for other plans, and if the engine cannot run it.
pub(super) fn lower_filter(plan: &Arc<dyn ExecutionPlan>) -> Option<Lowered> {
    let (mut below, mut is_filtered) = (plan, false);
    while !below.is::<ShardScanExec>() {
        is_filtered |= below.is::<FilterExec>();
        if !below.is::<FilterExec>() && !below.is::<ProjectionExec>() && !below.is::<CooperativeExec>() {
            return None;
        }
        let [input] = below.children()[..] else { return None };
        below = input;
    }
    is_filtered.then(|| lowered(plan, &Refusals::default())).flatten().map(|(lowered, _)| lowered)
}

/// Compiles a plan. Returns also whether the engine does anything but filter rows.
fn lowered(plan: &Arc<dyn ExecutionPlan>, refusals: &Refusals<'_>) -> Option<(Lowered, bool)> {
    let mut builder = Builder { refusals: refusals.clone(), ..Builder::default() };
    // The reader may rely on the order of rows.
    let mut chain = builder.operator(plan)?;
    // DataFusion sorts the input of a join that has to preserve the order; the engine's joins do not preserve it.
    if let Some(order) = declared_order(plan)
        && !chain.is_ordered
        && JoinOperator::of(plan).is_some()
    {
        chain = builder.sorted_by(chain, order, None)?;
    }
    let chain = chain.in_order_of(plan)?;
    builder.end(chain, &Sink::Rows);
    builder.want();
    let program = Program { pipelines: builder.pipelines };
    let ahead = ahead::of(&program);
    let Builder { inputs, marks, limits, tops, has_work, .. } = builder;
    Some((Lowered { program, inputs, marks, limits, tops, ahead }, has_work))
}

/// Unfinished pipelines, which will end in one sink.
struct Chain {
    /// Pipelines; several are the inputs of a union, in order.
    branches: Vec<Branch>,
    schema: SchemaRef,
    /// For each column, the input and its column that the values come from.
    sources: Vec<Option<SourceColumn>>,
    /// Inputs whose rows an outer join may have replaced by NULLs.
    padded: Vec<usize>,
    /// True if rows come in the order that the operator declares, provided that one worker runs each pipeline.
    is_ordered: bool,
}

/// One unfinished pipeline.
struct Branch {
    source: Source,
    steps: Vec<Step>,
    /// True if the order of the source must be preserved.
    in_order: bool,
    /// For each column, the input and its column that it equals, if rows that a filter on it excludes may be skipped
    /// there.
    origins: Vec<Option<SourceColumn>>,
    marks: Vec<Mark>,
}

impl Branch {
    fn new(source: Source, steps: Vec<Step>, origins: Vec<Option<SourceColumn>>) -> Self {
        Self { source, steps, in_order: false, origins, marks: Vec::new() }
    }
}

impl Chain {
    /// Appends a step to all branches.
    fn push(&mut self, step: &Step) {
        self.branches.iter_mut().for_each(|branch| branch.steps.push(step.clone()));
    }

    /// Records that the rows at this point are the output of an operator.
    fn mark(&mut self, operator: OperatorId) {
        for branch in &mut self.branches {
            branch.marks.push(Mark { operator, step: branch.steps.len() });
        }
    }

    /// Prevents filters above from being pushed below this point.
    fn forget_origins(&mut self) {
        self.branches.iter_mut().for_each(|branch| branch.origins.fill(None));
    }

    /// Requires the order that `plan` declares, if it declares one; `None` if the rows do not have it.
    fn in_order_of(mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        if declared_order(plan).is_none() {
            return Some(self);
        }
        self.branches.iter_mut().for_each(|branch| branch.in_order = true);
        self.is_ordered.then_some(self)
    }
}

/// State of the compilation of one plan.
#[derive(Default)]
struct Builder<'a> {
    pipelines: Vec<Pipeline>,
    inputs: Vec<Input>,
    marks: Vec<Vec<Mark>>,
    limits: usize,
    tops: Vec<(usize, Top)>,
    dependencies: Dependencies,
    refusals: Refusals<'a>,
    /// True if anything is joined, grouped or sorted.
    has_work: bool,
}

impl Builder<'_> {
    /// Compiles a plan if the engine can run it; otherwise it becomes an input of the program.
    fn rows(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        let (pipelines, inputs, limits, has_work) =
            (self.pipelines.len(), self.inputs.len(), self.limits, self.has_work);
        if let Some(chain) = self.operator(plan) {
            return Some(chain);
        }
        self.pipelines.truncate(pipelines);
        self.marks.truncate(pipelines);
        self.inputs.truncate(inputs);
        self.dependencies.truncate(inputs);
        (self.limits, self.has_work) = (limits, has_work);
        self.tops.retain(|(number, _)| *number < pipelines);
        let schema = plan.schema();
        if !schema.fields().iter().all(|field| has_form(field.data_type())) {
            return None;
        }
        let covered = cover_with(Arc::clone(plan), &self.refusals).ok()?;
        let is_ordered = is_in_order(&covered);
        let input = ForeignInput { stands_for: OperatorId::of(plan.as_ref()), operators: covered };
        Some(Chain { is_ordered, ..self.input(Input::Foreign(input), schema, false) })
    }

    /// Starts a pipeline from a new input.
    fn input(&mut self, input: Input, schema: SchemaRef, is_scan: bool) -> Chain {
        let (columns, number) = (schema.fields().len(), self.inputs.len());
        self.inputs.push(input);
        let origins: Vec<_> = (0..columns).map(|column| is_scan.then_some((number, column))).collect();
        let sources = origins.clone();
        let branch = Branch::new(Source::Input(number), Vec::new(), origins);
        Chain { branches: vec![branch], schema, sources, padded: Vec::new(), is_ordered: false }
    }

    /// Ends pipelines in a common sink; returns the number of the last.
    fn end(&mut self, chain: Chain, sink: &Sink) -> usize {
        let last = chain.branches.len() - 1;
        for (number, mut branch) in chain.branches.into_iter().enumerate() {
            self.filter_after_scan(&mut branch);
            let Branch { source, steps, in_order, .. } = branch;
            self.pipelines.push(Pipeline { source, steps, sink: sink.clone(), goes_on: number < last, in_order });
            self.marks.push(branch.marks);
        }
        self.pipelines.len() - 1
    }

    /// Replaces the sink of pipelines, given the number of the last.
    fn end_in(&mut self, last: usize, sink: &Sink) {
        self.pipelines[last].sink = sink.clone();
        let before = self.pipelines[..last].iter_mut().rev();
        before.take_while(|pipeline| pipeline.goes_on).for_each(|pipeline| pipeline.sink = sink.clone());
    }

    /// Compiles an operator and marks its output, unless it is known not to be compilable.
    fn operator(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        if self.refusals.cannot_lower(plan) {
            return None;
        }
        let Some(mut chain) = self.lowered(plan) else {
            self.refusals.note_not_lowered(plan);
            return None;
        };
        let is_scan = |branch: &Branch| branch.steps.is_empty() && matches!(branch.source, Source::Input(_));
        let is_narrowed = plan.is::<FilterExec>() && chain.branches.iter().all(is_scan);
        if !plan.is::<ShardScanExec>() && !is_narrowed {
            chain.mark(OperatorId::of(plan.as_ref()));
        }
        Some(chain)
    }

    /// Compiles an operator by its kind.
    fn lowered(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
            return self.scan(plan, scan);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return self.filter(filter, plan.fetch());
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return self.projection(projection);
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return self.aggregate(aggregate);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            return self.sort(sort, sort.expr());
        }
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            return self.merge(merge);
        }
        if let Some(limit) = Limit::of(plan) {
            return self.limit(&limit);
        }
        if plan.name() == RANK_LIMIT {
            return self.below(plan.children().first()?);
        }
        if let Some(windows) = Windows::of(plan) {
            return self.windows(&windows);
        }
        if let Some(union) = plan.downcast_ref::<UnionExec>() {
            return self.union(union);
        }
        let chain = self.join(&JoinOperator::of(plan)?)?;
        if plan.fetch().is_some() { self.limited(chain, 0, plan.fetch()) } else { Some(chain) }
    }

    /// Compiles the input of an operator, ignoring exchanges between threads.
    fn below(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        self.rows(through_exchanges(plan))
    }
}

/// Returns whether rows have a declared order, in a single partition.
fn is_in_order(operators: &Arc<dyn ExecutionPlan>) -> bool {
    declared_order(operators).is_some() && operators.output_partitioning().partition_count() == 1
}

impl ForeignInput {
    /// Partitions its operators where that is wanted, unless the fragment relies on an order (`in_order`) that would be
    /// lost.
    fn partition(&mut self, in_order: bool, refusals: &Refusals<'_>) -> DfResult<()> {
        let partitioned = refusals.partitioned(Arc::clone(&self.operators))?;
        let keeps_order = match declared_order(&self.operators) {
            Some(order) if in_order => {
                let known = partitioned.properties().equivalence_properties();
                is_in_order(&partitioned) && known.ordering_satisfy(order.iter().cloned())?
            }
            _ => true,
        };
        if keeps_order {
            self.operators = partitioned;
        }
        Ok(())
    }
}

/// Skips exchanges between threads at the top of a plan.
fn through_exchanges(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    let is_exchange = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<BufferExec>();
    match plan.children().first() {
        Some(below) if is_exchange && plan.fetch().is_none() => through_exchanges(below),
        _ => plan,
    }
}

//! Compiles operators into pipelines.
//!
//! In reading order:
//!
//! - `compiled_fragment.rs` is the result: a program of pipelines and the inputs that they read.
//! - `scan.rs` compiles scans and filters, which are evaluated by the scan where possible; `project.rs`, `join.rs`,
//!   `sort.rs`, `window.rs`, `limit.rs`, `union.rs` and `aggregate/` compile the other operators.
//! - `declared_order.rs` determines the order that a plan declares, `functional_dependencies.rs` finds group keys that
//!   functionally depend on others, `early_group_readers.rs` the pipelines that can read groups before all groups are
//!   complete.
//! - `explain.rs` maps steps back to operators, for EXPLAIN.

mod aggregate;
mod compiled_fragment;
mod declared_order;
mod early_group_readers;
mod explain;
mod functional_dependencies;
mod join;
mod limit;
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
use engine::arrow_convert::is_supported;
use engine::pipeline::{Pipeline, Program, Sink, Source, Step};
use operators::RankLimitExec;

pub use self::compiled_fragment::OperatorId;
pub(crate) use self::compiled_fragment::{
    CompiledFragment, Input, OperatorInput, OperatorOutput, ScanFilter, ScanInput,
};
pub(crate) use self::declared_order::{declared_order, ordered, unordered};
use self::functional_dependencies::{Dependencies, SourceColumn};
use self::join::JoinOperator;
use self::limit::Limit;
use self::window::WindowOperator;
use crate::compile_memo::CompileMemo;
use crate::compile_plan::compile_with;
use crate::top_k::TopKFilter;

/// Compiles a plan; `None` if the engine cannot run it or would do nothing but filter.
pub(super) fn lower(plan: &Arc<dyn ExecutionPlan>, memo: &CompileMemo<'_>) -> Option<CompiledFragment> {
    let (mut lowered, _) = lower_plan(plan, memo).filter(|(_, has_work)| *has_work)?;
    // Only now: many plans turn out not to be compilable halfway, and their inputs are then partitioned with the
    // operators above.
    let pipelines = &lowered.program.pipelines;
    for (number, input) in lowered.inputs.iter_mut().enumerate() {
        if let Input::Operators(input) = input {
            let reads_it = |source: &Source| matches!(source, Source::Input(read) if *read == number);
            let in_order = pipelines.iter().any(|pipeline| pipeline.preserves_order && reads_it(&pipeline.source));
            input.partition(in_order, memo).ok()?;
        }
    }
    Some(lowered)
}

/// Compiles a plan that only filters a scan; `None` for other plans, and if the engine cannot run it.
pub(super) fn lower_filter(plan: &Arc<dyn ExecutionPlan>) -> Option<CompiledFragment> {
    let (mut below, mut is_filtered) = (plan, false);
    while !below.is::<ShardScanExec>() {
        is_filtered |= below.is::<FilterExec>();
        if !below.is::<FilterExec>() && !below.is::<ProjectionExec>() && !below.is::<CooperativeExec>() {
            return None;
        }
        let [input] = below.children()[..] else { return None };
        below = input;
    }
    is_filtered.then(|| lower_plan(plan, &CompileMemo::default())).flatten().map(|(lowered, _)| lowered)
}

/// Compiles a plan. Returns also whether the engine does anything but filter rows.
fn lower_plan(plan: &Arc<dyn ExecutionPlan>, memo: &CompileMemo<'_>) -> Option<(CompiledFragment, bool)> {
    let mut builder = ProgramBuilder { memo: memo.clone(), ..ProgramBuilder::default() };
    // The reader may rely on the order of rows.
    let mut chain = builder.lower_operator(plan)?;
    // DataFusion sorts the input of a join that has to preserve the order; the engine's joins do not preserve it.
    if let Some(order) = declared_order(plan)
        && !chain.is_ordered
        && JoinOperator::from_plan(plan).is_some()
    {
        chain = builder.add_sort_by(chain, order, None)?;
    }
    let chain = chain.require_order_of(plan)?;
    builder.end_pipelines(chain, &Sink::Output);
    builder.mark_late_columns();
    let program = Program { pipelines: builder.pipelines };
    let ahead = early_group_readers::early_readers(&program);
    let ProgramBuilder { inputs, operator_outputs, limits, top_k_filters: tops, has_work, .. } = builder;
    Some((
        CompiledFragment {
            program,
            inputs,
            operator_outputs,
            limit_count: limits,
            top_k_filters: tops,
            early_readers: ahead,
        },
        has_work,
    ))
}

/// Unfinished pipelines, which will end in one sink.
struct OpenPipelines {
    /// Pipelines; several are the inputs of a union, in order.
    branches: Vec<OpenPipeline>,
    schema: SchemaRef,
    /// For each column, the input and its column that the values come from.
    value_sources: Vec<Option<SourceColumn>>,
    /// Inputs whose rows an outer join may have replaced by NULLs.
    null_padded_inputs: Vec<usize>,
    /// True if rows come in the order that the operator declares, provided that one worker runs each pipeline.
    is_ordered: bool,
}

/// One unfinished pipeline.
struct OpenPipeline {
    source: Source,
    steps: Vec<Step>,
    /// True if the order of the source must be preserved.
    in_order: bool,
    /// For each column, the input and its column that it equals, if rows that a filter on it excludes may be skipped
    /// there.
    filterable_sources: Vec<Option<SourceColumn>>,
    operator_outputs: Vec<OperatorOutput>,
}

impl OpenPipeline {
    fn new(source: Source, steps: Vec<Step>, origins: Vec<Option<SourceColumn>>) -> Self {
        Self { source, steps, in_order: false, filterable_sources: origins, operator_outputs: Vec::new() }
    }
}

impl OpenPipelines {
    /// Appends a step to all branches.
    fn push(&mut self, step: &Step) {
        self.branches.iter_mut().for_each(|branch| branch.steps.push(step.clone()));
    }

    /// Records that the rows at this point are the output of an operator.
    fn record_output_of(&mut self, operator: OperatorId) {
        for branch in &mut self.branches {
            branch.operator_outputs.push(OperatorOutput { operator, step: branch.steps.len() });
        }
    }

    /// Prevents filters above from being pushed below this point.
    fn block_filters(&mut self) {
        self.branches.iter_mut().for_each(|branch| branch.filterable_sources.fill(None));
    }

    /// Requires the order that `plan` declares, if it declares one; `None` if the rows do not have it.
    fn require_order_of(mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        if declared_order(plan).is_none() {
            return Some(self);
        }
        self.branches.iter_mut().for_each(|branch| branch.in_order = true);
        self.is_ordered.then_some(self)
    }
}

/// State of the compilation of one plan.
#[derive(Default)]
struct ProgramBuilder<'a> {
    pipelines: Vec<Pipeline>,
    inputs: Vec<Input>,
    operator_outputs: Vec<Vec<OperatorOutput>>,
    limits: usize,
    top_k_filters: Vec<(usize, TopKFilter)>,
    dependencies: Dependencies,
    memo: CompileMemo<'a>,
    /// True if anything is joined, grouped or sorted.
    has_work: bool,
}

impl ProgramBuilder<'_> {
    /// Compiles a plan if the engine can run it; otherwise it becomes an input of the program.
    fn lower_or_input(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<OpenPipelines> {
        let (pipelines, inputs, limits, has_work) =
            (self.pipelines.len(), self.inputs.len(), self.limits, self.has_work);
        if let Some(chain) = self.lower_operator(plan) {
            return Some(chain);
        }
        self.pipelines.truncate(pipelines);
        self.operator_outputs.truncate(pipelines);
        self.inputs.truncate(inputs);
        self.dependencies.truncate(inputs);
        (self.limits, self.has_work) = (limits, has_work);
        self.top_k_filters.retain(|(number, _)| *number < pipelines);
        let schema = plan.schema();
        if !schema.fields().iter().all(|field| is_supported(field.data_type())) {
            return None;
        }
        let covered = compile_with(Arc::clone(plan), &self.memo).ok()?;
        let is_ordered = is_ordered_as_one(&covered);
        let input = OperatorInput { replaced_operator: OperatorId::new(plan.as_ref()), operators: covered };
        Some(OpenPipelines { is_ordered, ..self.add_input(Input::Operators(input), schema, false) })
    }

    /// Starts a pipeline from a new input.
    fn add_input(&mut self, input: Input, schema: SchemaRef, is_scan: bool) -> OpenPipelines {
        let (columns, number) = (schema.fields().len(), self.inputs.len());
        self.inputs.push(input);
        let origins: Vec<_> = (0..columns).map(|column| is_scan.then_some((number, column))).collect();
        let sources = origins.clone();
        let branch = OpenPipeline::new(Source::Input(number), Vec::new(), origins);
        OpenPipelines {
            branches: vec![branch],
            schema,
            value_sources: sources,
            null_padded_inputs: Vec::new(),
            is_ordered: false,
        }
    }

    /// Ends pipelines in a common sink; returns the number of the last.
    fn end_pipelines(&mut self, chain: OpenPipelines, sink: &Sink) -> usize {
        let last = chain.branches.len() - 1;
        for (number, mut branch) in chain.branches.into_iter().enumerate() {
            self.move_filter_after_scan(&mut branch);
            let OpenPipeline { source, steps, in_order, .. } = branch;
            self.pipelines.push(Pipeline {
                source,
                steps,
                sink: sink.clone(),
                continues_in_next: number < last,
                preserves_order: in_order,
            });
            self.operator_outputs.push(branch.operator_outputs);
        }
        self.pipelines.len() - 1
    }

    /// Replaces the sink of pipelines, given the number of the last.
    fn replace_sink(&mut self, last: usize, sink: &Sink) {
        self.pipelines[last].sink = sink.clone();
        let before = self.pipelines[..last].iter_mut().rev();
        before.take_while(|pipeline| pipeline.continues_in_next).for_each(|pipeline| pipeline.sink = sink.clone());
    }

    /// Compiles an operator and records its output, unless it is known not to be compilable.
    fn lower_operator(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<OpenPipelines> {
        if self.memo.cannot_lower(plan) {
            return None;
        }
        let Some(mut chain) = self.lower_by_kind(plan) else {
            self.memo.note_not_lowered(plan);
            return None;
        };
        let is_scan = |branch: &OpenPipeline| branch.steps.is_empty() && matches!(branch.source, Source::Input(_));
        let is_narrowed = plan.is::<FilterExec>() && chain.branches.iter().all(is_scan);
        if !plan.is::<ShardScanExec>() && !is_narrowed {
            chain.record_output_of(OperatorId::new(plan.as_ref()));
        }
        Some(chain)
    }

    /// Compiles an operator by its kind.
    fn lower_by_kind(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<OpenPipelines> {
        if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
            return self.lower_scan(plan, scan);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return self.lower_filter(filter, plan.fetch());
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return self.lower_projection(projection);
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return self.lower_aggregate(aggregate);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            return self.lower_sort(sort, sort.expr());
        }
        if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            return self.lower_merge(merge);
        }
        if let Some(limit) = Limit::from_plan(plan) {
            return self.lower_limit(&limit);
        }
        // A sort in the engine is faster than the check of a rank limit.
        if plan.is::<RankLimitExec>() {
            return self.lower_input(plan.children().first()?);
        }
        if let Some(windows) = WindowOperator::from_plan(plan) {
            return self.lower_windows(&windows);
        }
        if let Some(union) = plan.downcast_ref::<UnionExec>() {
            return self.lower_union(union);
        }
        let chain = self.lower_join(&JoinOperator::from_plan(plan)?)?;
        if plan.fetch().is_some() { self.add_limit(chain, 0, plan.fetch()) } else { Some(chain) }
    }

    /// Compiles the input of an operator, ignoring exchanges between threads.
    fn lower_input(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<OpenPipelines> {
        self.lower_or_input(skip_exchanges(plan))
    }
}

/// Returns whether rows have a declared order, in a single partition.
fn is_ordered_as_one(operators: &Arc<dyn ExecutionPlan>) -> bool {
    declared_order(operators).is_some() && operators.output_partitioning().partition_count() == 1
}

impl OperatorInput {
    /// Partitions its operators where that is wanted, unless the fragment relies on an order (`sort_rows`) that would
    /// be lost.
    fn partition(&mut self, in_order: bool, memo: &CompileMemo<'_>) -> DfResult<()> {
        let partitioned = memo.partition(Arc::clone(&self.operators))?;
        let keeps_order = match declared_order(&self.operators) {
            Some(order) if in_order => {
                let known = partitioned.properties().equivalence_properties();
                is_ordered_as_one(&partitioned) && known.ordering_satisfy(order.iter().cloned())?
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
fn skip_exchanges(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    let is_exchange = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<BufferExec>();
    match plan.children().first() {
        Some(below) if is_exchange && plan.fetch().is_none() => skip_exchanges(below),
        _ => plan,
    }
}

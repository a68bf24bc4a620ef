//! Operators as pipelines.
//!
//! Each kind of operator has a file: `scan.rs` also for filters, which scans make where they can, `project.rs`, `join.rs`, `aggregate.rs`.

mod aggregate;
mod ahead;
mod dependencies;
mod join;
mod project;
mod scan;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use engine::arrow_form::has_form;
use engine::expression::Expression;
use engine::pipeline::{Pipeline, Program, Sink, Source, Step};
use shards::Test;

use self::dependencies::{Dependencies, SourceColumn};
use self::join::JoinOperator;
use super::cover;
use crate::scan::ShardScanExec;

/// What a fragment runs.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) program: Program,
    pub(super) inputs: Vec<Input>,
    /// For each pipeline, whose rows come to which of its steps: what EXPLAIN ANALYZE shows.
    pub(super) marks: Vec<Vec<Mark>>,
    /// For each pipeline, the one that can take its groups while it runs.
    pub(super) ahead: Vec<Option<usize>>,
}

/// The rows that come to a step are those that an operator gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) operator: OperatorId,
    pub(super) step: usize,
}

/// An operator of the plan that a fragment stands for, which lives as long as the fragment: its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OperatorId(usize);

impl OperatorId {
    pub(crate) fn of(operator: &dyn ExecutionPlan) -> Self {
        Self(std::ptr::from_ref(operator).cast::<()>().addr())
    }
}

/// Where rows come into a program.
#[derive(Debug)]
pub(super) enum Input {
    Scan(ScanInput),
    /// Operators of DataFusion's.
    Foreign(Arc<dyn ExecutionPlan>),
}

/// A scan, and what is done with its pages before rows go on.
#[derive(Debug)]
pub(super) struct ScanInput {
    pub(super) scan: Arc<dyn ExecutionPlan>,
    /// Conditions over its columns.
    pub(super) filters: Vec<ScanFilter>,
    /// Columns whose values must be keys of tables that earlier pipelines built: column, pipeline, key.
    pub(super) keys: Vec<(usize, usize, usize)>,
    /// The columns that are read after the filters.
    pub(super) wanted: Vec<bool>,
    /// The operator of the filters.
    pub(super) filter: Option<OperatorId>,
}

/// A condition over the columns of a scan.
#[derive(Debug, Clone)]
pub(super) struct ScanFilter {
    pub(super) condition: Expression,
    /// The same as a test of one column, by its position, that the scan makes anyway: where blocks answer it, nothing is left to do.
    pub(super) test: Option<(usize, Test)>,
}

/// The program of a plan; `None` where the engine cannot run it, or has nothing to do in it.
pub(super) fn lower(plan: &Arc<dyn ExecutionPlan>) -> Option<Lowered> {
    // A reader may rely on the order of rows; of those with one value there is none.
    if let Some(order) = plan.properties().output_ordering()
        && !unordered(plan).ordering_satisfy(order.iter().cloned()).unwrap_or(false)
    {
        return None;
    }
    let mut builder = Builder::default();
    let chain = builder.operator(plan)?;
    if !builder.has_work {
        return None;
    }
    builder.end(chain, Sink::Rows);
    builder.want();
    let program = Program { pipelines: builder.pipelines };
    let ahead = ahead::of(&program);
    Some(Lowered { program, inputs: builder.inputs, marks: builder.marks, ahead })
}

/// What is known of a plan's rows in whatever order they come.
pub(super) fn unordered(plan: &Arc<dyn ExecutionPlan>) -> EquivalenceProperties {
    let mut known = plan.properties().equivalence_properties().clone();
    known.clear_orderings();
    known.clear_per_partition_constants();
    known
}

/// A pipeline without its end.
struct Chain {
    source: Source,
    steps: Vec<Step>,
    schema: SchemaRef,
    /// The input and its column that each column is, where it is one and rows that it rules out may be left out there.
    origins: Vec<Option<SourceColumn>>,
    /// The input and its column that each column's values are from.
    sources: Vec<Option<SourceColumn>>,
    /// Inputs instead of whose rows an outer join may have given NULLs.
    padded: Vec<usize>,
    marks: Vec<Mark>,
}

#[derive(Default)]
struct Builder {
    pipelines: Vec<Pipeline>,
    inputs: Vec<Input>,
    marks: Vec<Vec<Mark>>,
    dependencies: Dependencies,
    /// Whether anything is joined or grouped.
    has_work: bool,
}

impl Builder {
    /// The rows of a plan: by the engine where it can, else from outside.
    fn rows(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        let (pipelines, inputs, has_work) = (self.pipelines.len(), self.inputs.len(), self.has_work);
        if let Some(chain) = self.operator(plan) {
            return Some(chain);
        }
        self.pipelines.truncate(pipelines);
        self.marks.truncate(pipelines);
        self.inputs.truncate(inputs);
        self.dependencies.truncate(inputs);
        self.has_work = has_work;
        let schema = plan.schema();
        if !schema.fields().iter().all(|field| has_form(field.data_type())) {
            return None;
        }
        let covered = cover(Arc::clone(plan)).ok()?;
        Some(self.input(Input::Foreign(covered), schema, false))
    }

    fn input(&mut self, input: Input, schema: SchemaRef, is_scan: bool) -> Chain {
        let (columns, number) = (schema.fields().len(), self.inputs.len());
        self.inputs.push(input);
        let origins: Vec<_> = (0..columns).map(|column| is_scan.then_some((number, column))).collect();
        let (steps, marks, sources, padded) = (Vec::new(), Vec::new(), origins.clone(), Vec::new());
        Chain { source: Source::Input(number), steps, schema, origins, sources, padded, marks }
    }

    fn end(&mut self, chain: Chain, sink: Sink) -> usize {
        self.pipelines.push(Pipeline { source: chain.source, steps: chain.steps, sink });
        self.marks.push(chain.marks);
        self.pipelines.len() - 1
    }

    fn operator(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        let mut chain = self.lowered(plan)?;
        let is_narrowed = plan.is::<FilterExec>() && chain.steps.is_empty();
        if !plan.is::<ShardScanExec>() && !is_narrowed {
            chain.marks.push(Mark { operator: OperatorId::of(plan.as_ref()), step: chain.steps.len() });
        }
        Some(chain)
    }

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
        self.join(&JoinOperator::of(plan)?)
    }

    /// What lies below, where exchanges between threads are none of the engine's business.
    fn below(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        self.rows(through_exchanges(plan))
    }
}

/// What the exchanges between threads above it read.
fn through_exchanges(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    let is_exchange =
        plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() || plan.is::<CooperativeExec>();
    match plan.children().first() {
        Some(below) if is_exchange && plan.fetch().is_none() => through_exchanges(below),
        _ => plan,
    }
}

//! Pipelines: batches of a source pass through steps into a sink. Each worker runs its own copy over its share of the
//! source.

mod step_timing;
mod worker;

use std::sync::Arc;

pub use step_timing::{BusyTime, NanoClock};
pub use worker::{
    BuildChunkPosition, MemoryBudget, OutputSink, SinkState, SortSpillSink, SpillSink, Worker, WorkerContext,
};

use crate::PhysicalType;
use crate::aggregate::AggregateSpec;
use crate::expression::Expression;
use crate::join::JoinSpec;
use crate::sort::SortSpec;

/// Source, steps and sink of one pipeline.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub source: Source,
    pub steps: Vec<Step>,
    pub sink: Sink,
    /// Whether the workers of the next pipeline, which has the same sink, continue with the sink state collected by
    /// this one: both are inputs of one UNION ALL.
    pub continues_in_next: bool,
    /// Whether the order of the source must be preserved; a single worker then reads all of it.
    pub preserves_order: bool,
}

/// Origin of a pipeline's batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Input from outside of the program, such as a scan, by its number.
    Input(usize),
    /// Groups aggregated by the pipeline with this number.
    Groups(usize),
    /// Rows sorted by the pipeline with this number.
    Sorted(usize),
}

/// Streaming operator of a pipeline.
#[derive(Debug, Clone)]
pub enum Step {
    /// Passes on the rows for which all conditions are true. A condition is evaluated only for the rows that passed
    /// the conditions before it.
    Filter(Vec<Expression>),
    /// Replaces the columns by the values of the expressions.
    Project(Vec<Expression>),
    /// Passes on all rows once per list of expressions, with the columns of that list (several DISTINCT aggregates).
    Expand(Vec<Vec<Expression>>),
    /// Joins the rows with the hash table built by an earlier pipeline.
    Probe {
        spec: Arc<JoinSpec>,
        /// Number of the pipeline that built the hash table.
        build_pipeline: usize,
        /// Physical types of the probe side's columns.
        probe_types: Vec<PhysicalType>,
    },
    /// LIMIT and OFFSET: skips the first `skip` rows and passes on at most `fetch`. All workers share one row
    /// counter, identified by `counter`.
    Limit { counter: usize, skip: u64, fetch: Option<u64> },
}

impl Step {
    /// Returns whether the step may end the pipeline early.
    #[must_use]
    pub fn may_end_early(&self) -> bool {
        match self {
            Self::Limit { fetch, .. } => fetch.is_some(),
            Self::Filter(_) | Self::Project(_) | Self::Expand(_) | Self::Probe { .. } => false,
        }
    }
}

/// Final operator of a pipeline.
#[derive(Debug, Clone)]
pub enum Sink {
    /// Aggregates rows into groups.
    Aggregate(Arc<AggregateSpec>),
    /// Collects the build side of a hash join.
    Build(Arc<JoinSpec>),
    /// Collects rows to be sorted.
    Sort(Arc<SortSpec>),
    /// Returns the rows as output of the program.
    Output,
}

/// Pipelines in an executable order; the last one's sink is [`Sink::Output`].
#[derive(Debug, Clone)]
pub struct Program {
    pub pipelines: Vec<Pipeline>,
}

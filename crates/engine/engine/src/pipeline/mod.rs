//! A pipeline: batches of a source go through steps into a sink. Each worker runs one of its own over its share of the source.

mod meter;
mod worker;

use std::sync::Arc;

pub use meter::{Busy, Now};
pub use worker::{Border, Collected, Pass, Relief, Room, Spill, SpillSorted, Worker};

use crate::Form;
use crate::aggregate::AggregateSpec;
use crate::expression::Expression;
use crate::join::JoinSpec;
use crate::sort::SortSpec;

/// What happens to a source's batches.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub source: Source,
    pub steps: Vec<Step>,
    pub sink: Sink,
    /// Whether what its workers have collected is what those of the next pipeline, whose sink is the same, begin with: the two are inputs of
    /// one union.
    pub goes_on: bool,
    /// Whether its source has an order that must be kept: one worker takes it all.
    pub in_order: bool,
}

/// Where batches come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An input from outside, by its number.
    Input(usize),
    /// The groups of an earlier pipeline.
    Groups(usize),
    /// What an earlier pipeline has sorted.
    Sorted(usize),
}

/// What is done with a batch.
#[derive(Debug, Clone)]
pub enum Step {
    /// Rows for which all are true go on; what a later one reads is computed only for what earlier ones leave.
    Filter(Vec<Expression>),
    /// Other columns.
    Project(Vec<Expression>),
    /// All rows as often as there are lists, each time with the columns of one.
    Repeat(Vec<Vec<Expression>>),
    /// Rows with what they find in the table that an earlier pipeline built.
    Probe {
        spec: Arc<JoinSpec>,
        built_by: usize,
        /// The forms of the probing batches' columns.
        forms: Vec<Form>,
    },
    /// Rows but the first few, and no more than so many of these; all workers together, who count them by the step's number.
    Limit { number: usize, skip: u64, fetch: Option<u64> },
}

impl Step {
    /// Whether it may let no more rows pass.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { fetch: Some(_), .. })
    }
}

/// Where batches end.
#[derive(Debug, Clone)]
pub enum Sink {
    Groups(Arc<AggregateSpec>),
    Build(Arc<JoinSpec>),
    Sort(Arc<SortSpec>),
    /// They leave the program.
    Rows,
}

/// Pipelines in an order in which they can run; the last one's sink is [`Sink::Rows`].
#[derive(Debug, Clone)]
pub struct Program {
    pub pipelines: Vec<Pipeline>,
}

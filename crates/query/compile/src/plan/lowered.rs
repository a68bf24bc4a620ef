//! A fragment's program, and where its rows come from.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use engine::expression::Expression;
use engine::pipeline::Program;
use functions::KeySet;
use shards::Test;

use crate::top::Top;

/// The program of a fragment.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) program: Program,
    pub(crate) inputs: Vec<Input>,
    /// For each pipeline, whose rows come to which of its steps: what EXPLAIN ANALYZE shows.
    pub(crate) marks: Vec<Vec<Mark>>,
    /// The number of limits in its steps.
    pub(crate) limits: usize,
    /// Bounds on the first rows that scans are told of, with the pipelines that sort for them.
    pub(crate) tops: Vec<(usize, Top)>,
    /// For each pipeline, the one that can take its groups while it runs.
    pub(crate) ahead: Vec<Option<usize>>,
}

/// The rows that come to a step are those that an operator gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) operator: OperatorId,
    pub(crate) step: usize,
}

/// An operator of the plan that a fragment stands for, which lives as long as the fragment: its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperatorId(usize);

impl OperatorId {
    pub fn of(operator: &dyn ExecutionPlan) -> Self {
        Self(std::ptr::from_ref(operator).cast::<()>().addr())
    }
}

/// A source of a program's rows.
#[derive(Debug)]
pub(crate) enum Input {
    Scan(ScanInput),
    Foreign(ForeignInput),
}

/// Operators of DataFusion's, with programs in the place of what the engine can run of them.
#[derive(Debug)]
pub(crate) struct ForeignInput {
    /// The operator of the plan that they stand for.
    pub(crate) stands_for: OperatorId,
    pub(crate) operators: Arc<dyn ExecutionPlan>,
}

/// A scan, and what is done with its pages before rows go on.
#[derive(Debug)]
pub(crate) struct ScanInput {
    pub(crate) scan: Arc<dyn ExecutionPlan>,
    /// Conditions over its columns.
    pub(crate) filters: Vec<ScanFilter>,
    /// Columns whose values must be keys of tables that earlier pipelines built: column, pipeline, key.
    pub(crate) keys: Vec<(usize, usize, usize)>,
    /// The columns that are read after the filters.
    pub(crate) wanted: Vec<bool>,
    /// The operator of the filters.
    pub(crate) filter: Option<OperatorId>,
}

/// A condition over the columns of a scan.
#[derive(Debug, Clone)]
pub(crate) struct ScanFilter {
    pub(crate) condition: Expression,
    /// The same as a test of one column, by its position, that the scan makes anyway: where blocks answer it, nothing is left to do.
    pub(crate) test: Option<(usize, Test)>,
    /// The same where it is that a column, by its position, has one of some keys.
    pub(crate) keys: Option<(usize, Arc<KeySet>)>,
}

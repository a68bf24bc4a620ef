//! Compiled form of a fragment: its program and inputs.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use engine::expression::Expression;
use engine::pipeline::Program;
use functions::KeySet;
use shards::Test;

use crate::top_k::TopKFilter;

/// Compiled form of a fragment.
#[derive(Debug)]
pub(crate) struct CompiledFragment {
    pub(crate) program: Program,
    pub(crate) inputs: Vec<Input>,
    /// Per pipeline, the operators whose output arrives at its steps, for EXPLAIN ANALYZE.
    pub(crate) operator_outputs: Vec<Vec<OperatorOutput>>,
    /// Number of LIMIT steps.
    pub(crate) limit_count: usize,
    /// Top-k filters that scans receive, with the pipelines that sort.
    pub(crate) top_k_filters: Vec<(usize, TopKFilter)>,
    /// Per pipeline, the one that can read its groups while it runs.
    pub(crate) early_readers: Vec<Option<usize>>,
}

/// The rows that arrive at a step are the output of an operator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorOutput {
    pub(crate) operator: OperatorId,
    pub(crate) step: usize,
}

/// Identity of an operator, by its address. A fragment retains the operators that it was compiled from, so the address
/// stays unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperatorId(usize);

impl OperatorId {
    /// Returns the identity of an operator.
    pub fn new(operator: &dyn ExecutionPlan) -> Self {
        Self(std::ptr::from_ref(operator).cast::<()>().addr())
    }
}

/// Source of a program's rows.
#[derive(Debug)]
pub(crate) enum Input {
    Scan(ScanInput),
    Operators(OperatorInput),
}

/// Input from operators that are not compiled; their compilable parts are fragments of their own.
#[derive(Debug)]
pub(crate) struct OperatorInput {
    /// Operator of the original plan in whose place they run.
    pub(crate) replaced_operator: OperatorId,
    pub(crate) operators: Arc<dyn ExecutionPlan>,
}

/// Scan with the filters that are applied to its pages.
#[derive(Debug)]
pub(crate) struct ScanInput {
    pub(crate) scan: Arc<dyn ExecutionPlan>,
    /// Conditions on its columns.
    pub(crate) filters: Vec<ScanFilter>,
    /// Columns that must match keys of hash tables: column, pipeline that builds the hash table, key.
    pub(crate) keys: Vec<(usize, usize, usize)>,
    /// Columns that are read for rows that pass the filters.
    pub(crate) late_columns: Vec<bool>,
    /// Operator that the filters come from.
    pub(crate) filter_operator: Option<OperatorId>,
}

/// Condition on the columns of a scan.
#[derive(Debug, Clone)]
pub(crate) struct ScanFilter {
    pub(crate) condition: Expression,
    /// The condition as a test of one column, by position, that the scan evaluates itself: if blocks decide it, nothing
    /// is left to do.
    pub(crate) test: Option<(usize, Test)>,
    /// The condition as membership of a column, by position, in a key set.
    pub(crate) keys: Option<(usize, Arc<KeySet>)>,
}

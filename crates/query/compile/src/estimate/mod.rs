//! Estimates rows and costs of operators, in PostgreSQL's units: reading a page of 8 KB costs 1.
//!
//! - `shown_operators.rs` finds the operators of a plan as EXPLAIN shows them.
//! - `row_estimates.rs` matches them with the optimizer's row estimates.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use optimizer::RowEstimate;
use scan::ShardScanExec;

use crate::plan::OperatorId;

mod row_estimates;
mod shown_operators;

pub use self::row_estimates::expected_rows;
pub use self::shown_operators::ShownOperators;

const PAGE_BYTES: f64 = 8192.0;
const ROW_COST: f64 = 0.01;
const OPERATOR_COST: f64 = 0.0025;

/// Estimated work of an operator and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Cost until the first row.
    pub startup: f64,
    /// Cost until the last row.
    pub total: f64,
    pub rows: u64,
    /// Mean bytes of a row.
    pub width: u64,
}

/// Memoizing estimator.
pub struct Estimates<'a> {
    operators: &'a ShownOperators,
    /// Rows by operator, from the optimizer.
    expected_rows: HashMap<OperatorId, f64>,
    memo: RefCell<HashMap<OperatorId, Estimate>>,
    statistics: StatisticsContext,
}

impl<'a> Estimates<'a> {
    /// Returns an estimator; `expected` holds the optimizer's row estimates.
    pub fn new(operators: &'a ShownOperators, expected: HashMap<OperatorId, f64>) -> Self {
        Self { operators, expected_rows: expected, memo: RefCell::default(), statistics: StatisticsContext::default() }
    }

    /// Returns the estimate of an operator.
    pub fn estimate(&self, operator: &Arc<dyn ExecutionPlan>) -> Estimate {
        let operator = self.operators.shown(operator);
        let own = OperatorId::new(operator.as_ref());
        if let Some(known) = self.memo.borrow().get(&own) {
            return *known;
        }
        let estimate = self.compute(operator, own);
        self.memo.borrow_mut().insert(own, estimate);
        estimate
    }

    fn compute(&self, operator: &Arc<dyn ExecutionPlan>, own: OperatorId) -> Estimate {
        let inputs: Vec<Estimate> = operator.children().into_iter().map(|input| self.estimate(input)).collect();
        let rows_in = inputs.iter().map(|input| input.rows).max().unwrap_or(0);
        let rows = self.rows(operator.as_ref(), own, rows_in);
        let below: f64 = inputs.iter().map(|input| input.total).sum();
        let own = own_cost(operator.as_ref(), inputs.iter().map(|input| input.rows).sum(), rows);
        let total = below + own;
        let startup = match operator.pipeline_behavior() {
            EmissionType::Final => total - rows.min(rows_in) as f64 * ROW_COST,
            EmissionType::Incremental | EmissionType::Both => inputs.iter().fold(0.0, |sum, input| sum + input.startup),
        };
        Estimate { startup: startup.clamp(0.0, total), total, rows, width: width(&operator.schema()) }
    }

    /// Estimates rows from the optimizer's estimate, else from the input, else from DataFusion's statistics.
    fn rows(&self, operator: &dyn ExecutionPlan, own: OperatorId, rows_in: u64) -> u64 {
        let limit = operator.fetch().map_or(u64::MAX, |fetch| fetch as u64);
        if let Some(rows) = self.expected_rows.get(&own) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
            let rows = rows.round().max(1.0) as u64;
            return rows.min(limit);
        }
        if let Some(global) = operator.downcast_ref::<GlobalLimitExec>() {
            return rows_in.saturating_sub(global.skip() as u64).min(limit);
        }
        let gives_all = matches!(operator.cardinality_effect(), CardinalityEffect::Equal) || operator.fetch().is_some();
        if gives_all && operator.children().len() == 1 {
            return rows_in.min(limit);
        }
        let statistics = self.statistics.compute(operator, &StatisticsArgs::new()).ok();
        let rows = statistics.and_then(|statistics| statistics.num_rows.get_value().copied());
        rows.map_or(rows_in, |rows| rows as u64)
    }
}

/// Returns the estimated bytes of the build and the probe side of hash joins, by the optimizer's estimates in `plan` or
/// else by DataFusion's statistics.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub fn join_sizes(plan: Option<&RowEstimate>, root: &Arc<dyn ExecutionPlan>) -> HashMap<OperatorId, (f64, f64)> {
    let operators = ShownOperators::from_plan(root);
    let expected = plan.map(|plan| expected_rows(plan, root, &operators)).unwrap_or_default();
    let estimates = Estimates::new(&operators, expected);
    let bytes = |operator| {
        let estimate = estimates.estimate(operator);
        estimate.rows as f64 * estimate.width as f64
    };
    let mut sizes = HashMap::new();
    let walked = root.apply(|operator| {
        if let Some(join) = operator.downcast_ref::<HashJoinExec>() {
            sizes.insert(OperatorId::new(operator.as_ref()), (bytes(join.left()), bytes(join.right())));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("the visitor of joins returns no error");
    sizes
}

/// Returns the cost of an operator without its inputs.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn own_cost(operator: &dyn ExecutionPlan, rows_in: u64, rows: u64) -> f64 {
    let (rows_in, rows) = (rows_in as f64, rows as f64);
    if let Some(scan) = operator.downcast_ref::<ShardScanExec>() {
        let scan = &scan.scan;
        let bytes: u64 = scan.shards.iter().map(|shard| shard.meta.bytes).sum();
        return bytes as f64 / PAGE_BYTES + rows * ROW_COST;
    }
    if operator.is::<FilterExec>() {
        return rows_in * OPERATOR_COST;
    }
    if operator.is::<SortExec>() {
        return rows_in * (rows_in + 2.0).log2() * 2.0 * OPERATOR_COST;
    }
    if operator.is::<NestedLoopJoinExec>() || operator.is::<CrossJoinExec>() {
        return rows_in * OPERATOR_COST + rows * ROW_COST;
    }
    rows_in * OPERATOR_COST + rows.min(rows_in) * ROW_COST / 2.0
}

/// Returns the mean bytes of a row: exact for types of fixed size, 32 bytes for other columns as in PostgreSQL.
fn width(schema: &Schema) -> u64 {
    let bytes = |data_type: &DataType| match data_type {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(bytes) => u64::try_from(*bytes).unwrap_or(0),
        other => other.primitive_width().map_or(32, |bytes| bytes as u64),
    };
    schema.fields().iter().map(|field| bytes(field.data_type())).sum()
}

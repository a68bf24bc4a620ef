//! Operator that removes rows beyond a rank limit before they are sorted.

use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};

/// Operator that drops a row if at least `most` rows of its window partition that have passed sort before it. It
/// remembers only the keys of the best rows and passes rows on at once, so that more rows pass than are within the
/// limit.
#[derive(Debug)]
pub struct RankLimitExec {
    input: Arc<dyn ExecutionPlan>,
    partition_by: Vec<Arc<dyn PhysicalExpr>>,
    order_by: Vec<PhysicalSortExpr>,
    rank_max: usize,
    metrics: ExecutionPlanMetricsSet,
}

/// Maximum memory of all remembered keys, in bytes; beyond it, rows pass without being remembered.
const MEMORY_BYTES_MAX: usize = 16 << 20;
/// Estimated overhead of a remembered key, in bytes.
const KEY_OVERHEAD_BYTES: usize = 48;

impl RankLimitExec {
    /// Returns the PARTITION BY expressions, the ORDER BY of the rank, and the greatest rank that passes.
    #[must_use]
    pub(crate) fn parameters(&self) -> (&[Arc<dyn PhysicalExpr>], &[PhysicalSortExpr], usize) {
        (&self.partition_by, &self.order_by, self.rank_max)
    }

    /// Creates the operator over `input`.
    #[must_use]
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        parts: Vec<Arc<dyn PhysicalExpr>>,
        order: Vec<PhysicalSortExpr>,
        most: usize,
    ) -> Self {
        Self { input, partition_by: parts, order_by: order, rank_max: most, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for RankLimitExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RankLimit: {}", self.rank_max)
    }
}

impl ExecutionPlan for RankLimitExec {
    fn name(&self) -> &'static str {
        "RankLimitExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(
            children.swap_remove(0),
            self.partition_by.clone(),
            self.order_by.clone(),
            self.rank_max,
        )))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut all = self.partition_by.iter().chain(self.order_by.iter().map(|sort| &sort.expr));
        all.try_fold(TreeNodeRecursion::Continue, |_, expression| visit(expression))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut best = BestRows::new(self)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let rows = self.input.execute(partition, context)?;
        let passed = rows.map(move |batch| {
            let timer = baseline.elapsed_compute().timer();
            let passed = batch.and_then(|batch| best.filter_batch(&batch));
            timer.done();
            passed.inspect(|batch| baseline.record_output(batch.num_rows()))
        });
        let passed = passed.try_filter(|batch| std::future::ready(0 < batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), passed)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Keys of the best rows that have passed, per window partition.
struct BestRows {
    partition_by: Vec<Arc<dyn PhysicalExpr>>,
    order_by: Vec<Arc<dyn PhysicalExpr>>,
    part_rows: RowConverter,
    order_rows: RowConverter,
    rank_max: usize,
    /// By partition, the keys of its best rows, the worst on top; all encoded so that bytes compare like rows.
    best_keys: HashMap<Box<[u8]>, BinaryHeap<Box<[u8]>>>,
    memory_bytes: usize,
}

impl BestRows {
    fn new(limit: &RankLimitExec) -> Result<Self> {
        let schema = limit.input.schema();
        let parts = limit.partition_by.iter().map(|part| Ok(SortField::new(part.data_type(&schema)?)));
        let order = limit.order_by.iter();
        let order = order.map(|sort| Ok(SortField::new_with_options(sort.expr.data_type(&schema)?, sort.options)));
        Ok(Self {
            part_rows: RowConverter::new(parts.collect::<Result<_>>()?)?,
            order_rows: RowConverter::new(order.collect::<Result<_>>()?)?,
            partition_by: limit.partition_by.clone(),
            order_by: limit.order_by.iter().map(|sort| Arc::clone(&sort.expr)).collect(),
            rank_max: limit.rank_max,
            best_keys: HashMap::new(),
            memory_bytes: 0,
        })
    }

    /// Returns the rows that may be within the limit.
    fn filter_batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns = |expressions: &[Arc<dyn PhysicalExpr>]| {
            let column = |expression: &Arc<dyn PhysicalExpr>| expression.evaluate(batch)?.into_array(rows);
            expressions.iter().map(column).collect::<Result<Vec<ArrayRef>>>()
        };
        let parts = self.part_rows.convert_columns(&columns(&self.partition_by)?)?;
        let order = self.order_rows.convert_columns(&columns(&self.order_by)?)?;
        let mut passing = Vec::with_capacity(rows);
        for row in 0..rows {
            let (part, key) = (parts.row(row), order.row(row));
            let (part, key): (&[u8], &[u8]) = (part.as_ref(), key.as_ref());
            let Some(best) = self.best_keys.get_mut(part) else {
                if self.memory_bytes < MEMORY_BYTES_MAX {
                    self.memory_bytes += part.len() + key.len() + 2 * KEY_OVERHEAD_BYTES;
                    self.best_keys.insert(part.into(), BinaryHeap::from([key.into()]));
                }
                passing.push(true);
                continue;
            };
            if best.len() < self.rank_max {
                if self.memory_bytes < MEMORY_BYTES_MAX {
                    self.memory_bytes += key.len() + KEY_OVERHEAD_BYTES;
                    best.push(key.into());
                }
                passing.push(true);
                continue;
            }
            let worst = best.peek().expect("the limit is at least 1, so the heap is not empty");
            let order = key.cmp(worst);
            passing.push(order.is_le());
            // A longer key may be dropped for lack of memory: the worse key stays, and more rows pass.
            if order.is_lt() && (key.len() <= worst.len() || self.memory_bytes < MEMORY_BYTES_MAX) {
                self.memory_bytes += key.len().saturating_sub(worst.len());
                best.pop();
                best.push(key.into());
            }
        }
        Ok(filter_record_batch(batch, &BooleanArray::from(passing))?)
    }
}

//! The rows of one partition of a scan: part after part from the shared queue.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::RecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use planner::error::to_datafusion;
use shards::{Predicate, RowGroupRead, prune};

use super::parts::Queue;
use super::{Scan, predicates};
use crate::error::from_shards;

/// Names of the counters in a scan's metrics.
pub(crate) mod counter {
    pub(crate) const SHARDS_PRUNED: &str = "shards_pruned";
    pub(crate) const ROW_GROUPS: &str = "row_groups";
    pub(crate) const ROW_GROUPS_PRUNED: &str = "row_groups_pruned";
    pub(crate) const PAGES: &str = "pages";
    pub(crate) const PAGES_PRUNED: &str = "pages_pruned";
    pub(crate) const BYTES: &str = "bytes_read";
}

/// What one partition counts.
struct Counters {
    row_groups: Count,
    row_groups_pruned: Count,
    pages: Count,
    pages_pruned: Count,
    bytes: Count,
    /// Bytes that are not in `bytes` yet.
    fetched: Arc<AtomicU64>,
}

/// One partition of a running scan.
pub(super) struct PartitionScan {
    pub(super) scan: Arc<Scan>,
    pub(super) queue: Arc<Queue>,
    /// Filters that grow stricter while the query runs.
    pub(super) dynamic: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) batch_rows: usize,
    /// Rows that are enough.
    pub(super) limit: Option<usize>,
}

impl PartitionScan {
    pub(super) fn rows(self, schema: SchemaRef, metrics: &ExecutionPlanMetricsSet, partition: usize) -> ScanRows {
        let counters = Counters::new(metrics, partition);
        let running =
            Running { left: self.limit.unwrap_or(usize::MAX), scan: self, counters, current: None, next: None };
        let batches =
            stream::try_unfold(running, async |mut running| Ok(running.next().await?.map(|batch| (batch, running))));
        ScanRows { schema, batches: batches.boxed(), metrics: BaselineMetrics::new(metrics, partition) }
    }
}

struct Running {
    scan: PartitionScan,
    counters: Counters,
    /// The part that is being read.
    current: Option<Batches>,
    /// The part after it, which is being fetched.
    next: Option<Batches>,
    /// Rows still wanted.
    left: usize,
}

type Batches = BoxStream<'static, shards::Result<RecordBatch>>;

impl Running {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        while 0 < self.left {
            let Some(batches) = &mut self.current else {
                if !self.advance().await.map_err(failed)? {
                    break;
                }
                continue;
            };
            let batch = batches.next().await.transpose();
            self.counters.flush();
            match batch.map_err(failed)? {
                Some(batch) => {
                    let batch = if self.left < batch.num_rows() { batch.slice(0, self.left) } else { batch };
                    self.left -= batch.num_rows();
                    return Ok(Some(batch));
                }
                None => self.current = None,
            }
        }
        Ok(None)
    }

    /// Goes on to the next part; `false` if there is none.
    async fn advance(&mut self) -> shards::Result<bool> {
        self.current = match self.next.take() {
            Some(next) => Some(next),
            None => self.open().await?,
        };
        // A limit is often reached before the next part is needed.
        if self.current.is_some() && self.scan.limit.is_none() {
            self.next = self.open().await?;
        }
        Ok(self.current.is_some())
    }

    /// Begins to fetch the next part that may hold rows.
    async fn open(&mut self) -> shards::Result<Option<Batches>> {
        let scan = Arc::clone(&self.scan.scan);
        while let Some(part) = self.scan.queue.next() {
            let is_first = part.rows.start == 0;
            self.counters.row_groups.add(usize::from(is_first));
            let predicates = self.predicates();
            let meta = &scan.shards[part.shard];
            // Dynamic filters may rule out whole shards by now.
            if !self.scan.dynamic.is_empty() && !prune::may_match(meta, &predicates, &scan.table_columns) {
                self.counters.row_groups_pruned.add(usize::from(is_first));
                continue;
            }
            let reader = scan.opened.get(&scan.objects, meta).await?;
            let read = RowGroupRead {
                row_group: part.row_group,
                rows: part.rows,
                columns: Arc::clone(&scan.columns),
                predicates,
                batch_rows: self.scan.batch_rows,
                fetched_bytes: Arc::clone(&self.counters.fetched),
            };
            let rows = reader.read(&read)?;
            let pruning = rows.pruning;
            self.counters.row_groups_pruned.add(usize::from(is_first && pruning.is_row_group_pruned));
            self.counters.pages.add(count(pruning.pages));
            self.counters.pages_pruned.add(count(pruning.pages_pruned));
            if !pruning.is_row_group_pruned {
                return Ok(Some(rows.batches));
            }
        }
        Ok(None)
    }

    fn predicates(&self) -> Vec<Predicate> {
        let scan = &self.scan.scan;
        let dynamic = self.scan.dynamic.iter().flat_map(|filter| predicates::of(filter, &scan.columns));
        scan.predicates.iter().cloned().chain(dynamic).collect()
    }
}

impl Counters {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            row_groups: counter(counter::ROW_GROUPS),
            row_groups_pruned: counter(counter::ROW_GROUPS_PRUNED),
            pages: counter(counter::PAGES),
            pages_pruned: counter(counter::PAGES_PRUNED),
            bytes: counter(counter::BYTES),
            fetched: Arc::default(),
        }
    }

    fn flush(&self) {
        self.bytes.add(count(self.fetched.swap(0, Ordering::Relaxed)));
    }
}

fn failed(error: shards::Error) -> DataFusionError {
    to_datafusion(from_shards(error))
}

fn count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A partition's batches, counted and timed.
pub(super) struct ScanRows {
    schema: SchemaRef,
    batches: BoxStream<'static, DfResult<RecordBatch>>,
    metrics: BaselineMetrics,
}

impl Stream for ScanRows {
    type Item = DfResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let time = self.metrics.elapsed_compute().clone();
        let timer = time.timer();
        let poll = self.batches.poll_next_unpin(context);
        timer.done();
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for ScanRows {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

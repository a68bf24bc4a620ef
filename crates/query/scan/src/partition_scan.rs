//! Execution of a scan partition: takes parts from the shared queue and returns their rows as batches.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::RecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder};
use functions::error::to_datafusion;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use scheduler::{clock, yield_if_due};
use shards::cache::PredicateOrder;
use shards::prune::Pruning;
use shards::{ORDINAL_COLUMN, Predicate, RowGroupRead, ShardReader, prune};
use storage_error::from_shards;

use crate::scan::Scan;
use crate::scan_parts::{Part, PartQueue};
use crate::unflushed_by_index::rows_by_listed_keys;
use crate::{predicates, unflushed_batch};

/// Names of a scan's metrics.
pub mod counter {
    pub const SHARDS_PRUNED: &str = "shards_pruned";
    pub const SHARDS_KNOWN: &str = "shards_known";
    pub const ROW_GROUPS: &str = "row_groups";
    pub const ROW_GROUPS_PRUNED: &str = "row_groups_pruned";
    pub const PAGES: &str = "pages";
    pub const PAGES_PRUNED: &str = "pages_pruned";
    pub const BYTES: &str = "bytes_read";
    pub const ROWS_REMOVED: &str = "rows_removed";
}

/// Metrics of one partition.
pub(super) struct PartitionMetrics {
    row_groups: Count,
    row_groups_pruned: Count,
    pages: Count,
    pages_pruned: Count,
    bytes: Count,
    rows_removed: Count,
    /// Bytes and rows that the metrics do not include yet.
    pending_bytes: Arc<AtomicU64>,
    pending_removed: Arc<AtomicU64>,
}

/// Scan of one partition, ready to run.
pub(super) struct PartitionScan {
    pub(super) scan: Arc<Scan>,
    pub(super) queue: Arc<PartQueue>,
    /// Dynamic filters, which become stricter while the query runs.
    pub(super) dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Predicates known when the run begins: rows that fail them may be left out.
    pub(super) known_predicates: Vec<Predicate>,
    pub(super) batch_rows: usize,
    /// Maximum number of rows.
    pub(super) limit: Option<usize>,
}

impl PartitionScan {
    pub(super) fn into_stream(
        self,
        schema: SchemaRef,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> ScanStream {
        let left = self.limit.unwrap_or(usize::MAX);
        let running =
            RunningScan { parts: self.into_reader(metrics, partition), current: None, next: None, rows_left: left };
        let batches = stream::try_unfold(running, async |mut running| {
            yield_if_due().await;
            Ok(running.next().await?.map(|batch| (batch, running)))
        });
        ScanStream { schema, batches: batches.boxed(), metrics: BaselineMetrics::new(metrics, partition) }
    }

    /// Returns the reader that opens its parts one after the other.
    pub(super) fn into_reader(self, metrics: &ExecutionPlanMetricsSet, partition: usize) -> PartsReader {
        let order = Arc::new(PredicateOrder::new(clock()));
        PartsReader { counters: PartitionMetrics::new(metrics, partition), order, scan: self }
    }
}

/// Reader that opens the parts of a partition.
pub(super) struct PartsReader {
    pub(super) scan: PartitionScan,
    pub(super) counters: PartitionMetrics,
    order: Arc<PredicateOrder>,
}

/// Part that may hold rows.
pub(super) enum OpenPart {
    Flushed {
        reader: ShardReader,
        read: RowGroupRead,
        /// Position of the shard among those of the table.
        shard: usize,
        /// Position of the shard among those of the scan.
        scan_position: usize,
    },
    /// Range of the unflushed rows.
    Unflushed(Range<usize>),
}

/// Execution state of a scan partition.
struct RunningScan {
    parts: PartsReader,
    /// Part that is being read.
    current: Option<Batches>,
    /// Next part, which is being fetched meanwhile.
    next: Option<Batches>,
    /// Number of rows still wanted.
    rows_left: usize,
}

/// Stream of a part's batches.
pub(super) type Batches = BoxStream<'static, DfResult<RecordBatch>>;

impl RunningScan {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        while 0 < self.rows_left {
            let Some(batches) = &mut self.current else {
                if !self.advance().await? {
                    break;
                }
                continue;
            };
            let batch = batches.next().await.transpose();
            self.parts.counters.flush();
            match batch? {
                Some(batch) => {
                    let batch = if self.rows_left < batch.num_rows() { batch.slice(0, self.rows_left) } else { batch };
                    self.rows_left -= batch.num_rows();
                    return Ok(Some(batch));
                }
                None => self.current = None,
            }
        }
        Ok(None)
    }

    /// Moves to the next part; `false` if there is none.
    async fn advance(&mut self) -> DfResult<bool> {
        self.current = match self.next.take() {
            Some(next) => Some(next),
            None => self.open().await?,
        };
        // With a limit, the next part is often not needed.
        if self.current.is_some() && self.parts.scan.limit.is_none() {
            self.next = self.open().await?;
        }
        Ok(self.current.is_some())
    }

    /// Starts fetching the next part that may hold rows.
    async fn open(&mut self) -> DfResult<Option<Batches>> {
        while let Some(opened) = self.parts.open_next().await? {
            let (reader, read, shard) = match opened {
                OpenPart::Flushed { reader, read, shard, .. } => (reader, read, shard),
                OpenPart::Unflushed(rows) => return Ok(Some(self.parts.read_unflushed(rows))),
            };
            // For a few rows, entire pages are not worth caching.
            let is_whole = self.parts.scan.limit.is_none();
            let rows =
                if is_whole { reader.read_cached(&read, &self.parts.scan.scan.blocks) } else { reader.read(&read) };
            let rows = rows.map_err(shard_error)?;
            if !self.parts.counters.count_pruned(&read, rows.pruning) {
                return Ok(Some(self.parts.with_table_places(rows.batches, shard)));
            }
        }
        Ok(None)
    }
}

impl PartsReader {
    /// Opens the next part whose shard is not pruned; `None` after the last.
    pub(super) async fn open_next(&mut self) -> DfResult<Option<OpenPart>> {
        let scan = Arc::clone(&self.scan.scan);
        while let Some(part) = self.scan.queue.take_next() {
            let (place, row_group, rows) = match part {
                Part::Flushed { shard, row_group, rows } => (shard, row_group, rows),
                Part::Unflushed(rows) => return Ok(Some(OpenPart::Unflushed(rows))),
            };
            let is_first = rows.start == 0;
            self.counters.row_groups.add(usize::from(is_first));
            let predicates = self.predicates();
            let shard = &scan.shards[place];
            let meta = &shard.meta;
            // Dynamic filters may rule out entire shards by now.
            let is_narrowed = !self.scan.dynamic_filters.is_empty() || !self.scan.known_predicates.is_empty();
            if is_narrowed && !prune::may_match(meta, &predicates, &scan.table_columns) {
                self.counters.row_groups_pruned.add(usize::from(is_first));
                continue;
            }
            let reader = match &shard.file {
                Some(file) => file.clone(),
                None => scan.opened.get_or_open(&scan.objects, meta).await.map_err(shard_error)?,
            };
            let read = RowGroupRead {
                row_group,
                rows,
                columns: Arc::clone(&scan.columns),
                predicates,
                deleted: shard.excluded_rows(),
                batch_rows: self.scan.batch_rows,
                fetched_bytes: Arc::clone(&self.counters.pending_bytes),
                removed_rows: Arc::clone(&self.counters.pending_removed),
                predicate_order: Arc::clone(&self.order),
            };
            return Ok(Some(OpenPart::Flushed { reader, read, shard: shard.table_position, scan_position: place }));
        }
        Ok(None)
    }

    /// Returns the unflushed rows in this range.
    pub(super) fn read_unflushed(&self, rows: Range<usize>) -> Batches {
        let (scan, queue) = (Arc::clone(&self.scan.scan), Arc::clone(&self.scan.queue));
        let few = || {
            let is_worth = !self.scan.dynamic_filters.is_empty() || !self.scan.known_predicates.is_empty();
            is_worth
                .then(|| {
                    rows_by_listed_keys(&scan.table, &scan.rows, &self.predicates(), scan.unflushed_range.as_ref())
                })
                .flatten()
        };
        let end =
            queue.few_unflushed.get_or_init(few).as_deref().unwrap_or_else(|| scan.unflushed()).len().min(rows.end);
        let step = self.scan.batch_rows.max(1);
        let schema = ShardReader::schema(&scan.columns);
        let pieces = (rows.start..end).step_by(step).map(move |start| start..end.min(start + step));
        let batches = pieces.map(move |piece| {
            let all = queue.few_unflushed.get().and_then(Option::as_deref).unwrap_or_else(|| scan.unflushed());
            unflushed_batch::unflushed_batch(&all[piece], &scan.columns, &schema).map_err(to_datafusion)
        });
        stream::iter(batches).boxed()
    }

    /// Returns the batches of a shard, with positions in the shard replaced by locations in the table.
    fn with_table_places(&self, batches: BoxStream<'static, shards::Result<RecordBatch>>, shard: usize) -> Batches {
        let batches = batches.map_err(shard_error);
        if !self.reads_place_column() {
            return batches.boxed();
        }
        let placed = self.place_mapper(shard);
        batches.map(move |batch| placed(batch?)).boxed()
    }

    pub(super) fn reads_place_column(&self) -> bool {
        self.scan.scan.columns.iter().any(|column| column.id == ORDINAL_COLUMN)
    }

    /// Returns a function that replaces positions in a shard by locations in the table.
    pub(super) fn place_mapper(&self, shard: usize) -> impl Fn(RecordBatch) -> DfResult<RecordBatch> + Send + 'static {
        let place = self.scan.scan.columns.iter().position(|column| column.id == ORDINAL_COLUMN);
        let first = i64::try_from(shard).expect("fewer than 2^31 shards") << 32;
        move |batch| {
            let Some(place) = place else { return Ok(batch) };
            let mut columns = batch.columns().to_vec();
            let ordinals = columns[place].as_primitive::<Int64Type>();
            columns[place] = Arc::new(ordinals.unary::<_, Int64Type>(|ordinal| first | ordinal));
            Ok(RecordBatch::try_new(batch.schema(), columns)?)
        }
    }

    fn predicates(&self) -> Vec<Predicate> {
        let scan = &self.scan.scan;
        let dynamic =
            self.scan.dynamic_filters.iter().flat_map(|filter| predicates::extract_predicates(filter, &scan.columns));
        scan.predicates.iter().cloned().chain(dynamic).chain(self.scan.known_predicates.iter().cloned()).collect()
    }
}

impl PartitionMetrics {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            row_groups: counter(counter::ROW_GROUPS),
            row_groups_pruned: counter(counter::ROW_GROUPS_PRUNED),
            pages: counter(counter::PAGES),
            pages_pruned: counter(counter::PAGES_PRUNED),
            bytes: counter(counter::BYTES),
            rows_removed: counter(counter::ROWS_REMOVED),
            pending_bytes: Arc::default(),
            pending_removed: Arc::default(),
        }
    }

    /// Counts pruned pages and row groups; `true` if everything is pruned.
    pub(super) fn count_pruned(&self, read: &RowGroupRead, pruning: Pruning) -> bool {
        let is_first = read.rows.start == 0;
        self.row_groups_pruned.add(usize::from(is_first && pruning.is_row_group_pruned));
        self.pages.add(saturating_usize(pruning.pages));
        self.pages_pruned.add(saturating_usize(pruning.pages_pruned));
        pruning.is_row_group_pruned
    }

    pub(super) fn flush(&self) {
        self.bytes.add(saturating_usize(self.pending_bytes.swap(0, Ordering::Relaxed)));
        self.rows_removed.add(saturating_usize(self.pending_removed.swap(0, Ordering::Relaxed)));
    }
}

pub(super) fn shard_error(error: shards::Error) -> DataFusionError {
    to_datafusion(from_shards(error))
}

fn saturating_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Batches of a partition, counted and timed.
pub(super) struct ScanStream {
    schema: SchemaRef,
    batches: BoxStream<'static, DfResult<RecordBatch>>,
    metrics: BaselineMetrics,
}

impl Stream for ScanStream {
    type Item = DfResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let time = self.metrics.elapsed_compute().clone();
        let timer = time.timer();
        let poll = self.batches.poll_next_unpin(context);
        timer.done();
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

//! Scans for the engine: rows come as pages of packed columns, without conversion to Arrow.

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use shards::Predicate;
use shards::cache::ScanBatch;

use crate::partition_scan::{OpenPart, PartitionScan, PartsReader, counter, shard_error};
use crate::scan::Scan;
use crate::scan_parts::{PartQueue, Parts};

/// One run of a scan, divided among the engine's workers.
pub struct PageRun {
    scan: Arc<Scan>,
    queue: Arc<PartQueue>,
    dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    known_predicates: Vec<Predicate>,
    batch_rows: usize,
    reads_ahead: bool,
    metrics: ExecutionPlanMetricsSet,
}

impl PageRun {
    pub(super) fn new(
        scan: &Arc<Scan>,
        parts: &Parts,
        dynamic: Vec<Arc<dyn PhysicalExpr>>,
        known: Vec<Predicate>,
        batch_rows: usize,
        metrics: ExecutionPlanMetricsSet,
    ) -> Self {
        let queue = PartQueue::new(parts);
        Self {
            scan: Arc::clone(scan),
            queue,
            dynamic_filters: dynamic,
            known_predicates: known,
            batch_rows,
            reads_ahead: true,
            metrics,
        }
    }

    /// Disables read-ahead: a part is opened only when its turn comes, so that dynamic filters have become stricter by
    /// then.
    #[must_use]
    pub fn without_read_ahead(self) -> Self {
        Self { reads_ahead: false, ..self }
    }

    /// Returns the number of parts.
    pub fn part_count(&self) -> usize {
        self.queue.len()
    }

    /// Leaves out the shards for which `is_known` is true, because their groups are cached. The other shards are read
    /// without dynamic filters, so that their groups can be cached as well.
    #[must_use]
    pub fn without_cached_shards(self, is_known: impl Fn(usize) -> bool) -> Self {
        let known = (0..self.scan.shards.len()).filter(|shard| is_known(*shard)).count();
        MetricBuilder::new(&self.metrics).global_counter(counter::SHARDS_KNOWN).add(known);
        let queue = PartQueue::new(&self.queue.parts().restrict_to_shards(|shard| !is_known(shard)));
        Self { queue, dynamic_filters: Vec::new(), known_predicates: Vec::new(), ..self }
    }

    /// Returns the reader of one worker; workers take parts from a shared queue.
    pub fn worker_reader(&self, number: usize) -> PageReader {
        let scan = PartitionScan {
            scan: Arc::clone(&self.scan),
            queue: Arc::clone(&self.queue),
            dynamic_filters: self.dynamic_filters.clone(),
            known_predicates: self.known_predicates.clone(),
            batch_rows: self.batch_rows,
            limit: None,
        };
        let parts = scan.into_reader(&self.metrics, number);
        PageReader { parts, current: None, next: None, pruned_shards: Vec::new(), reads_ahead: self.reads_ahead }
    }
}

/// Stream of the pages and rows of a part.
type Pieces = BoxStream<'static, DfResult<ScanBatch>>;

/// Event in a worker's share of a scan.
pub enum PageEvent {
    /// The pages that follow belong to a part of the shard at this position among those of the scan; `None` for
    /// unflushed rows.
    PartStarted(Option<usize>),
    Piece(ScanBatch),
    /// A part of this shard is pruned entirely and has no pages. The pages that follow belong to other parts.
    PartPruned(usize),
}

/// Reader of a worker's pages, part after part.
pub struct PageReader {
    parts: PartsReader,
    current: Option<Pieces>,
    /// Next part, which is being fetched, with its shard.
    next: Option<(Option<usize>, Pieces)>,
    /// Shards of pruned parts that have not been reported yet.
    pruned_shards: Vec<usize>,
    reads_ahead: bool,
}

impl PageReader {
    /// Returns the next event; `None` at the end.
    pub async fn next(&mut self) -> DfResult<Option<PageEvent>> {
        loop {
            if let Some(shard) = self.pruned_shards.pop() {
                return Ok(Some(PageEvent::PartPruned(shard)));
            }
            let Some(pieces) = &mut self.current else {
                let opened = match self.next.take() {
                    Some(next) => Some(next),
                    None => self.open_next().await?,
                };
                let Some((shard, pieces)) = opened else {
                    match self.pruned_shards.is_empty() {
                        true => return Ok(None),
                        false => continue,
                    }
                };
                self.current = Some(pieces);
                if self.reads_ahead {
                    self.next = self.open_next().await?;
                }
                return Ok(Some(PageEvent::PartStarted(shard)));
            };
            let piece = pieces.next().await.transpose();
            self.parts.counters.flush();
            match piece? {
                Some(piece) => return Ok(Some(PageEvent::Piece(piece))),
                None => self.current = None,
            }
        }
    }

    async fn open_next(&mut self) -> DfResult<Option<(Option<usize>, Pieces)>> {
        while let Some(opened) = self.parts.open_next().await? {
            let (reader, read, shard, place) = match opened {
                OpenPart::Flushed { reader, read, shard, scan_position: place } => (reader, read, shard, place),
                OpenPart::Unflushed(rows) => {
                    return Ok(Some((None, self.parts.read_unflushed(rows).map_ok(ScanBatch::Rows).boxed())));
                }
            };
            let pages = reader.read_pages(&read, &self.parts.scan.scan.blocks).map_err(shard_error)?;
            if self.parts.counters.count_pruned(&read, pages.pruning) {
                self.pruned_shards.push(place);
                continue;
            }
            // Locations are computed per row, and such rows come as arrays.
            let pieces = pages.batches.map_err(shard_error);
            if !self.parts.reads_place_column() {
                return Ok(Some((Some(place), pieces.boxed())));
            }
            let parts = self.parts.place_mapper(shard);
            let placed = pieces.map(move |piece| match piece? {
                ScanBatch::Rows(rows) => parts(rows).map(ScanBatch::Rows),
                page @ ScanBatch::Page(_) => Ok(page),
            });
            return Ok(Some((Some(place), placed.boxed())));
        }
        Ok(None)
    }
}

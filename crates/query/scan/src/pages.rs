//! Scans for the engine: rows come as pages of packed columns, without conversion to Arrow.

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use shards::Predicate;
use shards::cache::Piece;

use crate::parts::{Parts, Queue};
use crate::rows::{Opened, PartitionScan, PartsReader, counter, failed};
use crate::scan::Scan;

/// One run of a scan, divided among the engine's workers.
pub struct PageRun {
    scan: Arc<Scan>,
    queue: Arc<Queue>,
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    known: Vec<Predicate>,
    batch_rows: usize,
    is_ahead: bool,
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
        let queue = Queue::new(parts);
        Self { scan: Arc::clone(scan), queue, dynamic, known, batch_rows, is_ahead: true, metrics }
    }

    /// Disables read-ahead: a part is opened only when its turn comes, so that dynamic filters have become stricter by
    /// then.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { is_ahead: false, ..self }
    }

    /// Returns the number of parts.
    pub fn part_count(&self) -> usize {
        self.queue.len()
    }

    /// Leaves out the shards for which `is_known` is true, because their groups are cached. The other shards are read
    /// without dynamic filters, so that their groups can be cached as well.
    #[must_use]
    pub fn without(self, is_known: impl Fn(usize) -> bool) -> Self {
        let known = (0..self.scan.shards.len()).filter(|shard| is_known(*shard)).count();
        MetricBuilder::new(&self.metrics).global_counter(counter::SHARDS_KNOWN).add(known);
        let queue = Queue::new(&self.queue.parts().of_shards(|shard| !is_known(shard)));
        Self { queue, dynamic: Vec::new(), known: Vec::new(), ..self }
    }

    /// Returns the reader of one worker; workers take parts from a shared queue.
    pub fn worker(&self, number: usize) -> PageScan {
        let scan = PartitionScan {
            scan: Arc::clone(&self.scan),
            queue: Arc::clone(&self.queue),
            dynamic: self.dynamic.clone(),
            known: self.known.clone(),
            batch_rows: self.batch_rows,
            limit: None,
        };
        let parts = scan.parts(&self.metrics, number);
        PageScan { parts, current: None, next: None, passed: Vec::new(), is_ahead: self.is_ahead }
    }
}

/// Stream of the pages and rows of a part.
type Pieces = BoxStream<'static, DfResult<Piece>>;

/// Event in a worker's share of a scan.
pub enum Read {
    /// The pages that follow belong to a part of the shard at this position among those of the scan; `None` for
    /// unflushed rows.
    Begun(Option<usize>),
    Piece(Piece),
    /// A part of this shard is pruned entirely and has no pages. The pages that follow belong to other parts.
    Passed(usize),
}

/// Reader of a worker's pages, part after part.
pub struct PageScan {
    parts: PartsReader,
    current: Option<Pieces>,
    /// Next part, which is being fetched, with its shard.
    next: Option<(Option<usize>, Pieces)>,
    /// Shards of pruned parts that have not been reported yet.
    passed: Vec<usize>,
    is_ahead: bool,
}

impl PageScan {
    /// Returns the next event; `None` at the end.
    pub async fn next(&mut self) -> DfResult<Option<Read>> {
        loop {
            if let Some(shard) = self.passed.pop() {
                return Ok(Some(Read::Passed(shard)));
            }
            let Some(pieces) = &mut self.current else {
                let opened = match self.next.take() {
                    Some(next) => Some(next),
                    None => self.open().await?,
                };
                let Some((shard, pieces)) = opened else {
                    match self.passed.is_empty() {
                        true => return Ok(None),
                        false => continue,
                    }
                };
                self.current = Some(pieces);
                if self.is_ahead {
                    self.next = self.open().await?;
                }
                return Ok(Some(Read::Begun(shard)));
            };
            let piece = pieces.next().await.transpose();
            self.parts.counters.flush();
            match piece? {
                Some(piece) => return Ok(Some(Read::Piece(piece))),
                None => self.current = None,
            }
        }
    }

    async fn open(&mut self) -> DfResult<Option<(Option<usize>, Pieces)>> {
        while let Some(opened) = self.parts.open().await? {
            let (reader, read, shard, place) = match opened {
                Opened::Settled { reader, read, shard, place } => (reader, read, shard, place),
                Opened::Fresh(rows) => return Ok(Some((None, self.parts.fresh(rows).map_ok(Piece::Rows).boxed()))),
            };
            let pages = reader.read_pages(&read, &self.parts.scan.scan.blocks).map_err(failed)?;
            if self.parts.counters.prune(&read, pages.pruning) {
                self.passed.push(place);
                continue;
            }
            // Locations are computed per row, and such rows come as arrays.
            let pieces = pages.pieces.map_err(failed);
            if !self.parts.has_places() {
                return Ok(Some((Some(place), pieces.boxed())));
            }
            let parts = self.parts.places_of(shard);
            let placed = pieces.map(move |piece| match piece? {
                Piece::Rows(rows) => parts(rows).map(Piece::Rows),
                page @ Piece::Page(_) => Ok(page),
            });
            return Ok(Some((Some(place), placed.boxed())));
        }
        Ok(None)
    }
}

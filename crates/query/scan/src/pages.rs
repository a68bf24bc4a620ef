//! A scan whose rows come as pages of packed columns, for workers that take them as they lie.

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

/// One run of a scan, divided among workers.
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

    /// A part is not opened before its turn: what its filters will have learned by then leaves out more.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { is_ahead: false, ..self }
    }

    /// How many parts are read.
    pub fn part_count(&self) -> usize {
        self.queue.len()
    }

    /// Leaves out the shards whose groups are known, by their positions among those of the scan. Of the others all is read that its own
    /// predicates leave.
    #[must_use]
    pub fn without(self, is_known: impl Fn(usize) -> bool) -> Self {
        let known = (0..self.scan.shards.len()).filter(|shard| is_known(*shard)).count();
        MetricBuilder::new(&self.metrics).global_counter(counter::SHARDS_KNOWN).add(known);
        let queue = Queue::new(&self.queue.parts().of_shards(|shard| !is_known(shard)));
        Self { queue, dynamic: Vec::new(), known: Vec::new(), ..self }
    }

    /// The pieces that one worker reads: what the others leave.
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

type Pieces = BoxStream<'static, DfResult<Piece>>;

/// What a worker is told of its share of a scan.
pub enum Read {
    /// The pieces that come from here on are of a part of this shard, by its position among those of the scan; of fresh rows without it.
    Begun(Option<usize>),
    Piece(Piece),
    /// No row of a part of this shard can pass: it has no pieces. Those that come are not of it.
    Passed(usize),
}

/// A worker's pieces, one after the other.
pub struct PageScan {
    parts: PartsReader,
    current: Option<Pieces>,
    /// The part after it, which is being fetched, and its shard.
    next: Option<(Option<usize>, Pieces)>,
    /// The shards of parts without pieces that nobody was told of.
    passed: Vec<usize>,
    is_ahead: bool,
}

impl PageScan {
    /// What comes next; `None` at the end.
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
            // Places are of rows, which come as arrays.
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

//! A scan whose rows come as pages of packed columns, for workers that take them as they lie.

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use shards::Predicate;
use shards::cache::Piece;

use super::Scan;
use super::parts::{Parts, Queue};
use super::rows::{Opened, PartitionScan, PartsReader, failed};

/// One run of a scan, divided among workers.
pub(crate) struct PageRun {
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
    pub(crate) fn one_by_one(self) -> Self {
        Self { is_ahead: false, ..self }
    }

    /// The pieces that one worker reads: what the others leave.
    pub(crate) fn worker(&self, number: usize) -> PageScan {
        let scan = PartitionScan {
            scan: Arc::clone(&self.scan),
            queue: Arc::clone(&self.queue),
            dynamic: self.dynamic.clone(),
            known: self.known.clone(),
            batch_rows: self.batch_rows,
            limit: None,
        };
        PageScan { parts: scan.parts(&self.metrics, number), current: None, next: None, is_ahead: self.is_ahead }
    }
}

type Pieces = BoxStream<'static, DfResult<Piece>>;

/// A worker's pieces, one after the other.
pub(crate) struct PageScan {
    parts: PartsReader,
    current: Option<Pieces>,
    /// The part after it, which is being fetched.
    next: Option<Pieces>,
    is_ahead: bool,
}

impl PageScan {
    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> DfResult<Option<Piece>> {
        loop {
            if self.current.is_none() {
                self.current = match self.next.take() {
                    Some(next) => Some(next),
                    None => self.open().await?,
                };
                if self.current.is_some() && self.is_ahead {
                    self.next = self.open().await?;
                }
            }
            let Some(pieces) = &mut self.current else { return Ok(None) };
            let piece = pieces.next().await.transpose();
            self.parts.counters.flush();
            match piece? {
                Some(piece) => return Ok(Some(piece)),
                None => self.current = None,
            }
        }
    }

    async fn open(&mut self) -> DfResult<Option<Pieces>> {
        while let Some(opened) = self.parts.open().await? {
            let (reader, read, shard) = match opened {
                Opened::Settled { reader, read, shard } => (reader, read, shard),
                Opened::Fresh(rows) => return Ok(Some(self.parts.fresh(rows).map_ok(Piece::Rows).boxed())),
            };
            let pages = reader.read_pages(&read, &self.parts.scan.scan.blocks).map_err(failed)?;
            if self.parts.counters.prune(&read, pages.pruning) {
                continue;
            }
            // Places are of rows, which come as arrays.
            let pieces = pages.pieces.map_err(failed);
            if !self.parts.has_places() {
                return Ok(Some(pieces.boxed()));
            }
            let parts = self.parts.places_of(shard);
            return Ok(Some(
                pieces
                    .map(move |piece| match piece? {
                        Piece::Rows(rows) => parts(rows).map(Piece::Rows),
                        page @ Piece::Page(_) => Ok(page),
                    })
                    .boxed(),
            ));
        }
        Ok(None)
    }
}

//! Parts of a scan, and the queue that deals them to readers.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::scan::ScanShard;
use crate::unflushed_by_index::UnflushedRows;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Consecutive rows that one reader reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Rows of one row group.
    #[serde(rename = "Settled")]
    Flushed {
        /// Position of the shard among those of the scan.
        shard: usize,
        row_group: usize,
        rows: Range<usize>,
    },
    /// Unflushed rows.
    #[serde(rename = "Fresh")]
    Unflushed(Range<usize>),
}

/// Number of unflushed rows in a part.
const UNFLUSHED_PART_ROWS: usize = 16_384;

impl Part {
    /// Divides this number of unflushed rows into parts.
    pub(super) fn cut_unflushed(rows: usize) -> impl Iterator<Item = Self> {
        (0..rows)
            .step_by(UNFLUSHED_PART_ROWS)
            .map(move |start| Self::Unflushed(start..rows.min(start + UNFLUSHED_PART_ROWS)))
    }

    fn rows(&self) -> &Range<usize> {
        match self {
            Self::Flushed { rows, .. } | Self::Unflushed(rows) => rows,
        }
    }
}

/// All parts of a scan, in the order of the table.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    parts: Arc<[Part]>,
}

impl Parts {
    /// Cuts the row groups of `shards` into pieces of `piece_rows` rows, a few pages each, followed by the unflushed
    /// rows; no more parts than hold `limit` rows.
    pub(crate) fn cut(
        shards: &[ScanShard],
        fresh: usize,
        limit: Option<usize>,
        part_rows: impl Fn(&ScanShard, usize) -> usize,
    ) -> Self {
        let piece_rows = &part_rows;
        let row_groups = shards.iter().enumerate().flat_map(|(shard, scanned)| {
            let groups = scanned.meta.row_groups.iter().enumerate();
            groups.map(move |(row_group, group)| (shard, row_group, group.rows, piece_rows(scanned, row_group)))
        });
        let pieces = row_groups.flat_map(|(shard, row_group, rows, step)| {
            let rows = usize::try_from(rows).expect("a row group's rows fit in memory");
            let piece = move |start: usize| Part::Flushed {
                shard,
                row_group,
                rows: start..rows.min(start.saturating_add(step)),
            };
            (0..rows).step_by(step).map(piece)
        });
        let fresh = Part::cut_unflushed(fresh);
        let limit = limit.unwrap_or(usize::MAX);
        let all_live = shards.iter().all(|shard| shard.deleted.is_none());
        let mut rows = 0;
        let enough = pieces.chain(fresh).take_while(|piece| {
            let is_wanted = rows < limit;
            // Rows of a shard may be deleted: only unflushed ones count for certain.
            let is_sure = matches!(piece, Part::Unflushed(_)) || all_live;
            rows += if is_sure { piece.rows().len() } else { 0 };
            is_wanted
        });
        Self { parts: enough.collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter()
    }

    /// Returns the parts of unflushed rows, and those of the shards for which `is_read` is true.
    pub(super) fn restrict_to_shards(&self, is_read: impl Fn(usize) -> bool) -> Self {
        let is_left = |part: &&Part| match part {
            Part::Flushed { shard, .. } => is_read(*shard),
            Part::Unflushed(_) => true,
        };
        self.parts.iter().filter(is_left).cloned().collect()
    }

    /// Returns the number of row groups that have parts.
    pub(crate) fn row_groups(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Flushed { rows, .. } if rows.start == 0)).count()
    }
}

impl FromIterator<Part> for Parts {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        Self { parts: parts.into_iter().collect() }
    }
}

/// Queue that deals each part once, in order, to the next free reader.
#[derive(Debug)]
pub(crate) struct PartQueue {
    parts: Parts,
    next: AtomicUsize,
    /// Unflushed rows of this run, if dynamic filters leave only few.
    pub(super) few_unflushed: OnceLock<Option<UnflushedRows>>,
}

impl PartQueue {
    /// Creates a queue of all parts.
    pub(super) fn new(parts: &Parts) -> Arc<Self> {
        Arc::new(Self { parts: parts.clone(), next: AtomicUsize::new(0), few_unflushed: OnceLock::new() })
    }

    /// Returns the number of parts, dealt or not.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn take_next(&self) -> Option<Part> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.parts.parts.get(next).cloned()
    }
}

/// Runs of a scan, one after the other: the partitions of a run share its queue.
#[derive(Debug, Default)]
pub(crate) struct ScanRuns {
    current: Mutex<Option<ScanRun>>,
}

/// Run of a scan.
#[derive(Debug)]
struct ScanRun {
    queue: Arc<PartQueue>,
    /// True for each partition that has started.
    started: Vec<bool>,
}

impl ScanRuns {
    /// Returns the queue of the current run for `partition`; a partition that starts a second time begins a new run.
    pub(crate) fn queue(&self, parts: &Parts, partition: usize, partitions: usize) -> Arc<PartQueue> {
        let mut current = self.current.lock();
        let run = current.take().filter(|run| !run.started[partition]);
        let mut run = run.unwrap_or_else(|| ScanRun { queue: PartQueue::new(parts), started: vec![false; partitions] });
        run.started[partition] = true;
        let queue = Arc::clone(&run.queue);
        *current = Some(run);
        queue
    }
}

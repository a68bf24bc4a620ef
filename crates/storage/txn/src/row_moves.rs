//! Row moves: maps the old positions of rows that were flushed to Parquet or compacted to their new ones, for snapshots
//! from before the move.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{CatalogState, Change, CompactedShards, FlushedRows, RowPosition, TableRows};
use parking_lot::RwLock;
use rowstore::{Layer, RowVersion};
use types::{CommitTs, InjectedBug, Oid, RowId, ShardId};

#[cfg(test)]
mod tests;

/// The moves of all tables since the oldest pinned snapshot. In memory only, as snapshots do not survive a crash
/// either.
#[derive(Debug, Default)]
pub(crate) struct RecordedMoves {
    tables: RwLock<HashMap<Oid, Arc<Vec<RowMove>>>>,
}

/// The row moves that one commit makes in one table.
#[derive(Debug, Clone)]
pub(crate) struct RowMove {
    commit: CommitTs,
    kind: MoveKind,
}

#[derive(Debug, Clone)]
enum MoveKind {
    /// A flush, with the rows as they were flushed. Every snapshot that needs the move references those rows anyway.
    Flushed {
        flushed: Arc<FlushedRows>,
        rows: Layer,
    },
    Compacted(Arc<CompactedShards>),
}

/// The moves of one table up to a commit, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableMoves {
    moves: Arc<Vec<RowMove>>,
    count_until_commit: usize,
}

impl RowMove {
    /// Returns the moves of a change that commit `at` applies to `before`, with the table; `None` if it moves no rows.
    pub(crate) fn from_change(before: &CatalogState, change: &Change, at: CommitTs) -> Option<(Oid, RowMove)> {
        let (table, kind) = match change {
            Change::Flush { table, flushed } => {
                let rows = before.rows(*table).fresh.sealed.as_ref().map(|sealed| sealed.rows.clone());
                (*table, MoveKind::Flushed { flushed: Arc::clone(flushed), rows: rows.unwrap_or_default() })
            }
            Change::CompactShards { table, compacted } => (*table, MoveKind::Compacted(Arc::clone(compacted))),
            _ => return None,
        };
        Some((table, RowMove { commit: at, kind }))
    }
}

impl RecordedMoves {
    /// Records a commit's moves of a table; must be called before the commit is visible.
    pub(crate) fn record(&self, table: Oid, row_move: RowMove) {
        if InjectedBug::RowMovesNotRecorded.is_active() {
            return;
        }
        let mut tables = self.tables.write();
        Arc::make_mut(tables.entry(table).or_default()).push(row_move);
    }

    /// Returns the moves of a table up to commit `ts`. They are complete, as moves are recorded before their commit is
    /// visible.
    pub(crate) fn until(&self, table: Oid, ts: CommitTs) -> TableMoves {
        let moves = self.tables.read().get(&table).map(Arc::clone).unwrap_or_default();
        let count = moves.partition_point(|known| known.commit <= ts);
        TableMoves { moves, count_until_commit: count }
    }

    /// Forgets the moves up to `horizon`, which no snapshot at or after the horizon needs.
    pub(crate) fn forget(&self, horizon: CommitTs) {
        self.tables.write().retain(|_, moves| {
            if moves.iter().any(|known| known.commit <= horizon) {
                Arc::make_mut(moves).retain(|known| horizon < known.commit);
            }
            !moves.is_empty()
        });
    }
}

impl TableMoves {
    /// Returns the position of a row that is no longer fresh in `rows`; `None` if it was deleted.
    pub(crate) fn position_of_row(&self, rows: &TableRows, id: RowId) -> Option<(ShardId, u32)> {
        self.last_flush(id).and_then(|settling| self.flushed_position(rows, &settling))
    }

    /// Returns the latest flush of the row. A row can be flushed several times, as a change makes it fresh again.
    fn last_flush(&self, id: RowId) -> Option<RowFlush<'_>> {
        self.moves_until_commit().iter().enumerate().rev().find_map(|(position, known)| match &known.kind {
            MoveKind::Flushed { flushed, rows } => {
                Some(RowFlush { row: rows.get(id)?, position: flushed.position_of(id)?, move_count: position + 1 })
            }
            MoveKind::Compacted(_) => None,
        })
    }

    fn flushed_position(&self, rows: &TableRows, settling: &RowFlush<'_>) -> Option<(ShardId, u32)> {
        let (shard, ordinal) = settling.position;
        self.follow_compactions(rows, shard, ordinal, settling.move_count)
    }

    /// Returns the current position of the row that had this position in a shard, whether or not it is deleted in
    /// `rows`; `None` if it was deleted before a compaction.
    pub(crate) fn current_position(&self, rows: &TableRows, shard: ShardId, ordinal: u32) -> Option<(ShardId, u32)> {
        self.follow_compactions(rows, shard, ordinal, 0)
    }

    fn follow_compactions(
        &self,
        rows: &TableRows,
        mut shard: ShardId,
        mut ordinal: u32,
        from: usize,
    ) -> Option<(ShardId, u32)> {
        for known in &self.moves_until_commit()[from..] {
            if let MoveKind::Compacted(compacted) = &known.kind
                && compacted.removed.contains_key(&shard)
            {
                (shard, ordinal) = compacted.position_of(shard, ordinal)?;
            }
        }
        rows.shards.shards.position(shard).map(|_| (shard, ordinal))
    }

    fn moves_until_commit(&self) -> &[RowMove] {
        &self.moves[..self.count_until_commit]
    }
}

/// The flush of one row.
#[derive(Debug)]
struct RowFlush<'a> {
    /// The version that was flushed.
    row: &'a Arc<RowVersion>,
    /// The row's position right after the flush.
    position: (ShardId, u32),
    /// Number of moves up to and including the flush.
    move_count: usize,
}

/// Fate of a row since a statement saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFate {
    /// Unchanged, with its current position.
    Same(RowPosition),
    /// Changed by another transaction.
    Changed,
    /// Deleted by another transaction.
    Deleted,
}

/// Determines the fate of the row at `place` of `seen` in the newer committed rows `now`.
pub(crate) fn row_fate(
    seen: &TableRows,
    now: &TableRows,
    moves: &TableMoves,
    id: RowId,
    place: RowPosition,
) -> RowFate {
    if let Some(newest) = now.fresh.get(id) {
        let same = seen.fresh.get(id).is_some_and(|known| Arc::ptr_eq(known, newest));
        return if same && place == RowPosition::Fresh { RowFate::Same(place) } else { RowFate::Changed };
    }
    let is_there = |(shard, ordinal): &(ShardId, u32)| !now.shards.is_deleted(*shard, *ordinal);
    // A row that is no longer fresh may have been changed before it was flushed.
    let flushed = moves.last_flush(id).and_then(|settling| {
        let place = moves.flushed_position(now, &settling).filter(is_there)?;
        Some((settling.row, place))
    });
    match place {
        RowPosition::Fresh => match (flushed, seen.fresh.get(id)) {
            (Some((row, place)), Some(known)) if Arc::ptr_eq(row, known) => RowFate::Same(place.into()),
            (Some(_), _) => RowFate::Changed,
            (None, _) => RowFate::Deleted,
        },
        RowPosition::Shard { shard, ordinal } => {
            match (moves.current_position(now, shard, ordinal).filter(is_there), flushed) {
                (Some(place), _) => RowFate::Same(place.into()),
                (None, Some(_)) => RowFate::Changed,
                (None, None) => RowFate::Deleted,
            }
        }
    }
}

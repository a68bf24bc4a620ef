//! Where rows went that moved, for those who still look at where they were.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{Change, Compacted, RowPlace, Settled, TableRows};
use parking_lot::RwLock;
use types::{CommitTs, Oid, RowId, ShardId};

/// The moves of all tables since the oldest registered snapshot. In memory only: a crash ends who needs them.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    tables: RwLock<HashMap<Oid, Arc<Vec<Move>>>>,
}

#[derive(Debug, Clone)]
struct Move {
    at: CommitTs,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Settled(Arc<Settled>),
    Compacted(Arc<Compacted>),
}

/// The moves of one table, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableMoves(Arc<Vec<Move>>);

impl Moves {
    /// Takes note of what a commit moves; before the commit is visible.
    pub(crate) fn note(&self, change: &Change, at: CommitTs) {
        let (table, kind) = match change {
            Change::Settle { table, settled } => (*table, Kind::Settled(Arc::clone(settled))),
            Change::Compact { table, compacted } => (*table, Kind::Compacted(Arc::clone(compacted))),
            _ => return,
        };
        let mut tables = self.tables.write();
        Arc::make_mut(tables.entry(table).or_default()).push(Move { at, kind });
    }

    pub(crate) fn of(&self, table: Oid) -> TableMoves {
        TableMoves(self.tables.read().get(&table).map(Arc::clone).unwrap_or_default())
    }

    /// Forgets moves that everyone who looks at `horizon` or later has behind him.
    pub(crate) fn forget(&self, horizon: CommitTs) {
        self.tables.write().retain(|_, moves| {
            if moves.iter().any(|known| known.at <= horizon) {
                Arc::make_mut(moves).retain(|known| horizon < known.at);
            }
            !moves.is_empty()
        });
    }
}

impl TableMoves {
    /// Where a fresh row went that is no longer among the fresh ones of `rows`; `None` if it was deleted.
    pub(crate) fn of_row(&self, rows: &TableRows, id: RowId) -> Option<(ShardId, u32)> {
        // A row settles once, or again after a change that made it fresh again: the newest counts.
        let found = self.0.iter().enumerate().rev().find_map(|(position, known)| match &known.kind {
            Kind::Settled(settled) => Some((position, settled.place_of(id)?)),
            Kind::Compacted(_) => None,
        });
        let (position, (shard, ordinal)) = found?;
        self.follow(rows, shard, ordinal, position + 1)
    }

    /// Where the row at that place of a shard lies in `rows`, deleted or not; `None` if it was deleted before it could move.
    pub(crate) fn of_place(&self, rows: &TableRows, shard: ShardId, ordinal: u32) -> Option<(ShardId, u32)> {
        self.follow(rows, shard, ordinal, 0)
    }

    fn follow(&self, rows: &TableRows, mut shard: ShardId, mut ordinal: u32, from: usize) -> Option<(ShardId, u32)> {
        for known in &self.0[from..] {
            if let Kind::Compacted(compacted) = &known.kind
                && compacted.removed.contains_key(&shard)
            {
                (shard, ordinal) = compacted.place_of(shard, ordinal)?;
            }
        }
        rows.shards.find(shard).map(|_| (shard, ordinal))
    }
}

/// What became of a row since a statement saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowNow {
    /// As it was; where it lies now.
    Same(RowPlace),
    /// Another transaction has changed it.
    Changed,
    /// Another transaction has deleted it.
    Deleted,
}

/// What became of the row that was at `place` in `seen`, in the newer committed `now`.
pub(crate) fn row_now(seen: &TableRows, now: &TableRows, moves: &TableMoves, id: RowId, place: RowPlace) -> RowNow {
    if let Some(newest) = now.fresh.get(id) {
        let same = seen.fresh.get(id).is_some_and(|known| Arc::ptr_eq(known, newest));
        return if same && place == RowPlace::Fresh { RowNow::Same(place) } else { RowNow::Changed };
    }
    let settled = match place {
        RowPlace::Fresh => moves.of_row(now, id),
        RowPlace::Shard { shard, ordinal } => moves.of_place(now, shard, ordinal),
    };
    match settled {
        Some((shard, ordinal)) if !now.shards.is_deleted(shard, ordinal) => RowNow::Same((shard, ordinal).into()),
        _ => RowNow::Deleted,
    }
}

//! Flushes and compactions, and the new positions of moved rows.

use super::omitted_rule::OmittedRule;
use super::table_rows::{Bucket, OwnVersions, Position, ROWS, Rows, has};

/// Sealed layer that was written to a shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Flushed {
    pub(super) generation: u8,
    pub(super) shard: u8,
    /// Rows by their position in the shard.
    pub(super) rows: Vec<u8>,
}

/// Shards that were written to another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Compacted {
    /// The old shards, with the deleted rows at the time of reading.
    pub(super) removed: Vec<(u8, u8)>,
    pub(super) shard: u8,
    /// Old positions by the new one.
    pub(super) places: Vec<(u8, u8)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Move {
    Flushed(Flushed),
    Compacted(Compacted),
}

/// Fate of a row since a statement saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFate {
    Same(Position),
    Changed,
    Deleted,
}

impl Flushed {
    pub(super) fn position_of(&self, row: usize) -> Option<(u8, u8)> {
        let place = self.rows.iter().position(|id| usize::from(*id) == row)?;
        Some((self.shard, place as u8))
    }
}

impl Compacted {
    pub(super) fn position_of(&self, shard: u8, place: u8) -> Option<(u8, u8)> {
        let place = self.places.iter().position(|old| *old == (shard, place))?;
        Some((self.shard, place as u8))
    }
}

/// Returns the moves up to a commit.
fn until(moves: &[(u8, Move)], ts: u8, bug: Option<OmittedRule>) -> &[(u8, Move)] {
    let later = if bug == Some(OmittedRule::MovesAfterSnapshotFollowed) {
        None
    } else {
        moves.iter().position(|(at, _)| ts < *at)
    };
    &moves[..later.unwrap_or(moves.len())]
}

/// Returns the position of a row that is no longer fresh.
pub(super) fn of_row(moves: &[(u8, Move)], rows: &Rows, row: usize, bug: Option<OmittedRule>) -> Option<(u8, u8)> {
    let (position, (shard, place)) = moves.iter().enumerate().rev().find_map(|(position, (_, known))| match known {
        Move::Flushed(flushed) => Some((position, flushed.position_of(row)?)),
        Move::Compacted(_) => None,
    })?;
    if bug == Some(OmittedRule::RebindingStopsAtFlush) {
        return Some((shard, place));
    }
    follow(&moves[position + 1..], rows, shard, place)
}

/// Returns the current position of the row that was at this position, whether or not it is deleted.
pub(super) fn follow(moves: &[(u8, Move)], rows: &Rows, mut shard: u8, mut place: u8) -> Option<(u8, u8)> {
    for (_, known) in moves {
        if let Move::Compacted(compacted) = known
            && compacted.removed.iter().any(|(old, _)| *old == shard)
        {
            (shard, place) = compacted.position_of(shard, place)?;
        }
    }
    rows.has_shard(shard).then_some((shard, place))
}

/// Binds `own`, written over earlier rows, to `rows`.
pub(super) fn bind(own: &OwnVersions, rows: &Rows, moves: &[(u8, Move)], bug: Option<OmittedRule>) -> OwnVersions {
    if bug == Some(OmittedRule::OwnRowsNotRebound) {
        return own.clone();
    }
    let moves = until(moves, rows.ts, bug);
    let mut bound = own.clone();
    for row in (0..ROWS).filter(|row| has(own.gone, *row) && rows.fresh(*row) == 0) {
        bound.gone &= !(1 << row);
        if let Some((shard, place)) = of_row(moves, rows, row, bug) {
            bound.delete_place(shard, place);
        }
    }
    for (shard, places) in own.deleted.iter().filter(|(shard, _)| !rows.has_shard(*shard)) {
        bound.deleted.retain(|(id, _)| id != shard);
        for place in (0..8_u8).filter(|place| has(*places, usize::from(*place))) {
            if let Some((shard, place)) = follow(moves, rows, *shard, place) {
                bound.delete_place(shard, place);
            }
        }
    }
    bound
}

/// Determines the fate of the row at `place` of `seen` in the newer `now`.
pub(super) fn row_fate(
    seen: &Rows,
    now: &Rows,
    moves: &[(u8, Move)],
    bucket: &Bucket,
    row: usize,
    place: Position,
    bug: Option<OmittedRule>,
) -> RowFate {
    if now.fresh(row) != 0 {
        let is_same = place == Position::Fresh && seen.fresh(row) == now.fresh(row);
        return if is_same { RowFate::Same(place) } else { RowFate::Changed };
    }
    let is_there = |(shard, place): &(u8, u8)| !now.is_deleted(*shard, *place);
    // The row's position if it is unchanged, or that of its last flush if it was changed.
    let flushed = of_row(moves, now, row, None).filter(is_there);
    match place {
        Position::Shard(shard, place) => match follow(moves, now, shard, place).filter(is_there) {
            Some((shard, place)) => RowFate::Same(Position::Shard(shard, place)),
            None if flushed.is_some() && bug != Some(OmittedRule::FlushedRowTakenForDeleted) => RowFate::Changed,
            None => RowFate::Deleted,
        },
        Position::Fresh => match flushed {
            Some((shard, place)) => {
                let version = bucket[usize::from(shard)].rows[usize::from(place)].1;
                if version == seen.fresh(row) || bug == Some(OmittedRule::FlushedVersionIgnored) {
                    RowFate::Same(Position::Shard(shard, place))
                } else {
                    RowFate::Changed
                }
            }
            None => RowFate::Deleted,
        },
    }
}

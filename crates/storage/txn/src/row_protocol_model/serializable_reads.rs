//! Key reads of serializable transactions, and their validation.

use super::omitted_rule::OmittedRule;
use super::table_rows::{Mask, OwnVersions, Position, ROWS, has};

/// Read set of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Reads {
    /// Rows whose keys were looked up.
    pub(super) keys: Mask,
    /// Rows that were found.
    rows: Mask,
    /// Positions of rows that were found in shards.
    places: Vec<(u8, u8)>,
}

/// Write of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CommitWrite {
    Rows(OwnVersions),
    Anything,
    Moved,
}

impl Reads {
    pub(super) fn add(&mut self, row: usize, found: Option<Position>) {
        self.keys |= 1 << row;
        if found.is_some() {
            self.rows |= 1 << row;
        }
        if let Some(Position::Shard(shard, place)) = found {
            self.places.push((shard, place));
            self.places.sort_unstable();
        }
    }

    /// Returns whether commits, given in order, have changed what was read.
    pub(super) fn are_changed_by<'a>(
        &self,
        written: impl Iterator<Item = &'a CommitWrite>,
        bug: Option<OmittedRule>,
    ) -> bool {
        let mut are_moved = false;
        for written in written {
            match written {
                CommitWrite::Moved => are_moved = bug != Some(OmittedRule::MovesNotRecorded),
                CommitWrite::Anything if self.keys != 0 => return true,
                CommitWrite::Anything => {}
                CommitWrite::Rows(own) if self.is_changed_by(own, are_moved, bug) => return true,
                CommitWrite::Rows(_) => {}
            }
        }
        false
    }

    fn is_changed_by(&self, own: &OwnVersions, are_moved: bool, bug: Option<OmittedRule>) -> bool {
        let came = (0..ROWS).any(|row| own.rows[row] != 0 && has(self.keys, row));
        let went = own.gone & self.rows != 0;
        // Rows that were fresh when they were read may have been flushed since.
        let can_be_elsewhere =
            if bug == Some(OmittedRule::FreshReadsAssumedUnflushed) { !self.places.is_empty() } else { self.rows != 0 };
        let elsewhere = are_moved && can_be_elsewhere && !own.deleted.is_empty();
        let is_deleted = |(shard, place): &(u8, u8)| {
            own.deleted.iter().any(|(id, places)| id == shard && has(*places, usize::from(*place)))
        };
        came || went || elsewhere || self.places.iter().any(is_deleted)
    }
}

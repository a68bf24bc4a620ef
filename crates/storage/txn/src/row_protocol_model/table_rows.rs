//! Snapshots: the rows of a table in one state, and their changes.

use super::omitted_rule::OmittedRule;
use super::row_moves::{Compacted, Flushed};

/// Maximum number of rows.
pub(super) const ROWS: usize = 2;

/// Version of each row; 0 if the row does not exist.
pub(super) type Versions = [u8; ROWS];

/// Set of rows or positions as bits.
pub(super) type Mask = u8;

/// Object of a shard: rows and their versions, by position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) rows: Vec<(u8, u8)>,
    pub(super) is_there: bool,
}

/// All objects that ever existed; a shard's id is the index of its object.
pub(super) type Bucket = Vec<Object>;

/// Committed rows of the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Rows {
    pub(super) ts: u8,
    pub(super) generation: u8,
    pub(super) active: Versions,
    /// Rows of the sealed layer that are deleted, or newer in the active one.
    pub(super) gone: Mask,
    pub(super) sealed: Option<(u8, Versions)>,
    /// Shards with their deleted positions.
    pub(super) shards: Vec<(u8, Mask)>,
    pub(super) emptied: u8,
    pub(super) moved: u8,
}

/// Rows that one transaction has written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct OwnVersions {
    pub(super) rows: Versions,
    pub(super) gone: Mask,
    pub(super) deleted: Vec<(u8, Mask)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Position {
    Fresh,
    Shard(u8, u8),
}

pub(super) const fn has(mask: Mask, index: usize) -> bool {
    mask & (1 << index) != 0
}

impl Rows {
    /// Returns the rows that a reader sees, each at most once, or the violation.
    pub(super) fn read(&self, own: &OwnVersions, bucket: &Bucket) -> Result<Versions, String> {
        let mut found = own.rows;
        let mut add = |row: usize, version: u8| {
            if found[row] != 0 {
                return Err(format!("row {row} is seen twice, as {} and {version}", found[row]));
            }
            found[row] = version;
            Ok(())
        };
        for row in 0..ROWS {
            if self.active[row] != 0 && !has(own.gone, row) {
                add(row, self.active[row])?;
            }
            let sealed = self.sealed.map_or(0, |(_, rows)| rows[row]);
            if sealed != 0 && !has(self.gone, row) && !has(own.gone, row) {
                add(row, sealed)?;
            }
        }
        for (shard, deleted) in &self.shards {
            let object = &bucket[usize::from(*shard)];
            if !object.is_there {
                return Err(format!("object {shard} is missing"));
            }
            let hidden = deleted | own.deleted_of(*shard);
            for (place, (row, version)) in object.rows.iter().enumerate() {
                if !has(hidden, place) {
                    add(usize::from(*row), *version)?;
                }
            }
        }
        Ok(found)
    }

    /// Returns the newest version among the fresh rows.
    pub(super) fn fresh(&self, row: usize) -> u8 {
        match self.active[row] {
            0 if has(self.gone, row) => 0,
            0 => self.sealed.map_or(0, |(_, rows)| rows[row]),
            version => version,
        }
    }

    /// Returns the position where a transaction sees a row.
    pub(super) fn place(&self, own: &OwnVersions, row: usize, bucket: &Bucket) -> Option<Position> {
        if own.rows[row] != 0 || (self.fresh(row) != 0 && !has(own.gone, row)) {
            return Some(Position::Fresh);
        }
        self.shards.iter().find_map(|(shard, deleted)| {
            let hidden = deleted | own.deleted_of(*shard);
            let place = bucket[usize::from(*shard)].rows.iter().enumerate();
            let mut found = place.filter(|(place, (id, _))| usize::from(*id) == row && !has(hidden, *place));
            found.next().map(|(place, _)| Position::Shard(*shard, place as u8))
        })
    }

    pub(super) fn has_shard(&self, shard: u8) -> bool {
        self.shards.iter().any(|(id, _)| *id == shard)
    }

    pub(super) fn is_deleted(&self, shard: u8, place: u8) -> bool {
        self.shards.iter().any(|(id, deleted)| *id == shard && has(*deleted, usize::from(place)))
    }

    /// Applies a commit of `own`, which must be bound to exactly these rows.
    pub(super) fn after(&mut self, own: &OwnVersions, bug: Option<OmittedRule>) {
        self.ts += 1;
        for row in 0..ROWS {
            let is_changed = own.rows[row] != 0 || has(own.gone, row);
            if is_changed
                && self.sealed.is_some_and(|(_, rows)| rows[row] != 0)
                && bug != Some(OmittedRule::SealedVersionNotHidden)
            {
                self.gone |= 1 << row;
            }
            if own.rows[row] != 0 {
                self.active[row] = self.ts;
            } else if has(own.gone, row) {
                self.active[row] = 0;
            }
        }
        for (shard, places) in &own.deleted {
            self.delete(*shard, *places);
        }
    }

    pub(super) fn seal(&mut self) {
        self.ts += 1;
        self.sealed = Some((self.generation, self.active));
        self.active = Versions::default();
        self.generation += 1;
    }

    /// Replaces the sealed layer by its shard; returns false if another generation is sealed now.
    pub(super) fn settle(&mut self, flushed: &Flushed, bug: Option<OmittedRule>) -> bool {
        let is_sealed = self.sealed.is_some_and(|(generation, _)| generation == flushed.generation);
        if !is_sealed && bug != Some(OmittedRule::FlushIgnoresGeneration) {
            return false;
        }
        self.ts += 1;
        let late = self.deletes_since_flush_began(flushed, bug);
        self.sealed = None;
        self.gone = 0;
        self.shards.push((flushed.shard, late));
        self.moved += 1;
        true
    }

    /// Replaces old shards by the new one; returns false if an old one is missing.
    pub(super) fn compact(&mut self, compacted: &Compacted, bug: Option<OmittedRule>) -> bool {
        let is_there = compacted.removed.iter().all(|(shard, _)| self.has_shard(*shard));
        if !is_there && bug != Some(OmittedRule::CompactionIgnoresRemovedShards) {
            return false;
        }
        self.ts += 1;
        let late = self.deletes_since_compaction_began(compacted, bug);
        self.shards.retain(|(shard, _)| compacted.removed.iter().all(|(old, _)| old != shard));
        self.shards.push((compacted.shard, late));
        self.moved += 1;
        true
    }

    pub(super) fn truncate(&mut self) {
        let (ts, emptied, moved) = (self.ts + 1, self.emptied + 1, self.moved);
        *self = Rows { ts, emptied, moved, generation: self.generation + 1, ..Rows::default() };
    }

    /// Returns the positions in the new shard of rows that were changed or deleted since they were sealed.
    pub(super) fn deletes_since_flush_began(&self, flushed: &Flushed, bug: Option<OmittedRule>) -> Mask {
        if bug == Some(OmittedRule::FlushIgnoresLaterDeletes) {
            return 0;
        }
        let gone = (0..ROWS).filter(|row| has(self.gone, *row));
        gone.filter_map(|row| flushed.position_of(row)).fold(0, |late, (_, place)| late | (1 << place))
    }

    /// Returns the positions in the new shard of rows that were deleted since the old shards were read.
    pub(super) fn deletes_since_compaction_began(&self, compacted: &Compacted, bug: Option<OmittedRule>) -> Mask {
        if bug == Some(OmittedRule::CompactionIgnoresLaterDeletes) {
            return 0;
        }
        let mut late = 0;
        for (shard, seen) in &compacted.removed {
            let deleted = self.shards.iter().find(|(id, _)| id == shard).map_or(0, |(_, deleted)| deleted & !seen);
            for place in (0..8_u8).filter(|place| has(deleted, usize::from(*place))) {
                if bug == Some(OmittedRule::CompactionKeepsOldPositions) {
                    late |= 1 << place;
                } else if let Some((_, place)) = compacted.position_of(*shard, place) {
                    late |= 1 << place;
                }
            }
        }
        late
    }

    fn delete(&mut self, shard: u8, places: Mask) {
        if let Some((_, deleted)) = self.shards.iter_mut().find(|(id, _)| *id == shard) {
            *deleted |= places;
        }
    }
}

impl OwnVersions {
    pub(super) fn is_empty(&self) -> bool {
        *self == OwnVersions::default()
    }

    /// Writes a new version of a row, or deletes it with version 0. `was` is the position where the transaction sees
    /// it.
    pub(super) fn change(&mut self, row: usize, was: Option<Position>, version: u8, bug: Option<OmittedRule>) {
        let is_own = self.rows[row] != 0;
        if let Some(Position::Shard(shard, place)) = was.filter(|_| !is_own) {
            self.delete_place(shard, place);
        }
        if !is_own
            && was == Some(Position::Fresh)
            && (bug != Some(OmittedRule::OwnRowsDoNotHideCommitted) || version == 0)
        {
            self.gone |= 1 << row;
        }
        self.rows[row] = version;
    }

    pub(super) fn delete_place(&mut self, shard: u8, place: u8) {
        match self.deleted.iter_mut().find(|(id, _)| *id == shard) {
            Some((_, places)) => *places |= 1 << place,
            None => self.deleted.push((shard, 1 << place)),
        }
        self.deleted.sort_unstable();
    }

    fn deleted_of(&self, shard: u8) -> Mask {
        self.deleted.iter().find(|(id, _)| *id == shard).map_or(0, |(_, places)| *places)
    }
}

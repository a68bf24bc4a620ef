//! Durable state: records written batch by batch, and recovery from them.

use std::collections::BTreeMap;

use super::omitted_rule::OmittedRule;
use super::row_moves::{Compacted, Flushed};
use super::table_rows::{Mask, OwnVersions, ROWS, Rows, Versions, has};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Store {
    pub(super) ts: u8,
    active: u8,
    sealed: Option<u8>,
    /// Versions by generation and row; 0 is the tombstone of a row of the sealed generation.
    rows: BTreeMap<(u8, u8), u8>,
    shards: Vec<u8>,
    deletes: BTreeMap<u8, Mask>,
    /// Announced, uncommitted objects.
    pub(super) uploads: Vec<u8>,
    /// Garbage objects, each with the first commit that does not reference it.
    pub(super) garbage: Vec<(u8, u8)>,
    /// Second write of a flush that takes two.
    unwritten: Option<Option<u8>>,
}

impl Store {
    /// Creates the store of an empty table in its first generation.
    pub(super) fn new(active: u8) -> Store {
        Store { active, ..Store::default() }
    }

    /// Commits `own`, which must be bound to exactly `before`.
    pub(super) fn write(&mut self, before: &Rows, own: &OwnVersions, bug: Option<OmittedRule>) {
        self.ts = before.ts + 1;
        for row in 0..ROWS {
            let key = (before.generation, row as u8);
            if own.rows[row] != 0 {
                self.rows.insert(key, self.ts);
            } else if has(own.gone, row) {
                let is_sealed = before.sealed.is_some_and(|(_, rows)| rows[row] != 0);
                if is_sealed && bug != Some(OmittedRule::NoTombstone) {
                    self.rows.insert(key, 0);
                } else {
                    self.rows.remove(&key);
                }
            }
        }
        for (shard, places) in &own.deleted {
            self.delete(*shard, *places);
        }
    }

    pub(super) fn seal(&mut self, before: &Rows) {
        self.ts = before.ts + 1;
        (self.active, self.sealed) = (before.generation + 1, Some(before.generation));
    }

    pub(super) fn settle(&mut self, before: &Rows, flushed: &Flushed, bug: Option<OmittedRule>) {
        self.ts = before.ts + 1;
        self.rows.retain(|(generation, _), version| *generation != before.generation || *version != 0);
        self.uploads.retain(|object| *object != flushed.shard);
        self.shards.push(flushed.shard);
        self.delete(flushed.shard, before.deletes_since_flush_began(flushed, bug));
        if bug == Some(OmittedRule::FlushInTwoWrites) {
            self.unwritten = Some(None);
        } else {
            self.sealed = None;
        }
    }

    pub(super) fn compact(&mut self, before: &Rows, compacted: &Compacted, bug: Option<OmittedRule>) {
        self.ts = before.ts + 1;
        for (shard, _) in &compacted.removed {
            self.remove_shard(*shard);
        }
        self.uploads.retain(|object| *object != compacted.shard);
        self.shards.push(compacted.shard);
        self.delete(compacted.shard, before.deletes_since_compaction_began(compacted, bug));
    }

    pub(super) fn truncate(&mut self, before: &Rows) {
        self.ts = before.ts + 1;
        for (shard, _) in &before.shards {
            self.remove_shard(*shard);
        }
        (self.active, self.sealed) = (before.generation + 1, None);
    }

    /// Makes the second of two writes; returns whether there was one.
    pub(super) fn write_rest(&mut self) -> bool {
        self.unwritten.take().map(|sealed| self.sealed = sealed).is_some()
    }

    pub(super) const fn is_half_written(&self) -> bool {
        self.unwritten.is_some()
    }

    /// Returns whether there are rows of generations that are neither active nor sealed.
    pub(super) fn has_forgotten(&self) -> bool {
        self.rows.keys().any(|(generation, _)| *generation != self.active && Some(*generation) != self.sealed)
    }

    /// Removes rows of generations that are neither active nor sealed.
    pub(super) fn forget_generations(&mut self) {
        let (active, sealed) = (self.active, self.sealed);
        self.rows.retain(|(generation, _), _| *generation == active || Some(*generation) == sealed);
    }

    /// Returns the state that a start after a crash recovers.
    pub(super) fn recover(&self) -> Rows {
        let mut rows = Rows { ts: self.ts, generation: self.active, ..Rows::default() };
        let of = |generation: u8| self.rows.range((generation, 0)..=(generation, u8::MAX));
        if let Some(generation) = self.sealed {
            let mut sealed = Versions::default();
            of(generation).for_each(|((_, row), version)| sealed[usize::from(*row)] = *version);
            rows.sealed = Some((generation, sealed));
        }
        for ((_, row), version) in of(self.active) {
            let row = usize::from(*row);
            rows.active[row] = *version;
            if rows.sealed.is_some_and(|(_, sealed)| sealed[row] != 0) {
                rows.gone |= 1 << row;
            }
        }
        rows.shards = self.shards.iter().map(|shard| (*shard, self.deletes.get(shard).copied().unwrap_or(0))).collect();
        rows
    }

    fn remove_shard(&mut self, shard: u8) {
        self.shards.retain(|id| *id != shard);
        self.deletes.remove(&shard);
        self.garbage.push((self.ts, shard));
    }

    fn delete(&mut self, shard: u8, places: Mask) {
        if places != 0 {
            *self.deletes.entry(shard).or_default() |= places;
        }
    }
}

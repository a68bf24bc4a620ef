//! Evaluates grouping sets: coarser sets are derived from finer ones, partition by partition, in parallel.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::divided::Divided;
use super::keys::KeyForm;
use super::pieces::{Piece, hashes, pieces};
use super::sets::{GroupingSet, Level, finest_first};
use super::state::Kept;
use super::{AggregateSpec, GroupRows};
use crate::{Error, Result};

/// Evaluation of the grouping sets of a query: the sets derived so far, in partitions, and those to be derived.
pub struct Levels {
    spec: Arc<AggregateSpec>,
    keys: Arc<Vec<KeyForm>>,
    made: Vec<(GroupingSet, Arc<Vec<Level>>)>,
    /// Sets to be derived, the finest last.
    left: Vec<GroupingSet>,
}

/// Grouping set that is derived next, and the finer set that it is derived from.
pub struct Coarser {
    spec: Arc<AggregateSpec>,
    keys: Arc<Vec<KeyForm>>,
    set: GroupingSet,
    finer: Arc<Vec<Level>>,
}

/// Groups of one partition of a grouping set.
pub struct PartOfSet {
    level: Level,
    keys: Arc<Vec<KeyForm>>,
    id: i64,
}

impl Divided {
    /// Merges a partition and returns a row for each group. The aggregation must not have grouping sets.
    ///
    /// # Errors
    /// As [`Divided::together`] and [`Groups::finish`](super::Groups::finish).
    pub fn rows(&self, part: usize, stop: &AtomicBool) -> Result<GroupRows> {
        let level = self.together(part, stop)?;
        // The grand total of no rows is added once, not by each partition.
        let parts = if level.groups() == 0 { Vec::new() } else { vec![level.rows(&self.keys(), None)?] };
        Ok(GroupRows { parts })
    }

    /// Returns the rows of all partitions and grouping sets of `spec`, evaluated one after the other on the calling
    /// thread.
    ///
    /// # Errors
    /// As [`Divided::rows`].
    pub fn all(&self, spec: &Arc<AggregateSpec>, stop: &AtomicBool) -> Result<GroupRows> {
        if spec.sets.is_empty() {
            let parts = (0..self.parts()).map(|part| self.rows(part, stop));
            return Ok(GroupRows::of_parts(parts.collect::<Result<_>>()?));
        }
        let together = |divided: &Self| -> Result<Vec<Level>> {
            (0..divided.parts()).map(|part| divided.together(part, stop)).collect()
        };
        let mut levels = Levels::new(spec, self, together(self)?)?;
        while let Some(coarser) = levels.next_set()? {
            let pieces = (0..coarser.parts()).map(|part| coarser.pieces(part)).collect::<Result<_>>()?;
            let parts = together(&coarser.divided(pieces))?;
            levels.add(&coarser, parts);
        }
        let rows = levels.finish()?.into_iter().map(PartOfSet::rows);
        Ok(GroupRows::of_parts(rows.collect::<Result<_>>()?))
    }
}

impl Levels {
    /// Creates an evaluation that has the set of all keys, in partitions.
    ///
    /// # Errors
    /// [`Error::Form`] if no set has all keys.
    pub fn new(spec: &Arc<AggregateSpec>, divided: &Divided, finest: Vec<Level>) -> Result<Self> {
        let (all, coarser) = finest_first(&spec.sets)?;
        let left = coarser.into_iter().rev().cloned().collect();
        let made = vec![(all.clone(), Arc::new(finest))];
        Ok(Self { spec: Arc::clone(spec), keys: Arc::new(divided.keys()), made, left })
    }

    /// Returns the set to derive next, with the smallest finer set as its source; `None` once all sets are derived.
    ///
    /// # Errors
    /// [`Error::Form`] if no set is finer.
    pub fn next_set(&mut self) -> Result<Option<Coarser>> {
        let Some(set) = self.left.pop() else { return Ok(None) };
        let has = |(finer, _): &&(GroupingSet, Arc<Vec<Level>>)| finer.has(&set.absent);
        let finer =
            self.made.iter().filter(has).min_by_key(|(_, parts)| parts.iter().map(Level::groups).sum::<usize>());
        let (_, finer) = finer.ok_or(Error::Form("a grouping set without a finer set"))?;
        let (spec, keys, finer) = (Arc::clone(&self.spec), Arc::clone(&self.keys), Arc::clone(finer));
        Ok(Some(Coarser { spec, keys, set, finer }))
    }

    /// Adds the partitions of a set that has been derived.
    pub fn add(&mut self, made: &Coarser, parts: Vec<Level>) {
        self.made.push((made.set.clone(), Arc::new(parts)));
    }

    /// Returns the nonempty partitions of all sets but hidden ones.
    ///
    /// # Errors
    /// [`Error::Form`] if a [`Coarser`] still references a set.
    pub fn finish(self) -> Result<Vec<PartOfSet>> {
        let mut all = Vec::new();
        for (set, parts) in self.made.into_iter().filter(|(set, _)| !set.is_hidden) {
            let parts =
                Arc::into_inner(parts).ok_or(Error::Form("a grouping set that another is still derived from"))?;
            let part = |level| PartOfSet { level, keys: Arc::clone(&self.keys), id: set.id };
            all.extend(parts.into_iter().filter(|level| level.groups() != 0).map(part));
        }
        Ok(all)
    }
}

impl Coarser {
    /// Returns the number of partitions of the finer set.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.finer.len()
    }

    /// Groups a partition of the finer set by the keys of this set. The groups are radix-partitioned, as other
    /// partitions may have the same.
    ///
    /// # Errors
    /// As [`Groups::merge`](super::Groups::merge).
    pub fn pieces(&self, part: usize) -> Result<Vec<Piece>> {
        let kept: Vec<Kept> = self.spec.states.iter().map(|state| state.kept).collect();
        let mut level = self.finer[part].coarser(&self.keys, &kept, &self.set.absent)?;
        let Some(table) = &level.table else { return Ok(Vec::new()) };
        let forms = self.keys.iter().enumerate().filter(|(key, _)| !self.set.absent[*key]);
        pieces(&hashes(forms, table)?, table, &[], &mut level.states)
    }

    /// Partitions the runs of all partitions of the finer set by the keys of this set.
    #[must_use]
    pub fn divided(&self, pieces: Vec<Vec<Piece>>) -> Divided {
        Divided::of_coarser(&self.spec, &self.set.absent, &self.keys, pieces)
    }
}

impl PartOfSet {
    /// Returns a row for each group.
    ///
    /// # Errors
    /// As [`Groups::finish`](super::Groups::finish).
    pub fn rows(self) -> Result<GroupRows> {
        Ok(GroupRows { parts: vec![self.level.rows(&self.keys, Some(self.id))?] })
    }
}

//! Divided groups as rows: those of sets of keys one made of another, each in parts that are made side by side.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::divided::Divided;
use super::keys::KeyForm;
use super::pieces::{Piece, hashes, pieces};
use super::sets::{GroupingSet, Level, finest_first};
use super::state::Kept;
use super::{AggregateSpec, GroupRows};
use crate::{Error, Result};

/// The sets that are made, each in parts, and those that are not.
pub struct Levels {
    spec: Arc<AggregateSpec>,
    keys: Arc<Vec<KeyForm>>,
    made: Vec<(GroupingSet, Arc<Vec<Level>>)>,
    /// The finest last.
    left: Vec<GroupingSet>,
}

/// A set that is made next, and what of.
pub struct Coarser {
    spec: Arc<AggregateSpec>,
    keys: Arc<Vec<KeyForm>>,
    set: GroupingSet,
    finer: Arc<Vec<Level>>,
}

/// A part of a set's groups.
pub struct PartOfSet {
    level: Level,
    keys: Arc<Vec<KeyForm>>,
    id: i64,
}

impl Divided {
    /// A row for each group of a part, where there are no sets.
    ///
    /// # Errors
    /// As [`Divided::together`] and [`Groups::finish`](super::Groups::finish).
    pub fn rows(&self, part: usize, stop: &AtomicBool) -> Result<GroupRows> {
        let level = self.together(part, stop)?;
        // The group that is there without rows is not one of each part.
        let parts = if level.groups() == 0 { Vec::new() } else { vec![level.rows(&self.keys(), None)?] };
        Ok(GroupRows { parts })
    }

    /// The rows of all parts and sets, one after the other; `spec` says which sets there are.
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
    /// The finest groups, in parts; no set is made of them yet.
    ///
    /// # Errors
    /// Where there is no set of all keys.
    pub fn new(spec: &Arc<AggregateSpec>, divided: &Divided, finest: Vec<Level>) -> Result<Self> {
        let (all, coarser) = finest_first(&spec.sets)?;
        let left = coarser.into_iter().rev().cloned().collect();
        let made = vec![(all.clone(), Arc::new(finest))];
        Ok(Self { spec: Arc::clone(spec), keys: Arc::new(divided.keys()), made, left })
    }

    /// What is made next, of the fewest groups that it can be made of; `None` where all sets are made.
    ///
    /// # Errors
    /// Where there is nothing to make a set of.
    pub fn next_set(&mut self) -> Result<Option<Coarser>> {
        let Some(set) = self.left.pop() else { return Ok(None) };
        let has = |(finer, _): &&(GroupingSet, Arc<Vec<Level>>)| finer.has(&set.absent);
        let finer =
            self.made.iter().filter(has).min_by_key(|(_, parts)| parts.iter().map(Level::groups).sum::<usize>());
        let (_, finer) = finer.ok_or(Error::Form("a grouping set"))?;
        let (spec, keys, finer) = (Arc::clone(&self.spec), Arc::clone(&self.keys), Arc::clone(finer));
        Ok(Some(Coarser { spec, keys, set, finer }))
    }

    /// Takes the parts of a set that has been made.
    pub fn add(&mut self, made: &Coarser, parts: Vec<Level>) {
        self.made.push((made.set.clone(), Arc::new(parts)));
    }

    /// The groups of all sets, except those that others alone are made of.
    ///
    /// # Errors
    /// While a set is made.
    pub fn finish(self) -> Result<Vec<PartOfSet>> {
        let mut all = Vec::new();
        for (set, parts) in self.made.into_iter().filter(|(set, _)| !set.is_hidden) {
            let parts = Arc::into_inner(parts).ok_or(Error::Form("a set that others are still made of"))?;
            let part = |level| PartOfSet { level, keys: Arc::clone(&self.keys), id: set.id };
            all.extend(parts.into_iter().filter(|level| level.groups() != 0).map(part));
        }
        Ok(all)
    }
}

impl Coarser {
    /// How many parts the finer set has.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.finer.len()
    }

    /// The groups that a part of the finer set makes, put aside: other parts may make the same.
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

    /// These pieces of all parts, divided by the keys of the set.
    #[must_use]
    pub fn divided(&self, pieces: Vec<Vec<Piece>>) -> Divided {
        Divided::of_coarser(&self.spec, &self.set.absent, &self.keys, pieces)
    }
}

impl PartOfSet {
    /// A row for each group.
    ///
    /// # Errors
    /// As [`Groups::finish`](super::Groups::finish).
    pub fn rows(self) -> Result<GroupRows> {
        Ok(GroupRows { parts: vec![self.level.rows(&self.keys, Some(self.id))?] })
    }
}

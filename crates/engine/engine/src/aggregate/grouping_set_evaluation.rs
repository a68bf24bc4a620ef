//! Evaluates grouping sets: coarser sets are derived from finer ones, partition by partition, in parallel.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::aggregate_state::AggregateKind;
use super::flushed_groups::{FlushedRun, partition_hashes, partition_runs};
use super::grouping_sets::{GroupingSet, SetGroups, sort_finest_first};
use super::key_encoding::KeyEncoding;
use super::partitioned_merge::PartitionedGroups;
use super::{AggregateSpec, GroupRows};
use crate::{Error, Result};

/// Evaluation of the grouping sets of a query: the sets derived so far, in partitions, and those to be derived.
pub struct SetEvaluation {
    spec: Arc<AggregateSpec>,
    key_encodings: Arc<Vec<KeyEncoding>>,
    derived_sets: Vec<(GroupingSet, Arc<Vec<SetGroups>>)>,
    /// Sets to be derived, the finest last.
    pending_sets: Vec<GroupingSet>,
}

/// Grouping set that is derived next, and the finer set that it is derived from.
pub struct SetDerivation {
    spec: Arc<AggregateSpec>,
    key_encodings: Arc<Vec<KeyEncoding>>,
    set: GroupingSet,
    finer: Arc<Vec<SetGroups>>,
}

/// Groups of one partition of a grouping set.
pub struct SetPartition {
    groups: SetGroups,
    key_encodings: Arc<Vec<KeyEncoding>>,
    id: i64,
}

impl PartitionedGroups {
    /// Merges a partition and returns a row for each group. The aggregation must not have grouping sets.
    ///
    /// # Errors
    /// As [`PartitionedGroups::merge_partition`] and [`Groups::finish`](super::Groups::finish).
    pub fn partition_rows(&self, part: usize, stop: &AtomicBool) -> Result<GroupRows> {
        let level = self.merge_partition(part, stop)?;
        // The grand total of no rows is added once, not by each partition.
        let parts = if level.groups() == 0 { Vec::new() } else { vec![level.into_rows(&self.keys(), None)?] };
        Ok(GroupRows { parts })
    }

    /// Returns the rows of all partitions and grouping sets of `spec`, evaluated one after the other on the calling
    /// thread.
    ///
    /// # Errors
    /// As [`PartitionedGroups::partition_rows`].
    pub fn all_rows(&self, spec: &Arc<AggregateSpec>, stop: &AtomicBool) -> Result<GroupRows> {
        if spec.sets.is_empty() {
            let parts = (0..self.partitions()).map(|part| self.partition_rows(part, stop));
            return Ok(GroupRows::concat(parts.collect::<Result<_>>()?));
        }
        let together = |divided: &Self| -> Result<Vec<SetGroups>> {
            (0..divided.partitions()).map(|part| divided.merge_partition(part, stop)).collect()
        };
        let mut levels = SetEvaluation::new(spec, self, together(self)?)?;
        while let Some(coarser) = levels.next_derivation()? {
            let pieces = (0..coarser.partitions()).map(|part| coarser.group_partition(part)).collect::<Result<_>>()?;
            let parts = together(&coarser.partition_groups(pieces))?;
            levels.add_set(&coarser, parts);
        }
        let rows = levels.finish()?.into_iter().map(SetPartition::into_rows);
        Ok(GroupRows::concat(rows.collect::<Result<_>>()?))
    }
}

impl SetEvaluation {
    /// Creates an evaluation that has the set of all keys, in partitions.
    ///
    /// # Errors
    /// [`Error::Internal`] if no set has all keys.
    pub fn new(spec: &Arc<AggregateSpec>, divided: &PartitionedGroups, finest: Vec<SetGroups>) -> Result<Self> {
        let (all, coarser) = sort_finest_first(&spec.sets)?;
        let left = coarser.into_iter().rev().cloned().collect();
        let made = vec![(all.clone(), Arc::new(finest))];
        Ok(Self {
            spec: Arc::clone(spec),
            key_encodings: Arc::new(divided.keys()),
            derived_sets: made,
            pending_sets: left,
        })
    }

    /// Returns the set to derive next, with the smallest finer set as its source; `None` once all sets are derived.
    ///
    /// # Errors
    /// [`Error::Internal`] if no set is finer.
    pub fn next_derivation(&mut self) -> Result<Option<SetDerivation>> {
        let Some(set) = self.pending_sets.pop() else { return Ok(None) };
        let has = |(finer, _): &&(GroupingSet, Arc<Vec<SetGroups>>)| finer.can_derive(&set.absent_keys);
        let finer = self
            .derived_sets
            .iter()
            .filter(has)
            .min_by_key(|(_, parts)| parts.iter().map(SetGroups::groups).sum::<usize>());
        let (_, finer) = finer.ok_or(Error::Internal("a grouping set has no finer set that it can be derived from"))?;
        let (spec, finer) = (Arc::clone(&self.spec), Arc::clone(finer));
        Ok(Some(SetDerivation { spec, key_encodings: Arc::clone(&self.key_encodings), set, finer }))
    }

    /// Adds the partitions of a set that has been derived.
    pub fn add_set(&mut self, made: &SetDerivation, parts: Vec<SetGroups>) {
        self.derived_sets.push((made.set.clone(), Arc::new(parts)));
    }

    /// Returns the nonempty partitions of all sets but hidden ones.
    ///
    /// # Errors
    /// [`Error::Internal`] if a [`SetDerivation`] still references a set.
    pub fn finish(self) -> Result<Vec<SetPartition>> {
        let mut all = Vec::new();
        for (set, parts) in self.derived_sets.into_iter().filter(|(set, _)| !set.is_hidden) {
            let parts = Arc::into_inner(parts)
                .ok_or(Error::Internal("a grouping set was taken while another set is still derived from it"))?;
            let part =
                |level| SetPartition { groups: level, key_encodings: Arc::clone(&self.key_encodings), id: set.id };
            all.extend(parts.into_iter().filter(|level| level.groups() != 0).map(part));
        }
        Ok(all)
    }
}

impl SetDerivation {
    /// Returns the number of partitions of the finer set.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.finer.len()
    }

    /// Groups a partition of the finer set by the keys of this set. The groups are radix-partitioned, as other
    /// partitions may have the same.
    ///
    /// # Errors
    /// As [`Groups::merge`](super::Groups::merge).
    pub fn group_partition(&self, part: usize) -> Result<Vec<FlushedRun>> {
        let kept: Vec<AggregateKind> = self.spec.states.iter().map(|state| state.kind).collect();
        let mut level = self.finer[part].derive(&self.key_encodings, &kept, &self.set.absent_keys)?;
        let Some(table) = &level.table else { return Ok(Vec::new()) };
        let forms = self.key_encodings.iter().enumerate().filter(|(key, _)| !self.set.absent_keys[*key]);
        partition_runs(&partition_hashes(forms, table)?, table, &[], &mut level.states)
    }

    /// Partitions the runs of all partitions of the finer set by the keys of this set.
    #[must_use]
    pub fn partition_groups(&self, pieces: Vec<Vec<FlushedRun>>) -> PartitionedGroups {
        PartitionedGroups::from_coarser_set(&self.spec, &self.set.absent_keys, &self.key_encodings, pieces)
    }
}

impl SetPartition {
    /// Returns a row for each group.
    ///
    /// # Errors
    /// As [`Groups::finish`](super::Groups::finish).
    pub fn into_rows(self) -> Result<GroupRows> {
        Ok(GroupRows { parts: vec![self.groups.into_rows(&self.key_encodings, Some(self.id))?] })
    }
}

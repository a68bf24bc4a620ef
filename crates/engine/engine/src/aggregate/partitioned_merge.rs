//! Merges the flushed groups of several workers partition by partition, so that each partition's table fits in the CPU
//! cache and partitions can be merged in parallel.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::flushed_groups::{FlushedGroups, FlushedRun, PARTITIONS};
use super::group_table::GroupTable;
use super::grouping_sets::SetGroups;
use super::key_encoding::KeyEncoding;
use super::unify_strings::{StringTranslation, StringUnifier};
use super::{AggregateSpec, GroupRows, Groups};
use crate::{BATCH_ROWS, Result};

/// Approximate number of groups in a merged partition.
const PARTITION_GROUPS: usize = 1 << 14;

/// Flushed groups of all workers, radix-partitioned by their keys.
#[derive(Debug)]
pub struct PartitionedGroups {
    /// Specification of a plain GROUP BY of the keys that are present, without grouping sets.
    spec: Arc<AggregateSpec>,
    /// Whether each key of the query is absent, as in a coarser grouping set.
    absent_keys: Vec<bool>,
    /// Forms of the keys that are present, shared by all workers once string numbers are translated.
    keys: Vec<KeyEncoding>,
    /// Flushed runs of each worker, and for each key the translation of its string numbers.
    workers: Vec<(Vec<FlushedRun>, Vec<Option<StringTranslation>>)>,
    /// Groups in all runs, before they are merged.
    groups: usize,
    /// Partitions to merge: each has one or several neighbouring radix partitions of the runs.
    partitions: usize,
}

impl PartitionedGroups {
    /// Partitions the flushed groups of workers that aggregated by the same `spec`; unifies their strings on the
    /// calling thread alone.
    ///
    /// # Errors
    /// As [`StringUnifier::try_new`] and [`StringUnifier::partition_groups`].
    pub fn from_workers(spec: &Arc<AggregateSpec>, workers: Vec<FlushedGroups>) -> Result<Self> {
        let common = StringUnifier::try_new(spec, workers.into_iter().map(FlushedGroups::partition_strings).collect())?;
        let shards = (0..common.task_count()).map(|shard| common.unify_strings(shard)).collect::<Result<_>>()?;
        common.partition_groups(shards)
    }

    /// Partitions the groups of a coarser grouping set, which are in runs made from the partitions of a finer set.
    /// Their string numbers need no translation.
    pub(super) fn from_coarser_set(
        spec: &AggregateSpec,
        absent_keys: &[bool],
        keys: &[KeyEncoding],
        parts: Vec<Vec<FlushedRun>>,
    ) -> Self {
        let there =
            keys.iter().zip(absent_keys).filter(|(_, absent_keys)| !**absent_keys).map(|(form, _)| form.empty());
        let pieces = parts.into_iter().flatten().collect();
        let keys: Vec<KeyEncoding> = there.collect();
        let translations = keys.iter().map(|_| None).collect();
        Self::from_runs(spec, absent_keys.to_vec(), keys, vec![(pieces, translations)])
    }

    /// Partitions runs whose keys have the forms `keys` once string numbers are translated.
    pub(super) fn from_runs(
        spec: &AggregateSpec,
        absent_keys: Vec<bool>,
        keys: Vec<KeyEncoding>,
        workers: Vec<(Vec<FlushedRun>, Vec<Option<StringTranslation>>)>,
    ) -> Self {
        let groups: usize = workers.iter().flat_map(|(pieces, _)| pieces).map(FlushedRun::len).sum();
        let parts = (groups / PARTITION_GROUPS).clamp(1, PARTITIONS);
        let spec = AggregateSpec {
            keys: (0..keys.len()).collect(),
            sets: Vec::new(),
            grand_total_id: None,
            clustered: None,
            key_types: Vec::new(),
            ..spec.clone()
        };
        Self { spec: Arc::new(spec), absent_keys, keys, workers, groups, partitions: parts }
    }

    /// Returns the forms of the keys that are present.
    pub(super) fn keys(&self) -> Vec<KeyEncoding> {
        self.keys.iter().map(KeyEncoding::empty).collect()
    }

    /// Returns the number of flushed groups; the same group may have been flushed several times.
    #[must_use]
    pub fn flushed_groups(&self) -> usize {
        self.groups
    }

    /// Returns the number of partitions.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Merges the groups of one partition from all workers.
    ///
    /// # Errors
    /// As [`Groups::merge`].
    pub fn merge_partition(&self, part: usize, stop: &AtomicBool) -> Result<SetGroups> {
        let parts = part * PARTITIONS / self.partitions..(part + 1) * PARTITIONS / self.partitions;
        let all = || self.workers.iter().flat_map(|(pieces, _)| pieces);
        let most = all().map(|piece| piece.groups_in(parts.clone()).len()).sum();
        let mut together = Groups::without_flushing(&self.spec);
        together.keys = self.keys.iter().map(KeyEncoding::empty).collect();
        // One more word has the null bits.
        let words = self.keys.iter().map(KeyEncoding::word_count).sum::<usize>();
        let stride = if words == 0 { 0 } else { words + 1 };
        together.table = Some(GroupTable::with_capacity(stride, most));
        for (pieces, translations) in &self.workers {
            let mut some = PendingMerge::default();
            for piece in pieces {
                let groups = piece.groups_in(parts.clone());
                if groups.is_empty() {
                    continue;
                }
                some.key_words.extend_from_slice(&piece.key_words[groups.start * stride..groups.end * stride]);
                some.count += groups.len();
                some.groups.push((piece, groups));
                if BATCH_ROWS <= some.count {
                    together.merge_flushed(&mut some, translations, stride, stop)?;
                }
            }
            together.merge_flushed(&mut some, translations, stride, stop)?;
        }
        Ok(SetGroups {
            absent_keys: self.absent_keys.clone(),
            table: together.table,
            carried: together.carried,
            states: together.states,
        })
    }
}

/// Groups from several runs of one worker that are merged together as one batch.
#[derive(Default)]
struct PendingMerge<'a> {
    key_words: Vec<i64>,
    count: usize,
    groups: Vec<(&'a FlushedRun, std::ops::Range<usize>)>,
}

impl Groups {
    /// Merges pending flushed groups.
    fn merge_flushed(
        &mut self,
        some: &mut PendingMerge<'_>,
        translations: &[Option<StringTranslation>],
        stride: usize,
        stop: &AtomicBool,
    ) -> Result<()> {
        let mut at = 0;
        for (number, (form, translation)) in self.keys.iter().zip(translations).enumerate() {
            if let Some(translation) = translation {
                translation.translate(&mut some.key_words, stride, at, |nulls| nulls >> number & 1 == 1)?;
            }
            at += form.word_count();
        }
        let (found, new) = self.find_or_insert_keys(&some.key_words, stride, some.count, stop)?;
        let mut start = 0;
        for (piece, groups) in some.groups.drain(..) {
            let end = start + groups.len();
            let first = u32::try_from(groups.start).expect("a flushed run has at most 2^15 groups");
            let some: Vec<u32> = (first..).take(groups.len()).collect();
            let new_of_piece =
                new.partition_point(|row| (*row as usize) < start)..new.partition_point(|row| (*row as usize) < end);
            if !new_of_piece.is_empty() && !self.carried.is_empty() {
                let new: Vec<u32> = new[new_of_piece].iter().map(|row| some[*row as usize - start]).collect();
                for (carried, column) in self.carried.iter_mut().zip(&piece.carried) {
                    carried.append(column, &new)?;
                }
            }
            for (mine, theirs) in self.states.iter_mut().zip(&piece.states) {
                mine.merge(&found[start..end], theirs, &some)?;
            }
            start = end;
        }
        some.key_words.clear();
        some.count = 0;
        Ok(())
    }
}

impl GroupRows {
    /// Concatenates the rows of all parts.
    #[must_use]
    pub fn concat(parts: Vec<Self>) -> Self {
        Self { parts: parts.into_iter().flat_map(|part| part.parts).collect() }
    }
}

//! Merges the flushed groups of several workers partition by partition, so that each partition's table fits in the CPU
//! cache and partitions can be merged in parallel.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::common::{Common, Translation};
use super::keys::KeyForm;
use super::pieces::{Aside, PARTS, Piece};
use super::sets::Level;
use super::table::Table;
use super::{AggregateSpec, GroupRows, Groups};
use crate::{BATCH_ROWS, Result};

/// Approximate number of groups in a merged partition.
const PART_GROUPS: usize = 1 << 14;

/// Flushed groups of all workers, radix-partitioned by their keys.
#[derive(Debug)]
pub struct Divided {
    /// Specification of a plain GROUP BY of the keys that are present, without grouping sets.
    spec: Arc<AggregateSpec>,
    /// Whether each key of the query is absent, as in a coarser grouping set.
    absent: Vec<bool>,
    /// Forms of the keys that are present, shared by all workers once string numbers are translated.
    keys: Vec<KeyForm>,
    /// Flushed runs of each worker, and for each key the translation of its string numbers.
    workers: Vec<(Vec<Piece>, Vec<Option<Translation>>)>,
    /// Groups in all runs, before they are merged.
    groups: usize,
    /// Partitions to merge: each has one or several neighbouring radix partitions of the runs.
    parts: usize,
}

impl Divided {
    /// Partitions the flushed groups of workers that aggregated by the same `spec`; unifies their strings on the
    /// calling thread alone.
    ///
    /// # Errors
    /// As [`Common::of`] and [`Common::divided`].
    pub fn of(spec: &Arc<AggregateSpec>, workers: Vec<Aside>) -> Result<Self> {
        let common = Common::of(spec, workers.into_iter().map(Aside::sorted).collect())?;
        let shards = (0..common.shards()).map(|shard| common.shard(shard)).collect::<Result<_>>()?;
        common.divided(shards)
    }

    /// Partitions the groups of a coarser grouping set, which are in runs made from the partitions of a finer set.
    /// Their string numbers need no translation.
    pub(super) fn of_coarser(spec: &AggregateSpec, absent: &[bool], keys: &[KeyForm], parts: Vec<Vec<Piece>>) -> Self {
        let there = keys.iter().zip(absent).filter(|(_, absent)| !**absent).map(|(form, _)| form.empty());
        let pieces = parts.into_iter().flatten().collect();
        let keys: Vec<KeyForm> = there.collect();
        let translations = keys.iter().map(|_| None).collect();
        Self::of_words(spec, absent.to_vec(), keys, vec![(pieces, translations)])
    }

    /// Partitions runs whose keys have the forms `keys` once string numbers are translated.
    pub(super) fn of_words(
        spec: &AggregateSpec,
        absent: Vec<bool>,
        keys: Vec<KeyForm>,
        workers: Vec<(Vec<Piece>, Vec<Option<Translation>>)>,
    ) -> Self {
        let groups: usize = workers.iter().flat_map(|(pieces, _)| pieces).map(Piece::len).sum();
        let parts = (groups / PART_GROUPS).clamp(1, PARTS);
        let spec = AggregateSpec {
            keys: (0..keys.len()).collect(),
            sets: Vec::new(),
            total: None,
            clustered: None,
            key_forms: Vec::new(),
            ..spec.clone()
        };
        Self { spec: Arc::new(spec), absent, keys, workers, groups, parts }
    }

    /// Returns the forms of the keys that are present.
    pub(super) fn keys(&self) -> Vec<KeyForm> {
        self.keys.iter().map(KeyForm::empty).collect()
    }

    /// Returns the number of flushed groups; the same group may have been flushed several times.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the number of partitions.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Merges the groups of one partition from all workers.
    ///
    /// # Errors
    /// As [`Groups::merge`].
    pub fn together(&self, part: usize, stop: &AtomicBool) -> Result<Level> {
        let parts = part * PARTS / self.parts..(part + 1) * PARTS / self.parts;
        let all = || self.workers.iter().flat_map(|(pieces, _)| pieces);
        let most = all().map(|piece| piece.groups_of(parts.clone()).len()).sum();
        let mut together = Groups::all_in_one(&self.spec);
        together.keys = self.keys.iter().map(KeyForm::empty).collect();
        // One more word has the null bits.
        let words = self.keys.iter().map(KeyForm::words).sum::<usize>();
        let stride = if words == 0 { 0 } else { words + 1 };
        together.table = Some(Table::with_room(stride, most));
        for (pieces, translations) in &self.workers {
            let mut some = Waiting::default();
            for piece in pieces {
                let groups = piece.groups_of(parts.clone());
                if groups.is_empty() {
                    continue;
                }
                some.words.extend_from_slice(&piece.words[groups.start * stride..groups.end * stride]);
                some.count += groups.len();
                some.groups.push((piece, groups));
                if BATCH_ROWS <= some.count {
                    together.take_in(&mut some, translations, stride, stop)?;
                }
            }
            together.take_in(&mut some, translations, stride, stop)?;
        }
        Ok(Level {
            absent: self.absent.clone(),
            table: together.table,
            carried: together.carried,
            states: together.states,
        })
    }
}

/// Groups from several runs of one worker that are merged together as one batch.
#[derive(Default)]
struct Waiting<'a> {
    words: Vec<i64>,
    count: usize,
    groups: Vec<(&'a Piece, std::ops::Range<usize>)>,
}

impl Groups {
    /// Merges pending flushed groups.
    fn take_in(
        &mut self,
        some: &mut Waiting<'_>,
        translations: &[Option<Translation>],
        stride: usize,
        stop: &AtomicBool,
    ) -> Result<()> {
        let mut at = 0;
        for (number, (form, translation)) in self.keys.iter().zip(translations).enumerate() {
            if let Some(translation) = translation {
                translation.translate(&mut some.words, stride, at, |nulls| nulls >> number & 1 == 1)?;
            }
            at += form.words();
        }
        let (found, new) = self.find_words(&some.words, stride, some.count, stop)?;
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
                    carried.add(column, &new)?;
                }
            }
            for (mine, theirs) in self.states.iter_mut().zip(&piece.states) {
                mine.merge(&found[start..end], theirs, &some)?;
            }
            start = end;
        }
        some.words.clear();
        some.count = 0;
        Ok(())
    }
}

impl GroupRows {
    /// Concatenates the rows of all parts.
    #[must_use]
    pub fn of_parts(parts: Vec<Self>) -> Self {
        Self { parts: parts.into_iter().flat_map(|part| part.parts).collect() }
    }
}

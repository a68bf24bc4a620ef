//! The groups of several workers put together part by part, side by side: each group is made once, in a table that a cache holds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::common::{Common, Translation};
use super::keys::KeyForm;
use super::pieces::{Aside, PARTS, Piece};
use super::sets::Level;
use super::table::Table;
use super::{AggregateSpec, GroupRows, Groups};
use crate::{BATCH_ROWS, Result};

/// Groups of a part, about.
const PART_GROUPS: usize = 1 << 14;

/// The groups of all workers, divided by their keys.
#[derive(Debug)]
pub struct Divided {
    /// Of the keys that there are, no sets of them.
    spec: Arc<AggregateSpec>,
    /// Of all keys, whether it is not there.
    absent: Vec<bool>,
    /// Of the words of the keys that there are, all workers', once they are translated.
    keys: Vec<KeyForm>,
    /// What each worker has put aside, and how its keys' words are translated.
    workers: Vec<(Vec<Piece>, Vec<Option<Translation>>)>,
    groups: usize,
    parts: usize,
}

impl Divided {
    /// What workers have put aside, who have grouped by one `spec`, without others that help with their strings.
    ///
    /// # Errors
    /// As [`Common::of`] and [`Common::divided`].
    pub fn of(spec: &Arc<AggregateSpec>, workers: Vec<Aside>) -> Result<Self> {
        let common = Common::of(spec, workers.into_iter().map(Aside::sorted).collect())?;
        let shards = (0..common.shards()).map(|shard| common.shard(shard)).collect::<Result<_>>()?;
        common.divided(shards)
    }

    /// Groups of a coarser set, made of parts of a finer one, whose words are one's.
    pub(super) fn of_coarser(spec: &AggregateSpec, absent: &[bool], keys: &[KeyForm], parts: Vec<Vec<Piece>>) -> Self {
        let there = keys.iter().zip(absent).filter(|(_, absent)| !**absent).map(|(form, _)| form.empty());
        let pieces = parts.into_iter().flatten().collect();
        let keys: Vec<KeyForm> = there.collect();
        let translations = keys.iter().map(|_| None).collect();
        Self::of_words(spec, absent.to_vec(), keys, vec![(pieces, translations)])
    }

    /// Groups whose words are one's once they are translated.
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

    /// The forms of the keys that there are.
    pub(super) fn keys(&self) -> Vec<KeyForm> {
        self.keys.iter().map(KeyForm::empty).collect()
    }

    /// How many groups workers have put aside; several may have the same.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The groups of a part, all workers' together.
    ///
    /// # Errors
    /// As [`Groups::merge`].
    pub fn together(&self, part: usize, stop: &AtomicBool) -> Result<Level> {
        let parts = part * PARTS / self.parts..(part + 1) * PARTS / self.parts;
        let all = || self.workers.iter().flat_map(|(pieces, _)| pieces);
        let most = all().map(|piece| piece.groups_of(parts.clone()).len()).sum();
        let mut together = Groups::all_in_one(&self.spec);
        together.keys = self.keys.iter().map(KeyForm::empty).collect();
        // The last word is that of the NULLs.
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

/// Groups of several pieces of one worker, and the words of all of them.
#[derive(Default)]
struct Waiting<'a> {
    words: Vec<i64>,
    count: usize,
    groups: Vec<(&'a Piece, std::ops::Range<usize>)>,
}

impl Groups {
    /// Takes groups in that were put aside.
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
            let first = u32::try_from(groups.start).expect("a piece has few groups");
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
    /// The rows of all parts.
    #[must_use]
    pub fn of_parts(parts: Vec<Self>) -> Self {
        Self { parts: parts.into_iter().flat_map(|part| part.parts).collect() }
    }
}

//! Merges groups: of another worker, or of finished runs of clustered rows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Groups;
use super::compact_groups::translate_keys;
use super::flushed_groups::FlushedGroups;
use super::group_table::GroupTable;
use super::key_encoding::KeyWords;
use crate::{BATCH_ROWS, Bounds, NEVER_STOPPED, Result, check_stopped};

impl Groups {
    /// Merges the groups of another worker.
    ///
    /// # Errors
    /// As [`Groups::add`]; [`Error::Stopped`](crate::Error::Stopped) once `stop` is set.
    pub fn merge(&mut self, other: Self, stop: &AtomicBool) -> Result<()> {
        let other = other.with_border_merged()?;
        if other.has_flushed() {
            let aside = other.flush_to_partitions()?;
            self.flushed_bytes += aside.iter().map(FlushedGroups::memory_bytes).sum::<usize>();
            self.merged_flushed.extend(aside);
            return Ok(());
        }
        if self.table.is_none() && !self.has_flushed() {
            let border = self.border_groups.take();
            *self = other;
            self.border_groups = border;
            return Ok(());
        }
        let all: Vec<u32> = (0..).take(other.len()).collect();
        self.merge_groups(&other, &all, stop)
    }

    /// Merges some groups of `other`, whose keys are translated to the words of this one.
    pub(super) fn merge_groups(&mut self, other: &Self, some: &[u32], stop: &AtomicBool) -> Result<()> {
        let Some(theirs) = &other.table else { return Ok(()) };
        let stride = theirs.stride();
        let mut words = theirs.key_words_of(some);
        translate_keys(&mut self.keys, &other.keys, &mut words, stride)?;
        let (found, new) = self.find_or_insert_keys(&words, stride, some.len(), stop)?;
        self.table_rows += (other.table_rows as u128 * some.len() as u128 / theirs.len().max(1) as u128) as usize;
        let new: Vec<u32> = new.into_iter().map(|at| some[at as usize]).collect();
        for (mine, theirs) in self.carried.iter_mut().zip(&other.carried) {
            mine.merge(theirs, &new)?;
        }
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            mine.merge(&found, theirs, some)?;
        }
        Ok(())
    }

    /// Finds the groups of `count` keys, given as words, and adds groups for new keys. Returns the group of each key,
    /// and the indices of the keys that are new. All states are resized.
    pub(super) fn find_or_insert_keys(
        &mut self,
        words: &[i64],
        stride: usize,
        count: usize,
        stop: &AtomicBool,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        let table = self.table.get_or_insert_with(|| GroupTable::new(stride));
        let before = table.len();
        let mut found = Vec::with_capacity(count);
        let mut part = Vec::new();
        for start in (0..count).step_by(BATCH_ROWS) {
            check_stopped(stop)?;
            let end = count.min(start + BATCH_ROWS);
            let column = |at: usize| {
                let values: Vec<i64> = (start..end).map(|group| words[group * stride + at]).collect();
                let ends =
                    values.iter().fold((i64::MAX, i64::MIN), |(min, max), word| (min.min(*word), max.max(*word)));
                KeyWords { values: Arc::new(values), bounds: Some(Bounds { min: ends.0.into(), max: ends.1.into() }) }
            };
            let words: Vec<KeyWords> = (0..stride).map(column).collect();
            table.find_or_insert(&words, end - start, self.table_rows + start, &mut part);
            found.extend_from_slice(&part);
        }
        let groups = table.len();
        self.states.iter_mut().for_each(|state| state.resize(groups));
        let new = first_rows(&found, before);
        Ok((found, new))
    }

    /// Merges the table with the border groups of finished runs.
    pub(super) fn with_border_merged(mut self) -> Result<Self> {
        match self.border_groups.take() {
            None => Ok(self),
            Some(mut border) => {
                border.merge(self, &NEVER_STOPPED)?;
                Ok(*border)
            }
        }
    }
}

/// Returns the first row of each group from `number` on; groups are numbered in the order of their first rows.
pub(super) fn first_rows(groups: &[u32], number: usize) -> Vec<u32> {
    let mut next = u32::try_from(number).expect("fewer than 2^32 groups");
    let mut firsts = Vec::new();
    for (row, group) in (0..).zip(groups) {
        if *group == next {
            firsts.push(row);
            next += 1;
        }
    }
    firsts
}

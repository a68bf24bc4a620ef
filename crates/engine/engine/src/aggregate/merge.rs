//! Merges groups: of another worker, or of finished runs of clustered rows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Groups;
use super::compact::translate;
use super::keys::Words;
use super::pieces::Aside;
use super::table::Table;
use crate::{BATCH_ROWS, Bounds, GOES_ON, Result, unless_stopped};

impl Groups {
    /// Merges the groups of another worker.
    ///
    /// # Errors
    /// As [`Groups::add`]; [`Error::Stopped`](crate::Error::Stopped) once `stop` is set.
    pub fn merge(&mut self, other: Self, stop: &AtomicBool) -> Result<()> {
        let other = other.whole()?;
        if other.is_aside() {
            let aside = other.put_aside()?;
            self.aside_bytes += aside.iter().map(Aside::memory_bytes).sum::<usize>();
            self.others.extend(aside);
            return Ok(());
        }
        if self.table.is_none() && !self.is_aside() {
            let border = self.border.take();
            *self = other;
            self.border = border;
            return Ok(());
        }
        let all: Vec<u32> = (0..).take(other.len()).collect();
        self.merge_some(&other, &all, stop)
    }

    /// Merges some groups of `other`, whose keys are translated to the words of this one.
    pub(super) fn merge_some(&mut self, other: &Self, some: &[u32], stop: &AtomicBool) -> Result<()> {
        let Some(theirs) = &other.table else { return Ok(()) };
        let stride = theirs.stride();
        let mut words = theirs.words_of(some);
        translate(&mut self.keys, &other.keys, &mut words, stride)?;
        let (found, new) = self.find_words(&words, stride, some.len(), stop)?;
        self.rows += (other.rows as u128 * some.len() as u128 / theirs.len().max(1) as u128) as usize;
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
    pub(super) fn find_words(
        &mut self,
        words: &[i64],
        stride: usize,
        count: usize,
        stop: &AtomicBool,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        let table = self.table.get_or_insert_with(|| Table::new(stride));
        let before = table.len();
        let mut found = Vec::with_capacity(count);
        let mut part = Vec::new();
        for start in (0..count).step_by(BATCH_ROWS) {
            unless_stopped(stop)?;
            let end = count.min(start + BATCH_ROWS);
            let column = |at: usize| {
                let values: Vec<i64> = (start..end).map(|group| words[group * stride + at]).collect();
                let ends =
                    values.iter().fold((i64::MAX, i64::MIN), |(min, max), word| (min.min(*word), max.max(*word)));
                Words { values: Arc::new(values), bounds: Some(Bounds { min: ends.0.into(), max: ends.1.into() }) }
            };
            let words: Vec<Words> = (0..stride).map(column).collect();
            table.groups_of(&words, end - start, self.rows + start, &mut part);
            found.extend_from_slice(&part);
        }
        let groups = table.len();
        self.states.iter_mut().for_each(|state| state.resize(groups));
        let new = firsts(&found, before);
        Ok((found, new))
    }

    /// Merges the table with the border groups of finished runs.
    pub(super) fn whole(mut self) -> Result<Self> {
        match self.border.take() {
            None => Ok(self),
            Some(mut border) => {
                border.merge(self, &GOES_ON)?;
                Ok(*border)
            }
        }
    }
}

/// Returns the first row of each group from `number` on; groups are numbered in the order of their first rows.
pub(super) fn firsts(groups: &[u32], number: usize) -> Vec<u32> {
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

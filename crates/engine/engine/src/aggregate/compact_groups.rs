//! Compact groups: a form without a table, to be cached and merged into other groups any number of times.

use std::sync::atomic::AtomicBool;

use super::Groups;
use super::aggregate_state::State;
use super::key_encoding::KeyEncoding;
use crate::Result;

#[cfg(test)]
mod tests;

/// Keys and aggregate states of groups, without the table that finds a group by its key.
#[derive(Debug, Default)]
pub struct CompactGroups {
    keys: Vec<KeyEncoding>,
    /// Words of the keys, group by group.
    key_words: Vec<i64>,
    /// Number of words of a key.
    stride: usize,
    groups: usize,
    states: Vec<State>,
}

impl CompactGroups {
    /// Returns the number of groups; 0 for no rows even without keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups
    }

    /// Returns whether there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.key_words.capacity() * 8
            + self.keys.iter().map(|key| size_of::<KeyEncoding>() + key.memory_bytes()).sum::<usize>()
            + self.states.iter().map(|state| size_of::<State>() + state.memory_bytes()).sum::<usize>()
    }
}

impl Groups {
    /// Takes all groups out and starts anew; the forms of the keys stay.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let mut next = Self::with_first_check(&self.spec, self.reduction.first_check());
        next.keys = self.keys.iter().map(KeyEncoding::empty).collect();
        std::mem::replace(self, next)
    }

    /// Converts to compact groups; `None` if groups have been flushed to radix partitions, or there are carried
    /// columns.
    ///
    /// # Errors
    /// Internal errors only, or as [`Groups::merge`] for border groups of clustered rows.
    pub fn into_compact(self) -> Result<Option<CompactGroups>> {
        let all = self.with_border_merged()?;
        if all.has_flushed() || !all.carried.is_empty() {
            return Ok(None);
        }
        let Some(table) = &all.table else { return Ok(Some(CompactGroups::default())) };
        let (stride, groups) = (table.stride(), table.len());
        let every: Vec<u32> = (0..).take(groups).collect();
        let mut words = table.key_words_of(&every);
        // Drops strings of input dictionaries that no group has.
        let mut keys: Vec<KeyEncoding> = all.keys.iter().map(KeyEncoding::empty).collect();
        translate_keys(&mut keys, &all.keys, &mut words, stride)?;
        let mut states = all.states;
        let states = states.iter_mut().map(|state| state.take(&every)).collect();
        Ok(Some(CompactGroups { keys, key_words: words, stride, groups, states }))
    }

    /// Merges compact groups of the same specification.
    ///
    /// # Errors
    /// As [`Groups::merge`].
    pub fn merge_compact(&mut self, other: &CompactGroups, stop: &AtomicBool) -> Result<()> {
        if other.is_empty() {
            return Ok(());
        }
        let mut words = other.key_words.clone();
        translate_keys(&mut self.keys, &other.keys, &mut words, other.stride)?;
        let (found, _) = self.find_or_insert_keys(&words, other.stride, other.groups, stop)?;
        self.table_rows += other.groups;
        let every: Vec<u32> = (0..).take(other.groups).collect();
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            mine.merge(&found, theirs, &every)?;
        }
        Ok(())
    }
}

/// Translates the words of keys from the encoding `theirs` to the encoding `mine`.
pub(super) fn translate_keys(
    mine: &mut [KeyEncoding],
    theirs: &[KeyEncoding],
    words: &mut [i64],
    stride: usize,
) -> Result<()> {
    let mut at = 0;
    for (number, (mine, form)) in mine.iter_mut().zip(theirs).enumerate() {
        mine.translate(form, words, stride, at, |nulls| nulls >> number & 1 == 1)?;
        at += mine.word_count();
    }
    Ok(())
}

//! Groups as small as they can be: to be kept, and added to others as often as is asked for.

use std::sync::atomic::AtomicBool;

use super::Groups;
use super::keys::KeyForm;
use super::state::State;
use crate::Result;

#[cfg(test)]
mod tests;

/// Groups and what is kept of them, without what finds a group by its key. They are what they are of exactly the rows that made them.
#[derive(Debug, Default)]
pub struct CompactGroups {
    keys: Vec<KeyForm>,
    /// Those of each key, one after the other.
    words: Vec<i64>,
    /// Words of a key.
    stride: usize,
    groups: usize,
    states: Vec<State>,
}

impl CompactGroups {
    /// How many there are; without keys none of no rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// What they take in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.words.capacity() * 8
            + self.keys.iter().map(|key| size_of::<KeyForm>() + key.memory_bytes()).sum::<usize>()
            + self.states.iter().map(|state| size_of::<State>() + state.memory_bytes()).sum::<usize>()
    }
}

impl Groups {
    /// Takes all that it has away; it begins again, and its keys keep their forms.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let mut next = Self::looking_at(&self.spec, self.reduction.few());
        next.keys = self.keys.iter().map(KeyForm::empty).collect();
        std::mem::replace(self, next)
    }

    /// The same groups as small as they can be; `None` where some have been put aside, or carry what their keys determine.
    ///
    /// # Errors
    /// None that well-formed groups meet.
    pub fn compact(self) -> Result<Option<CompactGroups>> {
        let all = self.whole()?;
        if all.is_aside() || !all.carried.is_empty() {
            return Ok(None);
        }
        let Some(table) = &all.table else { return Ok(Some(CompactGroups::default())) };
        let (stride, groups) = (table.stride(), table.len());
        let every: Vec<u32> = (0..).take(groups).collect();
        let mut words = table.words_of(&every);
        // Of all strings that its rows were tested for, those of the groups.
        let mut keys: Vec<KeyForm> = all.keys.iter().map(KeyForm::empty).collect();
        translate(&mut keys, &all.keys, &mut words, stride)?;
        let mut states = all.states;
        let states = states.iter_mut().map(|state| state.take(&every)).collect();
        Ok(Some(CompactGroups { keys, words, stride, groups, states }))
    }

    /// Adds groups of the same kind.
    ///
    /// # Errors
    /// As [`Groups::merge`].
    pub fn add_compact(&mut self, other: &CompactGroups, stop: &AtomicBool) -> Result<()> {
        if other.is_empty() {
            return Ok(());
        }
        let mut words = other.words.clone();
        translate(&mut self.keys, &other.keys, &mut words, other.stride)?;
        let (found, _) = self.find_words(&words, other.stride, other.groups, stop)?;
        self.rows += other.groups;
        let every: Vec<u32> = (0..).take(other.groups).collect();
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            mine.merge(&found, theirs, &every)?;
        }
        Ok(())
    }
}

/// Makes of the words of some keys those of others.
pub(super) fn translate(mine: &mut [KeyForm], theirs: &[KeyForm], words: &mut [i64], stride: usize) -> Result<()> {
    let mut at = 0;
    for (number, (mine, form)) in mine.iter_mut().zip(theirs).enumerate() {
        mine.translate(form, words, stride, at, |nulls| nulls >> number & 1 == 1)?;
        at += mine.words();
    }
    Ok(())
}

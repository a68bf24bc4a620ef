//! The groups of several workers put together in parts by their keys, side by side.

use std::sync::atomic::AtomicBool;

use super::keys::KeyForm;
use super::table::{SEED, mixed};
use super::{GroupRows, Groups};
use crate::{Error, Result};

/// One worker's groups, divided by their keys.
#[derive(Debug)]
pub struct Divided {
    groups: Groups,
    /// The groups of each part.
    parts: Vec<Vec<u32>>,
}

impl Groups {
    /// Divides them into so many parts; those of equal keys are in the same part, whichever worker has them.
    ///
    /// # Errors
    /// As [`Groups::finish`].
    pub fn divide(self, parts: usize) -> Result<Divided> {
        let groups = self.whole()?;
        if groups.keys.is_empty() {
            return Err(Error::Form("parts of what is one group"));
        }
        let mut divided = vec![Vec::new(); parts.max(1)];
        if let Some(table) = &groups.table {
            let stride = table.stride().max(1);
            for (group, key) in (0..).zip(table.words().chunks_exact(stride)) {
                let part = part_of(&groups.keys, key, parts.max(1))?;
                divided[part].push(group);
            }
        }
        Ok(Divided { groups, parts: divided })
    }
}

impl Divided {
    /// A row for each group of a part, all workers' together.
    ///
    /// # Errors
    /// As [`Groups::merge`] and [`Groups::finish`].
    pub fn together(all: &[Self], part: usize, stop: &AtomicBool) -> Result<GroupRows> {
        let first = all.first().ok_or(Error::Form("groups of nobody"))?;
        let mut together = Groups::new(&first.groups.spec);
        for one in all {
            together.merge_some(&one.groups, &one.parts[part], stop)?;
        }
        // The group that is there without rows is not one of each part.
        if together.is_empty() { Ok(GroupRows { parts: Vec::new() }) } else { together.finish() }
    }
}

impl GroupRows {
    /// The rows of all parts.
    #[must_use]
    pub fn of_parts(parts: Vec<Self>) -> Self {
        Self { parts: parts.into_iter().flat_map(|part| part.parts).collect() }
    }
}

/// The part of a key, by its values: numbers of strings are each worker's own.
fn part_of(forms: &[KeyForm], key: &[i64], parts: usize) -> Result<usize> {
    let nulls = key.last().copied().unwrap_or_default();
    let (mut hash, mut at) = (mixed(SEED, nulls), 0);
    for (number, form) in forms.iter().enumerate() {
        let words = &key[at..at + form.words()];
        at += form.words();
        hash = match form.hash_of_text(words[0]) {
            // The word of a NULL stands for no string.
            Some(_) if nulls >> number & 1 == 1 => hash,
            Some(text) => mixed(hash, text?.cast_signed()),
            None => words.iter().fold(hash, |hash, word| mixed(hash, *word)),
        };
    }
    #[expect(clippy::cast_possible_truncation, reason = "a product's upper half is less than the number of parts")]
    Ok(((u128::from(hash) * parts as u128) >> 64) as usize)
}

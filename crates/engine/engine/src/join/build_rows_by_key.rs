//! Build rows of each group of equal keys.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::NO_KEY_CODE;
use super::key_index::KeyIndex;
use crate::{NONE, Result, STOP_CHECK_ROWS, check_stopped};

/// Mapping from groups to build rows.
#[derive(Debug)]
pub(super) enum BuildRowsByKey {
    /// The row number equals the group number; also used if nobody needs the rows.
    Identity,
    /// Each group has one row; the entry of group `g` is its row.
    Unique(Vec<u32>),
    /// The rows of group `g` are `starts[g]..starts[g + 1]`, after the build side has been reordered.
    Ranges(Vec<u32>),
}

/// Key codes looked up at a time.
const LOOKUP_CHUNK: usize = 1024;

impl BuildRowsByKey {
    /// Builds the groups of rows with these key codes. Also returns the order into which the build rows must be
    /// brought, if they must be reordered: rows of a group are adjacent, and rows that match nothing come last.
    pub(super) fn new(
        key_codes: &[u64],
        index: &KeyIndex,
        asks_existence: bool,
        stop: &AtomicBool,
    ) -> Result<(Self, Option<Vec<u32>>)> {
        let there = key_codes.iter().filter(|word| **word != NO_KEY_CODE).count();
        let groups = index.group_count() as usize;
        let is_unique = groups == there;
        if asks_existence || (is_unique && there == key_codes.len() && index.numbers_by_first_appearance()) {
            return Ok((Self::Identity, None));
        }
        if is_unique {
            let mut rows = vec![0; groups];
            for_each_grouped_row(key_codes, index, stop, |row, group| rows[group] = row)?;
            let is_same = rows.iter().zip(0..).all(|(row, group)| *row == group);
            return Ok((if is_same { Self::Identity } else { Self::Unique(rows) }, None));
        }
        // Counts are shifted by one entry: adding rows moves each group's start to its end, which is the next group's
        // start.
        let mut starts = vec![0; groups + 2];
        for_each_grouped_row(key_codes, index, stop, |_, group| starts[group + 2] += 1)?;
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut rows = vec![0; there];
        for_each_grouped_row(key_codes, index, stop, |row, group| {
            let at = &mut starts[group + 1];
            rows[*at as usize] = row;
            *at += 1;
        })?;
        starts.truncate(groups + 1);
        rows.extend((0..).zip(key_codes).filter(|(_, word)| **word == NO_KEY_CODE).map(|(row, _)| row));
        Ok((Self::Ranges(starts), Some(rows)))
    }

    /// Returns whether every group has at most one row.
    pub(super) fn are_unique(&self) -> bool {
        !matches!(self, Self::Ranges(_))
    }

    /// Returns the rows of a group.
    #[inline]
    pub(super) fn rows(&self, group: u32) -> Range<u32> {
        match self {
            Self::Identity => group..group + 1,
            Self::Unique(rows) => rows[group as usize]..rows[group as usize] + 1,
            Self::Ranges(starts) => starts[group as usize]..starts[group as usize + 1],
        }
    }

    /// Replaces group numbers by row numbers; every group must have one row.
    pub(super) fn replace_by_rows(&self, groups: &mut [u32]) {
        if let Self::Unique(rows) = self {
            groups.iter_mut().for_each(|group| *group = rows[*group as usize]);
        }
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Identity => 0,
            Self::Unique(rows) => rows.capacity() * 4,
            Self::Ranges(starts) => starts.capacity() * 4,
        }
    }
}

/// Calls `put` with each row that has a group.
fn for_each_grouped_row(
    key_codes: &[u64],
    index: &KeyIndex,
    stop: &AtomicBool,
    mut put: impl FnMut(u32, usize),
) -> Result<()> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    let mut row = 0;
    for (chunk, key_codes) in key_codes.chunks(LOOKUP_CHUNK).enumerate() {
        if chunk.is_multiple_of(STOP_CHECK_ROWS / LOOKUP_CHUNK) {
            check_stopped(stop)?;
        }
        index.find(key_codes.len(), |row| key_codes[row], &mut found, &mut open);
        for group in &found {
            if *group != NONE {
                put(row, *group as usize);
            }
            row += 1;
        }
    }
    Ok(())
}

//! Table from encoded keys to group numbers: a direct index where few keys are possible, else a hash table.

use blocks::kernels::Kernels;

use super::hash_table::{GroupHashTable, HASH_SEED, hash_key, mix};
use super::key_encoding::KeyWords;
use crate::NONE;

/// Distinct keys of an aggregation, numbered from 0, with an index that finds them.
#[derive(Debug)]
pub(super) struct GroupTable {
    /// Number of words of a key.
    stride: usize,
    /// Words of the keys, group by group.
    key_words: Vec<i64>,
    groups: usize,
    index: Index,
    /// Smallest and largest possible value of each word so far; `None` if a word had no bounds.
    bounds: Option<Vec<(i64, i128)>>,
    /// Group count at which a hash table is next considered for conversion to a direct index.
    next_direct_check: usize,
}

#[derive(Debug)]
enum Index {
    Direct(DirectIndex),
    Hash(GroupHashTable),
}

/// Direct index: an array with a slot for each possible key.
#[derive(Debug)]
struct DirectIndex {
    /// Smallest value of each word, and the number of values from it on.
    ranges: Vec<(i64, usize)>,
    /// Group of each possible key; `NONE` if there is none yet.
    slots: Vec<u32>,
}

/// Slots that a direct index may always have.
const ALWAYS_DIRECT_SLOTS: usize = 1 << 18;
/// Slots that fit in the last-level CPU cache.
const CACHED_DIRECT_SLOTS: usize = 1 << 21;
/// Maximum number of slots, however many rows there are.
const DIRECT_SLOTS_MAX: usize = 1 << 26;
/// Maximum number of slots for each input row so far.
const DIRECT_SLOTS_PER_ROW: usize = 8;

impl GroupTable {
    pub(super) fn new(stride: usize) -> Self {
        let mut table = Self {
            stride,
            key_words: Vec::new(),
            groups: 0,
            index: Index::Direct(DirectIndex { ranges: Vec::new(), slots: Vec::new() }),
            bounds: Some(Vec::new()),
            next_direct_check: 0,
        };
        if stride == 0 {
            // Without keys all rows are one group, which exists even if there are no rows.
            table.groups = 1;
        }
        table
    }

    /// Creates a table that is always hashed, with capacity for `groups` groups.
    pub(super) fn with_capacity(stride: usize, groups: usize) -> Self {
        let index = Index::Hash(GroupHashTable::with_capacity(groups));
        Self {
            index,
            next_direct_check: usize::MAX,
            key_words: Vec::with_capacity(groups * stride),
            ..Self::new(stride)
        }
    }

    /// Removes all groups; keeps the memory of a small index.
    pub(super) fn clear(&mut self) {
        self.key_words.clear();
        self.groups = 0;
        self.next_direct_check = 0;
        match &mut self.index {
            Index::Direct(direct) if direct.slots.len() <= ALWAYS_DIRECT_SLOTS => direct.slots.fill(NONE),
            Index::Direct(direct) => *direct = DirectIndex { ranges: Vec::new(), slots: Vec::new() },
            Index::Hash(hash) => hash.clear(),
        }
    }

    /// Returns whether a direct index of all possible keys fits in the CPU cache, so that the table stays fast however
    /// many groups it has. The limit is lower if a key is a string, as strings get more and more numbers; the range of
    /// other words seldom grows.
    pub(super) fn fits_cached_direct_index(&self, has_texts: bool) -> bool {
        let most = if has_texts { ALWAYS_DIRECT_SLOTS } else { CACHED_DIRECT_SLOTS };
        self.bounds.as_ref().and_then(|ends| slot_count(&range_sizes(ends)?)).is_some_and(|places| places <= most)
    }

    pub(super) fn len(&self) -> usize {
        self.groups
    }

    /// Returns the words of all keys, group by group.
    pub(super) fn key_words(&self) -> &[i64] {
        &self.key_words
    }

    /// Copies the words of the keys of some groups.
    pub(super) fn key_words_of(&self, groups: &[u32]) -> Vec<i64> {
        let words = |group: &u32| self.key_words[*group as usize * self.stride..].iter().take(self.stride);
        groups.iter().flat_map(words).copied().collect()
    }

    /// Returns the number of words of a key.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let index = match &self.index {
            Index::Direct(direct) => direct.slots.capacity() * 4,
            Index::Hash(hash) => hash.memory_bytes(),
        };
        self.key_words.capacity() * 8 + index
    }

    /// Finds the group of each of `rows` rows and adds groups for new keys. `rows_seen` is the number of rows before
    /// these.
    pub(super) fn find_or_insert(&mut self, words: &[KeyWords], rows: usize, rows_seen: usize, groups: &mut Vec<u32>) {
        groups.clear();
        if self.stride == 0 {
            groups.resize(rows, 0);
            return;
        }
        debug_assert_eq!(words.len(), self.stride, "one column of words for each word of a key");
        self.extend_bounds(words);
        let groups_max = self.groups + rows;
        let is_direct = matches!(self.index, Index::Direct(_));
        // The permitted number of slots grows with the rows.
        if (is_direct || self.next_direct_check <= groups_max) && !self.ensure_direct(rows_seen + rows) {
            self.next_direct_check = groups_max * 2;
            if is_direct {
                self.index = Index::Hash(self.build_hash_table());
            }
        }
        match &mut self.index {
            Index::Direct(direct) => direct.find_or_insert(words, rows, groups, &mut self.key_words, &mut self.groups),
            Index::Hash(_) => self.find_or_insert_hashed(words, rows, groups),
        }
    }

    /// Extends the bounds of each word by those of a batch.
    fn extend_bounds(&mut self, words: &[KeyWords]) {
        let Some(ends) = &mut self.bounds else { return };
        let is_first = ends.is_empty();
        for (at, words) in words.iter().enumerate() {
            let bounds = words.bounds.filter(|bounds| bounds.fit_i64());
            let Some((min, max)) = bounds.and_then(|bounds| Some((i64::try_from(bounds.min).ok()?, bounds.max))) else {
                self.bounds = None;
                return;
            };
            if is_first {
                ends.push((min, max));
            } else {
                ends[at] = (ends[at].0.min(min), ends[at].1.max(max));
            }
        }
    }

    /// Ensures a direct index that covers the bounds of all words; returns `false` if it would need too many slots.
    fn ensure_direct(&mut self, rows_seen: usize) -> bool {
        let Some(ends) = &self.bounds else { return false };
        let ranges = if let Index::Direct(direct) = &self.index { direct.ranges.as_slice() } else { &[] };
        let holds = |((least, count), (min, max)): (&(i64, usize), &(i64, i128))| {
            least <= min && max - i128::from(*least) < *count as i128
        };
        if !ranges.is_empty() && ranges.iter().zip(ends).all(holds) {
            return true;
        }
        let most = ALWAYS_DIRECT_SLOTS.max(rows_seen.saturating_mul(DIRECT_SLOTS_PER_ROW)).min(DIRECT_SLOTS_MAX);
        let Some(counts) = range_sizes(ends) else { return false };
        let Some(places) = slot_count(&counts) else { return false };
        if most < places {
            return false;
        }
        // The first word's range gets half as much spare room above, as keys such as dates and serial numbers grow.
        let others = places / counts[0].max(1);
        let spare = (counts[0] / 2).min(most.saturating_sub(places) / others.max(1));
        let mut ranges: Vec<(i64, usize)> = ends.iter().zip(&counts).map(|((min, _), count)| (*min, *count)).collect();
        ranges[0].1 += spare;
        let mut direct = DirectIndex { ranges, slots: vec![NONE; places + spare * others] };
        for (group, key) in self.key_words.chunks_exact(self.stride).enumerate() {
            let place = direct.ranges.iter().zip(key).fold(0, |place, ((min, count), word)| {
                place * count + usize::try_from(word - min).expect("bounds include the words of all groups")
            });
            direct.slots[place] = u32::try_from(group).expect("fewer than 2^32 groups");
        }
        self.index = Index::Direct(direct);
        true
    }

    /// Builds a hash table of all groups.
    fn build_hash_table(&self) -> GroupHashTable {
        let mut hash = GroupHashTable::with_capacity(self.groups);
        if 0 < self.stride {
            for (group, key) in self.key_words.chunks_exact(self.stride).enumerate() {
                hash.insert(hash_key(key), group);
            }
        }
        hash
    }

    fn find_or_insert_hashed(&mut self, words: &[KeyWords], rows: usize, groups: &mut Vec<u32>) {
        let columns: Vec<&[i64]> = words.iter().map(|words| words.values.as_slice()).collect();
        let mut hashes = vec![HASH_SEED; rows];
        for column in &columns {
            hashes.iter_mut().zip(*column).for_each(|(hash, word)| *hash = mix(*hash, *word));
        }
        let Index::Hash(hash) = &mut self.index else { return };
        let (stored, count) = (&mut self.key_words, &mut self.groups);
        match columns.as_slice() {
            [one] => hash.find_or_insert(
                &hashes,
                groups,
                stored,
                count,
                |row, key| key[0] == one[row],
                |row, key| key.push(one[row]),
                1,
            ),
            [one, two] => {
                let is_equal = |row: usize, key: &[i64]| key[0] == one[row] && key[1] == two[row];
                hash.find_or_insert(
                    &hashes,
                    groups,
                    stored,
                    count,
                    is_equal,
                    |row, key| key.extend([one[row], two[row]]),
                    2,
                );
            }
            columns => {
                let is_equal =
                    |row: usize, key: &[i64]| columns.iter().zip(key).all(|(column, word)| column[row] == *word);
                let add = |row: usize, key: &mut Vec<i64>| key.extend(columns.iter().map(|column| column[row]));
                hash.find_or_insert(&hashes, groups, stored, count, is_equal, add, columns.len());
            }
        }
    }
}

impl DirectIndex {
    fn find_or_insert(
        &mut self,
        words: &[KeyWords],
        rows: usize,
        groups: &mut Vec<u32>,
        stored: &mut Vec<i64>,
        count: &mut usize,
    ) {
        let mut places = vec![0_i64; rows];
        // A word with one possible value, like the null word of keys without NULLs, does not change the slot.
        let telling = self.ranges.iter().zip(words).filter(|((_, width), _)| *width != 1);
        let (kernels, mut offset, mut is_first) = (Kernels::get(), 0_i64, true);
        for ((min, width), words) in telling {
            let width = i64::try_from(*width).expect("a direct index has at most DIRECT_MAX slots");
            let values = &words.values[..rows];
            offset = offset.wrapping_mul(width).wrapping_sub(*min);
            if is_first {
                places.copy_from_slice(values);
            } else {
                let before = std::mem::take(&mut places);
                places.resize(rows, 0);
                kernels.linear_combination(&before, width, values, 1, &mut places);
            }
            is_first = false;
        }
        groups.extend(places.into_iter().enumerate().map(|(row, place)| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "words lie within their bounds"
            )]
            let place = place.wrapping_add(offset) as usize;
            let group = &mut self.slots[place];
            if *group == NONE {
                *group = u32::try_from(*count).expect("fewer than 2^32 groups");
                *count += 1;
                stored.extend(words.iter().map(|words| words.values[row]));
            }
            *group
        }));
    }
}

/// Returns the number of possible values of each word; `None` if one does not fit a `usize`.
fn range_sizes(ends: &[(i64, i128)]) -> Option<Vec<usize>> {
    ends.iter().map(|(min, max)| usize::try_from(max - i128::from(*min) + 1).ok()).collect()
}

/// Returns the number of possible keys, given the number of values of each word; `None` on overflow.
fn slot_count(counts: &[usize]) -> Option<usize> {
    counts.iter().try_fold(1_usize, |all, count| all.checked_mul(*count))
}

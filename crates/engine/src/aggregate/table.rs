//! From words to groups: directly where there are few possible words, by a hash table elsewhere.

use super::keys::Words;
use crate::NONE;

/// The groups there are, each with the words of its key.
#[derive(Debug)]
pub(super) struct Table {
    /// Words of a key.
    stride: usize,
    /// The words of each group, one group after the other.
    words: Vec<i64>,
    groups: usize,
    index: Index,
}

#[derive(Debug)]
enum Index {
    Direct(Direct),
    Hash(Hash),
}

/// A place for each key that there can be, while these are few.
#[derive(Debug)]
struct Direct {
    /// Of each word the least, and how many there are from it on.
    ranges: Vec<(i64, usize)>,
    /// The group of each key, `NONE` where there is none yet.
    places: Vec<u32>,
}

/// Open addressing: a group and 32 bits of its hash in each place.
#[derive(Debug)]
struct Hash {
    places: Vec<u64>,
    mask: usize,
}

const EMPTY: u64 = u64::MAX;
/// Places that are always few.
const DIRECT_MIN: usize = 1 << 18;
/// Places that are too many whatever the rows.
const DIRECT_MAX: usize = 1 << 26;
/// Places for each row that was seen, at most.
const DIRECT_SPREAD: usize = 8;
/// Steps from a probe to the memory that it will need.
const AHEAD: usize = 8;

impl Table {
    pub(super) fn new(stride: usize) -> Self {
        let mut table = Self {
            stride,
            words: Vec::new(),
            groups: 0,
            index: Index::Direct(Direct { ranges: Vec::new(), places: Vec::new() }),
        };
        if stride == 0 {
            // All rows are one group, which is there without any.
            table.groups = 1;
        }
        table
    }

    pub(super) fn len(&self) -> usize {
        self.groups
    }

    pub(super) fn words(&self) -> &[i64] {
        &self.words
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let index = match &self.index {
            Index::Direct(direct) => direct.places.capacity() * 4,
            Index::Hash(hash) => hash.places.capacity() * 8,
        };
        self.words.capacity() * 8 + index
    }

    /// The group of each of `rows` rows, made where there is none. `rows_seen` is how many rows there were before.
    pub(super) fn groups_of(&mut self, words: &[Words], rows: usize, rows_seen: usize, groups: &mut Vec<u32>) {
        groups.clear();
        if self.stride == 0 {
            groups.resize(rows, 0);
            return;
        }
        debug_assert_eq!(words.len(), self.stride, "a word of each row for each of a key");
        if matches!(self.index, Index::Direct(_)) && !self.widen(words, rows_seen + rows) {
            self.index = Index::Hash(self.hashed());
        }
        match &mut self.index {
            Index::Direct(direct) => direct.find(words, rows, groups, &mut self.words, &mut self.groups),
            Index::Hash(_) => self.find_hashed(words, rows, groups),
        }
    }

    /// Makes the direct places hold these words too; `false` where they would be too many.
    fn widen(&mut self, words: &[Words], rows_seen: usize) -> bool {
        let Index::Direct(direct) = &mut self.index else { return false };
        let wanted: Option<Vec<(i64, i64)>> = words
            .iter()
            .map(|words| {
                let bounds = words.bounds.filter(|bounds| bounds.are_narrow())?;
                Some((i64::try_from(bounds.min).ok()?, i64::try_from(bounds.max).ok()?))
            })
            .collect();
        let Some(wanted) = wanted else { return false };
        let holds = |(range, wanted): (&(i64, usize), &(i64, i64))| {
            range.0 <= wanted.0 && i128::from(wanted.1) - i128::from(range.0) < range.1 as i128
        };
        if !direct.ranges.is_empty() && direct.ranges.iter().zip(&wanted).all(holds) {
            return true;
        }
        let ends = |(at, (min, max)): (usize, &(i64, i64))| match direct.ranges.get(at) {
            Some((least, count)) => {
                let greatest = i128::from(*least) + *count as i128 - 1;
                ((*least).min(*min), greatest.max(i128::from(*max)))
            }
            None => (*min, i128::from(*max)),
        };
        let ends: Vec<(i64, i128)> = wanted.iter().enumerate().map(ends).collect();
        let most = DIRECT_MIN.max(rows_seen.saturating_mul(DIRECT_SPREAD)).min(DIRECT_MAX);
        let counts = ends.iter().map(|(min, max)| usize::try_from(max - i128::from(*min) + 1).ok());
        let Some(counts) = counts.collect::<Option<Vec<usize>>>() else { return false };
        let Some(places) = counts.iter().try_fold(1_usize, |all, count| all.checked_mul(*count)) else { return false };
        if most < places {
            return false;
        }
        // The first word's range grows upwards, as tables do, and by half, so that it seldom grows.
        let others = places / counts[0].max(1);
        let spare = (counts[0] / 2).min(most.saturating_sub(places) / others.max(1));
        direct.ranges = ends.iter().zip(&counts).map(|((min, _), count)| (*min, *count)).collect();
        direct.ranges[0].1 += spare;
        direct.places.clear();
        direct.places.resize(places + spare * others, NONE);
        for (group, key) in self.words.chunks_exact(self.stride).enumerate() {
            let place = direct.ranges.iter().zip(key).fold(0, |place, ((min, count), word)| {
                place * count + usize::try_from(word - min).expect("ranges only grow")
            });
            direct.places[place] = u32::try_from(group).expect("fewer than 2^32 groups");
        }
        true
    }

    /// A hash table of the groups there are.
    fn hashed(&self) -> Hash {
        let mut hash = Hash::with_room(self.groups.max(512) * 4);
        if 0 < self.stride {
            for (group, key) in self.words.chunks_exact(self.stride).enumerate() {
                hash.put(hash_of(key), group);
            }
        }
        hash
    }

    fn find_hashed(&mut self, words: &[Words], rows: usize, groups: &mut Vec<u32>) {
        let columns: Vec<&[i64]> = words.iter().map(|words| words.values.as_slice()).collect();
        let mut hashes = vec![SEED; rows];
        for column in &columns {
            hashes.iter_mut().zip(*column).for_each(|(hash, word)| *hash = mixed(*hash, *word));
        }
        // Room for all rows to be groups of their own, so that places do not move while rows are looked up.
        let Index::Hash(hash) = &self.index else { return };
        if hash.places.len() < (self.groups + rows) * 2 {
            let mut larger = Hash::with_room((self.groups + rows) * 4);
            for (group, key) in self.words.chunks_exact(self.stride).enumerate() {
                larger.put(hash_of(key), group);
            }
            self.index = Index::Hash(larger);
        }
        let Index::Hash(hash) = &mut self.index else { return };
        let (stored, count) = (&mut self.words, &mut self.groups);
        match columns.as_slice() {
            [one] => hash.find(
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
                hash.find(&hashes, groups, stored, count, is_equal, |row, key| key.extend([one[row], two[row]]), 2);
            }
            columns => {
                let is_equal =
                    |row: usize, key: &[i64]| columns.iter().zip(key).all(|(column, word)| column[row] == *word);
                let add = |row: usize, key: &mut Vec<i64>| key.extend(columns.iter().map(|column| column[row]));
                hash.find(&hashes, groups, stored, count, is_equal, add, columns.len());
            }
        }
    }
}

impl Direct {
    fn find(&mut self, words: &[Words], rows: usize, groups: &mut Vec<u32>, stored: &mut Vec<i64>, count: &mut usize) {
        let mut places = vec![0_usize; rows];
        // What can only be one word, as where nothing is NULL, tells nothing.
        let telling = self.ranges.iter().zip(words).filter(|((_, width), _)| *width != 1);
        for ((min, width), words) in telling {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "words lie within their bounds"
            )]
            let offset = |word: i64| word.wrapping_sub(*min) as usize;
            places
                .iter_mut()
                .zip(words.values.iter())
                .for_each(|(place, word)| *place = *place * width + offset(*word));
        }
        groups.reserve(rows);
        for (row, place) in places.into_iter().enumerate() {
            let group = &mut self.places[place];
            if *group == NONE {
                *group = u32::try_from(*count).expect("fewer than 2^32 groups");
                *count += 1;
                stored.extend(words.iter().map(|words| words.values[row]));
            }
            groups.push(*group);
        }
    }
}

impl Hash {
    /// With room for at least so many places.
    fn with_room(places: usize) -> Self {
        let places = places.next_power_of_two();
        Self { places: vec![EMPTY; places], mask: places - 1 }
    }

    /// Adds a group whose key is not there.
    fn put(&mut self, hash: u64, group: usize) {
        let mut at = place_of(hash) & self.mask;
        while self.places[at] != EMPTY {
            at = (at + 1) & self.mask;
        }
        self.places[at] = entry(hash, group);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a table that are borrowed apart")]
    fn find(
        &mut self,
        hashes: &[u64],
        groups: &mut Vec<u32>,
        stored: &mut Vec<i64>,
        count: &mut usize,
        is_equal: impl Fn(usize, &[i64]) -> bool,
        add: impl Fn(usize, &mut Vec<i64>),
        stride: usize,
    ) {
        groups.reserve(hashes.len());
        // Touched ahead of need: the memory of several rows comes at once.
        let mut touched = 0;
        for (row, hash) in hashes.iter().enumerate() {
            if let Some(ahead) = hashes.get(row + AHEAD) {
                touched ^= self.places[place_of(*ahead) & self.mask];
            }
            let mut at = place_of(*hash) & self.mask;
            let group = loop {
                let found = self.places[at];
                if found == EMPTY {
                    let group = *count;
                    self.places[at] = entry(*hash, group);
                    add(row, stored);
                    *count += 1;
                    break group;
                }
                let group = (found & u64::from(u32::MAX)) as usize;
                if found >> 32 == *hash >> 32 && is_equal(row, &stored[group * stride..(group + 1) * stride]) {
                    break group;
                }
                at = (at + 1) & self.mask;
            };
            groups.push(u32::try_from(group).expect("fewer than 2^32 groups"));
        }
        std::hint::black_box(touched);
    }
}

/// The tag in the upper half, the group in the lower.
fn entry(hash: u64, group: usize) -> u64 {
    hash >> 32 << 32 | group as u64
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash with one more word. A product's upper and lower halves both depend on all bits.
#[inline]
fn mixed(hash: u64, word: i64) -> u64 {
    let product = u128::from(hash ^ word.cast_unsigned()) * u128::from(0xa076_1d64_78bd_642f_u64);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

fn hash_of(key: &[i64]) -> u64 {
    key.iter().fold(SEED, |hash, word| mixed(hash, *word))
}

#[expect(clippy::cast_possible_truncation, reason = "the lower bits choose the place, the upper are the tag")]
fn place_of(hash: u64) -> usize {
    hash as usize
}

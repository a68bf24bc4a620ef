//! Segmented hash table from keys to groups: a full segment grows alone, the entries of the others stay in place.

/// Hash table with open addressing and linear probing. A slot has a group number and the upper 32 bits of its hash: the
/// upper of these choose the segment, the lower the slot, so that segments grow without access to the keys.
#[derive(Debug)]
pub(super) struct GroupHashTable {
    /// Segments: one while the table is small, else [`SEGMENTS`].
    segments: Vec<Segment>,
    /// Right shift of a hash, after a first shift by one, that yields its segment.
    shift: u32,
}

#[derive(Debug)]
struct Segment {
    /// Slots: a power of two, at most half of them used.
    slots: Vec<u64>,
    used: usize,
}

const EMPTY_SLOT: u64 = u64::MAX;
/// Number of segments of a table that is not small.
const SEGMENTS: usize = 64;
/// Maximum number of slots of a small table, which fits in the CPU cache.
const SMALL_SLOTS: usize = 1 << 16;
/// Minimum number of slots of a segment.
const SEGMENT_SLOTS_MIN: usize = 1 << 10;
/// Prefetch distance: rows from a probe to the later one whose slot it loads.
const PREFETCH_DISTANCE: usize = 8;

impl GroupHashTable {
    /// Creates a table with capacity for `groups` groups.
    pub(super) fn with_capacity(groups: usize) -> Self {
        let places = (groups * 2).next_power_of_two().max(SEGMENT_SLOTS_MIN);
        if places <= SMALL_SLOTS {
            return Self { segments: vec![Segment::new(places)], shift: 63 };
        }
        // A quarter more than the average, as segments fill unevenly.
        let places = (groups / SEGMENTS * 5 / 2).next_power_of_two().max(SEGMENT_SLOTS_MIN);
        Self {
            segments: std::iter::repeat_with(|| Segment::new(places)).take(SEGMENTS).collect(),
            shift: 63 - SEGMENTS.trailing_zeros(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.segments.iter().map(|piece| piece.slots.capacity() * 8).sum()
    }

    /// Removes all groups; keeps the memory of a small table.
    pub(super) fn clear(&mut self) {
        match self.segments.as_mut_slice() {
            [one] => {
                one.slots.fill(EMPTY_SLOT);
                one.used = 0;
            }
            _ => *self = Self::with_capacity(SMALL_SLOTS / 2),
        }
    }

    /// Adds a group whose key is not in the table.
    pub(super) fn insert(&mut self, hash: u64, group: usize) {
        let piece = self.segment_of(hash);
        if self.segments[piece].is_full() {
            self.grow(piece);
        }
        let piece = self.segment_of(hash);
        self.segments[piece].insert(pack_entry(hash, group));
    }

    /// Finds the group of each row by its hash. A row whose key is not in `stored` starts a new group: `count` is
    /// incremented and `add` stores its words.
    #[expect(clippy::too_many_arguments, reason = "the parts of a table that are borrowed apart")]
    pub(super) fn find_or_insert(
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
        // Loads slots ahead of their probes, so that the cache misses of several rows overlap.
        let mut touched = 0;
        for (row, hash) in hashes.iter().enumerate() {
            if let Some(ahead) = hashes.get(row + PREFETCH_DISTANCE) {
                let piece = &self.segments[self.segment_of(*ahead)];
                touched ^= piece.slots[piece.slot_of(*ahead)];
            }
            let number = self.segment_of(*hash);
            let piece = &mut self.segments[number];
            let mut at = piece.slot_of(*hash);
            let group = loop {
                let found = piece.slots[at];
                if found == EMPTY_SLOT {
                    let group = *count;
                    if piece.is_full() {
                        self.insert(*hash, group);
                    } else {
                        piece.slots[at] = pack_entry(*hash, group);
                        piece.used += 1;
                    }
                    add(row, stored);
                    *count += 1;
                    break group;
                }
                let group = (found & u64::from(u32::MAX)) as usize;
                if found >> 32 == *hash >> 32 && is_equal(row, &stored[group * stride..(group + 1) * stride]) {
                    break group;
                }
                at = (at + 1) & (piece.slots.len() - 1);
            };
            groups.push(u32::try_from(group).expect("fewer than 2^32 groups"));
        }
        std::hint::black_box(touched);
    }

    #[inline]
    fn segment_of(&self, hash: u64) -> usize {
        (hash >> 1 >> self.shift) as usize
    }

    /// Grows a full segment; the only segment of a small table at its maximum is split into [`SEGMENTS`].
    #[cold]
    fn grow(&mut self, piece: usize) {
        if self.segments.len() == 1 && SMALL_SLOTS <= self.segments[0].slots.len() {
            let small = std::mem::replace(self, Self::with_capacity(SMALL_SLOTS / 2 + 1));
            for place in small.segments[0].slots.iter().filter(|place| **place != EMPTY_SLOT) {
                let piece = self.segment_of(*place);
                self.segments[piece].insert(*place);
            }
        } else {
            self.segments[piece].grow();
        }
    }
}

impl Segment {
    fn new(places: usize) -> Self {
        Self { slots: vec![EMPTY_SLOT; places], used: 0 }
    }

    fn is_full(&self) -> bool {
        self.slots.len() <= self.used * 2
    }

    /// Returns the first slot to probe for a hash or for an entry, which has the upper bits of its hash.
    #[inline]
    fn slot_of(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    fn insert(&mut self, entry: u64) {
        let mut at = self.slot_of(entry);
        while self.slots[at] != EMPTY_SLOT {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = entry;
        self.used += 1;
    }

    fn grow(&mut self) {
        let before = std::mem::replace(self, Self::new(self.slots.len() * 2));
        before.slots.into_iter().filter(|place| *place != EMPTY_SLOT).for_each(|place| self.insert(place));
    }
}

/// Packs a slot: upper half of the hash above, group number below.
fn pack_entry(hash: u64, group: usize) -> u64 {
    hash >> 32 << 32 | group as u64
}

pub(super) const HASH_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes one more word into a hash: the product's upper half xor its lower half, which together depend on all bits.
#[inline]
pub(super) fn mix(hash: u64, word: i64) -> u64 {
    let product = u128::from(hash ^ word.cast_unsigned()) * u128::from(0xa076_1d64_78bd_642f_u64);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

pub(super) fn hash_key(key: &[i64]) -> u64 {
    key.iter().fold(HASH_SEED, |hash, word| mix(hash, *word))
}

//! Segmented hash table from keys to groups: a full segment grows alone, the entries of the others stay in place.

/// Hash table with open addressing and linear probing. A slot has a group number and the upper 32 bits of its hash: the
/// upper of these choose the segment, the lower the slot, so that segments grow without access to the keys.
#[derive(Debug)]
pub(super) struct Hash {
    /// Segments: one while the table is small, else [`PIECES`].
    pieces: Vec<Piece>,
    /// Right shift of a hash, after a first shift by one, that yields its segment.
    shift: u32,
}

#[derive(Debug)]
struct Piece {
    /// Slots: a power of two, at most half of them used.
    places: Vec<u64>,
    used: usize,
}

const EMPTY: u64 = u64::MAX;
/// Number of segments of a table that is not small.
const PIECES: usize = 64;
/// Maximum number of slots of a small table, which fits in the CPU cache.
const SMALL_PLACES: usize = 1 << 16;
/// Minimum number of slots of a segment.
const PLACES_MIN: usize = 1 << 10;
/// Prefetch distance: rows from a probe to the later one whose slot it loads.
const AHEAD: usize = 8;

impl Hash {
    /// Creates a table with capacity for `groups` groups.
    pub(super) fn with_room(groups: usize) -> Self {
        let places = (groups * 2).next_power_of_two().max(PLACES_MIN);
        if places <= SMALL_PLACES {
            return Self { pieces: vec![Piece::new(places)], shift: 63 };
        }
        // A quarter more than the average, as segments fill unevenly.
        let places = (groups / PIECES * 5 / 2).next_power_of_two().max(PLACES_MIN);
        Self {
            pieces: std::iter::repeat_with(|| Piece::new(places)).take(PIECES).collect(),
            shift: 63 - PIECES.trailing_zeros(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.places.capacity() * 8).sum()
    }

    /// Removes all groups; keeps the memory of a small table.
    pub(super) fn clear(&mut self) {
        match self.pieces.as_mut_slice() {
            [one] => {
                one.places.fill(EMPTY);
                one.used = 0;
            }
            _ => *self = Self::with_room(SMALL_PLACES / 2),
        }
    }

    /// Adds a group whose key is not in the table.
    pub(super) fn put(&mut self, hash: u64, group: usize) {
        let piece = self.piece_of(hash);
        if self.pieces[piece].is_full() {
            self.grow(piece);
        }
        let piece = self.piece_of(hash);
        self.pieces[piece].put(entry(hash, group));
    }

    /// Finds the group of each row by its hash. A row whose key is not in `stored` starts a new group: `count` is
    /// incremented and `add` stores its words.
    #[expect(clippy::too_many_arguments, reason = "the parts of a table that are borrowed apart")]
    pub(super) fn find(
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
            if let Some(ahead) = hashes.get(row + AHEAD) {
                let piece = &self.pieces[self.piece_of(*ahead)];
                touched ^= piece.places[piece.place_of(*ahead)];
            }
            let number = self.piece_of(*hash);
            let piece = &mut self.pieces[number];
            let mut at = piece.place_of(*hash);
            let group = loop {
                let found = piece.places[at];
                if found == EMPTY {
                    let group = *count;
                    if piece.is_full() {
                        self.put(*hash, group);
                    } else {
                        piece.places[at] = entry(*hash, group);
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
                at = (at + 1) & (piece.places.len() - 1);
            };
            groups.push(u32::try_from(group).expect("fewer than 2^32 groups"));
        }
        std::hint::black_box(touched);
    }

    #[inline]
    fn piece_of(&self, hash: u64) -> usize {
        (hash >> 1 >> self.shift) as usize
    }

    /// Grows a full segment; the only segment of a small table at its maximum is split into [`PIECES`].
    #[cold]
    fn grow(&mut self, piece: usize) {
        if self.pieces.len() == 1 && SMALL_PLACES <= self.pieces[0].places.len() {
            let small = std::mem::replace(self, Self::with_room(SMALL_PLACES / 2 + 1));
            for place in small.pieces[0].places.iter().filter(|place| **place != EMPTY) {
                let piece = self.piece_of(*place);
                self.pieces[piece].put(*place);
            }
        } else {
            self.pieces[piece].grow();
        }
    }
}

impl Piece {
    fn new(places: usize) -> Self {
        Self { places: vec![EMPTY; places], used: 0 }
    }

    fn is_full(&self) -> bool {
        self.places.len() <= self.used * 2
    }

    /// Returns the first slot to probe for a hash or for an entry, which has the upper bits of its hash.
    #[inline]
    fn place_of(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.places.len() - 1)
    }

    fn put(&mut self, entry: u64) {
        let mut at = self.place_of(entry);
        while self.places[at] != EMPTY {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = entry;
        self.used += 1;
    }

    fn grow(&mut self) {
        let before = std::mem::replace(self, Self::new(self.places.len() * 2));
        before.places.into_iter().filter(|place| *place != EMPTY).for_each(|place| self.put(place));
    }
}

/// Packs a slot: upper half of the hash above, group number below.
fn entry(hash: u64, group: usize) -> u64 {
    hash >> 32 << 32 | group as u64
}

pub(super) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes one more word into a hash: the product's upper half xor its lower half, which together depend on all bits.
#[inline]
pub(super) fn mixed(hash: u64, word: i64) -> u64 {
    let product = u128::from(hash ^ word.cast_unsigned()) * u128::from(0xa076_1d64_78bd_642f_u64);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

pub(super) fn hash_of(key: &[i64]) -> u64 {
    key.iter().fold(SEED, |hash, word| mixed(hash, *word))
}

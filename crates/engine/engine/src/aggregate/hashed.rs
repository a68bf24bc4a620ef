//! A hash table from keys to groups that grows in pieces: where one is full its places move, those of the others stay.

/// Open addressing: a group and 32 bits of its hash in each place. The upper of these bits choose the piece, the lower the place, so that
/// places move without a look at keys.
#[derive(Debug)]
pub(super) struct Hash {
    /// One while they are few, else [`PIECES`].
    pieces: Vec<Piece>,
    /// How far a hash is shifted, once and so often again, to say its piece.
    shift: u32,
}

#[derive(Debug)]
struct Piece {
    /// As many as a power of two, at most half of them used.
    places: Vec<u64>,
    used: usize,
}

const EMPTY: u64 = u64::MAX;
/// Pieces of a table that is not small.
const PIECES: usize = 64;
/// Places of a table that is small: they stay in a cache.
const SMALL_PLACES: usize = 1 << 16;
/// Places of a piece, at least.
const PLACES_MIN: usize = 1 << 10;
/// Steps from a probe to the memory that it will need.
const AHEAD: usize = 8;

impl Hash {
    /// With room for so many groups.
    pub(super) fn with_room(groups: usize) -> Self {
        let places = (groups * 2).next_power_of_two().max(PLACES_MIN);
        if places <= SMALL_PLACES {
            return Self { pieces: vec![Piece::new(places)], shift: 63 };
        }
        // Some pieces have more groups than others.
        let places = (groups / PIECES * 5 / 2).next_power_of_two().max(PLACES_MIN);
        Self {
            pieces: std::iter::repeat_with(|| Piece::new(places)).take(PIECES).collect(),
            shift: 63 - PIECES.trailing_zeros(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.places.capacity() * 8).sum()
    }

    /// Forgets all groups; keeps the memory of few.
    pub(super) fn clear(&mut self) {
        match self.pieces.as_mut_slice() {
            [one] => {
                one.places.fill(EMPTY);
                one.used = 0;
            }
            _ => *self = Self::with_room(SMALL_PLACES / 2),
        }
    }

    /// Adds a group whose key is not there.
    pub(super) fn put(&mut self, hash: u64, group: usize) {
        let piece = self.piece_of(hash);
        if self.pieces[piece].is_full() {
            self.grow(piece);
        }
        let piece = self.piece_of(hash);
        self.pieces[piece].put(entry(hash, group));
    }

    /// The group of each row by its hash; a new one, counted in `count` and its words stored by `add`, where no stored words are equal.
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
        // Touched ahead of need: the memory of several rows comes at once.
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

    /// Makes room in a full piece; of the one piece of a small table makes all.
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

    /// Where a hash, or a place that has its upper bits, is looked for first.
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

/// The tag in the upper half, the group in the lower.
fn entry(hash: u64, group: usize) -> u64 {
    hash >> 32 << 32 | group as u64
}

pub(super) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash with one more word. A product's upper and lower halves both depend on all bits.
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

//! The head of a block: what can be known of it without its body. `docs/blocks.md` draws the bytes.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::{BLOCK_ROWS, Error, Kind, Result, VECTOR_ROWS};

/// The version written, and the only one read: blocks are a cache, another version is made again.
pub(crate) const VERSION: u16 = 1;
pub(crate) const MAGIC: [u8; 4] = *b"KBLK";
/// Every section begins at a multiple of this.
pub(crate) const ALIGNMENT: usize = 64;
const FIXED_BYTES: usize = 128;
const ENTRY_BYTES: usize = 32;

/// How the values of a block lie in its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// One value in every row, or NULL in every row: no body.
    Constant,
    /// Offsets from each vector's base in as few bits as the block needs, and patches.
    Packed,
    /// Runs: where each ends, and a block of their values.
    Runs,
    /// Keys in 64 bits, with a bitmap: what spans all 64 bits and has NULLs too.
    Plain,
    /// 128-bit integers that span more than 63 bits.
    PlainWide,
    /// Strings one behind the other, with packed ends.
    Heap,
    /// The same, compressed by a symbol table (FSST).
    CompressedHeap,
}

impl Scheme {
    const ALL: [Self; 7] =
        [Self::Constant, Self::Packed, Self::Runs, Self::Plain, Self::PlainWide, Self::Heap, Self::CompressedHeap];
}

/// What a block says of one of its vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// What packed offsets are added to; of strings, where the vector's heap begins.
    pub base: i64,
    /// The least key, or a lower bound where `Head::has_exact_zones` is false. 0 where every row is NULL.
    pub min: i64,
    /// The greatest key, or an upper bound.
    pub max: i64,
    /// Rows that are NULL.
    pub nulls: u16,
    /// Rows whose value did not fit the width.
    pub patches: u16,
    /// The first of them among the block's.
    pub first_patch: u32,
}

impl Entry {
    /// The vector's patches among the block's.
    pub(crate) fn patches(&self) -> std::ops::Range<usize> {
        let first = self.first_patch as usize;
        first..first + usize::from(self.patches)
    }
}

/// The head of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What the values are.
    pub kind: Kind,
    /// How they lie.
    pub scheme: Scheme,
    /// Rows, NULL or not.
    pub rows: usize,
    /// Rows that are NULL.
    pub nulls: usize,
    /// Whether packed offset 0 is NULL, in every vector.
    pub null_is_zero: bool,
    /// Whether a bitmap says which rows are NULL.
    pub has_bitmap: bool,
    /// Bits of a lane that holds any decoded offset: 8, 16, 32 or 64.
    pub lane: u8,
    /// Bits of a packed offset.
    pub width: u8,
    /// Powers of ten by which floating-point numbers were made whole.
    pub decimal: Option<(u8, u8)>,
    /// Patches, runs or symbols.
    pub parts: usize,
    /// The least value: an integer, a float's key, the first 16 bytes of a string.
    pub min: i128,
    /// The greatest value.
    pub max: i128,
    /// What is added to every key: the least value of 128-bit integers.
    pub offset: i128,
    /// Bytes of the whole block.
    pub length: usize,
    /// One for each vector.
    pub entries: Vec<Entry>,
}

impl Head {
    /// Bytes of the head of a block of so many rows.
    pub fn bytes(rows: usize) -> usize {
        aligned(FIXED_BYTES + rows.div_ceil(VECTOR_ROWS) * ENTRY_BYTES)
    }

    /// How many vectors the block has.
    pub fn vectors(&self) -> usize {
        self.rows.div_ceil(VECTOR_ROWS)
    }

    /// How many rows a vector has.
    pub fn rows_in(&self, vector: usize) -> usize {
        (self.rows - vector * VECTOR_ROWS).min(VECTOR_ROWS)
    }

    /// Whether minima and maxima are values of the block rather than bounds.
    pub fn has_exact_zones(&self) -> bool {
        !matches!(self.scheme, Scheme::PlainWide | Scheme::Heap | Scheme::CompressedHeap)
    }

    /// Reads a head from the beginning of a block; the body need not be there.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Self::read_checked(bytes)?.0)
    }

    /// The head, and the checksum that the body must have.
    pub(crate) fn read_checked(bytes: &[u8]) -> Result<(Self, u64)> {
        let fixed: &[u8; FIXED_BYTES] = bytes.first_chunk().ok_or(Error::Damaged("shorter than a head"))?;
        if fixed[..4] != MAGIC {
            return Err(Error::Damaged("no block"));
        }
        let version = u16::from_le_bytes(array(fixed, 4));
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let rows = u32::from_le_bytes(array(fixed, 32)) as usize;
        if BLOCK_ROWS < rows {
            return Err(Error::Damaged("more rows than a block holds"));
        }
        let whole = bytes.get(..Self::bytes(rows)).ok_or(Error::Damaged("shorter than its head"))?;
        if u64::from_le_bytes(array(fixed, 8)) != head_checksum(whole) {
            return Err(Error::Damaged("the head's checksum"));
        }
        let flags = fixed[42];
        let head = Self {
            kind: Kind::from_tag(fixed[6]).ok_or(Error::Damaged("its kind"))?,
            scheme: *Scheme::ALL.get(usize::from(fixed[7])).ok_or(Error::Damaged("its scheme"))?,
            rows,
            nulls: u32::from_le_bytes(array(fixed, 36)) as usize,
            null_is_zero: flags & 1 != 0,
            has_bitmap: flags & 2 != 0,
            lane: fixed[40],
            width: fixed[41],
            decimal: (flags & 4 != 0).then_some((fixed[48], fixed[49])),
            parts: u32::from_le_bytes(array(fixed, 44)) as usize,
            min: i128::from_le_bytes(array(fixed, 64)),
            max: i128::from_le_bytes(array(fixed, 80)),
            offset: i128::from_le_bytes(array(fixed, 96)),
            length: usize::try_from(u64::from_le_bytes(array(fixed, 24))).map_err(|_| Error::Damaged("its length"))?,
            entries: whole[FIXED_BYTES..]
                .as_chunks()
                .0
                .iter()
                .take(rows.div_ceil(VECTOR_ROWS))
                .map(read_entry)
                .collect(),
        };
        head.check()?;
        Ok((head, u64::from_le_bytes(array(fixed, 16))))
    }

    /// What the rest of the crate relies on.
    fn check(&self) -> Result<()> {
        if self.rows < self.nulls {
            return Err(Error::Damaged("more NULLs than rows"));
        }
        if ![8, 16, 32, 64].contains(&self.lane) || self.lane < self.width {
            return Err(Error::Damaged("its lane or width"));
        }
        if self.decimal.is_some_and(|(up, down)| 18 < up || 18 < down) {
            return Err(Error::Damaged("its power of ten"));
        }
        if self.decimal.is_some() && !(self.kind.is_float() && self.scheme == Scheme::Packed) {
            return Err(Error::Damaged("decimals that are no floats"));
        }
        if self.scheme == Scheme::PlainWide && self.kind != Kind::Int128 {
            return Err(Error::Damaged("128 bits of another kind"));
        }
        let is_heap = matches!(self.scheme, Scheme::Heap | Scheme::CompressedHeap);
        if is_heap != (self.kind == Kind::Text) {
            return Err(Error::Damaged("strings that are none"));
        }
        if BLOCK_ROWS < self.parts {
            return Err(Error::Damaged("more parts than rows"));
        }
        Ok(())
    }

    /// Writes the head before a body that begins at `Head::bytes`.
    pub(crate) fn write(&self, block: &mut [u8]) {
        let (head, body) = block.split_at_mut(Self::bytes(self.rows));
        head[..4].copy_from_slice(&MAGIC);
        head[4..6].copy_from_slice(&VERSION.to_le_bytes());
        head[6] = self.kind.tag();
        head[7] = self.scheme as u8;
        head[16..24].copy_from_slice(&xxh3_64(body).to_le_bytes());
        head[24..32].copy_from_slice(&(self.length as u64).to_le_bytes());
        head[32..36].copy_from_slice(&(self.rows as u32).to_le_bytes());
        head[36..40].copy_from_slice(&(self.nulls as u32).to_le_bytes());
        head[40] = self.lane;
        head[41] = self.width;
        head[42] = u8::from(self.null_is_zero) | u8::from(self.has_bitmap) << 1 | u8::from(self.decimal.is_some()) << 2;
        head[44..48].copy_from_slice(&(self.parts as u32).to_le_bytes());
        let (up, down) = self.decimal.unwrap_or_default();
        head[48] = up;
        head[49] = down;
        head[64..80].copy_from_slice(&self.min.to_le_bytes());
        head[80..96].copy_from_slice(&self.max.to_le_bytes());
        head[96..112].copy_from_slice(&self.offset.to_le_bytes());
        for (bytes, entry) in head[FIXED_BYTES..].as_chunks_mut().0.iter_mut().zip(&self.entries) {
            write_entry(entry, bytes);
        }
        let checksum = head_checksum(head);
        head[8..16].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Over all of the head but the checksum itself.
fn head_checksum(head: &[u8]) -> u64 {
    xxh3_64_with_seed(&head[16..], u64::from_le_bytes(array(head, 0)))
}

fn read_entry(bytes: &[u8; ENTRY_BYTES]) -> Entry {
    Entry {
        base: i64::from_le_bytes(array(bytes, 0)),
        min: i64::from_le_bytes(array(bytes, 8)),
        max: i64::from_le_bytes(array(bytes, 16)),
        nulls: u16::from_le_bytes(array(bytes, 24)),
        patches: u16::from_le_bytes(array(bytes, 26)),
        first_patch: u32::from_le_bytes(array(bytes, 28)),
    }
}

fn write_entry(entry: &Entry, bytes: &mut [u8; ENTRY_BYTES]) {
    bytes[..8].copy_from_slice(&entry.base.to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.min.to_le_bytes());
    bytes[16..24].copy_from_slice(&entry.max.to_le_bytes());
    bytes[24..26].copy_from_slice(&entry.nulls.to_le_bytes());
    bytes[26..28].copy_from_slice(&entry.patches.to_le_bytes());
    bytes[28..].copy_from_slice(&entry.first_patch.to_le_bytes());
}

/// The bits of the narrowest lane that holds so many bits.
pub(crate) fn lane_of(width: u8) -> u8 {
    width.next_power_of_two().max(8)
}

/// The array at a place that is known to be there.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("within the bytes")
}

/// The next place where a section may begin.
pub(crate) fn aligned(at: usize) -> usize {
    at.next_multiple_of(ALIGNMENT)
}

/// Makes the checksums of damaged bytes again, and the length where asked: those of a block within as well.
#[cfg(test)]
pub(crate) fn reseal(block: &mut [u8], fix_length: bool) {
    let Some(fixed) = block.first_chunk::<FIXED_BYTES>() else { return };
    let rows = (u32::from_le_bytes(array(fixed, 32)) as usize).min(BLOCK_ROWS);
    let (is_runs, runs) = (fixed[7] == Scheme::Runs as u8, u32::from_le_bytes(array(fixed, 44)) as usize);
    let length = block.len();
    let start = Head::bytes(rows);
    let Some((head, body)) = block.split_at_mut_checked(start) else { return };
    if is_runs && let Some(values) = body.get_mut(aligned(runs.min(BLOCK_ROWS) * 2)..) {
        reseal(values, fix_length);
    }
    head[16..24].copy_from_slice(&xxh3_64(body).to_le_bytes());
    if fix_length {
        head[24..32].copy_from_slice(&(length as u64).to_le_bytes());
    }
    let checksum = head_checksum(head);
    head[8..16].copy_from_slice(&checksum.to_le_bytes());
}

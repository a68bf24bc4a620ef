//! Block headers, which can be read without the body. `docs/blocks.md` specifies the bytes.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::{BLOCK_ROWS, Error, Result, VECTOR_ROWS, ValueKind};

/// Format version, the only one that is read or written: blocks are cached data and are encoded again for a new
/// version.
pub(crate) const VERSION: u16 = 1;
pub(crate) const MAGIC: [u8; 4] = *b"KBLK";
/// Alignment of sections, in bytes.
pub(crate) const ALIGNMENT: usize = 64;
const FIXED_HEADER_BYTES: usize = 128;
const VECTOR_HEADER_BYTES: usize = 32;

/// Encoding of a block's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The same value, or NULL, in every row; there is no body.
    Constant,
    /// Frame of reference: bit-packed offsets from each vector's base, with patches for values that do not fit.
    Packed,
    /// Run-length encoding: the end of each run, and a block of the runs' values.
    Runs,
    /// Plain 64-bit keys with a validity bitmap, for keys that span all 64 bits and have NULLs.
    Plain,
    /// Plain 128-bit integers, for values that span more than 63 bits.
    PlainWide,
    /// Concatenated strings with bit-packed end offsets.
    Heap,
    /// Concatenated strings compressed with a symbol table (FSST), with bit-packed end offsets.
    CompressedHeap,
}

impl Encoding {
    const ALL: [Self; 7] =
        [Self::Constant, Self::Packed, Self::Runs, Self::Plain, Self::PlainWide, Self::Heap, Self::CompressedHeap];
}

/// Header of one vector: base, bounds and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VectorHeader {
    /// Base to which packed offsets are added; for strings, the start of the vector's heap.
    pub base: i64,
    /// Minimum key, or a lower bound if [`BlockHeader::has_exact_bounds`] is false. 0 if every row is NULL.
    pub min: i64,
    /// Maximum key, or an upper bound.
    pub max: i64,
    /// Number of NULLs.
    pub null_count: u16,
    /// Number of patches: rows whose value does not fit the width.
    pub patch_count: u16,
    /// Index of the vector's first patch among the patches of the block.
    pub first_patch: u32,
}

impl VectorHeader {
    /// Returns the range of the vector's patches among the patches of the block.
    pub(crate) fn patches(&self) -> std::ops::Range<usize> {
        let first = self.first_patch as usize;
        first..first + usize::from(self.patch_count)
    }
}

/// Header of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHeader {
    /// Type of the values.
    pub kind: ValueKind,
    /// Encoding of the values.
    pub encoding: Encoding,
    /// Number of rows, including NULLs.
    pub rows: usize,
    /// Number of NULLs.
    pub null_count: usize,
    /// Whether packed offset 0 represents NULL, in every vector.
    pub null_is_zero: bool,
    /// Whether the body has a validity bitmap.
    pub has_validity_bitmap: bool,
    /// Bits of the narrowest lane that fits every decoded offset: 8, 16, 32 or 64.
    pub lane_bits: u8,
    /// Bits of a packed offset.
    pub width: u8,
    /// DecimalExponents of ten of decimal-encoded floats; see [`DecimalEncoding`](crate::kernels::DecimalEncoding).
    pub decimal_exponents: Option<(u8, u8)>,
    /// Number of patches, runs or symbols, depending on the encoding.
    pub item_count: usize,
    /// Minimum value: an integer, the key of a float, or the first 16 bytes of a string as a number.
    pub min: i128,
    /// Maximum value, represented like the minimum.
    pub max: i128,
    /// Offset that is added to every key: the minimum of 128-bit integers, else 0.
    pub offset: i128,
    /// Size of the block, in bytes.
    pub length: usize,
    /// Headers of the vectors.
    pub vector_headers: Vec<VectorHeader>,
}

impl BlockHeader {
    /// Returns the size of the header of a block of `rows` rows, in bytes.
    pub fn header_bytes_for(rows: usize) -> usize {
        align_up(FIXED_HEADER_BYTES + rows.div_ceil(VECTOR_ROWS) * VECTOR_HEADER_BYTES)
    }

    /// Returns the number of vectors.
    pub fn vector_count(&self) -> usize {
        self.rows.div_ceil(VECTOR_ROWS)
    }

    /// Returns the number of rows of a vector.
    pub fn rows_in_vector(&self, vector: usize) -> usize {
        (self.rows - vector * VECTOR_ROWS).min(VECTOR_ROWS)
    }

    /// Whether minima and maxima are values of the block rather than mere bounds.
    pub fn has_exact_bounds(&self) -> bool {
        !matches!(self.encoding, Encoding::PlainWide | Encoding::Heap | Encoding::CompressedHeap)
    }

    /// Reads the header from the start of a block; the body may be missing.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Self::read_checked(bytes)?.0)
    }

    /// Reads the header and the expected checksum of the body.
    pub(crate) fn read_checked(bytes: &[u8]) -> Result<(Self, u64)> {
        let fixed: &[u8; FIXED_HEADER_BYTES] =
            bytes.first_chunk().ok_or(Error::Damaged("the block is shorter than a block header"))?;
        if fixed[..4] != MAGIC {
            return Err(Error::Damaged("the block does not start with the magic bytes of a block"));
        }
        let version = u16::from_le_bytes(read_array(fixed, 4));
        if version != VERSION {
            return Err(Error::UnsupportedVersion(version));
        }
        let rows = u32::from_le_bytes(read_array(fixed, 32)) as usize;
        if BLOCK_ROWS < rows {
            return Err(Error::Damaged("the block has more rows than the maximum of a block"));
        }
        let whole =
            bytes.get(..Self::header_bytes_for(rows)).ok_or(Error::Damaged("the block ends within its header"))?;
        if u64::from_le_bytes(read_array(fixed, 8)) != header_checksum(whole) {
            return Err(Error::Damaged("the block header does not match its checksum"));
        }
        let flags = fixed[42];
        let header = Self {
            kind: ValueKind::from_tag(fixed[6]).ok_or(Error::Damaged("the block header has an unknown value type"))?,
            encoding: *Encoding::ALL
                .get(usize::from(fixed[7]))
                .ok_or(Error::Damaged("the block header has an unknown encoding"))?,
            rows,
            null_count: u32::from_le_bytes(read_array(fixed, 36)) as usize,
            null_is_zero: flags & 1 != 0,
            has_validity_bitmap: flags & 2 != 0,
            lane_bits: fixed[40],
            width: fixed[41],
            decimal_exponents: (flags & 4 != 0).then_some((fixed[48], fixed[49])),
            item_count: u32::from_le_bytes(read_array(fixed, 44)) as usize,
            min: i128::from_le_bytes(read_array(fixed, 64)),
            max: i128::from_le_bytes(read_array(fixed, 80)),
            offset: i128::from_le_bytes(read_array(fixed, 96)),
            length: usize::try_from(u64::from_le_bytes(read_array(fixed, 24)))
                .map_err(|_| Error::Damaged("the length in the block header exceeds the address space"))?,
            vector_headers: whole[FIXED_HEADER_BYTES..]
                .as_chunks()
                .0
                .iter()
                .take(rows.div_ceil(VECTOR_ROWS))
                .map(read_vector_header)
                .collect(),
        };
        header.check()?;
        Ok((header, u64::from_le_bytes(read_array(fixed, 16))))
    }

    /// Checks the invariants that the crate relies on.
    fn check(&self) -> Result<()> {
        if self.rows < self.null_count {
            return Err(Error::Damaged("the block has more NULLs than rows"));
        }
        if ![8, 16, 32, 64].contains(&self.lane_bits) || self.lane_bits < self.width {
            return Err(Error::Damaged("the block header has an invalid lane width or packed width"));
        }
        if self.decimal_exponents.is_some_and(|(up, down)| 18 < up || 18 < down) {
            return Err(Error::Damaged("the block header has decimal exponents above 18"));
        }
        if self.decimal_exponents.is_some() && !(self.kind.is_float() && self.encoding == Encoding::Packed) {
            return Err(Error::Damaged("the block header has decimal exponents, but its values are not packed floats"));
        }
        if self.encoding == Encoding::PlainWide && self.kind != ValueKind::Int128 {
            return Err(Error::Damaged(
                "the block has the plain 128-bit encoding, but its values are not 128-bit integers",
            ));
        }
        let is_heap = matches!(self.encoding, Encoding::Heap | Encoding::CompressedHeap);
        if is_heap != (self.kind == ValueKind::Text) {
            return Err(Error::Damaged(
                "the block's encoding does not fit its value type: strings, and only strings, are stored in heaps",
            ));
        }
        if BLOCK_ROWS < self.item_count {
            return Err(Error::Damaged("the block has more patches, runs or symbols than the maximum number of rows"));
        }
        Ok(())
    }

    /// Writes the header in front of a body that starts at [`BlockHeader::header_bytes_for`].
    pub(crate) fn write(&self, block: &mut [u8]) {
        let (header, body) = block.split_at_mut(Self::header_bytes_for(self.rows));
        header[..4].copy_from_slice(&MAGIC);
        header[4..6].copy_from_slice(&VERSION.to_le_bytes());
        header[6] = self.kind.tag();
        header[7] = self.encoding as u8;
        header[16..24].copy_from_slice(&xxh3_64(body).to_le_bytes());
        header[24..32].copy_from_slice(&(self.length as u64).to_le_bytes());
        header[32..36].copy_from_slice(&(self.rows as u32).to_le_bytes());
        header[36..40].copy_from_slice(&(self.null_count as u32).to_le_bytes());
        header[40] = self.lane_bits;
        header[41] = self.width;
        header[42] = u8::from(self.null_is_zero)
            | u8::from(self.has_validity_bitmap) << 1
            | u8::from(self.decimal_exponents.is_some()) << 2;
        header[44..48].copy_from_slice(&(self.item_count as u32).to_le_bytes());
        let (up, down) = self.decimal_exponents.unwrap_or_default();
        header[48] = up;
        header[49] = down;
        header[64..80].copy_from_slice(&self.min.to_le_bytes());
        header[80..96].copy_from_slice(&self.max.to_le_bytes());
        header[96..112].copy_from_slice(&self.offset.to_le_bytes());
        for (bytes, entry) in header[FIXED_HEADER_BYTES..].as_chunks_mut().0.iter_mut().zip(&self.vector_headers) {
            write_vector_header(entry, bytes);
        }
        let checksum = header_checksum(header);
        header[8..16].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Computes the checksum of the header without the checksum itself.
fn header_checksum(header: &[u8]) -> u64 {
    xxh3_64_with_seed(&header[16..], u64::from_le_bytes(read_array(header, 0)))
}

fn read_vector_header(bytes: &[u8; VECTOR_HEADER_BYTES]) -> VectorHeader {
    VectorHeader {
        base: i64::from_le_bytes(read_array(bytes, 0)),
        min: i64::from_le_bytes(read_array(bytes, 8)),
        max: i64::from_le_bytes(read_array(bytes, 16)),
        null_count: u16::from_le_bytes(read_array(bytes, 24)),
        patch_count: u16::from_le_bytes(read_array(bytes, 26)),
        first_patch: u32::from_le_bytes(read_array(bytes, 28)),
    }
}

fn write_vector_header(entry: &VectorHeader, bytes: &mut [u8; VECTOR_HEADER_BYTES]) {
    bytes[..8].copy_from_slice(&entry.base.to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.min.to_le_bytes());
    bytes[16..24].copy_from_slice(&entry.max.to_le_bytes());
    bytes[24..26].copy_from_slice(&entry.null_count.to_le_bytes());
    bytes[26..28].copy_from_slice(&entry.patch_count.to_le_bytes());
    bytes[28..].copy_from_slice(&entry.first_patch.to_le_bytes());
}

/// Returns the bits of the narrowest lane that fits `width` bits.
pub(crate) fn lane_bits(width: u8) -> u8 {
    width.next_power_of_two().max(8)
}

/// Returns the `N` bytes at offset `at`; panics if they do not exist.
pub(crate) fn read_array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("the bytes at this offset were checked to exist")
}

/// Rounds an offset up to the alignment of sections.
pub(crate) fn align_up(at: usize) -> usize {
    at.next_multiple_of(ALIGNMENT)
}

/// Recomputes the checksums of damaged bytes and, if `fix_length`, the length; also those of a nested block.
#[cfg(test)]
pub(crate) fn fix_checksums(block: &mut [u8], fix_length: bool) {
    let Some(fixed) = block.first_chunk::<FIXED_HEADER_BYTES>() else { return };
    let rows = (u32::from_le_bytes(read_array(fixed, 32)) as usize).min(BLOCK_ROWS);
    let (is_runs, runs) = (fixed[7] == Encoding::Runs as u8, u32::from_le_bytes(read_array(fixed, 44)) as usize);
    let length = block.len();
    let start = BlockHeader::header_bytes_for(rows);
    let Some((header, body)) = block.split_at_mut_checked(start) else { return };
    if is_runs && let Some(values) = body.get_mut(align_up(runs.min(BLOCK_ROWS) * 2)..) {
        fix_checksums(values, fix_length);
    }
    header[16..24].copy_from_slice(&xxh3_64(body).to_le_bytes());
    if fix_length {
        header[24..32].copy_from_slice(&(length as u64).to_le_bytes());
    }
    let checksum = header_checksum(header);
    header[8..16].copy_from_slice(&checksum.to_le_bytes());
}

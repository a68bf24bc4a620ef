//! Sections of a block's body, and their validation.

use std::ops::Range;

use bytes::Bytes;

use crate::block_header::{align_up, read_array};
use crate::decode::LanesBuffer;
use crate::fsst_symbols::SymbolTable;
use crate::kernels::{Lane, Word};
use crate::{BLOCK_ROWS, Block, BlockHeader, Encoding, Error, Result, VECTOR_ROWS, VectorHeader};

/// Validated sections of a block, by encoding.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Constant,
    Packed(Packed),
    Runs(Runs),
    Plain(Plain),
    Heap(Heap),
}

/// Bit-packed vectors and patches, the values that do not fit the width.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    packed_words: Bytes,
    width: usize,
    /// Keys of the patches, 8 bytes each.
    patch_values: Bytes,
    /// Rows of the patches within their vectors, 2 bytes each.
    patch_rows: Bytes,
}

/// Runs of equal values.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Last row of each run, 2 bytes each.
    last_rows: Bytes,
    /// Block with one row per run.
    pub(crate) values: Box<Block>,
}

/// Unpacked values of 8 or 16 bytes, in row order.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    validity_bitmap: Option<Bytes>,
    values: Bytes,
}

/// Concatenated strings, one heap per vector.
#[derive(Debug, Clone)]
pub(crate) struct Heap {
    validity_bitmap: Option<Bytes>,
    /// Bit-packed end offsets of the strings within their vector's heap.
    string_ends: Bytes,
    /// Symbol table of compressed strings.
    symbols: Option<SymbolTable>,
    bytes: Bytes,
}

impl Body {
    /// Splits the body into its sections and validates them. `depth` is the number of blocks that contain this one.
    pub(crate) fn open(header: &BlockHeader, block: &Bytes, depth: usize) -> Result<Self> {
        let mut sections = Sections { block, position: BlockHeader::header_bytes_for(header.rows) };
        let body = match header.encoding {
            Encoding::Constant => {
                ensure(header.null_count == 0 || header.null_count == header.rows, "a constant block has some NULLs")?;
                ensure(
                    (header.null_count == 0) != header.null_is_zero || header.rows == 0,
                    "the NULL flag of a constant block contradicts its number of NULLs",
                )?;
                Self::Constant
            }
            Encoding::Packed => Self::Packed(Packed::open(header, &mut sections)?),
            Encoding::Runs => Self::Runs(Runs::open(header, &mut sections, depth)?),
            Encoding::Plain => Self::Plain(Plain::open(header, &mut sections, 8)?),
            Encoding::PlainWide => Self::Plain(Plain::open(header, &mut sections, 16)?),
            Encoding::Heap | Encoding::CompressedHeap => Self::Heap(Heap::open(header, &mut sections)?),
        };
        ensure(sections.position == block.len(), "bytes follow the last section")?;
        Ok(body)
    }
}

/// Reader that takes sections one after the other.
struct Sections<'a> {
    block: &'a Bytes,
    /// End of the last section.
    position: usize,
}

impl Sections<'_> {
    /// Takes the next section, of `bytes` bytes.
    fn take(&mut self, bytes: usize) -> Result<Bytes> {
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let start = align_up(self.position);
        let end = start.checked_add(bytes).filter(|end| *end <= self.block.len());
        self.position = end.ok_or(Error::Damaged("a section extends beyond the block's end"))?;
        Ok(self.block.slice(start..self.position))
    }

    /// Takes the last section, which extends to the end of the block.
    fn take_last(&mut self) -> Result<Bytes> {
        if self.position == self.block.len() {
            return Ok(Bytes::new());
        }
        let bytes = self
            .block
            .len()
            .checked_sub(align_up(self.position))
            .ok_or(Error::Damaged("the block ends before its last section"))?;
        self.take(bytes)
    }
}

impl Packed {
    fn open(header: &BlockHeader, sections: &mut Sections<'_>) -> Result<Self> {
        let width = usize::from(header.width);
        let words = sections.take(header.vector_count() * width * size_of::<Word>())?;
        let patch_values = sections.take(header.item_count * 8)?;
        let patch_rows = sections.take(header.item_count * 2)?;
        let packed = Self { packed_words: words, width, patch_values, patch_rows };
        let mut next = 0;
        for (vector, entry) in header.vector_headers.iter().enumerate() {
            ensure(entry.first_patch as usize == next, "a vector's first patch is wrong")?;
            next += usize::from(entry.patch_count);
            ensure(next <= header.item_count, "vectors have more patches than the block")?;
            let rows = packed.patches(entry.first_patch as usize..next).map(|(row, _)| row);
            ensure(rows.is_sorted_by(|one, other| one < other), "patches are not sorted by row")?;
            let last = packed.patches(entry.first_patch as usize..next).map(|(row, _)| row).last();
            ensure(last.is_none_or(|row| row < header.rows_in_vector(vector)), "a patch's row does not exist")?;
        }
        ensure(next == header.item_count, "a patch belongs to no vector")?;
        Ok(packed)
    }

    /// Returns the packed words of a vector.
    pub(crate) fn words(&self, vector: usize) -> &[Word] {
        &self.packed_words.as_chunks().0[vector * self.width..][..self.width]
    }

    /// Iterates over a range of patches: their rows within the vector and their keys.
    pub(crate) fn patches(&self, patches: Range<usize>) -> impl Iterator<Item = (usize, i64)> + Clone + '_ {
        patches.map(|patch| {
            let row = u16::from_le_bytes(read_array(&self.patch_rows, patch * 2));
            (usize::from(row), i64::from_le_bytes(read_array(&self.patch_values, patch * 8)))
        })
    }

    /// Returns the key of the patch at `row`, if there is one among `patches`, those of the row's vector.
    pub(crate) fn find_patch(&self, patches: Range<usize>, row: usize) -> Option<i64> {
        let rows: &[[u8; 2]] = &self.patch_rows.as_chunks().0[patches.clone()];
        let found = rows.binary_search_by_key(&row, |bytes| usize::from(u16::from_le_bytes(*bytes))).ok()?;
        Some(i64::from_le_bytes(read_array(&self.patch_values, (patches.start + found) * 8)))
    }
}

impl Runs {
    fn open(header: &BlockHeader, sections: &mut Sections<'_>, depth: usize) -> Result<Self> {
        ensure(depth == 0, "the values of runs are stored as runs")?;
        let last_rows = sections.take(header.item_count * 2)?;
        let values = Block::open_nested(sections.take_last()?, depth + 1)?;
        ensure(values.header().rows == header.item_count, "the numbers of runs and of their values differ")?;
        ensure(values.header().encoding != Encoding::PlainWide, "values of runs are plain 128-bit integers")?;
        ensure(
            values.header().kind == header.kind && values.header().offset == header.offset,
            "the values of runs have another type than the block",
        )?;
        let runs = Self { last_rows, values: Box::new(values) };
        let ascending = (1..runs.len()).all(|run| runs.last_row(run - 1) < runs.last_row(run));
        ensure(ascending, "runs are not in ascending order")?;
        ensure(runs.end(header.item_count) == header.rows, "the last run does not end at the block's last row")?;
        Ok(runs)
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.last_rows.len() / 2
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.last_rows.is_empty()
    }

    /// Returns a block with one row per run.
    pub fn values(&self) -> &Block {
        &self.values
    }

    /// Returns the row after the first `runs` runs.
    pub(crate) fn end(&self, runs: usize) -> usize {
        if runs == 0 { 0 } else { self.last_row(runs - 1) + 1 }
    }

    /// Returns the rows of a run.
    pub fn rows(&self, run: usize) -> Range<usize> {
        self.end(run)..self.end(run + 1)
    }

    fn last_row(&self, run: usize) -> usize {
        usize::from(u16::from_le_bytes(read_array(&self.last_rows, run * 2)))
    }

    /// Returns the run that contains a row.
    pub fn run_at(&self, row: usize) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.last_row(middle) < row { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Plain {
    fn open(header: &BlockHeader, sections: &mut Sections<'_>, bytes: usize) -> Result<Self> {
        let validity_bitmap =
            header.has_validity_bitmap.then(|| sections.take(header.vector_count() * VECTOR_ROWS / 8)).transpose()?;
        ensure(header.rows <= BLOCK_ROWS, "the block has more rows than the maximum of a block")?;
        Ok(Self { validity_bitmap, values: sections.take(header.rows * bytes)? })
    }

    /// Returns the mask of a vector's rows that are not NULL; bits beyond the block's last row are undefined.
    pub(crate) fn validity(&self, vector: usize) -> crate::Mask {
        validity(self.validity_bitmap.as_ref(), vector)
    }

    /// Whether a row is not NULL.
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        is_valid(self.validity_bitmap.as_ref(), row)
    }

    /// Returns the values of a vector, `BYTES` bytes each.
    pub(crate) fn values<const BYTES: usize>(&self, vector: usize) -> &[[u8; BYTES]] {
        let values = self.values.as_chunks().0;
        let first = vector * VECTOR_ROWS;
        &values[first..values.len().min(first + VECTOR_ROWS)]
    }
}

impl Heap {
    fn open(header: &BlockHeader, sections: &mut Sections<'_>) -> Result<Self> {
        let width = usize::from(header.width);
        ensure(width <= 32, "end offsets of strings are wider than 32 bits")?;
        let validity_bitmap =
            header.has_validity_bitmap.then(|| sections.take(header.vector_count() * VECTOR_ROWS / 8)).transpose()?;
        let string_ends = sections.take(header.vector_count() * width * size_of::<Word>())?;
        let is_compressed = header.encoding == Encoding::CompressedHeap;
        let symbols = is_compressed
            .then(|| SymbolTable::open(&sections.take(SymbolTable::stored_bytes(header.item_count))?))
            .transpose()?;
        let heap = Self { validity_bitmap, string_ends, symbols, bytes: sections.take_last()? };
        let starts = || header.vector_headers.iter().map(|entry| usize::try_from(entry.base).unwrap_or(usize::MAX));
        ensure(
            starts().is_sorted() && starts().all(|start| start <= heap.bytes.len()),
            "the start of a vector's string heap is invalid",
        )?;
        let mut ends = [0; VECTOR_ROWS];
        let mut buffer = LanesBuffer::new();
        for vector in 0..header.vector_count() {
            heap.unpack_ends(vector, header.width, &mut buffer, &mut ends);
            let ends = &ends[..header.rows_in_vector(vector)];
            let length = heap.vector_bytes(&header.vector_headers, vector).len();
            ensure(
                ends.is_sorted() && ends.last().is_some_and(|end| *end as usize == length),
                "the end offsets of strings are not ascending or do not end at the heap's end",
            )?;
        }
        Ok(heap)
    }

    /// Returns the packed end offsets of a vector's strings.
    pub(crate) fn words(&self, vector: usize, width: u8) -> &[Word] {
        &self.string_ends.as_chunks().0[vector * usize::from(width)..][..usize::from(width)]
    }

    /// Returns the stored, possibly compressed, heap of a vector.
    pub(crate) fn vector_bytes(&self, entries: &[VectorHeader], vector: usize) -> &[u8] {
        let start = entries[vector].base as usize;
        let end = entries.get(vector + 1).map_or(self.bytes.len(), |next| next.base as usize);
        &self.bytes[start..end]
    }

    /// Returns the stored, possibly compressed, bytes of one string.
    pub(crate) fn string_bytes(&self, header: &BlockHeader, row: usize) -> &[u8] {
        let (vector, row) = (row / VECTOR_ROWS, row % VECTOR_ROWS);
        let end = |row: usize| {
            let (words, width) = (self.words(vector, header.width), usize::from(header.width));
            match header.width {
                0..=8 => u8::unpack_one(words, width, row).into(),
                9..=16 => u16::unpack_one(words, width, row).into(),
                _ => u32::unpack_one(words, width, row) as usize,
            }
        };
        let start = if row == 0 { 0 } else { end(row - 1) };
        &self.vector_bytes(&header.vector_headers, vector)[start..end(row)]
    }

    /// Returns the symbol table of compressed strings.
    pub(crate) fn symbols(&self) -> Option<&SymbolTable> {
        self.symbols.as_ref()
    }

    /// Returns the mask of a vector's rows that are not NULL; bits beyond the block's last row are undefined.
    pub(crate) fn validity(&self, vector: usize) -> crate::Mask {
        validity(self.validity_bitmap.as_ref(), vector)
    }

    /// Whether a row is not NULL.
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        is_valid(self.validity_bitmap.as_ref(), row)
    }
}

/// Returns the rows of a vector that are set in the validity bitmap, or all if there is none.
fn validity(bitmap: Option<&Bytes>, vector: usize) -> crate::Mask {
    let Some(bitmap) = bitmap else { return crate::first_rows_mask(VECTOR_ROWS) };
    std::array::from_fn(|word| u64::from_le_bytes(read_array(bitmap, vector * VECTOR_ROWS / 8 + word * 8)))
}

fn is_valid(bitmap: Option<&Bytes>, row: usize) -> bool {
    bitmap.is_none_or(|bitmap| bitmap[row / 8] >> (row % 8) & 1 == 1)
}

/// Fails with [`Error::Damaged`] if `holds` is false.
pub(crate) fn ensure(holds: bool, what: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Damaged(what)) }
}

//! Sections of a block's body, and their validation.

use std::ops::Range;

use bytes::Bytes;

use crate::decode::LanesBuffer;
use crate::format::{align_up, read_array};
use crate::kernels::{Lane, Word};
use crate::symbols::SymbolTable;
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
    lasts: Bytes,
    /// Block with one row per run.
    pub(crate) values: Box<Block>,
}

/// Unpacked values of 8 or 16 bytes, in row order.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    bitmap: Option<Bytes>,
    values: Bytes,
}

/// Concatenated strings, one heap per vector.
#[derive(Debug, Clone)]
pub(crate) struct Heap {
    bitmap: Option<Bytes>,
    /// Bit-packed end offsets of the strings within their vector's heap.
    ends: Bytes,
    /// Symbol table of compressed strings.
    symbols: Option<SymbolTable>,
    bytes: Bytes,
}

impl Body {
    /// Splits the body into its sections and validates them. `depth` is the number of blocks that contain this one.
    pub(crate) fn open(head: &BlockHeader, block: &Bytes, depth: usize) -> Result<Self> {
        let mut sections = Sections { block, at: BlockHeader::size_for(head.rows) };
        let body = match head.encoding {
            Encoding::Constant => {
                ensure(head.null_count == 0 || head.null_count == head.rows, "a constant block has some NULLs")?;
                ensure((head.null_count == 0) != head.null_is_zero || head.rows == 0, "NULL flag of a constant block")?;
                Self::Constant
            }
            Encoding::Packed => Self::Packed(Packed::open(head, &mut sections)?),
            Encoding::Runs => Self::Runs(Runs::open(head, &mut sections, depth)?),
            Encoding::Plain => Self::Plain(Plain::open(head, &mut sections, 8)?),
            Encoding::PlainWide => Self::Plain(Plain::open(head, &mut sections, 16)?),
            Encoding::Heap | Encoding::CompressedHeap => Self::Heap(Heap::open(head, &mut sections)?),
        };
        ensure(sections.at == block.len(), "bytes follow the last section")?;
        Ok(body)
    }
}

/// Reader that takes sections one after the other.
struct Sections<'a> {
    block: &'a Bytes,
    /// End of the last section.
    at: usize,
}

impl Sections<'_> {
    /// Takes the next section, of `bytes` bytes.
    fn take(&mut self, bytes: usize) -> Result<Bytes> {
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let start = align_up(self.at);
        let end = start.checked_add(bytes).filter(|end| *end <= self.block.len());
        self.at = end.ok_or(Error::Damaged("a section extends beyond the block's end"))?;
        Ok(self.block.slice(start..self.at))
    }

    /// Takes the last section, which extends to the end of the block.
    fn take_last(&mut self) -> Result<Bytes> {
        if self.at == self.block.len() {
            return Ok(Bytes::new());
        }
        let bytes = self.block.len().checked_sub(align_up(self.at)).ok_or(Error::Damaged("a section is missing"))?;
        self.take(bytes)
    }
}

impl Packed {
    fn open(head: &BlockHeader, sections: &mut Sections<'_>) -> Result<Self> {
        let width = usize::from(head.width);
        let words = sections.take(head.vector_count() * width * size_of::<Word>())?;
        let patch_values = sections.take(head.item_count * 8)?;
        let patch_rows = sections.take(head.item_count * 2)?;
        let packed = Self { packed_words: words, width, patch_values, patch_rows };
        let mut next = 0;
        for (vector, entry) in head.vector_headers.iter().enumerate() {
            ensure(entry.first_patch as usize == next, "a vector's first patch is wrong")?;
            next += usize::from(entry.patch_count);
            ensure(next <= head.item_count, "vectors have more patches than the block")?;
            let rows = packed.patches(entry.first_patch as usize..next).map(|(row, _)| row);
            ensure(rows.is_sorted_by(|one, other| one < other), "patches are not sorted by row")?;
            let last = packed.patches(entry.first_patch as usize..next).map(|(row, _)| row).last();
            ensure(last.is_none_or(|row| row < head.rows_in(vector)), "a patch's row does not exist")?;
        }
        ensure(next == head.item_count, "a patch belongs to no vector")?;
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
    fn open(head: &BlockHeader, sections: &mut Sections<'_>, depth: usize) -> Result<Self> {
        ensure(depth == 0, "runs are nested")?;
        let lasts = sections.take(head.item_count * 2)?;
        let values = Block::open_nested(sections.take_last()?, depth + 1)?;
        ensure(values.head().rows == head.item_count, "the numbers of runs and of their values differ")?;
        ensure(values.head().encoding != Encoding::PlainWide, "values of runs are plain 128-bit integers")?;
        ensure(values.head().kind == head.kind && values.head().offset == head.offset, "the runs have another type")?;
        let runs = Self { lasts, values: Box::new(values) };
        let ascending = (1..runs.len()).all(|run| runs.last(run - 1) < runs.last(run));
        ensure(ascending, "runs are not in ascending order")?;
        ensure(runs.end(head.item_count) == head.rows, "the last run does not end at the block's last row")?;
        Ok(runs)
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.lasts.len() / 2
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.lasts.is_empty()
    }

    /// Returns a block with one row per run.
    pub fn values(&self) -> &Block {
        &self.values
    }

    /// Returns the row after the first `runs` runs.
    pub(crate) fn end(&self, runs: usize) -> usize {
        if runs == 0 { 0 } else { self.last(runs - 1) + 1 }
    }

    /// Returns the rows of a run.
    pub fn rows(&self, run: usize) -> Range<usize> {
        self.end(run)..self.end(run + 1)
    }

    fn last(&self, run: usize) -> usize {
        usize::from(u16::from_le_bytes(read_array(&self.lasts, run * 2)))
    }

    /// Returns the run that contains a row.
    pub fn run_at(&self, row: usize) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.last(middle) < row { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Plain {
    fn open(head: &BlockHeader, sections: &mut Sections<'_>, bytes: usize) -> Result<Self> {
        let bitmap = head.has_bitmap.then(|| sections.take(head.vector_count() * VECTOR_ROWS / 8)).transpose()?;
        ensure(head.rows <= BLOCK_ROWS, "it has more rows than the maximum of a block")?;
        Ok(Self { bitmap, values: sections.take(head.rows * bytes)? })
    }

    /// Returns the mask of a vector's rows that are not NULL; bits beyond the block's last row are undefined.
    pub(crate) fn validity(&self, vector: usize) -> crate::Mask {
        validity(self.bitmap.as_ref(), vector)
    }

    /// Whether a row is not NULL.
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        is_valid(self.bitmap.as_ref(), row)
    }

    /// Returns the values of a vector, `BYTES` bytes each.
    pub(crate) fn values<const BYTES: usize>(&self, vector: usize) -> &[[u8; BYTES]] {
        let values = self.values.as_chunks().0;
        let first = vector * VECTOR_ROWS;
        &values[first..values.len().min(first + VECTOR_ROWS)]
    }
}

impl Heap {
    fn open(head: &BlockHeader, sections: &mut Sections<'_>) -> Result<Self> {
        let width = usize::from(head.width);
        ensure(width <= 32, "end offsets of strings are wider than 32 bits")?;
        let bitmap = head.has_bitmap.then(|| sections.take(head.vector_count() * VECTOR_ROWS / 8)).transpose()?;
        let ends = sections.take(head.vector_count() * width * size_of::<Word>())?;
        let is_compressed = head.encoding == Encoding::CompressedHeap;
        let symbols = is_compressed
            .then(|| SymbolTable::open(&sections.take(SymbolTable::stored_bytes(head.item_count))?))
            .transpose()?;
        let heap = Self { bitmap, ends, symbols, bytes: sections.take_last()? };
        let starts = || head.vector_headers.iter().map(|entry| usize::try_from(entry.base).unwrap_or(usize::MAX));
        ensure(starts().is_sorted() && starts().all(|start| start <= heap.bytes.len()), "invalid start of a heap")?;
        let mut ends = [0; VECTOR_ROWS];
        let mut buffer = LanesBuffer::new();
        for vector in 0..head.vector_count() {
            heap.unpack_ends(vector, head.width, &mut buffer, &mut ends);
            let ends = &ends[..head.rows_in(vector)];
            let length = heap.vector_bytes(&head.vector_headers, vector).len();
            ensure(ends.is_sorted() && ends.last().is_some_and(|end| *end as usize == length), "invalid string ends")?;
        }
        Ok(heap)
    }

    /// Returns the packed end offsets of a vector's strings.
    pub(crate) fn words(&self, vector: usize, width: u8) -> &[Word] {
        &self.ends.as_chunks().0[vector * usize::from(width)..][..usize::from(width)]
    }

    /// Returns the stored, possibly compressed, heap of a vector.
    pub(crate) fn vector_bytes(&self, entries: &[VectorHeader], vector: usize) -> &[u8] {
        let start = entries[vector].base as usize;
        let end = entries.get(vector + 1).map_or(self.bytes.len(), |next| next.base as usize);
        &self.bytes[start..end]
    }

    /// Returns the stored, possibly compressed, bytes of one string.
    pub(crate) fn string_bytes(&self, head: &BlockHeader, row: usize) -> &[u8] {
        let (vector, row) = (row / VECTOR_ROWS, row % VECTOR_ROWS);
        let end = |row: usize| {
            let (words, width) = (self.words(vector, head.width), usize::from(head.width));
            match head.width {
                0..=8 => u8::unpack_one(words, width, row).into(),
                9..=16 => u16::unpack_one(words, width, row).into(),
                _ => u32::unpack_one(words, width, row) as usize,
            }
        };
        let start = if row == 0 { 0 } else { end(row - 1) };
        &self.vector_bytes(&head.vector_headers, vector)[start..end(row)]
    }

    /// Returns the symbol table of compressed strings.
    pub(crate) fn symbols(&self) -> Option<&SymbolTable> {
        self.symbols.as_ref()
    }

    /// Returns the mask of a vector's rows that are not NULL; bits beyond the block's last row are undefined.
    pub(crate) fn validity(&self, vector: usize) -> crate::Mask {
        validity(self.bitmap.as_ref(), vector)
    }

    /// Whether a row is not NULL.
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        is_valid(self.bitmap.as_ref(), row)
    }
}

/// Returns the rows of a vector that are set in the bitmap, or all if there is none.
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

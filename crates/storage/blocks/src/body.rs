//! Sections of a block's body, and their validation.

use std::ops::Range;

use bytes::Bytes;

use crate::decode::LanesBuffer;
use crate::format::{aligned, array};
use crate::kernels::{Lane, Word};
use crate::symbols::Symbols;
use crate::{BLOCK_ROWS, Block, Entry, Error, Head, Result, Scheme, VECTOR_ROWS};

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
    words: Bytes,
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
    symbols: Option<Symbols>,
    bytes: Bytes,
}

impl Body {
    /// Splits the body into its sections and validates them. `depth` is the number of blocks that contain this one.
    pub(crate) fn open(head: &Head, block: &Bytes, depth: usize) -> Result<Self> {
        let mut sections = Sections { block, at: Head::bytes(head.rows) };
        let body = match head.scheme {
            Scheme::Constant => {
                check(head.nulls == 0 || head.nulls == head.rows, "a constant block has some NULLs")?;
                check((head.nulls == 0) != head.null_is_zero || head.rows == 0, "NULL flag of a constant block")?;
                Self::Constant
            }
            Scheme::Packed => Self::Packed(Packed::open(head, &mut sections)?),
            Scheme::Runs => Self::Runs(Runs::open(head, &mut sections, depth)?),
            Scheme::Plain => Self::Plain(Plain::open(head, &mut sections, 8)?),
            Scheme::PlainWide => Self::Plain(Plain::open(head, &mut sections, 16)?),
            Scheme::Heap | Scheme::CompressedHeap => Self::Heap(Heap::open(head, &mut sections)?),
        };
        check(sections.at == block.len(), "bytes follow the last section")?;
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
        let start = aligned(self.at);
        let end = start.checked_add(bytes).filter(|end| *end <= self.block.len());
        self.at = end.ok_or(Error::Damaged("a section extends beyond the block's end"))?;
        Ok(self.block.slice(start..self.at))
    }

    /// Takes the last section, which extends to the end of the block.
    fn rest(&mut self) -> Result<Bytes> {
        if self.at == self.block.len() {
            return Ok(Bytes::new());
        }
        let bytes = self.block.len().checked_sub(aligned(self.at)).ok_or(Error::Damaged("a section is missing"))?;
        self.take(bytes)
    }
}

impl Packed {
    fn open(head: &Head, sections: &mut Sections<'_>) -> Result<Self> {
        let width = usize::from(head.width);
        let words = sections.take(head.vectors() * width * size_of::<Word>())?;
        let patch_values = sections.take(head.parts * 8)?;
        let patch_rows = sections.take(head.parts * 2)?;
        let packed = Self { words, width, patch_values, patch_rows };
        let mut next = 0;
        for (vector, entry) in head.entries.iter().enumerate() {
            check(entry.first_patch as usize == next, "a vector's first patch is wrong")?;
            next += usize::from(entry.patches);
            check(next <= head.parts, "vectors have more patches than the block")?;
            let rows = packed.patches(entry.first_patch as usize..next).map(|(row, _)| row);
            check(rows.is_sorted_by(|one, other| one < other), "patches are not sorted by row")?;
            let last = packed.patches(entry.first_patch as usize..next).map(|(row, _)| row).last();
            check(last.is_none_or(|row| row < head.rows_in(vector)), "a patch's row does not exist")?;
        }
        check(next == head.parts, "a patch belongs to no vector")?;
        Ok(packed)
    }

    /// Returns the packed words of a vector.
    pub(crate) fn words(&self, vector: usize) -> &[Word] {
        &self.words.as_chunks().0[vector * self.width..][..self.width]
    }

    /// Iterates over a range of patches: their rows within the vector and their keys.
    pub(crate) fn patches(&self, patches: Range<usize>) -> impl Iterator<Item = (usize, i64)> + Clone + '_ {
        patches.map(|patch| {
            let row = u16::from_le_bytes(array(&self.patch_rows, patch * 2));
            (usize::from(row), i64::from_le_bytes(array(&self.patch_values, patch * 8)))
        })
    }

    /// Returns the key of the patch at `row`, if there is one among `patches`, those of the row's vector.
    pub(crate) fn patch(&self, patches: Range<usize>, row: usize) -> Option<i64> {
        let rows: &[[u8; 2]] = &self.patch_rows.as_chunks().0[patches.clone()];
        let found = rows.binary_search_by_key(&row, |bytes| usize::from(u16::from_le_bytes(*bytes))).ok()?;
        Some(i64::from_le_bytes(array(&self.patch_values, (patches.start + found) * 8)))
    }
}

impl Runs {
    fn open(head: &Head, sections: &mut Sections<'_>, depth: usize) -> Result<Self> {
        check(depth == 0, "runs are nested")?;
        let lasts = sections.take(head.parts * 2)?;
        let values = Block::open_within(sections.rest()?, depth + 1)?;
        check(values.head().rows == head.parts, "the numbers of runs and of their values differ")?;
        check(values.head().scheme != Scheme::PlainWide, "values of runs are plain 128-bit integers")?;
        check(values.head().kind == head.kind && values.head().offset == head.offset, "the runs have another type")?;
        let runs = Self { lasts, values: Box::new(values) };
        let ascending = (1..runs.len()).all(|run| runs.last(run - 1) < runs.last(run));
        check(ascending, "runs are not in ascending order")?;
        check(runs.end(head.parts) == head.rows, "the last run does not end at the block's last row")?;
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
        usize::from(u16::from_le_bytes(array(&self.lasts, run * 2)))
    }

    /// Returns the run that contains a row.
    pub fn of_row(&self, row: usize) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.last(middle) < row { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Plain {
    fn open(head: &Head, sections: &mut Sections<'_>, bytes: usize) -> Result<Self> {
        let bitmap = head.has_bitmap.then(|| sections.take(head.vectors() * VECTOR_ROWS / 8)).transpose()?;
        check(head.rows <= BLOCK_ROWS, "it has more rows than the maximum of a block")?;
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
    fn open(head: &Head, sections: &mut Sections<'_>) -> Result<Self> {
        let width = usize::from(head.width);
        check(width <= 32, "end offsets of strings are wider than 32 bits")?;
        let bitmap = head.has_bitmap.then(|| sections.take(head.vectors() * VECTOR_ROWS / 8)).transpose()?;
        let ends = sections.take(head.vectors() * width * size_of::<Word>())?;
        let is_compressed = head.scheme == Scheme::CompressedHeap;
        let symbols =
            is_compressed.then(|| Symbols::open(&sections.take(Symbols::stored_bytes(head.parts))?)).transpose()?;
        let heap = Self { bitmap, ends, symbols, bytes: sections.rest()? };
        let starts = || head.entries.iter().map(|entry| usize::try_from(entry.base).unwrap_or(usize::MAX));
        check(starts().is_sorted() && starts().all(|start| start <= heap.bytes.len()), "invalid start of a heap")?;
        let mut ends = [0; VECTOR_ROWS];
        let mut buffer = LanesBuffer::new();
        for vector in 0..head.vectors() {
            heap.unpack_ends(vector, head.width, &mut buffer, &mut ends);
            let ends = &ends[..head.rows_in(vector)];
            let length = heap.of_vector(&head.entries, vector).len();
            check(ends.is_sorted() && ends.last().is_some_and(|end| *end as usize == length), "invalid string ends")?;
        }
        Ok(heap)
    }

    /// Returns the packed end offsets of a vector's strings.
    pub(crate) fn words(&self, vector: usize, width: u8) -> &[Word] {
        &self.ends.as_chunks().0[vector * usize::from(width)..][..usize::from(width)]
    }

    /// Returns the stored, possibly compressed, heap of a vector.
    pub(crate) fn of_vector(&self, entries: &[Entry], vector: usize) -> &[u8] {
        let start = entries[vector].base as usize;
        let end = entries.get(vector + 1).map_or(self.bytes.len(), |next| next.base as usize);
        &self.bytes[start..end]
    }

    /// Returns the stored, possibly compressed, bytes of one string.
    pub(crate) fn one(&self, head: &Head, row: usize) -> &[u8] {
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
        &self.of_vector(&head.entries, vector)[start..end(row)]
    }

    /// Returns the symbol table of compressed strings.
    pub(crate) fn symbols(&self) -> Option<&Symbols> {
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
    let Some(bitmap) = bitmap else { return crate::mask_of(VECTOR_ROWS) };
    std::array::from_fn(|word| u64::from_le_bytes(array(bitmap, vector * VECTOR_ROWS / 8 + word * 8)))
}

fn is_valid(bitmap: Option<&Bytes>, row: usize) -> bool {
    bitmap.is_none_or(|bitmap| bitmap[row / 8] >> (row % 8) & 1 == 1)
}

/// Fails with [`Error::Damaged`] if `holds` is false.
pub(crate) fn check(holds: bool, what: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Damaged(what)) }
}

//! Decoding of strings.

use crate::block_body::{Body, Heap};
use crate::decode::LanesBuffer;
use crate::fsst_symbols::SymbolTable;
use crate::kernels::{Kernels, Lane};
use crate::row_set::positions;
use crate::{Block, Error, Result, RowSet, VECTOR_ROWS};

/// A vector is decoded entirely if more than one in this many rows is selected.
const SPARSE_TEXTS_RATIO: usize = 8;

/// Decoded strings of a vector. The string of a NULL is empty.
#[derive(Debug, Clone, Copy)]
pub struct TextVector<'a> {
    heap: &'a [u8],
    ends: &'a [u32],
}

impl<'a> TextVector<'a> {
    /// Returns the string of a row of the vector.
    pub fn get(&self, row: usize) -> &'a [u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.heap[start as usize..self.ends[row] as usize]
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the concatenated strings.
    pub fn heap(&self) -> &'a [u8] {
        self.heap
    }

    /// Returns the end offset of each string in the heap.
    pub fn ends(&self) -> &'a [u32] {
        self.ends
    }
}

/// Reusable buffer for decoding vectors of strings.
pub struct TextBuffer {
    lanes: Box<LanesBuffer>,
    ends: Box<[u32; VECTOR_ROWS]>,
    heap: Vec<u8>,
}

impl Default for TextBuffer {
    fn default() -> Self {
        Self { lanes: LanesBuffer::new(), ends: Box::new([0; VECTOR_ROWS]), heap: Vec::new() }
    }
}

/// Decoded strings of some rows in Arrow's layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextValues {
    /// Start offset of each string, and the end of the last one.
    pub offsets: Vec<usize>,
    /// Concatenated strings.
    pub bytes: Vec<u8>,
    /// Validity bitmap, least significant bit first; `None` if there are no NULLs.
    pub validity: Option<Vec<u64>>,
}

impl TextValues {
    /// Returns the string of a row; `None` if it is NULL.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let is_valid = self.validity.as_ref().is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1);
        is_valid.then(|| &self.bytes[self.offsets[row]..self.offsets[row + 1]])
    }
}

impl Block {
    /// Decodes the strings of a vector. [`Block::validity`] returns which of them are NULL.
    pub fn decode_texts<'a>(&'a self, vector: usize, buffer: &'a mut TextBuffer) -> Result<TextVector<'a>> {
        let Body::Heap(heap) = self.body() else { return Err(Error::TypeMismatch) };
        let rows = self.header().rows_in_vector(vector);
        heap.unpack_ends(vector, self.header().width, &mut buffer.lanes, &mut buffer.ends);
        let stored = heap.vector_bytes(&self.header().vector_headers, vector);
        let Some(symbols) = heap.symbols() else {
            return Ok(TextVector { heap: stored, ends: &buffer.ends[..rows] });
        };
        let room = SymbolTable::decompressed_bytes_max(stored.len());
        if buffer.heap.len() < room {
            buffer.heap.resize(room, 0);
        }
        let (mut start, mut at) = (0, 0);
        for end in &mut buffer.ends[..rows] {
            at = symbols.decompress(&stored[start..*end as usize], &mut buffer.heap, at);
            start = *end as usize;
            *end = at as u32;
        }
        Ok(TextVector { heap: &buffer.heap[..at], ends: &buffer.ends[..rows] })
    }

    /// Appends the string of one row to `text`; returns false if it is NULL.
    pub fn append_text(&self, row: usize, text: &mut Vec<u8>) -> Result<bool> {
        let Body::Heap(heap) = self.body() else { return Err(Error::TypeMismatch) };
        if !heap.is_valid(row) {
            return Ok(false);
        }
        let stored = heap.string_bytes(self.header(), row);
        match heap.symbols() {
            None => text.extend_from_slice(stored),
            Some(symbols) => {
                let start = text.len();
                text.resize(start + SymbolTable::decompressed_bytes_max(stored.len()), 0);
                let end = symbols.decompress(stored, text, start);
                text.truncate(end);
            }
        }
        Ok(true)
    }

    /// Decodes all strings.
    pub fn read_text(&self) -> Result<TextValues> {
        self.gather_text(&RowSet::all(self.header().rows))
    }

    /// Decodes the strings of the rows in a set. From vectors with few such rows, single strings are decoded.
    pub fn gather_text(&self, rows: &RowSet) -> Result<TextValues> {
        self.expect_kind(matches!(self.body(), Body::Heap(_)))?;
        let mut gathered = TextValues { offsets: vec![0], bytes: Vec::new(), validity: None };
        let mut validity = vec![0; rows.count().div_ceil(64)];
        let mut buffer = TextBuffer::default();
        let mut lanes = LanesBuffer::new();
        let mut push = |is_valid: bool, bytes: &Vec<u8>| {
            let row = gathered.offsets.len() - 1;
            validity[row / 64] |= u64::from(is_valid) << (row % 64);
            gathered.offsets.push(bytes.len());
        };
        for vector in rows.vector_span() {
            let selected = rows.count_in_vector(vector);
            let first = vector * VECTOR_ROWS;
            if selected * SPARSE_TEXTS_RATIO <= VECTOR_ROWS {
                for row in positions(rows.vector(vector)) {
                    let is_valid = self.append_text(first + row, &mut gathered.bytes)?;
                    push(is_valid, &gathered.bytes);
                }
                continue;
            }
            let mask = self.validity(vector, &mut lanes);
            let texts = self.decode_texts(vector, &mut buffer)?;
            for row in positions(rows.vector(vector)) {
                gathered.bytes.extend_from_slice(texts.get(row));
                push(mask[row / 64] >> (row % 64) & 1 == 1, &gathered.bytes);
            }
        }
        gathered.validity = (self.header().null_count != 0).then_some(validity);
        Ok(gathered)
    }
}

impl Heap {
    /// Unpacks the end offsets of a vector's strings.
    pub(crate) fn unpack_ends(&self, vector: usize, width: u8, lanes: &mut LanesBuffer, ends: &mut [u32; VECTOR_ROWS]) {
        let words = self.words(vector, width);
        if 16 < width {
            return Kernels::get().unpack(words, width.into(), ends);
        }
        with_narrow!(width, lanes, lanes => {
            Kernels::get().unpack(words, width.into(), lanes);
            for (end, lane) in ends.iter_mut().zip(lanes.iter()) {
                *end = lane.extend() as u32;
            }
        });
    }
}

//! Vectors of strings, and single ones.

use crate::body::{Body, Heap};
use crate::decode::LanesBuffer;
use crate::kernels::{Kernels, Lane};
use crate::row_set::positions;
use crate::symbols::Symbols;
use crate::{Block, Error, Result, RowSet, VECTOR_ROWS};

/// A vector that keeps more than one string of so many is read whole.
const TEXTS_EVERY_MIN: usize = 8;

/// The strings of a vector. Those of NULLs are empty.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    heap: &'a [u8],
    ends: &'a [u32],
}

impl<'a> Texts<'a> {
    /// The string of a row of the vector.
    pub fn get(&self, row: usize) -> &'a [u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.heap[start as usize..self.ends[row] as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings, one behind the other.
    pub fn heap(&self) -> &'a [u8] {
        self.heap
    }

    /// Where in the heap each string ends.
    pub fn ends(&self) -> &'a [u32] {
        self.ends
    }
}

/// Room for a vector of strings, so that a worker allocates seldom.
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

/// Strings of some rows, one behind the other, as Arrow keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextValues {
    /// Where each string begins, and where the last one ends.
    pub offsets: Vec<usize>,
    /// The strings.
    pub bytes: Vec<u8>,
    /// One bit for each row, least significant first; none where nothing is NULL.
    pub validity: Option<Vec<u64>>,
}

impl TextValues {
    /// A row's string, unless it is NULL.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let is_valid = self.validity.as_ref().is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1);
        is_valid.then(|| &self.bytes[self.offsets[row]..self.offsets[row + 1]])
    }
}

impl Block {
    /// The strings of a vector; `validity` tells which of them are NULL.
    pub fn texts<'a>(&'a self, vector: usize, buffer: &'a mut TextBuffer) -> Result<Texts<'a>> {
        let Body::Heap(heap) = self.body() else { return Err(Error::Kind) };
        let rows = self.head().rows_in(vector);
        heap.unpack_ends(vector, self.head().width, &mut buffer.lanes, &mut buffer.ends);
        let stored = heap.of_vector(&self.head().entries, vector);
        let Some(symbols) = heap.symbols() else {
            return Ok(Texts { heap: stored, ends: &buffer.ends[..rows] });
        };
        let room = Symbols::room(stored.len());
        if buffer.heap.len() < room {
            buffer.heap.resize(room, 0);
        }
        let (mut start, mut at) = (0, 0);
        for end in &mut buffer.ends[..rows] {
            at = symbols.decompress(&stored[start..*end as usize], &mut buffer.heap, at);
            start = *end as usize;
            *end = at as u32;
        }
        Ok(Texts { heap: &buffer.heap[..at], ends: &buffer.ends[..rows] })
    }

    /// Appends the string of one row, unless it is NULL; says whether it did.
    pub fn text(&self, row: usize, text: &mut Vec<u8>) -> Result<bool> {
        let Body::Heap(heap) = self.body() else { return Err(Error::Kind) };
        if !heap.is_valid(row) {
            return Ok(false);
        }
        let stored = heap.one(self.head(), row);
        match heap.symbols() {
            None => text.extend_from_slice(stored),
            Some(symbols) => {
                let start = text.len();
                text.resize(start + Symbols::room(stored.len()), 0);
                let end = symbols.decompress(stored, text, start);
                text.truncate(end);
            }
        }
        Ok(true)
    }

    /// All strings.
    pub fn read_text(&self) -> Result<TextValues> {
        self.gather_text(&RowSet::all(self.head().rows))
    }

    /// The strings of the rows in a set. Of vectors with few such rows, single strings are read.
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
        for vector in rows.spanned() {
            let kept = rows.count_in(vector);
            let first = vector * VECTOR_ROWS;
            if kept * TEXTS_EVERY_MIN <= VECTOR_ROWS {
                for row in positions(rows.vector(vector)) {
                    let is_valid = self.text(first + row, &mut gathered.bytes)?;
                    push(is_valid, &gathered.bytes);
                }
                continue;
            }
            let mask = self.validity(vector, &mut lanes);
            let texts = self.texts(vector, &mut buffer)?;
            for row in positions(rows.vector(vector)) {
                gathered.bytes.extend_from_slice(texts.get(row));
                push(mask[row / 64] >> (row % 64) & 1 == 1, &gathered.bytes);
            }
        }
        gathered.validity = (self.head().nulls != 0).then_some(validity);
        Ok(gathered)
    }
}

impl Heap {
    /// Where each string of a vector ends in its heap.
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

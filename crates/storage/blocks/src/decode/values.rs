//! Decoding of values in their original type, for operators outside of the engine and for tests.

use std::cell::RefCell;

use crate::block_body::Body;
use crate::block_header::read_array;
use crate::decode::{LanesBuffer, SPARSE_ROWS_RATIO};
use crate::float_encoding::{key_to_f32, key_to_f64};
use crate::row_set::positions;
use crate::{Block, BlockHeader, Encoding, Mask, Result, RowSet, VECTOR_ROWS, ValueKind};

/// Decoded values of some rows with their validity; the value of a NULL is zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Values<T> {
    /// One value per row.
    pub values: Vec<T>,
    /// Validity bitmap, least significant bit first; `None` if there are no NULLs.
    pub validity: Option<Vec<u64>>,
}

impl<T: Copy> Values<T> {
    /// Returns the value of a row; `None` if it is NULL.
    pub fn get(&self, row: usize) -> Option<T> {
        let is_valid = self.validity.as_ref().is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1);
        is_valid.then(|| self.values[row])
    }
}

/// Type of decoded values, which can be restored from keys.
pub trait BlockValue: Copy + Default + private::Sealed {
    /// Whether blocks of this type can be decoded to `Self`.
    fn can_decode(kind: ValueKind) -> bool;
    /// Converts a key to a value.
    #[doc(hidden)]
    fn from_key(key: i64, header: &BlockHeader) -> Self;
    /// Converts a plain 128-bit integer to a value.
    #[doc(hidden)]
    fn from_wide(_wide: i128) -> Self {
        Self::default()
    }
}

mod private {
    pub trait Sealed {}
    impl Sealed for bool {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for i128 {}
    impl Sealed for u32 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl BlockValue for bool {
    fn can_decode(kind: ValueKind) -> bool {
        kind == ValueKind::Boolean
    }

    #[inline]
    fn from_key(key: i64, _: &BlockHeader) -> Self {
        key != 0
    }
}

impl BlockValue for i32 {
    fn can_decode(kind: ValueKind) -> bool {
        kind == ValueKind::Int32
    }

    #[inline]
    fn from_key(key: i64, _: &BlockHeader) -> Self {
        key as Self
    }
}

impl BlockValue for u32 {
    fn can_decode(kind: ValueKind) -> bool {
        kind == ValueKind::Code
    }

    #[inline]
    fn from_key(key: i64, _: &BlockHeader) -> Self {
        key as Self
    }
}

impl BlockValue for i64 {
    fn can_decode(kind: ValueKind) -> bool {
        matches!(kind, ValueKind::Boolean | ValueKind::Int32 | ValueKind::Int64 | ValueKind::Code)
    }

    #[inline]
    fn from_key(key: i64, _: &BlockHeader) -> Self {
        key
    }
}

impl BlockValue for i128 {
    fn can_decode(kind: ValueKind) -> bool {
        kind.is_integer()
    }

    #[inline]
    fn from_key(key: i64, header: &BlockHeader) -> Self {
        header.offset.wrapping_add(key.into())
    }

    fn from_wide(wide: i128) -> Self {
        wide
    }
}

impl BlockValue for f32 {
    fn can_decode(kind: ValueKind) -> bool {
        kind == ValueKind::Float32
    }

    #[inline]
    fn from_key(key: i64, _: &BlockHeader) -> Self {
        key_to_f32(key)
    }
}

impl BlockValue for f64 {
    fn can_decode(kind: ValueKind) -> bool {
        kind.is_float()
    }

    #[inline]
    fn from_key(key: i64, header: &BlockHeader) -> Self {
        if header.kind == ValueKind::Float32 { key_to_f32(key).into() } else { key_to_f64(key) }
    }
}

thread_local! {
    /// Unpack buffers of the thread, which would otherwise be allocated and zeroed by each `gather`.
    static SCRATCH: RefCell<Option<VectorBuffers>> = const { RefCell::new(None) };
}

/// Buffers for the lanes and the keys of a vector.
type VectorBuffers = (Box<LanesBuffer>, Box<[i64; VECTOR_ROWS]>);

impl Block {
    /// Decodes all values.
    pub fn read<T: BlockValue>(&self) -> Result<Values<T>> {
        self.gather(&RowSet::all(self.header().rows))
    }

    /// Decodes the value of one row; `None` if it is NULL.
    pub fn value<T: BlockValue>(&self, row: usize) -> Result<Option<T>> {
        self.expect_kind(T::can_decode(self.header().kind))?;
        Ok(match self.body() {
            Body::Plain(plain) if self.header().encoding == Encoding::PlainWide => plain
                .is_valid(row)
                .then(|| T::from_wide(i128::from_le_bytes(plain.values(row / VECTOR_ROWS)[row % VECTOR_ROWS]))),
            _ => self.key(row).map(|key| T::from_key(key, self.header())),
        })
    }

    /// Decodes the values of the rows in a set. Vectors without such rows are skipped; from vectors with few, single
    /// values are unpacked.
    pub fn gather<T: BlockValue>(&self, rows: &RowSet) -> Result<Values<T>> {
        self.expect_kind(T::can_decode(self.header().kind))?;
        SCRATCH.with_borrow_mut(|scratch| {
            let (buffer, keys) = scratch.get_or_insert_with(|| (LanesBuffer::new(), Box::new([0; VECTOR_ROWS])));
            self.gather_with_buffers(rows, buffer, keys)
        })
    }

    fn gather_with_buffers<T: BlockValue>(
        &self,
        rows: &RowSet,
        buffer: &mut LanesBuffer,
        keys: &mut [i64; VECTOR_ROWS],
    ) -> Result<Values<T>> {
        let header = self.header();
        let mut gathered = ValuesBuilder::new(rows.count(), header.null_count != 0);
        for vector in rows.vector_span() {
            let selected = rows.count_in_vector(vector);
            if selected == 0 {
                continue;
            }
            let is_wide = header.encoding == Encoding::PlainWide;
            if selected * SPARSE_ROWS_RATIO <= VECTOR_ROWS && !is_wide {
                self.for_each_row(vector, positions(rows.vector(vector)), |_, key| {
                    gathered.push(key.map(|key| T::from_key(key, header)));
                });
                continue;
            }
            let validity = self.validity(vector, buffer);
            let is_valid = |row: usize| validity[row / 64] >> (row % 64) & 1 == 1;
            if let (Body::Plain(plain), Encoding::PlainWide) = (self.body(), header.encoding) {
                let values: &[[u8; 16]] = plain.values(vector);
                for row in positions(rows.vector(vector)) {
                    gathered
                        .push(is_valid(row).then(|| T::from_wide(i128::from_le_bytes(read_array(&values[row], 0)))));
                }
                continue;
            }
            self.keys(vector, buffer, keys);
            if header.vector_headers[vector].null_count == 0 {
                gathered.mark_valid(selected);
                if selected == header.rows_in_vector(vector) {
                    gathered.values.extend(keys[..selected].iter().map(|key| T::from_key(*key, header)));
                } else {
                    gathered.push_masked(keys, rows.vector(vector), selected, header);
                }
                continue;
            }
            for row in positions(rows.vector(vector)) {
                gathered.push(is_valid(row).then(|| T::from_key(keys[row], header)));
            }
        }
        Ok(gathered.finish())
    }
}

/// Builder of [`Values`].
struct ValuesBuilder<T> {
    values: Vec<T>,
    validity: Option<Vec<u64>>,
}

impl<T: BlockValue> ValuesBuilder<T> {
    fn new(rows: usize, has_nulls: bool) -> Self {
        Self { values: Vec::with_capacity(rows), validity: has_nulls.then(|| vec![0; rows.div_ceil(64)]) }
    }

    #[inline]
    fn push(&mut self, value: Option<T>) {
        if let Some(validity) = &mut self.validity {
            validity[self.values.len() / 64] |= u64::from(value.is_some()) << (self.values.len() % 64);
        }
        self.values.push(value.unwrap_or_default());
    }

    /// Marks the next `count` values as not NULL.
    fn mark_valid(&mut self, count: usize) {
        let start = self.values.len();
        if let Some(validity) = &mut self.validity {
            for row in start..start + count {
                validity[row / 64] |= 1 << (row % 64);
            }
        }
    }

    /// Adds the values of the `count` rows in a mask.
    #[inline(never)]
    fn push_masked(&mut self, keys: &[i64; VECTOR_ROWS], mask: &Mask, count: usize, header: &BlockHeader) {
        // Resizes first, because extending would check the capacity for each value.
        let start = self.values.len();
        if VECTOR_ROWS <= count * 2 {
            // Branch-free: each value is written, and overwritten by the next unless its bit is set.
            self.values.resize(start + count + 1, T::default());
            let (values, mut at) = (&mut self.values[start..], 0);
            for (keys, bits) in keys.as_chunks::<64>().0.iter().zip(mask) {
                if *bits == u64::MAX {
                    let places = values[at..at + 64].iter_mut();
                    places.zip(keys).for_each(|(place, key)| *place = T::from_key(*key, header));
                    at += 64;
                    continue;
                }
                for (bit, key) in keys.iter().enumerate() {
                    values[at] = T::from_key(*key, header);
                    at += (bits >> bit & 1) as usize;
                }
            }
            self.values.truncate(start + count);
            return;
        }
        self.values.resize(start + count, T::default());
        for (place, row) in self.values[start..].iter_mut().zip(positions(mask)) {
            *place = T::from_key(keys[row], header);
        }
    }

    fn finish(self) -> Values<T> {
        Values { values: self.values, validity: self.validity }
    }
}

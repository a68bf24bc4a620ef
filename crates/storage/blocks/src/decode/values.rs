//! Decoding of values in their original type, for operators outside of the engine and for tests.

use std::cell::RefCell;

use crate::body::Body;
use crate::decode::{GATHER_EVERY_MIN, LanesBuffer};
use crate::float::{value32, value64};
use crate::format::array;
use crate::row_set::positions;
use crate::{Block, Head, Kind, Mask, Result, RowSet, Scheme, VECTOR_ROWS};

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
pub trait Value: Copy + Default + private::Sealed {
    /// Whether blocks of this type can be decoded to `Self`.
    fn is_in(kind: Kind) -> bool;
    /// Converts a key to a value.
    #[doc(hidden)]
    fn of_key(key: i64, head: &Head) -> Self;
    /// Converts a plain 128-bit integer to a value.
    #[doc(hidden)]
    fn of_wide(_wide: i128) -> Self {
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

impl Value for bool {
    fn is_in(kind: Kind) -> bool {
        kind == Kind::Boolean
    }

    #[inline]
    fn of_key(key: i64, _: &Head) -> Self {
        key != 0
    }
}

impl Value for i32 {
    fn is_in(kind: Kind) -> bool {
        kind == Kind::Int32
    }

    #[inline]
    fn of_key(key: i64, _: &Head) -> Self {
        key as Self
    }
}

impl Value for u32 {
    fn is_in(kind: Kind) -> bool {
        kind == Kind::Code
    }

    #[inline]
    fn of_key(key: i64, _: &Head) -> Self {
        key as Self
    }
}

impl Value for i64 {
    fn is_in(kind: Kind) -> bool {
        matches!(kind, Kind::Boolean | Kind::Int32 | Kind::Int64 | Kind::Code)
    }

    #[inline]
    fn of_key(key: i64, _: &Head) -> Self {
        key
    }
}

impl Value for i128 {
    fn is_in(kind: Kind) -> bool {
        kind.is_integer()
    }

    #[inline]
    fn of_key(key: i64, head: &Head) -> Self {
        head.offset.wrapping_add(key.into())
    }

    fn of_wide(wide: i128) -> Self {
        wide
    }
}

impl Value for f32 {
    fn is_in(kind: Kind) -> bool {
        kind == Kind::Float32
    }

    #[inline]
    fn of_key(key: i64, _: &Head) -> Self {
        value32(key)
    }
}

impl Value for f64 {
    fn is_in(kind: Kind) -> bool {
        kind.is_float()
    }

    #[inline]
    fn of_key(key: i64, head: &Head) -> Self {
        if head.kind == Kind::Float32 { value32(key).into() } else { value64(key) }
    }
}

thread_local! {
    /// Unpack buffers of the thread, which would otherwise be allocated and zeroed by each `gather`.
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// Buffers for the lanes and the keys of a vector.
type Scratch = (Box<LanesBuffer>, Box<[i64; VECTOR_ROWS]>);

impl Block {
    /// Decodes all values.
    pub fn read<T: Value>(&self) -> Result<Values<T>> {
        self.gather(&RowSet::all(self.head().rows))
    }

    /// Decodes the value of one row; `None` if it is NULL.
    pub fn value<T: Value>(&self, row: usize) -> Result<Option<T>> {
        self.expect_kind(T::is_in(self.head().kind))?;
        Ok(match self.body() {
            Body::Plain(plain) if self.head().scheme == Scheme::PlainWide => plain
                .is_valid(row)
                .then(|| T::of_wide(i128::from_le_bytes(plain.values(row / VECTOR_ROWS)[row % VECTOR_ROWS]))),
            _ => self.key(row).map(|key| T::of_key(key, self.head())),
        })
    }

    /// Decodes the values of the rows in a set. Vectors without such rows are skipped; from vectors with few, single
    /// values are unpacked.
    pub fn gather<T: Value>(&self, rows: &RowSet) -> Result<Values<T>> {
        self.expect_kind(T::is_in(self.head().kind))?;
        SCRATCH.with_borrow_mut(|scratch| {
            let (buffer, keys) = scratch.get_or_insert_with(|| (LanesBuffer::new(), Box::new([0; VECTOR_ROWS])));
            self.gather_by(rows, buffer, keys)
        })
    }

    fn gather_by<T: Value>(
        &self,
        rows: &RowSet,
        buffer: &mut LanesBuffer,
        keys: &mut [i64; VECTOR_ROWS],
    ) -> Result<Values<T>> {
        let head = self.head();
        let mut gathered = Gathered::new(rows.count(), head.nulls != 0);
        for vector in rows.spanned() {
            let kept = rows.count_in(vector);
            if kept == 0 {
                continue;
            }
            let is_wide = head.scheme == Scheme::PlainWide;
            if kept * GATHER_EVERY_MIN <= VECTOR_ROWS && !is_wide {
                self.for_singles(vector, positions(rows.vector(vector)), |_, key| {
                    gathered.push(key.map(|key| T::of_key(key, head)));
                });
                continue;
            }
            let validity = self.validity(vector, buffer);
            let is_valid = |row: usize| validity[row / 64] >> (row % 64) & 1 == 1;
            if let (Body::Plain(plain), Scheme::PlainWide) = (self.body(), head.scheme) {
                let values: &[[u8; 16]] = plain.values(vector);
                for row in positions(rows.vector(vector)) {
                    gathered.push(is_valid(row).then(|| T::of_wide(i128::from_le_bytes(array(&values[row], 0)))));
                }
                continue;
            }
            self.keys(vector, buffer, keys);
            if head.entries[vector].nulls == 0 {
                gathered.mark(kept);
                if kept == head.rows_in(vector) {
                    gathered.values.extend(keys[..kept].iter().map(|key| T::of_key(*key, head)));
                } else {
                    gathered.take(keys, rows.vector(vector), kept, head);
                }
                continue;
            }
            for row in positions(rows.vector(vector)) {
                gathered.push(is_valid(row).then(|| T::of_key(keys[row], head)));
            }
        }
        Ok(gathered.finish())
    }
}

/// Builder of [`Values`].
struct Gathered<T> {
    values: Vec<T>,
    validity: Option<Vec<u64>>,
}

impl<T: Value> Gathered<T> {
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
    fn mark(&mut self, count: usize) {
        let start = self.values.len();
        if let Some(validity) = &mut self.validity {
            for row in start..start + count {
                validity[row / 64] |= 1 << (row % 64);
            }
        }
    }

    /// Adds the values of the `count` rows in a mask.
    #[inline(never)]
    fn take(&mut self, keys: &[i64; VECTOR_ROWS], mask: &Mask, count: usize, head: &Head) {
        // Resizes first, because extending would check the capacity for each value.
        let start = self.values.len();
        if VECTOR_ROWS <= count * 2 {
            // Branch-free: each value is written, and overwritten by the next unless its bit is set.
            self.values.resize(start + count + 1, T::default());
            let (values, mut at) = (&mut self.values[start..], 0);
            for (keys, bits) in keys.as_chunks::<64>().0.iter().zip(mask) {
                if *bits == u64::MAX {
                    let places = values[at..at + 64].iter_mut();
                    places.zip(keys).for_each(|(place, key)| *place = T::of_key(*key, head));
                    at += 64;
                    continue;
                }
                for (bit, key) in keys.iter().enumerate() {
                    values[at] = T::of_key(*key, head);
                    at += (bits >> bit & 1) as usize;
                }
            }
            self.values.truncate(start + count);
            return;
        }
        self.values.resize(start + count, T::default());
        for (place, row) in self.values[start..].iter_mut().zip(positions(mask)) {
            *place = T::of_key(keys[row], head);
        }
    }

    fn finish(self) -> Values<T> {
        Values { values: self.values, validity: self.validity }
    }
}

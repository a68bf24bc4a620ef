//! A column of a batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array, new_null_array};
use arrow::compute::take;

use super::{Bits, Form, Strings, opaque};
use crate::Result;

/// The least and the greatest value there may be. Bounds hold of every value of a column, also of what lies where a NULL is; no value
/// need be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    pub min: i128,
    pub max: i128,
}

impl Bounds {
    /// Of any `i64`.
    pub const I64: Self = Self { min: i64::MIN as i128, max: i64::MAX as i128 };

    /// Of one value.
    #[must_use]
    pub fn of(value: i128) -> Self {
        Self { min: value, max: value }
    }

    /// Whether all values within are `i64`s.
    #[must_use]
    pub fn are_narrow(self) -> bool {
        Self::I64.min <= self.min && self.max <= Self::I64.max
    }

    /// Of the values of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Values of one column. Cheap to clone. What lies where a NULL is may be anything that the form allows (a code is one of its strings',
/// unless there are no strings).
#[derive(Debug, Clone)]
pub struct Column {
    pub data: Data,
    /// The rows that are not NULL; `None` where no row is.
    pub validity: Option<Arc<Bits>>,
}

/// The values, a form for several SQL types.
#[derive(Debug, Clone)]
pub enum Data {
    /// Truth values.
    Bools(Arc<Bits>),
    /// Integers, dates, times, timestamps; digits of a numeric without its point.
    Ints { values: Arc<Vec<i64>>, bounds: Bounds },
    /// Digits of a numeric that may need more than 64 bits.
    Wide(Arc<Vec<i128>>),
    /// `float8`.
    Floats(Arc<Vec<f64>>),
    /// Strings of which there are few.
    Codes { codes: Arc<Vec<u32>>, strings: Arc<Strings> },
    /// Other strings.
    Texts(StringViewArray),
    /// What is only carried, as an array: its own NULLs are among the column's.
    Opaque(ArrayRef),
}

impl Column {
    /// A column without NULLs.
    #[must_use]
    pub fn new(data: Data) -> Self {
        Self { data, validity: None }
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        match &self.data {
            Data::Bools(bits) => bits.rows(),
            Data::Ints { values, .. } => values.len(),
            Data::Wide(values) => values.len(),
            Data::Floats(values) => values.len(),
            Data::Codes { codes, .. } => codes.len(),
            Data::Texts(texts) => texts.len(),
            Data::Opaque(array) => array.len(),
        }
    }

    /// Whether a row is not NULL.
    #[inline]
    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|bits| bits.get(row))
    }

    /// Whether some row is NULL.
    #[must_use]
    pub fn has_null(&self) -> bool {
        self.validity.as_ref().is_some_and(|bits| bits.count() < bits.rows())
    }

    /// The values of these rows, in their order; a row may come more than once. A column without rows, which nobody reads, stays so.
    ///
    /// # Errors
    /// None that well-formed columns meet.
    pub fn take(&self, rows: &[u32]) -> Result<Self> {
        if self.rows() == 0 {
            return Ok(self.clone());
        }
        let validity =
            self.validity.as_ref().map(|bits| Arc::new(Bits::of(rows.len(), |row| bits.get(rows[row] as usize))));
        let data = match &self.data {
            Data::Bools(bits) => Data::Bools(Arc::new(Bits::of(rows.len(), |row| bits.get(rows[row] as usize)))),
            Data::Ints { values, bounds } => Data::Ints { values: picked(values, rows), bounds: *bounds },
            Data::Wide(values) => Data::Wide(picked(values, rows)),
            Data::Floats(values) => Data::Floats(picked(values, rows)),
            Data::Codes { codes, strings } => Data::Codes { codes: picked(codes, rows), strings: Arc::clone(strings) },
            Data::Texts(texts) => {
                let rows = UInt32Array::from_iter_values(rows.iter().copied());
                let taken = take(texts, &rows, None)?;
                let taken = taken.as_any().downcast_ref::<StringViewArray>().expect("an array of its own type");
                Data::Texts(taken.clone())
            }
            Data::Opaque(array) => Data::Opaque(opaque::taken(array, rows)?),
        };
        Ok(Self { data, validity })
    }

    /// The values of the rows from one to another; a column without rows, which nobody reads, stays so.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        if self.rows() == 0 {
            return self.clone();
        }
        let bits = |bits: &Bits| Arc::new(Bits::of(end - start, |row| bits.get(start + row)));
        let data = match &self.data {
            Data::Bools(values) => Data::Bools(bits(values)),
            Data::Ints { values, bounds } => {
                Data::Ints { values: Arc::new(values[start..end].to_vec()), bounds: *bounds }
            }
            Data::Wide(values) => Data::Wide(Arc::new(values[start..end].to_vec())),
            Data::Floats(values) => Data::Floats(Arc::new(values[start..end].to_vec())),
            Data::Codes { codes, strings } => {
                Data::Codes { codes: Arc::new(codes[start..end].to_vec()), strings: Arc::clone(strings) }
            }
            Data::Texts(texts) => Data::Texts(texts.slice(start, end - start)),
            Data::Opaque(array) => Data::Opaque(array.slice(start, end - start)),
        };
        Self { data, validity: self.validity.as_deref().map(bits) }
    }

    /// The same value so many times, the NULL where `column` is one of one row.
    ///
    /// # Errors
    /// As [`Column::take`].
    pub fn repeated(&self, rows: usize) -> Result<Self> {
        self.take(&vec![0; rows])
    }

    /// NULLs, in the form of this column.
    #[must_use]
    pub fn nulls_like(&self, rows: usize) -> Self {
        let nulls = Form::of(self).nulls(rows);
        match &self.data {
            // Strings that were shared still are.
            Data::Codes { strings, .. } => {
                let data = Data::Codes { codes: Arc::new(vec![0; rows]), strings: Arc::clone(strings) };
                Self { data, ..nulls }
            }
            Data::Opaque(array) => Self { data: Data::Opaque(new_null_array(array.data_type(), rows)), ..nulls },
            _ => nulls,
        }
    }

    /// What it takes in memory, roughly; strings that codes share aside.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let values = match &self.data {
            Data::Bools(bits) => bits.words().len() * 8,
            Data::Ints { values, .. } => values.len() * 8,
            Data::Wide(values) => values.len() * 16,
            Data::Floats(values) => values.len() * 8,
            Data::Codes { codes, .. } => codes.len() * 4,
            Data::Texts(texts) => texts.get_array_memory_size(),
            Data::Opaque(array) => opaque::memory_bytes(array),
        };
        values + self.validity.as_ref().map_or(0, |bits| bits.words().len() * 8)
    }
}

fn picked<T: Copy>(values: &[T], rows: &[u32]) -> Arc<Vec<T>> {
    Arc::new(rows.iter().map(|row| values[*row as usize]).collect())
}

//! Columns of a batch and their values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array, new_null_array};
use arrow::compute::take;

use super::{Bits, Form, Strings, opaque};
use crate::Result;

/// Inclusive lower and upper bound of integers. Bounds cover every value of a column, including the placeholders of
/// NULL rows; they need not be tight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    pub min: i128,
    pub max: i128,
}

impl Bounds {
    /// Bounds that cover every `i64`.
    pub const I64: Self = Self { min: i64::MIN as i128, max: i64::MAX as i128 };

    /// Returns the bounds of a single value.
    #[must_use]
    pub fn of(value: i128) -> Self {
        Self { min: value, max: value }
    }

    /// Returns whether every value within the bounds fits in an `i64`.
    #[must_use]
    pub fn are_narrow(self) -> bool {
        Self::I64.min <= self.min && self.max <= Self::I64.max
    }

    /// Returns the smallest bounds that cover both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Values of one column with their validity; cheap to clone. NULL rows have arbitrary placeholder values that are
/// valid for the physical type (an index within the dictionary, unless the dictionary is empty).
#[derive(Debug, Clone)]
pub struct Column {
    pub data: Data,
    /// Bitmap of the rows that are not NULL; `None` if no row is NULL.
    pub validity: Option<Arc<Bits>>,
}

/// Values by physical type; several SQL types share one.
#[derive(Debug, Clone)]
pub enum Data {
    /// Boolean values.
    Bools(Arc<Bits>),
    /// Integers, dates, times and timestamps, and the unscaled digits of numerics that fit in 64 bits.
    Ints { values: Arc<Vec<i64>>, bounds: Bounds },
    /// Unscaled digits of numerics that may need more than 64 bits, and `uuid`s.
    Wide(Arc<Vec<i128>>),
    /// Floating-point values: `float8`, and `real` widened to it.
    Floats(Arc<Vec<f64>>),
    /// Dictionary-encoded strings with few distinct values.
    Codes { codes: Arc<Vec<u32>>, strings: Arc<Strings> },
    /// Plain strings.
    Texts(StringViewArray),
    /// Values the engine only passes through, as an Arrow array. The array's NULLs are NULL in the column's validity
    /// too.
    Opaque(ArrayRef),
}

impl Column {
    /// Creates a column without NULLs.
    #[must_use]
    pub fn new(data: Data) -> Self {
        Self { data, validity: None }
    }

    /// Returns the number of rows.
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

    /// Returns whether a row is not NULL.
    #[inline]
    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|bits| bits.get(row))
    }

    /// Returns whether any row is NULL.
    #[must_use]
    pub fn has_null(&self) -> bool {
        self.validity.as_ref().is_some_and(|bits| bits.count() < bits.rows())
    }

    /// Gathers the values of these rows in the given order; a row may occur repeatedly. A column without rows, which
    /// is never read, stays empty.
    ///
    /// # Errors
    /// Returns no error for well-formed columns.
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
                let taken = taken.as_any().downcast_ref::<StringViewArray>().expect("take preserves the array's type");
                Data::Texts(taken.clone())
            }
            Data::Opaque(array) => Data::Opaque(opaque::taken(array, rows)?),
        };
        Ok(Self { data, validity })
    }

    /// Returns the values of the rows in `start..end`; a column without rows, which is never read, stays empty.
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

    /// Repeats the first row's value, or its NULL, `rows` times.
    ///
    /// # Errors
    /// Returns the errors of [`Column::take`].
    pub fn repeated(&self, rows: usize) -> Result<Self> {
        self.take(&vec![0; rows])
    }

    /// Returns a column of NULLs with the physical type of this column.
    #[must_use]
    pub fn nulls_like(&self, rows: usize) -> Self {
        let nulls = Form::of(self).nulls(rows);
        match &self.data {
            // The dictionary stays shared.
            Data::Codes { strings, .. } => {
                let data = Data::Codes { codes: Arc::new(vec![0; rows]), strings: Arc::clone(strings) };
                Self { data, ..nulls }
            }
            Data::Opaque(array) => Self { data: Data::Opaque(new_null_array(array.data_type(), rows)), ..nulls },
            _ => nulls,
        }
    }

    /// Returns the approximate bytes of the column, without the entries of its dictionary.
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

/// Gathers the values of these rows.
fn picked<T: Copy>(values: &[T], rows: &[u32]) -> Arc<Vec<T>> {
    Arc::new(rows.iter().map(|row| values[*row as usize]).collect())
}

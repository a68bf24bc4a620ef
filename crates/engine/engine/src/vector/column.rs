//! Columns of a batch and their values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array, new_null_array};
use arrow::compute::take;

use super::{Bitmap, Dictionary, PhysicalType, opaque_arrays};
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
    pub fn from_value(value: i128) -> Self {
        Self { min: value, max: value }
    }

    /// Returns whether every value within the bounds fits in an `i64`.
    #[must_use]
    pub fn fit_i64(self) -> bool {
        Self::I64.min <= self.min && self.max <= Self::I64.max
    }

    /// Returns the smallest bounds that cover both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Values of one column with their validity; cheap to clone. NULL rows have arbitrary placeholder values that are
/// valid for the physical type (an index within the dictionary, unless the dictionary is empty).
#[derive(Debug, Clone)]
pub struct Column {
    pub data: ColumnData,
    /// Bitmap of the rows that are not NULL; `None` if no row is NULL.
    pub validity: Option<Arc<Bitmap>>,
}

/// Values by physical type; several SQL types share one.
#[derive(Debug, Clone)]
pub enum ColumnData {
    /// Boolean values.
    Bools(Arc<Bitmap>),
    /// Integers, dates, times and timestamps, and the unscaled digits of numerics that fit in 64 bits.
    Ints { values: Arc<Vec<i64>>, bounds: Bounds },
    /// Unscaled digits of numerics that may need more than 64 bits, and `uuid`s.
    WideInts(Arc<Vec<i128>>),
    /// Floating-point values: `float8`, and `real` widened to it.
    Floats(Arc<Vec<f64>>),
    /// Dictionary-encoded strings with few distinct values.
    Dictionary { indices: Arc<Vec<u32>>, dictionary: Arc<Dictionary> },
    /// Plain strings.
    Texts(StringViewArray),
    /// Values the engine only passes through, as an Arrow array. The array's NULLs are NULL in the column's validity
    /// too.
    Opaque(ArrayRef),
}

impl Column {
    /// Creates a column without NULLs.
    #[must_use]
    pub fn new(data: ColumnData) -> Self {
        Self { data, validity: None }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match &self.data {
            ColumnData::Bools(bits) => bits.rows(),
            ColumnData::Ints { values, .. } => values.len(),
            ColumnData::WideInts(values) => values.len(),
            ColumnData::Floats(values) => values.len(),
            ColumnData::Dictionary { indices: codes, .. } => codes.len(),
            ColumnData::Texts(texts) => texts.len(),
            ColumnData::Opaque(array) => array.len(),
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
        self.validity.as_ref().is_some_and(|bits| bits.count_ones() < bits.rows())
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
        let validity = self
            .validity
            .as_ref()
            .map(|bits| Arc::new(Bitmap::from_fn(rows.len(), |row| bits.get(rows[row] as usize))));
        let data = match &self.data {
            ColumnData::Bools(bits) => {
                ColumnData::Bools(Arc::new(Bitmap::from_fn(rows.len(), |row| bits.get(rows[row] as usize))))
            }
            ColumnData::Ints { values, bounds } => ColumnData::Ints { values: gather(values, rows), bounds: *bounds },
            ColumnData::WideInts(values) => ColumnData::WideInts(gather(values, rows)),
            ColumnData::Floats(values) => ColumnData::Floats(gather(values, rows)),
            ColumnData::Dictionary { indices: codes, dictionary: strings } => {
                ColumnData::Dictionary { indices: gather(codes, rows), dictionary: Arc::clone(strings) }
            }
            ColumnData::Texts(texts) => {
                let rows = UInt32Array::from_iter_values(rows.iter().copied());
                let taken = take(texts, &rows, None)?;
                let taken = taken.as_any().downcast_ref::<StringViewArray>().expect("take preserves the array's type");
                ColumnData::Texts(taken.clone())
            }
            ColumnData::Opaque(array) => ColumnData::Opaque(opaque_arrays::take_rows(array, rows)?),
        };
        Ok(Self { data, validity })
    }

    /// Returns the values of the rows in `start..end`; a column without rows, which is never read, stays empty.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        if self.rows() == 0 {
            return self.clone();
        }
        let bits = |bits: &Bitmap| Arc::new(Bitmap::from_fn(end - start, |row| bits.get(start + row)));
        let data = match &self.data {
            ColumnData::Bools(values) => ColumnData::Bools(bits(values)),
            ColumnData::Ints { values, bounds } => {
                ColumnData::Ints { values: Arc::new(values[start..end].to_vec()), bounds: *bounds }
            }
            ColumnData::WideInts(values) => ColumnData::WideInts(Arc::new(values[start..end].to_vec())),
            ColumnData::Floats(values) => ColumnData::Floats(Arc::new(values[start..end].to_vec())),
            ColumnData::Dictionary { indices: codes, dictionary: strings } => ColumnData::Dictionary {
                indices: Arc::new(codes[start..end].to_vec()),
                dictionary: Arc::clone(strings),
            },
            ColumnData::Texts(texts) => ColumnData::Texts(texts.slice(start, end - start)),
            ColumnData::Opaque(array) => ColumnData::Opaque(array.slice(start, end - start)),
        };
        Self { data, validity: self.validity.as_deref().map(bits) }
    }

    /// Repeats the first row's value, or its NULL, `rows` times.
    ///
    /// # Errors
    /// Returns the errors of [`Column::take`].
    pub fn repeat_scalar(&self, rows: usize) -> Result<Self> {
        self.take(&vec![0; rows])
    }

    /// Returns a column of NULLs with the physical type of this column.
    #[must_use]
    pub fn nulls_like(&self, rows: usize) -> Self {
        let nulls = PhysicalType::from_column(self).null_column(rows);
        match &self.data {
            // The dictionary stays shared.
            ColumnData::Dictionary { dictionary: strings, .. } => {
                let data = ColumnData::Dictionary { indices: Arc::new(vec![0; rows]), dictionary: Arc::clone(strings) };
                Self { data, ..nulls }
            }
            ColumnData::Opaque(array) => {
                Self { data: ColumnData::Opaque(new_null_array(array.data_type(), rows)), ..nulls }
            }
            _ => nulls,
        }
    }

    /// Returns the approximate bytes of the column, without the entries of its dictionary.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let values = match &self.data {
            ColumnData::Bools(bits) => bits.words().len() * 8,
            ColumnData::Ints { values, .. } => values.len() * 8,
            ColumnData::WideInts(values) => values.len() * 16,
            ColumnData::Floats(values) => values.len() * 8,
            ColumnData::Dictionary { indices: codes, .. } => codes.len() * 4,
            ColumnData::Texts(texts) => texts.get_array_memory_size(),
            ColumnData::Opaque(array) => opaque_arrays::memory_bytes(array),
        };
        values + self.validity.as_ref().map_or(0, |bits| bits.words().len() * 8)
    }
}

/// Gathers the values of these rows.
fn gather<T: Copy>(values: &[T], rows: &[u32]) -> Arc<Vec<T>> {
    Arc::new(rows.iter().map(|row| values[*row as usize]).collect())
}

//! Running totals of `sum` and `avg`.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::Result;
use types::SqlError;

use crate::arithmetic::{float_sum, overflow};
use crate::external;

/// Type of totals: 128-bit integers for exact numbers, doubles for floats.
pub(super) trait TotalValue: Copy + Default + Debug + Send + Sync + 'static {
    /// Adds a value.
    ///
    /// # Errors
    /// SQLSTATE 22003 on overflow.
    fn add(self, value: Self) -> Result<Self>;
    /// Subtracts a value, for moving window frames.
    fn subtract(self, value: Self) -> Self;
    /// Builds an array of totals of `data_type`, the type of partial states.
    fn array(totals: Vec<Self>, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    /// Calls `each` with the row and value of every value that is not NULL.
    fn read(values: &ArrayRef, each: impl FnMut(usize, Self) -> Result<()>) -> Result<()>;
}

impl TotalValue for i128 {
    fn add(self, value: Self) -> Result<Self> {
        self.checked_add(value).ok_or_else(|| external(overflow()))
    }

    fn subtract(self, value: Self) -> Self {
        self.wrapping_sub(value)
    }

    fn array(totals: Vec<Self>, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(Decimal128Array::new(totals.into(), nulls).with_data_type(data_type.clone())))
    }

    fn read(values: &ArrayRef, mut each: impl FnMut(usize, Self) -> Result<()>) -> Result<()> {
        macro_rules! rows {
            ($kind:ty) => {{
                let values = values.as_primitive::<$kind>();
                match values.nulls().filter(|nulls| 0 < nulls.null_count()) {
                    None => {
                        values.values().iter().enumerate().try_for_each(|(row, value)| each(row, i128::from(*value)))
                    }
                    Some(nulls) => nulls.valid_indices().try_for_each(|row| each(row, i128::from(values.value(row)))),
                }
            }};
        }
        match values.data_type() {
            DataType::Int16 => rows!(Int16Type),
            DataType::Int32 => rows!(Int32Type),
            DataType::Int64 => rows!(Int64Type),
            DataType::Decimal128(..) => rows!(Decimal128Type),
            other => Err(external(SqlError::internal(format!(
                "sum or avg of exact numbers: input or partial state of unexpected Arrow type {other}"
            )))),
        }
    }
}

impl TotalValue for f64 {
    fn add(self, value: Self) -> Result<Self> {
        float_sum(self, value).map_err(external)
    }

    fn subtract(self, value: Self) -> Self {
        self - value
    }

    fn array(totals: Vec<Self>, _data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(Float64Array::new(totals.into(), nulls)))
    }

    fn read(values: &ArrayRef, mut each: impl FnMut(usize, Self) -> Result<()>) -> Result<()> {
        macro_rules! rows {
            ($kind:ty) => {{
                let values = values.as_primitive::<$kind>();
                match values.nulls().filter(|nulls| 0 < nulls.null_count()) {
                    None => {
                        values.values().iter().enumerate().try_for_each(|(row, value)| each(row, f64::from(*value)))
                    }
                    Some(nulls) => nulls.valid_indices().try_for_each(|row| each(row, f64::from(values.value(row)))),
                }
            }};
        }
        match values.data_type() {
            DataType::Float32 => rows!(Float32Type),
            DataType::Float64 => rows!(Float64Type),
            other => Err(external(SqlError::internal(format!(
                "sum or avg of floats: input or partial state of unexpected Arrow type {other}"
            )))),
        }
    }
}

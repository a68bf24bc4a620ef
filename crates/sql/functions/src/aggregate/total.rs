//! Running totals: what `sum` and `avg` keep for each group.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::Result;
use types::SqlError;

use crate::arithmetic::{float_sum, overflow};
use crate::external;

/// A total: 128-bit integers for exact numbers, doubles for floats.
pub(super) trait Sum: Copy + Default + Debug + Send + Sync + 'static {
    /// Adds a value; `22003` where nothing holds the total.
    fn add(self, value: Self) -> Result<Self>;
    /// Takes a value away again, for moving windows.
    fn subtract(self, value: Self) -> Self;
    /// Totals as an array of `data_type`, the one that carries them between stages.
    fn array(totals: Vec<Self>, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
    /// Calls `each` with the row and value of every value that is not NULL.
    fn read(values: &ArrayRef, each: impl FnMut(usize, Self) -> Result<()>) -> Result<()>;
}

impl Sum for i128 {
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
            other => Err(external(SqlError::internal(format!("no exact total over {other}")))),
        }
    }
}

impl Sum for f64 {
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
            other => Err(external(SqlError::internal(format!("no floating total over {other}")))),
        }
    }
}

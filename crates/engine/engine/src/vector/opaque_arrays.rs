//! Values that the engine passes through without interpreting them: Arrow arrays of any type.
//!
//! While only NULLs have been seen, the Arrow type is unknown, and the array is a `NullArray`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, NullArray, UInt32Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, concat, interleave, nullif, take};
use arrow::datatypes::DataType;
use types::ValueMemoryCounter;

use crate::{Error, Result};

/// Returns NULLs of a type that is not known yet.
pub(crate) fn untyped_nulls(rows: usize) -> ArrayRef {
    Arc::new(NullArray::new(rows))
}

/// Copies the values of these rows into a new array.
pub(crate) fn take_rows(array: &ArrayRef, rows: &[u32]) -> Result<ArrayRef> {
    check_copy_size(array, rows)?;
    Ok(take(array, &UInt32Array::from_iter_values(rows.iter().copied()), None)?)
}

/// Checks the memory limit and Arrow's 31-bit offsets before values are copied; rows may repeat, so the copies may be
/// much larger than the array.
fn check_copy_size(array: &ArrayRef, rows: &[u32]) -> Result<()> {
    let (offsets, bytes) = match array.data_type() {
        DataType::Binary => (array.as_binary::<i32>().value_offsets(), 1),
        DataType::Utf8 => (array.as_string::<i32>().value_offsets(), 1),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.value_offsets(), memory_bytes(list.values()) / list.values().len().max(1))
        }
        _ => return Ok(()),
    };
    let length = |row: &u32| offsets.get(*row as usize + 1).map_or(0, |end| end - offsets[*row as usize]);
    let elements: usize = rows.iter().map(|row| length(row).unsigned_abs() as usize).sum();
    // Arrow's offsets within one array have 31 bits.
    if i32::MAX as usize <= elements {
        return Err(Error::OutOfMemory("copies of a column's variable-length values"));
    }
    Ok(ValueMemoryCounter::default().add(elements.saturating_mul(bytes))?)
}

/// Concatenates all values into a new array.
pub(crate) fn concat_arrays(arrays: &[&ArrayRef]) -> Result<ArrayRef> {
    match arrays {
        [] => Ok(untyped_nulls(0)),
        [one] => take_rows(one, &(0..).take(one.len()).collect::<Vec<u32>>()),
        _ => Ok(concat(&as_dyn_arrays(&with_common_type(arrays)))?),
    }
}

/// Gathers the picked values; a pick is the index of an array and a position in it.
pub(crate) fn interleave_arrays(arrays: &[&ArrayRef], picks: &[(u32, u32)]) -> Result<ArrayRef> {
    let picks: Vec<(usize, usize)> = picks.iter().map(|(array, row)| (*array as usize, *row as usize)).collect();
    Ok(interleave(&as_dyn_arrays(&with_common_type(arrays)), &picks)?)
}

/// Returns the bytes of the values, including those in buffers shared with other arrays.
pub(crate) fn memory_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

/// Converts to an array of the given type that is NULL where `nulls` says; `nulls` includes the array's own NULLs.
pub(crate) fn to_typed_array(array: &ArrayRef, nulls: Option<&NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    let array = if array.data_type() == data_type { Arc::clone(array) } else { cast(array, data_type)? };
    match nulls {
        Some(nulls) if array.null_count() != nulls.null_count() => {
            Ok(nullif(&array, &BooleanArray::new(!nulls.inner(), None))?)
        }
        _ => Ok(array),
    }
}

/// Gives untyped NULL arrays the type of the other arrays.
fn with_common_type(arrays: &[&ArrayRef]) -> Vec<ArrayRef> {
    let known = arrays.iter().map(|array| array.data_type()).find(|data_type| **data_type != DataType::Null);
    let typed = |array: &&ArrayRef| match known {
        Some(known) if *array.data_type() == DataType::Null => new_null_array(known, array.len()),
        _ => Arc::clone(*array),
    };
    arrays.iter().map(typed).collect()
}

fn as_dyn_arrays(arrays: &[ArrayRef]) -> Vec<&dyn Array> {
    arrays.iter().map(AsRef::as_ref).collect()
}

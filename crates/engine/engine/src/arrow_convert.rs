//! Conversion between the engine's columns and Arrow arrays, at the boundary to scans, DataFusion's operators and
//! functions.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, FixedSizeBinaryArray, Int64Array, PrimitiveArray,
    StringViewArray, UInt32Array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type,
    UInt32Type, i256,
};

use crate::vector::opaque_arrays;
use crate::{Bitmap, Bounds, Column, ColumnData, Dictionary, Error, PhysicalType, Result};

/// Maximum precision of decimals that always fit in 64 bits.
const INT64_DECIMAL_PRECISION_MAX: u8 = 18;

/// Bytes of a `uuid`, stored as a 128-bit integer of the same order.
const UUID_BYTES: i32 = 16;

/// Returns the physical type of columns of an Arrow type, or `None` if the engine does not support the type.
#[must_use]
pub fn physical_type(data_type: &DataType) -> Option<PhysicalType> {
    Some(match data_type {
        DataType::Boolean => PhysicalType::Bools,
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::Date32
        | DataType::Time64(TimeUnit::Microsecond)
        | DataType::Timestamp(TimeUnit::Microsecond, _) => PhysicalType::Ints,
        DataType::Decimal128(precision, _) if *precision <= INT64_DECIMAL_PRECISION_MAX => PhysicalType::Ints,
        DataType::Decimal128(..) | DataType::FixedSizeBinary(UUID_BYTES) => PhysicalType::WideInts,
        DataType::Float32 | DataType::Float64 => PhysicalType::Floats,
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8 => PhysicalType::Texts,
        DataType::Binary | DataType::Interval(IntervalUnit::MonthDayNano) | DataType::List(_) => PhysicalType::Opaque,
        _ => return None,
    })
}

/// Returns whether the engine can compare values of this type, as join keys, GROUP BY keys and sort keys require.
#[must_use]
pub fn is_comparable(data_type: &DataType) -> bool {
    physical_type(data_type).is_some_and(|form| form != PhysicalType::Opaque)
}

/// Returns whether the engine supports columns of this type.
#[must_use]
pub fn is_supported(data_type: &DataType) -> bool {
    physical_type(data_type).is_some()
}

/// Converts an Arrow array to a column.
///
/// # Errors
/// Returns [`Error::Internal`] for unsupported types.
pub fn from_array(array: &ArrayRef) -> Result<Column> {
    let validity = array
        .nulls()
        .filter(|nulls| nulls.null_count() != 0)
        .map(|nulls| Arc::new(Bitmap::from_fn(nulls.len(), |row| nulls.is_valid(row))));
    let data = match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            ColumnData::Bools(Arc::new(Bitmap::from_fn(values.len(), |row| values.value(row))))
        }
        DataType::Int8 => int_data::<Int8Type>(array, i64::from),
        DataType::Int16 => int_data::<Int16Type>(array, i64::from),
        DataType::Int32 => int_data::<Int32Type>(array, i64::from),
        DataType::UInt8 => int_data::<UInt8Type>(array, i64::from),
        DataType::UInt16 => int_data::<UInt16Type>(array, i64::from),
        DataType::UInt32 => int_data::<UInt32Type>(array, i64::from),
        DataType::Int64 => int_data::<Int64Type>(array, |value| value),
        DataType::Date32 => int_data::<Date32Type>(array, i64::from),
        DataType::Time64(TimeUnit::Microsecond) => int_data::<Time64MicrosecondType>(array, |value| value),
        DataType::Timestamp(TimeUnit::Microsecond, _) => int_data::<TimestampMicrosecondType>(array, |value| value),
        DataType::Decimal128(..) => decimal_data(array.as_primitive::<Decimal128Type>()),
        DataType::FixedSizeBinary(UUID_BYTES) => {
            ColumnData::WideInts(Arc::new(uuid_integers(array.as_fixed_size_binary())))
        }
        DataType::Float64 => ColumnData::Floats(Arc::new(array.as_primitive::<Float64Type>().values().to_vec())),
        // Every `real` is exactly representable as a `float8`.
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            ColumnData::Floats(Arc::new(values.iter().map(|value| f64::from(*value)).collect()))
        }
        DataType::Binary | DataType::Interval(IntervalUnit::MonthDayNano) | DataType::List(_) => {
            ColumnData::Opaque(Arc::clone(array))
        }
        DataType::Utf8View => ColumnData::Texts(array.as_string_view().clone()),
        DataType::Utf8 | DataType::LargeUtf8 => {
            ColumnData::Texts(cast(array, &DataType::Utf8View)?.as_string_view().clone())
        }
        _ => return Err(Error::Internal("the engine does not support an array's type")),
    };
    Ok(Column { data, validity })
}

/// Converts a column of strings to a dictionary column with one entry per row; other columns stay as they are. Rows
/// that look up a table of results then share its strings.
pub(crate) fn to_dictionary(column: Column) -> Result<Column> {
    let ColumnData::Texts(texts) = &column.data else { return Ok(column) };
    let rows = texts.len();
    let whole = StringViewArray::try_new(texts.views().clone(), texts.data_buffers().to_vec(), None)?;
    let codes = (0..rows).map(|row| u32::try_from(row).expect("a result table has fewer than 2^32 rows")).collect();
    Ok(Column {
        data: ColumnData::Dictionary { indices: Arc::new(codes), dictionary: Dictionary::new(whole) },
        validity: column.validity,
    })
}

fn int_data<T: ArrowPrimitiveType>(array: &ArrayRef, widen: impl Fn(T::Native) -> i64) -> ColumnData {
    let array = array.as_primitive::<T>();
    let mut values: Vec<i64> = array.values().iter().map(|value| widen(*value)).collect();
    clear_nulls(&mut values, array.nulls());
    let bounds = compute_bounds(&values);
    ColumnData::Ints { values: Arc::new(values), bounds }
}

fn decimal_data(array: &PrimitiveArray<Decimal128Type>) -> ColumnData {
    let mut values = array.values().to_vec();
    clear_nulls(&mut values, array.nulls());
    let narrow =
        array.precision() <= INT64_DECIMAL_PRECISION_MAX || values.iter().all(|value| i64::try_from(*value).is_ok());
    if !narrow {
        return ColumnData::WideInts(Arc::new(values));
    }
    #[expect(clippy::cast_possible_truncation, reason = "18 digits fit in 63 bits, or every value was checked")]
    let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
    let bounds = compute_bounds(&values);
    ColumnData::Ints { values: Arc::new(values), bounds }
}

/// Sign bit of a 128-bit integer; flipping it makes signed order equal to byte order.
const SIGN_BIT: u128 = 1 << 127;

fn uuid_integers(array: &FixedSizeBinaryArray) -> Vec<i128> {
    let number = |bytes: &[u8]| bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let value = |row: usize| if array.is_valid(row) { (number(array.value(row)) ^ SIGN_BIT).cast_signed() } else { 0 };
    (0..array.len()).map(value).collect()
}

/// Converts 128-bit integers back to the 16 bytes of a `uuid`.
fn uuid_array(values: impl Iterator<Item = i128>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let bytes: Vec<u8> = values.flat_map(|value| (value.cast_unsigned() ^ SIGN_BIT).to_be_bytes()).collect();
    Ok(Arc::new(FixedSizeBinaryArray::try_new(UUID_BYTES, Buffer::from_vec(bytes), nulls)?))
}

/// Sets the values of NULL rows to the default, because a column's bounds cover NULL rows too.
fn clear_nulls<T: Default>(values: &mut [T], nulls: Option<&NullBuffer>) {
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() != 0) {
        for (row, value) in values.iter_mut().enumerate() {
            if nulls.is_null(row) {
                *value = T::default();
            }
        }
    }
}

fn compute_bounds(values: &[i64]) -> Bounds {
    let (min, max) = values.iter().fold((i64::MAX, i64::MIN), |(min, max), value| (min.min(*value), max.max(*value)));
    if values.is_empty() { Bounds::from_value(0) } else { Bounds { min: min.into(), max: max.into() } }
}

/// Converts a column to an Arrow array of the given type.
///
/// # Errors
/// Returns [`Error::Internal`] if the column's physical type does not represent the Arrow type.
pub fn to_array(column: &Column, data_type: &DataType) -> Result<ArrayRef> {
    if column.validity.as_ref().is_some_and(|bits| bits.count_ones() == 0) {
        // A column of NULLs only may have any physical type.
        return Ok(new_null_array(data_type, column.rows()));
    }
    let nulls = column
        .validity
        .as_ref()
        .map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits.words().to_vec()), 0, bits.rows())));
    Ok(match (&column.data, data_type) {
        (ColumnData::Bools(bits), DataType::Boolean) => {
            let values = BooleanBuffer::new(Buffer::from_vec(bits.words().to_vec()), 0, bits.rows());
            Arc::new(BooleanArray::new(values, nulls))
        }
        (ColumnData::Ints { values, .. }, DataType::Decimal128(..)) => {
            let values: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
            primitive_array::<Decimal128Type>(values, nulls, data_type)
        }
        (ColumnData::Ints { values, .. }, DataType::Decimal256(..)) => {
            let values: Vec<i256> = values.iter().map(|value| i256::from_i128((*value).into())).collect();
            primitive_array::<Decimal256Type>(values, nulls, data_type)
        }
        (ColumnData::WideInts(values), DataType::Decimal256(..)) => {
            let values: Vec<i256> = values.iter().map(|value| i256::from_i128(*value)).collect();
            primitive_array::<Decimal256Type>(values, nulls, data_type)
        }
        (ColumnData::WideInts(values), DataType::Decimal128(..)) => {
            primitive_array::<Decimal128Type>(values.to_vec(), nulls, data_type)
        }
        (ColumnData::Ints { values, .. }, DataType::Int64) => {
            Arc::new(Int64Array::new(ScalarBuffer::from(values.to_vec()), nulls))
        }
        (ColumnData::WideInts(values), DataType::Int64) => {
            try_narrowed_array::<Int64Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::Int8) => {
            try_narrowed_array::<Int8Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::Int16) => {
            try_narrowed_array::<Int16Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::Int32) => {
            try_narrowed_array::<Int32Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::UInt8) => {
            try_narrowed_array::<UInt8Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::UInt16) => {
            try_narrowed_array::<UInt16Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::UInt32) => {
            try_narrowed_array::<UInt32Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::Date32) => {
            try_narrowed_array::<Date32Type, _>(values, nulls, data_type)?
        }
        (ColumnData::Ints { values, .. }, DataType::Time64(TimeUnit::Microsecond)) => {
            primitive_array::<Time64MicrosecondType>(values.to_vec(), nulls, data_type)
        }
        (ColumnData::Ints { values, .. }, DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            primitive_array::<TimestampMicrosecondType>(values.to_vec(), nulls, data_type)
        }
        (ColumnData::Ints { values, .. }, DataType::FixedSizeBinary(UUID_BYTES)) => {
            uuid_array(values.iter().map(|value| i128::from(*value)), nulls)?
        }
        (ColumnData::WideInts(values), DataType::FixedSizeBinary(UUID_BYTES)) => {
            uuid_array(values.iter().copied(), nulls)?
        }
        #[expect(clippy::cast_possible_truncation, reason = "every value was converted from a `real`")]
        (ColumnData::Floats(values), DataType::Float32) => {
            primitive_array::<Float32Type>(values.iter().map(|value| *value as f32).collect(), nulls, data_type)
        }
        (ColumnData::Opaque(array), data_type) => opaque_arrays::to_typed_array(array, nulls.as_ref(), data_type)?,
        (ColumnData::Floats(values), DataType::Float64) => {
            primitive_array::<Float64Type>(values.to_vec(), nulls, data_type)
        }
        (ColumnData::Texts(texts), DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8) => {
            let texts = StringViewArray::try_new(texts.views().clone(), texts.data_buffers().to_vec(), nulls)?;
            cast_text(Arc::new(texts), data_type)?
        }
        (
            ColumnData::Dictionary { indices: codes, dictionary: strings },
            DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8,
        ) => {
            let codes = UInt32Array::new(ScalarBuffer::from(codes.to_vec()), nulls);
            cast_text(take(strings.values(), &codes, None)?, data_type)?
        }
        _ => return Err(Error::Internal("a column's physical type does not match the Arrow type")),
    })
}

/// Casts a string view array to the requested string type.
fn cast_text(texts: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if *data_type == DataType::Utf8View { Ok(texts) } else { Ok(cast(&texts, data_type)?) }
}

fn primitive_array<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls).with_data_type(data_type.clone()))
}

/// Converts integers to a narrower Arrow type.
fn try_narrowed_array<T: ArrowPrimitiveType, V: Copy>(
    values: &[V],
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef>
where
    T::Native: TryFrom<V> + Default,
{
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let value = |(row, value): (usize, &V)| match T::Native::try_from(*value) {
        Ok(value) => Ok(value),
        Err(_) if is_null(row) => Ok(T::Native::default()),
        Err(_) => Err(Error::Internal("an integer is out of range for the Arrow type")),
    };
    let values = values.iter().enumerate().map(value).collect::<Result<Vec<_>>>()?;
    Ok(primitive_array::<T>(values, nulls, data_type))
}

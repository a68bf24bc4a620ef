//! Encoding of arrays of other types: the type as text, then the values. Binary values are lengths and bytes; intervals
//! are months, days and nanoseconds; lists are lengths and one column of all elements.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, IntervalMonthDayNanoArray, LargeBinaryArray, ListArray, NullArray,
    OffsetSizeTrait, UInt32Array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit};

use super::decode::read_column;
use super::encode::put_column;
use super::integer_encoding::{DAMAGED_ERROR, ROWS_MAX, Reader, put_count, put_numbers};
use crate::{Bitmap, Column, Error, Result, arrow_convert};

/// Maximum nesting of lists.
const LIST_DEPTH_MAX: u32 = 8;

/// Appends an array. Rows that are NULL in `values` have length 0, whatever the array has there.
pub(super) fn put_array(bytes: &mut Vec<u8>, values: &Column, array: &ArrayRef) -> Result<()> {
    let name = array.data_type().to_string();
    put_count(bytes, name.len());
    bytes.extend_from_slice(name.as_bytes());
    let rows = array.len();
    let length = |row: usize, length: usize| if values.is_valid(row) { length as i64 } else { 0 };
    match array.data_type() {
        DataType::Null => {}
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            put_numbers(bytes, &(0..rows).map(|row| length(row, array.value(row).len())).collect::<Vec<_>>());
            let there = (0..rows).filter(|row| values.is_valid(*row));
            there.for_each(|row| bytes.extend_from_slice(array.value(row)));
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            put_numbers(bytes, &(0..rows).map(|row| length(row, array.value(row).len())).collect::<Vec<_>>());
            let there = (0..rows).filter(|row| values.is_valid(*row));
            there.for_each(|row| bytes.extend_from_slice(array.value(row)));
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let spans = array.as_primitive::<IntervalMonthDayNanoType>().values();
            put_numbers(bytes, &spans.iter().map(|span| span.months.into()).collect::<Vec<_>>());
            put_numbers(bytes, &spans.iter().map(|span| span.days.into()).collect::<Vec<_>>());
            put_numbers(bytes, &spans.iter().map(|span| span.nanoseconds).collect::<Vec<_>>());
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            put_numbers(bytes, &(0..rows).map(|row| length(row, lists.value_length(row) as usize)).collect::<Vec<_>>());
            let places = (0..rows).filter(|row| values.is_valid(*row)).flat_map(|row| {
                let start = lists.value_offsets()[row];
                (start..start + lists.value_length(row)).map(|place| place as u32)
            });
            let elements = take(lists.values(), &UInt32Array::from_iter_values(places), None)?;
            if ROWS_MAX < elements.len() {
                return Err(Error::Internal("more than 2^22 list elements to encode together"));
            }
            put_column(bytes, &arrow_convert::from_array(&elements)?)?;
        }
        _ => return Err(Error::Internal("a column has a type that cannot be written to a spill file")),
    }
    Ok(())
}

/// Reads `rows` rows that [`put_array`] has written; rows that are not `valid` are NULL. `depth` is the number of
/// enclosing lists.
pub(super) fn read_array(reader: &mut Reader<'_>, rows: usize, valid: Option<&Bitmap>, depth: u32) -> Result<ArrayRef> {
    let name = reader.read_count()?;
    let name = std::str::from_utf8(reader.read_bytes(name)?).map_err(|_| DAMAGED_ERROR)?;
    let data_type: DataType = name.parse().map_err(|_| DAMAGED_ERROR)?;
    let nulls =
        valid.map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits.words().to_vec()), 0, bits.rows())));
    Ok(match &data_type {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Binary => {
            let (offsets, count) = read_offsets(reader, rows, i32::MAX as usize)?;
            let values = Buffer::from_slice_ref(reader.read_bytes(count)?);
            Arc::new(BinaryArray::try_new(offsets, values, nulls)?)
        }
        DataType::LargeBinary => {
            let (offsets, count) = read_offsets(reader, rows, i32::MAX as usize)?;
            let values = Buffer::from_slice_ref(reader.read_bytes(count)?);
            Arc::new(LargeBinaryArray::try_new(offsets, values, nulls)?)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let mut part = || reader.read_numbers(rows);
            let (months, days, nanoseconds) = (part()?, part()?, part()?);
            let small = |number: i64| i32::try_from(number).map_err(|_| DAMAGED_ERROR);
            let span =
                |row: usize| Ok(IntervalMonthDayNano::new(small(months[row])?, small(days[row])?, nanoseconds[row]));
            let spans = (0..rows).map(span).collect::<Result<Vec<_>>>()?;
            Arc::new(IntervalMonthDayNanoArray::try_new(spans.into(), nulls)?)
        }
        DataType::List(field) if depth < LIST_DEPTH_MAX => {
            let (offsets, count) = read_offsets(reader, rows, ROWS_MAX)?;
            let elements = read_column(reader, count, depth + 1)?;
            if elements.rows() != count {
                return Err(DAMAGED_ERROR);
            }
            let elements = arrow_convert::to_array(&elements, field.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(field), offsets, elements, nulls)?)
        }
        _ => return Err(DAMAGED_ERROR),
    })
}

/// Reads lengths and returns the offsets of the values and the total length, which must not exceed `most`.
fn read_offsets<O: OffsetSizeTrait>(
    reader: &mut Reader<'_>,
    rows: usize,
    most: usize,
) -> Result<(OffsetBuffer<O>, usize)> {
    let lengths =
        reader.read_numbers(rows)?.into_iter().map(|length| usize::try_from(length).map_err(|_| DAMAGED_ERROR));
    let lengths = lengths.collect::<Result<Vec<usize>>>()?;
    let all = lengths.iter().try_fold(0_usize, |all, length| all.checked_add(*length));
    let all = all.filter(|all| *all <= most).ok_or(DAMAGED_ERROR)?;
    Ok((OffsetBuffer::from_lengths(lengths), all))
}

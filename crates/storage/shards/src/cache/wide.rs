//! Values of 16 bytes as numbers of 128 bits: UUIDs in their order, intervals as they are made up.

use arrow::array::{FixedSizeBinaryArray, IntervalMonthDayNanoArray};
use arrow::buffer::Buffer;
use arrow::datatypes::IntervalMonthDayNano;
use blocks::Values;

use super::block::nulls_of;
use crate::Result;

/// Bytes of a UUID, as Arrow counts them.
pub(super) const UUID_BYTES: i32 = 16;

/// The number of a UUID, its first bit changed: numbers have a sign and are of the order that bytes have. Zero for what is no UUID.
pub(super) fn of_uuid(bytes: &[u8]) -> i128 {
    bytes.first_chunk().map_or(0, |bytes| i128::from_be_bytes(*bytes) ^ i128::MIN)
}

pub(super) fn uuids_of(numbers: Values<i128>) -> Result<FixedSizeBinaryArray> {
    let Values { values, validity } = numbers;
    let nulls = nulls_of(validity, values.len());
    let bytes: Vec<u8> = values.iter().flat_map(|number| (number ^ i128::MIN).to_be_bytes()).collect();
    Ok(FixedSizeBinaryArray::try_new(UUID_BYTES, Buffer::from_vec(bytes), nulls)?)
}

/// Months, then days, then nanoseconds: no order of intervals, which scans do not compare.
pub(super) fn of_interval(interval: &IntervalMonthDayNano) -> i128 {
    let days = u128::from(interval.days.cast_unsigned()) << 64;
    i128::from(interval.months) << 96 | (days | u128::from(interval.nanoseconds.cast_unsigned())).cast_signed()
}

#[expect(clippy::cast_possible_truncation, reason = "parts of the number")]
pub(super) fn intervals_of(numbers: Values<i128>) -> Result<IntervalMonthDayNanoArray> {
    let Values { values, validity } = numbers;
    let nulls = nulls_of(validity, values.len());
    let interval =
        |number: i128| IntervalMonthDayNano::new((number >> 96) as i32, (number >> 64) as i32, number as i64);
    let intervals: Vec<_> = values.into_iter().map(interval).collect();
    Ok(IntervalMonthDayNanoArray::try_new(intervals.into(), nulls)?)
}

//! Conversion of 16-byte values, UUIDs and intervals, to 128-bit numbers and back.

use arrow::array::{FixedSizeBinaryArray, IntervalMonthDayNanoArray};
use arrow::buffer::Buffer;
use arrow::datatypes::IntervalMonthDayNano;
use blocks::Values;

use super::block::null_buffer;
use crate::Result;

/// Size of a UUID in bytes, in Arrow's type for it.
pub(super) const UUID_BYTES: i32 = 16;

/// Converts a UUID to a number of the same order: the sign bit is flipped, because UUIDs compare as unsigned. Returns 0
/// for other byte strings.
pub(super) fn uuid_to_i128(bytes: &[u8]) -> i128 {
    bytes.first_chunk().map_or(0, |bytes| i128::from_be_bytes(*bytes) ^ i128::MIN)
}

/// Converts numbers back to UUIDs.
pub(super) fn uuids_from_i128(numbers: Values<i128>) -> Result<FixedSizeBinaryArray> {
    let Values { values, validity } = numbers;
    let nulls = null_buffer(validity, values.len());
    let bytes: Vec<u8> = values.iter().flat_map(|number| (number ^ i128::MIN).to_be_bytes()).collect();
    Ok(FixedSizeBinaryArray::try_new(UUID_BYTES, Buffer::from_vec(bytes), nulls)?)
}

/// Converts an interval to a number: months, days and nanoseconds, from the highest bits down. The order means nothing;
/// scans do not compare intervals.
pub(super) fn interval_to_i128(interval: &IntervalMonthDayNano) -> i128 {
    let days = u128::from(interval.days.cast_unsigned()) << 64;
    i128::from(interval.months) << 96 | (days | u128::from(interval.nanoseconds.cast_unsigned())).cast_signed()
}

/// Converts numbers back to intervals.
#[expect(clippy::cast_possible_truncation, reason = "parts of the number")]
pub(super) fn intervals_from_i128(numbers: Values<i128>) -> Result<IntervalMonthDayNanoArray> {
    let Values { values, validity } = numbers;
    let nulls = null_buffer(validity, values.len());
    let interval =
        |number: i128| IntervalMonthDayNano::new((number >> 96) as i32, (number >> 64) as i32, number as i64);
    let intervals: Vec<_> = values.into_iter().map(interval).collect();
    Ok(IntervalMonthDayNanoArray::try_new(intervals.into(), nulls)?)
}

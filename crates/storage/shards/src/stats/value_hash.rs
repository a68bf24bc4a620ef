//! Hashes of values for sketches, frequencies and buckets. Equal values have equal hashes in every shard, all 64 bits
//! are well mixed, and hashes are part of the storage format.

use arrow::datatypes::IntervalMonthDayNano;
use types::Interval;
use xxhash_rust::xxh3::xxh3_64;

/// The finalizer of SplitMix64: a bijection in which every input bit flips half of the output's.
#[inline]
pub(crate) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[inline]
pub(crate) fn int(value: i64) -> u64 {
    mix(value.cast_unsigned())
}

#[inline]
pub(crate) fn decimal(value: i128) -> u64 {
    let value = value.cast_unsigned();
    let (high, low) = ((value >> 64) as u64, value as u64);
    // For nearly all numbers the upper half is only the sign.
    let mixed = match high {
        0 => const { mix(0) },
        u64::MAX => const { mix(u64::MAX) },
        _ => mix(high),
    };
    mix(low ^ mixed)
}

/// Hashes a float; -0 equals 0, and all NaN are equal.
#[inline]
pub(crate) fn float(value: f64) -> u64 {
    let canonical = if value.is_nan() {
        f64::NAN
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    mix(canonical.to_bits())
}

#[inline]
pub(crate) fn bytes(value: &[u8]) -> u64 {
    xxh3_64(value)
}

/// Hashes an interval; as in SQL comparisons, a day has 24 hours and a month 30 days.
pub(crate) fn interval(value: IntervalMonthDayNano) -> u64 {
    decimal(Interval::new(value.months, value.days, value.nanoseconds / 1_000).span_us())
}

//! Hashes of values for sketches, counts and buckets: equal values hash alike in every shard, all 64 bits are mixed. They are part of what is stored.

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
    // Few numbers are so great that the upper half is more than their sign.
    let mixed = match high {
        0 => const { mix(0) },
        u64::MAX => const { mix(u64::MAX) },
        _ => mix(high),
    };
    mix(low ^ mixed)
}

/// One hash for -0 and 0, one for all NaN.
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

/// SQL takes a day for 24 hours and a month for 30 days when it compares.
pub(crate) fn interval(value: IntervalMonthDayNano) -> u64 {
    decimal(Interval::new(value.months, value.days, value.nanoseconds / 1_000).span_us())
}

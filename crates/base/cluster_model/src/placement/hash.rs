//! 64 bits from 64 bits such that each of them depends on all.

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014, with Stafford's constants of variant 13), which is a bijection. Shifted by the
/// generator's increment, so that 0 is not where it stays.
#[inline]
pub(super) fn mix(bits: u64) -> u64 {
    let mut bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// What a slot weighs for a part: both are hashes already. Two slots' weights must not be alike for one part after the other, so it is mixed
/// as a whole.
#[inline]
pub(super) fn weigh(part: u64, slot: u64) -> u64 {
    mix(part ^ slot)
}

//! Hash functions of the placement.

/// Mixes 64 bits so that each output bit depends on all input bits: the finalizer of SplitMix64 (Steele, Lea and Flood
/// 2014, with Stafford's constants of variant 13), a bijection. The input is shifted by the generator's increment, so
/// that 0 is not mapped to itself.
#[inline]
pub(super) fn mix_bits(bits: u64) -> u64 {
    let mut bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Returns the weight of a slot for a part, both given as hashes. The combination is mixed again, so that the weights
/// of two slots are not correlated over the parts.
#[inline]
pub(super) fn slot_weight(part: u64, slot: u64) -> u64 {
    mix_bits(part ^ slot)
}

//! Frame-of-reference packing of integers: offsets from the minimum, in the fewest bytes that fit all.

use crate::packed_metadata::shard_set::ShardSet;

/// Packed integers; each takes 0 bytes (if all are equal), 1, 2, 4 or 8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackedNumbers {
    /// Minimum; every number is the sum of it and its lane.
    base: u64,
    lanes: Lanes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
/// Offsets from the minimum.
enum Lanes {
    None,
    U8(Box<[u8]>),
    U16(Box<[u16]>),
    U32(Box<[u32]>),
    U64(Box<[u64]>),
}

impl PackedNumbers {
    pub(super) fn pack(numbers: &[u64]) -> Self {
        let base = numbers.iter().copied().min().unwrap_or(0);
        let widest = numbers.iter().map(|number| number - base).max().unwrap_or(0);
        let lanes = match widest {
            0 => Lanes::None,
            1..=0xff => Lanes::U8(to_narrow_lanes(numbers, base)),
            0x100..=0xffff => Lanes::U16(to_narrow_lanes(numbers, base)),
            0x1_0000..=0xffff_ffff => Lanes::U32(to_narrow_lanes(numbers, base)),
            _ => Lanes::U64(numbers.iter().map(|number| number - base).collect()),
        };
        Self { base, lanes }
    }

    /// Returns the number at an index.
    pub(super) fn get(&self, index: usize) -> u64 {
        let lane = match &self.lanes {
            Lanes::None => 0,
            Lanes::U8(lanes) => lanes[index].into(),
            Lanes::U16(lanes) => lanes[index].into(),
            Lanes::U32(lanes) => lanes[index].into(),
            Lanes::U64(lanes) => lanes[index],
        };
        self.base + lane
    }

    /// Removes positions whose number is less than `least`.
    pub(super) fn retain_at_least(&self, least: u64, chosen: &mut ShardSet) {
        if let Some(least) = least.checked_sub(self.base).filter(|least| 0 < *least) {
            self.retain(chosen, |lane| least <= lane);
        }
    }

    /// Removes positions whose number is greater than `greatest`.
    pub(super) fn retain_at_most(&self, greatest: u64, chosen: &mut ShardSet) {
        match greatest.checked_sub(self.base) {
            Some(greatest) => self.retain(chosen, |lane| lane <= greatest),
            None => chosen.clear(),
        }
    }

    /// Removes positions whose lane does not pass.
    fn retain(&self, chosen: &mut ShardSet, is_kept: impl Fn(u64) -> bool) {
        match &self.lanes {
            Lanes::None if is_kept(0) => {}
            Lanes::None => chosen.clear(),
            Lanes::U8(lanes) => chosen.retain(lanes, is_kept),
            Lanes::U16(lanes) => chosen.retain(lanes, is_kept),
            Lanes::U32(lanes) => chosen.retain(lanes, is_kept),
            Lanes::U64(lanes) => chosen.retain(lanes, is_kept),
        }
    }

    /// Returns the heap size in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.lanes {
            Lanes::None => 0,
            Lanes::U8(lanes) => lanes.len(),
            Lanes::U16(lanes) => size_of_val(&**lanes),
            Lanes::U32(lanes) => size_of_val(&**lanes),
            Lanes::U64(lanes) => size_of_val(&**lanes),
        }
    }
}

fn to_narrow_lanes<T: TryFrom<u64>>(numbers: &[u64], base: u64) -> Box<[T]> {
    let narrow = |number: &u64| T::try_from(number - base).ok().expect("lane width was chosen for the largest offset");
    numbers.iter().map(narrow).collect()
}

//! Frame-of-reference packing of integers: offsets from the minimum, in the fewest bytes that fit all.

use crate::packed::shard_set::ShardSet;

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
    One(Box<[u8]>),
    Two(Box<[u16]>),
    Four(Box<[u32]>),
    Eight(Box<[u64]>),
}

impl PackedNumbers {
    pub(super) fn pack(numbers: &[u64]) -> Self {
        let base = numbers.iter().copied().min().unwrap_or(0);
        let widest = numbers.iter().map(|number| number - base).max().unwrap_or(0);
        let lanes = match widest {
            0 => Lanes::None,
            1..=0xff => Lanes::One(narrow(numbers, base)),
            0x100..=0xffff => Lanes::Two(narrow(numbers, base)),
            0x1_0000..=0xffff_ffff => Lanes::Four(narrow(numbers, base)),
            _ => Lanes::Eight(numbers.iter().map(|number| number - base).collect()),
        };
        Self { base, lanes }
    }

    /// Returns the number at an index.
    pub(super) fn get(&self, index: usize) -> u64 {
        let lane = match &self.lanes {
            Lanes::None => 0,
            Lanes::One(lanes) => lanes[index].into(),
            Lanes::Two(lanes) => lanes[index].into(),
            Lanes::Four(lanes) => lanes[index].into(),
            Lanes::Eight(lanes) => lanes[index],
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
            Lanes::One(lanes) => chosen.retain(lanes, is_kept),
            Lanes::Two(lanes) => chosen.retain(lanes, is_kept),
            Lanes::Four(lanes) => chosen.retain(lanes, is_kept),
            Lanes::Eight(lanes) => chosen.retain(lanes, is_kept),
        }
    }

    /// Returns the heap size in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.lanes {
            Lanes::None => 0,
            Lanes::One(lanes) => lanes.len(),
            Lanes::Two(lanes) => size_of_val(&**lanes),
            Lanes::Four(lanes) => size_of_val(&**lanes),
            Lanes::Eight(lanes) => size_of_val(&**lanes),
        }
    }
}

fn narrow<T: TryFrom<u64>>(numbers: &[u64], base: u64) -> Box<[T]> {
    let narrow = |number: &u64| T::try_from(number - base).ok().expect("lane width was chosen for the largest offset");
    numbers.iter().map(narrow).collect()
}

//! Placement of parts of shards on the slots of a cluster by rendezvous hashing: the slot with the highest hash owns a
//! part.
//!
//! Nothing is stored. Owners are slots, so the replacement of a worker owns the same parts; adding or removing a slot
//! moves only the parts of that slot.
//!
//! - `rendezvous_hash.rs`: hash functions
//! - `ownership_changes.rs`: parts that move between two placements
//! - `bounded_load.rs`: other slots for parts whose owner is gone or overloaded
//! - `slot_capacity.rs`: workers that are not overloaded

mod bounded_load;
mod ownership_changes;
mod rendezvous_hash;
mod slot_capacity;

#[cfg(test)]
mod tests;

use types::ShardId;

use crate::desired_state::ClusterId;
use rendezvous_hash::{mix_bits, slot_weight};

pub use bounded_load::PartRoute;
pub use ownership_changes::{OwnerChange, Ownership, changed_owners};
pub use slot_capacity::have_capacity;

/// Pseudo shard of the parts that are buckets.
const BUCKET_PSEUDO_SHARD: u64 = 0x6275_636b_6574_7300;

/// Unit of placement: a part of a shard, or a bucket of distributed tables, which one worker reads and caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// Hash of the shard's id.
    pub shard: u64,
    /// Number of the part within the shard.
    pub index: u32,
}

impl Part {
    /// Returns a part of the shard with this id.
    #[must_use]
    pub fn new(shard: ShardId, index: u32) -> Part {
        let (high, low) = shard.0.as_u64_pair();
        Part { shard: mix_bits(high) ^ low, index }
    }

    /// Returns the part of a bucket, which is the same for all distributed tables, so that equal keys are on one
    /// worker.
    #[must_use]
    pub fn from_bucket(bucket: u32) -> Part {
        Part { shard: BUCKET_PSEUDO_SHARD, index: bucket }
    }

    fn hash(self) -> u64 {
        mix_bits(mix_bits(self.shard).wrapping_add(u64::from(self.index)))
    }
}

/// Set of slots of a cluster among which parts are placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    cluster: ClusterId,
    /// Slots in ascending order, without duplicates.
    slots: Vec<u32>,
    /// Hash of each slot.
    slot_hashes: Vec<u64>,
}

impl Placement {
    /// Creates a placement among these slots, whose order does not matter.
    #[must_use]
    pub fn new(cluster: ClusterId, slots: impl IntoIterator<Item = u32>) -> Placement {
        let mut slots: Vec<u32> = slots.into_iter().collect();
        slots.sort_unstable();
        slots.dedup();
        let slot_hashes = slots.iter().map(|slot| slot_hash(cluster, *slot)).collect();
        Placement { cluster, slots, slot_hashes }
    }

    /// Returns the slots in ascending order.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Returns the slot that owns the part; `None` if there are no slots.
    #[must_use]
    pub fn owner(&self, part: Part) -> Option<u32> {
        highest_weight(part.hash(), &self.slot_hashes).map(|best| self.slots[best.index])
    }

    /// Returns the owner of each part, in the order of the parts; empty if there are no slots.
    #[must_use]
    pub fn owners(&self, parts: &[Part]) -> Vec<u32> {
        parts.iter().map_while(|part| self.owner(*part)).collect()
    }

    /// Returns all slots in order of descending hash with the part: the owner first, then its substitutes.
    #[must_use]
    pub fn ranked_slots(&self, part: Part) -> Vec<u32> {
        let hash = part.hash();
        let mut ranked: Vec<usize> = (0..self.slots.len()).collect();
        // Equal weights: the lower slot wins, as in `best`.
        ranked.sort_by_key(|at| (std::cmp::Reverse(slot_weight(hash, self.slot_hashes[*at])), *at));
        ranked.into_iter().map(|at| self.slots[at]).collect()
    }
}

/// Slot with the highest weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HighestWeight {
    weight: u64,
    index: usize,
}

/// Returns the slot with the highest weight for a hash; the first of equals.
#[inline]
fn highest_weight(hash: u64, slot_hashes: &[u64]) -> Option<HighestWeight> {
    let (first, rest) = slot_hashes.split_first()?;
    let mut best = HighestWeight { weight: slot_weight(hash, *first), index: 0 };
    for (at, seed) in rest.iter().enumerate() {
        let weight = slot_weight(hash, *seed);
        if best.weight < weight {
            best = HighestWeight { weight, index: at + 1 };
        }
    }
    Some(best)
}

fn slot_hash(cluster: ClusterId, slot: u32) -> u64 {
    mix_bits(u64::from(cluster.0) << 32 | u64::from(slot))
}

//! Which worker of a cluster owns which part of a shard: the one whose hash with the part is highest (rendezvous hashing).
//!
//! Nothing is stored. Workers are known by their slot, so who replaces a worker owns what it owned; when a slot comes or goes, only what it
//! gets or had moves. `ownership.rs` says what moves, `bounded.rs` who stands in where an owner has too much, `load.rs` who has.

mod bounded;
mod hash;
mod load;
mod ownership;

#[cfg(test)]
mod tests;

use types::ShardId;

use crate::desired::ClusterId;
use hash::{mix, weigh};

pub use bounded::Route;
pub use load::have_room;
pub use ownership::{Move, Ownership, moves};

/// What stands for a shard where a part is a bucket.
const BUCKETS: u64 = 0x6275_636b_6574_7300;

/// A part of a shard, or a bucket of distributed tables: what one worker reads and caches as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    pub shard: u64,
    pub index: u32,
}

impl Part {
    /// A part of the shard with this id.
    #[must_use]
    pub fn new(shard: ShardId, index: u32) -> Part {
        let (high, low) = shard.0.as_u64_pair();
        Part { shard: mix(high) ^ low, index }
    }

    /// The rows of a bucket in all tables that are distributed on a key: they belong together.
    #[must_use]
    pub fn of_bucket(bucket: u32) -> Part {
        Part { shard: BUCKETS, index: bucket }
    }

    fn hash(self) -> u64 {
        mix(mix(self.shard).wrapping_add(u64::from(self.index)))
    }
}

/// The slots of a cluster among which parts are placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    cluster: ClusterId,
    /// In order, each once.
    slots: Vec<u32>,
    /// What each slot is in hashes.
    seeds: Vec<u64>,
}

impl Placement {
    /// Places parts among these slots, in any order.
    #[must_use]
    pub fn new(cluster: ClusterId, slots: impl IntoIterator<Item = u32>) -> Placement {
        let mut slots: Vec<u32> = slots.into_iter().collect();
        slots.sort_unstable();
        slots.dedup();
        let seeds = slots.iter().map(|slot| seed(cluster, *slot)).collect();
        Placement { cluster, slots, seeds }
    }

    /// The slots, in order.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The slot that owns the part; `None` where there is no slot.
    #[must_use]
    pub fn owner(&self, part: Part) -> Option<u32> {
        best(part.hash(), &self.seeds).map(|best| self.slots[best.at])
    }

    /// The slots that own the parts, in the parts' order; empty where there is no slot.
    #[must_use]
    pub fn owners(&self, parts: &[Part]) -> Vec<u32> {
        parts.iter().map_while(|part| self.owner(*part)).collect()
    }

    /// All slots, from the part's owner to who would come last: the second stands in where the first cannot, and so on.
    #[must_use]
    pub fn ranked(&self, part: Part) -> Vec<u32> {
        let hash = part.hash();
        let mut ranked: Vec<usize> = (0..self.slots.len()).collect();
        // Of equal weights the lower slot's counts more, as in `best`.
        ranked.sort_by_key(|at| (std::cmp::Reverse(weigh(hash, self.seeds[*at])), *at));
        ranked.into_iter().map(|at| self.slots[at]).collect()
    }
}

/// The winner among some slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Best {
    weight: u64,
    at: usize,
}

/// Who weighs most with a hash; of equals the first.
#[inline]
fn best(hash: u64, seeds: &[u64]) -> Option<Best> {
    let (first, rest) = seeds.split_first()?;
    let mut best = Best { weight: weigh(hash, *first), at: 0 };
    for (at, seed) in rest.iter().enumerate() {
        let weight = weigh(hash, *seed);
        if best.weight < weight {
            best = Best { weight, at: at + 1 };
        }
    }
    Some(best)
}

fn seed(cluster: ClusterId, slot: u32) -> u64 {
    mix(u64::from(cluster.0) << 32 | u64::from(slot))
}

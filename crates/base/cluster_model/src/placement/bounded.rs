//! Where a part goes when its owner is gone or has enough to do.

use std::cmp::Reverse;

use super::{Part, Placement};

/// Where a part goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub slot: u32,
    /// 0 is the owner, 1 who stands in for it first.
    pub rank: usize,
}

impl Placement {
    /// The first by rank whose load is below `limit`; where all have as much, the one with the least, the first by rank of those. `load`
    /// says what a slot has, in any unit, and `None` where it is gone. `None` where all are.
    #[must_use]
    pub fn route(&self, part: Part, load: impl Fn(u32) -> Option<u64>, limit: u64) -> Option<Route> {
        if let Some(owner) = self.owner(part)
            && load(owner).is_some_and(|load| load < limit)
        {
            return Some(Route { slot: owner, rank: 0 });
        }
        let there = self.ranked(part).into_iter().enumerate().filter_map(|(rank, slot)| {
            let load = load(slot)?;
            Some((load, Route { slot, rank }))
        });
        let mut least: Option<(u64, Route)> = None;
        for (load, route) in there {
            if load < limit {
                return Some(route);
            }
            if least.is_none_or(|(least, _)| load < least) {
                least = Some((load, route));
            }
        }
        least.map(|(_, route)| route)
    }

    /// Places parts of known sizes so that no slot has more than `percent` of the mean, but for the part that it is filled up with: each
    /// goes to the first by rank that has room. In the parts' order; the same for the same parts in any order. Empty where there is no
    /// slot.
    ///
    /// Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018), with ranks in place of a ring.
    ///
    /// # Panics
    /// Where `percent` is below 100: then not all have room.
    #[must_use]
    pub fn bounded(&self, parts: &[(Part, u64)], percent: u64) -> Vec<u32> {
        assert!(100 <= percent, "all parts have room where each slot may have the mean");
        let count = self.slots.len() as u128;
        if count == 0 {
            return Vec::new();
        }
        let total: u128 = parts.iter().map(|(_, size)| u128::from(*size)).sum();
        let limit = u64::try_from((total * u128::from(percent)).div_ceil(100 * count)).unwrap_or(u64::MAX);
        // Large parts first: what is filled up with is small then.
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_unstable_by_key(|at| (Reverse(parts[*at].1), parts[*at].0));
        let mut loads = vec![0_u64; self.slots.len()];
        let mut placed = vec![0; parts.len()];
        for at in order {
            let (part, size) = parts[at];
            let load = |slot: u32| self.slots.binary_search(&slot).ok().map(|at| loads[at]);
            let route = self.route(part, load, limit.max(1)).expect("there is a slot");
            let slot = self.slots.binary_search(&route.slot).expect("a route leads to a slot");
            loads[slot] = loads[slot].saturating_add(size);
            placed[at] = route.slot;
        }
        placed
    }
}

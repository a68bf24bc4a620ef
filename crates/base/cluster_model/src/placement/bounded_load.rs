//! Placement with bounded loads: substitutes for owners that are gone or overloaded.

use std::cmp::Reverse;

use super::{Part, Placement};

/// Slot for a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartRoute {
    pub slot: u32,
    /// 0 for the owner, 1 for its first substitute.
    pub rank: usize,
}

impl Placement {
    /// Returns the first slot by rank whose load is below `limit`, otherwise the least loaded one, the first by rank of
    /// equals. `load` returns the load of a slot in any unit, or `None` if it is gone. Returns `None` if all slots are
    /// gone.
    #[must_use]
    pub fn route(&self, part: Part, load: impl Fn(u32) -> Option<u64>, limit: u64) -> Option<PartRoute> {
        if let Some(owner) = self.owner(part)
            && load(owner).is_some_and(|load| load < limit)
        {
            return Some(PartRoute { slot: owner, rank: 0 });
        }
        let there = self.ranked_slots(part).into_iter().enumerate().filter_map(|(rank, slot)| {
            let load = load(slot)?;
            Some((load, PartRoute { slot, rank }))
        });
        let mut least: Option<(u64, PartRoute)> = None;
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

    /// Places parts with sizes so that no slot exceeds `percent` of the mean by more than its last part: each part goes
    /// to the first slot by rank with room. Returns a slot for each part, in the order of the parts; empty if there are
    /// no slots. The result does not depend on the order of the parts.
    ///
    /// Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018), with ranks in place of a ring.
    ///
    /// # Panics
    /// If `percent` is below 100, because then not all parts have room.
    #[must_use]
    pub fn place_bounded(&self, parts: &[(Part, u64)], percent: u64) -> Vec<u32> {
        assert!(100 <= percent, "Placement::bounded: {percent} percent of the mean load have no room for all parts");
        let count = self.slots.len() as u128;
        if count == 0 {
            return Vec::new();
        }
        let total: u128 = parts.iter().map(|(_, size)| u128::from(*size)).sum();
        let limit = u64::try_from((total * u128::from(percent)).div_ceil(100 * count)).unwrap_or(u64::MAX);
        // Large parts first, so that the last part of a slot, which may exceed the limit, is small.
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_unstable_by_key(|at| (Reverse(parts[*at].1), parts[*at].0));
        let mut loads = vec![0_u64; self.slots.len()];
        let mut placed = vec![0; parts.len()];
        for at in order {
            let (part, size) = parts[at];
            let load = |slot: u32| self.slots.binary_search(&slot).ok().map(|at| loads[at]);
            let route = self.route(part, load, limit.max(1)).expect("a placement with slots has a route for each part");
            let slot = self.slots.binary_search(&route.slot).expect("a route leads to a slot of the placement");
            loads[slot] = loads[slot].saturating_add(size);
            placed[at] = route.slot;
        }
        placed
    }
}

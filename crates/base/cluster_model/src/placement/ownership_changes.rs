//! Differences between two placements, for cache hand-over.

use std::sync::Arc;

use super::{HighestWeight, Part, Placement, highest_weight};

/// Placement with an epoch, which identifies the placement that a plan or hand-over is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// Number that grows whenever the set of slots changes.
    pub epoch: u64,
    pub placement: Arc<Placement>,
}

/// Change of a part's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerChange {
    pub part: Part,
    /// Previous owner; `None` if there was none.
    pub from: Option<u32>,
    /// Next owner; `None` if there is none.
    pub to: Option<u32>,
}

impl Ownership {
    /// Creates the first epoch of a cluster.
    #[must_use]
    pub fn new(placement: Placement) -> Ownership {
        Ownership { epoch: 1, placement: Arc::new(placement) }
    }

    /// Returns the next epoch; `None` if the placement is the same.
    #[must_use]
    pub fn next(&self, placement: Placement) -> Option<Ownership> {
        (*self.placement != placement).then(|| Ownership { epoch: self.epoch + 1, placement: Arc::new(placement) })
    }
}

/// Returns the parts whose owner differs between two placements, in the order of the parts. Hashes each part once with
/// each slot of the union.
pub fn changed_owners<'a>(
    before: &Placement,
    after: &Placement,
    parts: impl IntoIterator<Item = Part, IntoIter: 'a>,
) -> impl Iterator<Item = OwnerChange> + 'a {
    // Slots of different clusters are different even if their numbers are equal.
    let is_in = |slot: &u32, other: &Placement| before.cluster == after.cluster && other.slots.contains(slot);
    let (stay, leave): (Vec<u32>, Vec<u32>) = before.slots.iter().partition(|slot| is_in(slot, after));
    let come: Vec<u32> = after.slots.iter().copied().filter(|slot| !is_in(slot, before)).collect();
    let stay = Placement::new(before.cluster, stay);
    let leave = Placement::new(before.cluster, leave);
    let come = Placement::new(after.cluster, come);
    parts.into_iter().filter_map(move |part| {
        let hash = part.hash();
        let among = |placement: &Placement| {
            highest_weight(hash, &placement.slot_hashes).map(|best| (best, placement.slots[best.index]))
        };
        let staying = among(&stay);
        let (leaving, coming) = (among(&leave), among(&come));
        let (left, came) = (has_higher_weight(leaving, staying), has_higher_weight(coming, staying));
        if !left && !came {
            return None;
        }
        let slot = |winner: Option<(HighestWeight, u32)>| winner.map(|(_, slot)| slot);
        let from = slot(if left { leaving } else { staying });
        let to = slot(if came { coming } else { staying });
        Some(OwnerChange { part, from, to })
    })
}

/// Whether the first slot would own the part instead of the second; at equal weights the lower slot wins, as in a
/// placement of both.
fn has_higher_weight(one: Option<(HighestWeight, u32)>, other: Option<(HighestWeight, u32)>) -> bool {
    match (one, other) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some((one, slot)), Some((other, than))) => (one.weight, than) > (other.weight, slot),
    }
}

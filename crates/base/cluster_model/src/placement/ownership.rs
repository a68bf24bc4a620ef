//! Who owned what before and who does now, for caches that are handed over.

use std::sync::Arc;

use super::{Best, Part, Placement, best};

/// A placement with its number: plans and hand-overs say by which one they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// Grows whenever other slots own something.
    pub epoch: u64,
    pub placement: Arc<Placement>,
}

/// A part that another slot owns now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Move {
    pub part: Part,
    /// `None` where nobody did.
    pub from: Option<u32>,
    /// `None` where nobody does.
    pub to: Option<u32>,
}

impl Ownership {
    /// The first placement of a cluster.
    #[must_use]
    pub fn new(placement: Placement) -> Ownership {
        Ownership { epoch: 1, placement: Arc::new(placement) }
    }

    /// The next one; `None` where the same slots own everything.
    #[must_use]
    pub fn next(&self, placement: Placement) -> Option<Ownership> {
        (*self.placement != placement).then(|| Ownership { epoch: self.epoch + 1, placement: Arc::new(placement) })
    }
}

/// The parts that change hands between two placements, in the parts' order. Takes one weighing of each part with each slot of
/// either, not of both.
pub fn moves<'a>(
    before: &Placement,
    after: &Placement,
    parts: impl IntoIterator<Item = Part, IntoIter: 'a>,
) -> impl Iterator<Item = Move> + 'a {
    // Slots of two clusters never are the same, whatever their numbers.
    let is_in = |slot: &u32, other: &Placement| before.cluster == after.cluster && other.slots.contains(slot);
    let (stay, leave): (Vec<u32>, Vec<u32>) = before.slots.iter().partition(|slot| is_in(slot, after));
    let come: Vec<u32> = after.slots.iter().copied().filter(|slot| !is_in(slot, before)).collect();
    let stay = Placement::new(before.cluster, stay);
    let leave = Placement::new(before.cluster, leave);
    let come = Placement::new(after.cluster, come);
    parts.into_iter().filter_map(move |part| {
        let hash = part.hash();
        let among = |placement: &Placement| best(hash, &placement.seeds).map(|best| (best, placement.slots[best.at]));
        let staying = among(&stay);
        let (leaving, coming) = (among(&leave), among(&come));
        let (left, came) = (wins(leaving, staying), wins(coming, staying));
        if !left && !came {
            return None;
        }
        let slot = |winner: Option<(Best, u32)>| winner.map(|(_, slot)| slot);
        let from = slot(if left { leaving } else { staying });
        let to = slot(if came { coming } else { staying });
        Some(Move { part, from, to })
    })
}

/// Whether the one would own what the other does; of equal weights the lower slot's counts more, as in a placement of both.
fn wins(one: Option<(Best, u32)>, other: Option<(Best, u32)>) -> bool {
    match (one, other) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some((one, slot)), Some((other, than))) => (one.weight, than) > (other.weight, slot),
    }
}

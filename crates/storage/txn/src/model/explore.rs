//! All worlds that steps lead to, breadth first: what is found wrong is found by the fewest steps.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::bug::Bug;
use super::steps::Step;
use super::transaction::Level;
use super::world::World;

/// How much may happen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) rows: usize,
    pub(super) commits: usize,
    pub(super) transactions: usize,
    pub(super) seals: usize,
    pub(super) compactions: usize,
    pub(super) crashes: usize,
    pub(super) pins: usize,
    pub(super) truncates: usize,
    /// Otherwise there is one transaction of each level, in their order, which have no savepoints, and before them rows are inserted.
    pub(super) everything: bool,
    /// Those of transactions; there is one serializable at a time.
    pub(super) levels: &'static [Level],
    /// No more worlds than this are looked at.
    pub(super) states: usize,
}

/// What was looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explored {
    pub(super) states: usize,
    /// Whether that is everything within the bounds.
    pub(super) is_complete: bool,
}

/// A world in which somebody does not see the truth, and how it comes about.
#[derive(Debug)]
pub(super) struct Violation {
    reason: String,
    steps: Vec<Step>,
    /// How many worlds were looked at by then.
    states: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; after {:?}; the {}th world", self.reason, self.steps, self.states)
    }
}

/// Looks at all worlds within the bounds.
pub(super) fn explore(bounds: Bounds, bug: Option<Bug>) -> Result<Explored, Violation> {
    let first = World::new();
    let mut seen = HashSet::from([fingerprint(&first)]);
    // For each world the one before it, by position, and the step that led to it.
    let mut came: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut level = vec![(0, first)];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (at, world) in level {
            for (step, after) in world.next(&bounds, bug) {
                let violation = |reason, states| Violation { reason, steps: trace(&came, at, step), states };
                let after = after.map_err(|reason| violation(reason, came.len()))?;
                if !seen.insert(fingerprint(&after)) {
                    continue;
                }
                after.check().map_err(|reason| violation(reason, came.len()))?;
                next.push((came.len(), after));
                came.push((at, Some(step)));
                if came.len() == bounds.states {
                    return Ok(Explored { states: came.len(), is_complete: false });
                }
            }
        }
        level = next;
    }
    Ok(Explored { states: came.len(), is_complete: true })
}

/// 64 bits in a world's place: that two of some millions share them is not to be feared.
fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

fn trace(came: &[(usize, Option<Step>)], mut at: usize, last: Step) -> Vec<Step> {
    let mut steps = vec![last];
    while let (before, Some(step)) = came[at] {
        steps.push(step);
        at = before;
    }
    steps.reverse();
    steps
}

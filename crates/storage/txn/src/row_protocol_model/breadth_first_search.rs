//! Breadth-first search of all reachable worlds, so that a violation is reported with the fewest steps.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::omitted_rule::OmittedRule;
use super::steps::Step;
use super::transaction::Level;
use super::world_state::World;

/// Bounds of the search.
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
    /// If false, there is one transaction of each level, in order, without savepoints, and rows are inserted only
    /// before them.
    pub(super) everything: bool,
    /// Isolation levels of transactions; at most one serializable one runs at a time.
    pub(super) levels: &'static [Level],
    /// Maximum number of visited worlds.
    pub(super) states: usize,
}

/// Result of a search without violation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explored {
    pub(super) states: usize,
    /// True if all worlds within the bounds were visited.
    pub(super) is_complete: bool,
}

/// World in which a reader does not see the true rows, and the steps to it.
#[derive(Debug)]
pub(super) struct Violation {
    reason: String,
    steps: Vec<Step>,
    /// Number of worlds visited before.
    states: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; after {:?}; the {}th world", self.reason, self.steps, self.states)
    }
}

/// Visits all worlds within the bounds.
pub(super) fn explore(bounds: Bounds, bug: Option<OmittedRule>) -> Result<Explored, Violation> {
    let first = World::new();
    let mut seen = HashSet::from([fingerprint(&first)]);
    // Predecessor of each world, by index, and the step from it.
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

/// Hashes a world to 64 bits; collisions among some millions are negligible.
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

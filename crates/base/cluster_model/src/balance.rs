//! Which of a user's clusters a statement runs on: the one with the least to do.

use crate::activity::Activity;
use crate::desired::{ClusterId, ClusterState};

#[cfg(test)]
mod tests;

/// A cluster that the statement may run on, as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub cluster: ClusterId,
    pub suspended: bool,
    pub auto_resume: bool,
    /// Workers that get work now.
    pub serving: u32,
    /// Statements that run on it.
    pub running: u32,
    /// Statements that wait for it.
    pub queued: u32,
}

impl Candidate {
    /// A candidate of what is known about a cluster.
    #[must_use]
    pub fn new(cluster: &ClusterState, serving: usize, activity: &Activity) -> Candidate {
        Candidate {
            cluster: cluster.id,
            suspended: cluster.suspended,
            auto_resume: cluster.spec.auto_resume,
            serving: u32::try_from(serving).expect("a cluster has few workers"),
            running: activity.running,
            queued: activity.queued,
        }
    }
}

/// Where the statement goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// To a cluster that is awake. It may have no worker yet: then it waits there.
    Run(ClusterId),
    /// To a cluster that has to be woken; it waits there meanwhile.
    Wake(ClusterId),
}

/// Why it goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// All clusters are suspended and wake only when they are told to. Holds the first.
    #[error("all clusters of the statement are suspended")]
    Suspended { first: ClusterId },
    /// The transaction has written on a cluster that is no longer one of its role's.
    #[error("the cluster that the transaction has written on is not there any more")]
    WrittenOn { cluster: ClusterId },
    /// There is no cluster to choose from.
    #[error("there is no cluster for the statement")]
    None,
}

/// Chooses among `candidates`, the preferred first. `written` is where the transaction has written: it stays there.
///
/// Clusters that have workers at work come before those that wait for theirs, and those before suspended ones. Of several the one
/// with the fewest statements, running and waiting, is taken, of equals the first; of suspended ones the first that may be woken.
///
/// # Errors
/// None of them can run the statement.
pub fn choose(candidates: &[Candidate], written: Option<ClusterId>) -> Result<Choice, Unavailable> {
    if let Some(cluster) = written {
        let own = candidates.iter().find(|candidate| candidate.cluster == cluster);
        let own = own.ok_or(Unavailable::WrittenOn { cluster })?;
        return choose(&[*own], None);
    }
    let awake = candidates.iter().filter(|candidate| !candidate.suspended);
    // Of equals `min_by_key` takes the first.
    let least = awake
        .min_by_key(|candidate| (candidate.serving == 0, u64::from(candidate.running) + u64::from(candidate.queued)));
    if let Some(least) = least {
        return Ok(Choice::Run(least.cluster));
    }
    if let Some(sleeps) = candidates.iter().find(|candidate| candidate.auto_resume) {
        return Ok(Choice::Wake(sleeps.cluster));
    }
    let first = candidates.first().ok_or(Unavailable::None)?;
    Err(Unavailable::Suspended { first: first.cluster })
}

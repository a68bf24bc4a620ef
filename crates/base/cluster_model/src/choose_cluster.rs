//! Load balancing: the choice of the cluster that a statement runs on.

use crate::cluster_activity::ClusterActivity;
use crate::desired_state::{ClusterId, ClusterState};

#[cfg(test)]
mod tests;

/// Cluster that the statement may run on, with its present load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub cluster: ClusterId,
    pub suspended: bool,
    pub auto_resume: bool,
    /// Number of serving workers.
    pub serving: u32,
    /// Number of running statements.
    pub running: u32,
    /// Number of queued statements.
    pub queued: u32,
}

impl Candidate {
    /// Creates a candidate from a cluster's state, its number of serving workers and its activity.
    #[must_use]
    pub fn new(cluster: &ClusterState, serving: usize, activity: &ClusterActivity) -> Candidate {
        Candidate {
            cluster: cluster.id,
            suspended: cluster.suspended,
            auto_resume: cluster.spec.auto_resume,
            serving: u32::try_from(serving).expect("a cluster has at most NODES_MAX workers"),
            running: activity.running,
            queued: activity.queued,
        }
    }
}

/// Cluster for a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Cluster that is not suspended. The statement waits there if the cluster has no worker yet.
    Run(ClusterId),
    /// Suspended cluster that has to be resumed first; the statement waits there meanwhile.
    Resume(ClusterId),
}

/// Reason why no cluster can run the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoClusterAvailable {
    /// All clusters are suspended without AUTO_RESUME; `preferred` is the first candidate.
    #[error("all clusters of the statement are suspended")]
    Suspended { preferred: ClusterId },
    /// The role may no longer use the cluster that the transaction has written on, or the cluster is dropped.
    #[error("the cluster that the transaction has written on is no longer available")]
    WrittenClusterGone { cluster: ClusterId },
    /// There is no cluster to choose from.
    #[error("no cluster is available for the statement")]
    NoCandidates,
}

/// Chooses among `candidates`, which are in order of preference. A transaction stays on the cluster `written_cluster` that it
/// has written on.
///
/// Clusters with serving workers come before those without, and those before suspended ones. Among equals, the cluster
/// with the fewest running and queued statements is chosen, then the first. Among suspended clusters, the first with
/// AUTO_RESUME is chosen.
///
/// # Errors
/// [`NoClusterAvailable`] if none of them can run the statement.
pub fn choose_cluster(
    candidates: &[Candidate],
    written_cluster: Option<ClusterId>,
) -> Result<Choice, NoClusterAvailable> {
    if let Some(cluster) = written_cluster {
        let own = candidates.iter().find(|candidate| candidate.cluster == cluster);
        let own = own.ok_or(NoClusterAvailable::WrittenClusterGone { cluster })?;
        return choose_cluster(&[*own], None);
    }
    let awake = candidates.iter().filter(|candidate| !candidate.suspended);
    // `min_by_key` returns the first of equal elements.
    let least = awake
        .min_by_key(|candidate| (candidate.serving == 0, u64::from(candidate.running) + u64::from(candidate.queued)));
    if let Some(least) = least {
        return Ok(Choice::Run(least.cluster));
    }
    if let Some(sleeps) = candidates.iter().find(|candidate| candidate.auto_resume) {
        return Ok(Choice::Resume(sleeps.cluster));
    }
    let first = candidates.first().ok_or(NoClusterAvailable::NoCandidates)?;
    Err(NoClusterAvailable::Suspended { preferred: first.cluster })
}

//! Suspension of idle clusters.

use std::collections::BTreeMap;

use crate::cluster_activity::ClusterActivity;
use crate::desired_state::{Change, ClusterId, DesiredState};

/// Returns the changes that suspend clusters which have been idle longer than their AUTO_SUSPEND. `now_us` is in
/// microseconds since 1970 UTC, as are the times of `activity` and of the state. A cluster without an entry in
/// `activity` is not suspended.
#[must_use]
pub fn suspend_idle(
    desired: &DesiredState,
    activity: &BTreeMap<ClusterId, ClusterActivity>,
    now_us: i64,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for cluster in desired.clusters() {
        let (false, Some(seconds)) = (cluster.suspended, cluster.spec.auto_suspend) else { continue };
        let Some(idle_since) = activity.get(&cluster.id).and_then(|activity| activity.idle_since) else { continue };
        let idle_since = idle_since.max(cluster.awake_since);
        if i64::from(seconds) * 1_000_000 <= now_us.saturating_sub(idle_since) {
            changes.push(Change::AutoSuspend { cluster: cluster.id, generation: cluster.generation });
        }
    }
    changes
}

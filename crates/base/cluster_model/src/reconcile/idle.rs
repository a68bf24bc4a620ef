//! Which clusters have been idle for so long that they sleep.

use std::collections::BTreeMap;

use crate::activity::Activity;
use crate::desired::{Change, ClusterId, DesiredState};

/// The clusters that fall asleep now, as changes for the instance to make. `now_us` is in microseconds since 1970 UTC, as the times of
/// `activity` and of the state are; a cluster whose activity is not known stays awake.
#[must_use]
pub fn suspend_idle(desired: &DesiredState, activity: &BTreeMap<ClusterId, Activity>, now_us: i64) -> Vec<Change> {
    let mut changes = Vec::new();
    for cluster in desired.clusters() {
        let (false, Some(seconds)) = (cluster.suspended, cluster.spec.auto_suspend) else { continue };
        let Some(idle_since) = activity.get(&cluster.id).and_then(|activity| activity.idle_since) else { continue };
        let idle_since = idle_since.max(cluster.awake_since);
        if i64::from(seconds) * 1_000_000 <= now_us.saturating_sub(idle_since) {
            changes.push(Change::SuspendIdle { cluster: cluster.id, generation: cluster.generation });
        }
    }
    changes
}

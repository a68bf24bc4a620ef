//! Which volumes of a cluster's workers nobody will want again.

use kube::ResourceExt;

use super::{CACHE_VOLUME, slot};
use crate::resources::ComputeCluster;

/// Those of `claims` that are caches of slots which the cluster does not have any more, awake or asleep. One whose pod is still there stays: a worker that
/// comes back to the slot in the meantime must not wait for a volume that is about to go.
pub fn surplus_volumes<'a>(
    cluster: &ComputeCluster,
    claims: impl IntoIterator<Item = &'a str>,
    pods: impl Fn(&str) -> bool,
) -> Vec<&'a str> {
    let name = cluster.name_any();
    let kept = u32::try_from(cluster.spec.node_count).unwrap_or(u32::MAX);
    let is_surplus = |claim: &&str| {
        let pod = claim.strip_prefix(CACHE_VOLUME).and_then(|rest| rest.strip_prefix('-'));
        pod.is_some_and(|pod| slot(&name, pod).is_some_and(|slot| kept <= slot) && !pods(pod))
    };
    claims.into_iter().filter(is_surplus).collect()
}

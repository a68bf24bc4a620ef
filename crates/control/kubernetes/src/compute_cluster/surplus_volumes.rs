//! Cache volumes of workers that are no longer needed.

use kube::ResourceExt;

use super::{CACHE_VOLUME, slot};
use crate::resources::ComputeCluster;

/// Returns the `claims` that are caches of slots beyond the cluster's node count, whether or not it is suspended. A
/// claim whose pod still exists, as `pods` tells, is not returned: a worker that is started again in the slot must not
/// wait for a volume that is being deleted.
pub fn surplus_volumes<'a>(
    cluster: &ComputeCluster,
    claims: impl IntoIterator<Item = &'a str>,
    pods: impl Fn(&str) -> bool,
) -> Vec<&'a str> {
    let name = cluster.name_any();
    let node_count = u32::try_from(cluster.spec.node_count).unwrap_or(u32::MAX);
    let is_surplus = |claim: &&str| {
        let pod = claim.strip_prefix(CACHE_VOLUME).and_then(|rest| rest.strip_prefix('-'));
        pod.is_some_and(|pod| slot(&name, pod).is_some_and(|slot| node_count <= slot) && !pods(pod))
    };
    claims.into_iter().filter(is_surplus).collect()
}

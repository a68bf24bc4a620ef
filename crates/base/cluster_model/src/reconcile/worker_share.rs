//! A worker's share of the machine.

use crate::worker::Resources;

/// Computes the share of one worker of a cluster with `nodes` workers, if `all` workers run on the machine.
///
/// Each cluster divides all cores among its workers: an idle cluster needs none, and the operating system schedules
/// busy ones fairly. Memory cannot be taken back from an idle cluster, so all workers divide it.
#[must_use]
pub fn worker_share(machine: Resources, nodes: u32, all: u32) -> Resources {
    Resources {
        millicores: (machine.millicores / nodes.max(1)).max(1),
        memory_bytes: machine.memory_bytes / u64::from(all.max(nodes).max(1)),
    }
}

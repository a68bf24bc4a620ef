//! What each worker gets of a machine.

use crate::worker::Resources;

/// The share of one worker of a cluster of `nodes`, where `all` workers run on the machine.
///
/// Workers of a cluster divide the cores among themselves, whatever other clusters there are: a cluster that is idle needs none, and those that
/// are busy at the same time share them by the system's turns. Memory cannot be taken back from who sleeps: all divide it.
#[must_use]
pub fn share(machine: Resources, nodes: u32, all: u32) -> Resources {
    Resources {
        millicores: (machine.millicores / nodes.max(1)).max(1),
        memory_bytes: machine.memory_bytes / u64::from(all.max(nodes).max(1)),
    }
}

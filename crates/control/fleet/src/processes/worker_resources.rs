//! Resources of a worker, computed from its cluster's specification and the machine.

use cluster_model::{WorkerOptions, WorkerSpec};

use crate::fleet::FleetSettings;
use crate::join::WorkerResources;

/// Default percentage of the disk for the cache of a worker with a disk of its own.
const DEDICATED_DISK_CACHE_PCT: u8 = 60;

/// Returns the resources of a worker that was not started here and shares its disk with no other worker.
pub(super) fn dedicated_resources(spec: &WorkerSpec, settings: &FleetSettings) -> WorkerResources {
    let max_cache_pct = spec.options.max_cache_pct.or(Some(DEDICATED_DISK_CACHE_PCT));
    WorkerResources {
        cache_disk_bytes: u64::MAX,
        cache_disk_divisor: 1,
        options: WorkerOptions { max_cache_pct, ..spec.options },
        ..shared_resources(spec, settings)
    }
}

/// Returns the resources of a worker on the instance's machine. Its share of the memory is divided between tasks and
/// cache in the same ratio as the instance's own memory.
pub(super) fn shared_resources(spec: &WorkerSpec, settings: &FleetSettings) -> WorkerResources {
    let share = spec.share.memory_bytes;
    let (queries, cache) = (settings.memory_bytes, settings.cache_bytes);
    let cache_bytes = scale(share, cache, queries.saturating_add(cache));
    // All workers use one disk, so a worker gets the same fraction of the disk as of the memory.
    let cache_disk_bytes = scale(settings.cache_disk_bytes, share, queries);
    let cache_disk_divisor = scale(settings.cache_disk_divisor, queries, share).max(1);
    WorkerResources {
        cores: spec.share.millicores.div_ceil(1_000).max(1),
        memory_bytes: share - cache_bytes,
        cache_bytes,
        cache_disk_bytes,
        cache_disk_divisor,
        options: spec.options,
    }
}

/// Computes `whole * share / of` without overflow, at most `u64::MAX`.
fn scale(whole: u64, share: u64, of: u64) -> u64 {
    let part = u128::from(whole) * u128::from(share) / u128::from(of.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use cluster_model::Resources;

    use super::*;
    use crate::fixtures::settings;

    #[test]
    fn a_share_is_divided_in_the_instances_ratio() {
        let folder = std::path::Path::new("/nowhere");
        let settings = FleetSettings {
            memory_bytes: 8 << 30,
            cache_bytes: 2 << 30,
            cache_disk_bytes: 64 << 30,
            cache_disk_divisor: 4,
            ..settings(folder)
        };
        let spec = WorkerSpec {
            hardware_instance: "local".to_owned(),
            share: Resources { millicores: 1_500, memory_bytes: 2 << 30 },
            options: WorkerOptions { max_spill_pct: Some(7), ..WorkerOptions::default() },
        };
        let resources = shared_resources(&spec, &settings);
        assert_eq!((resources.cores, resources.memory_bytes + resources.cache_bytes), (2, 2 << 30));
        assert_eq!(resources.cache_bytes, (2 << 30) / 5);
        assert_eq!((resources.cache_disk_bytes, resources.cache_disk_divisor), (16 << 30, 16));
        assert_eq!(resources.options, spec.options);
    }

    #[test]
    fn zero_memory_does_not_divide_by_zero() {
        let folder = std::path::Path::new("/nowhere");
        let settings = FleetSettings { memory_bytes: 0, cache_bytes: 0, cache_disk_bytes: 0, ..settings(folder) };
        let share = Resources { millicores: 0, memory_bytes: 0 };
        let spec = WorkerSpec { hardware_instance: "local".to_owned(), share, options: WorkerOptions::default() };
        let resources = shared_resources(&spec, &settings);
        assert_eq!((resources.cores, resources.memory_bytes, resources.cache_bytes), (1, 0, 0));
    }
}

//! Scheduler configuration of a worker, from the resources that the instance assigns.

use std::sync::Arc;

use exchange::WorkerLimits;
use objects::FolderDisk;
use scheduler::ResourceConfig;
use shards::{DiskQuota, DiskTierSettings};
use types::DiskReserve;

use crate::join::WorkerResources;
use crate::slot_folder::SlotFolder;

/// Ratio of the column cache to the cache of pre-aggregated groups, the same as in an instance.
const FRAGMENT_CACHE_DIVISOR: u64 = 16;

/// Returns the configuration at start.
pub(super) fn scheduler_config(resources: &WorkerResources, folder: &SlotFolder, reserve_bytes: u64) -> ResourceConfig {
    let share = worker_limits(resources, &FolderDisk::new(&folder.cache_folder()));
    let reserve = DiskReserve { disk: Arc::new(FolderDisk::new(&folder.cache_folder())), bytes: reserve_bytes };
    let DiskQuota { bytes_max, space_divisor: part } = share.cache_disk;
    ResourceConfig {
        memory_bytes: share.memory_bytes,
        cache_bytes: share.cache_bytes,
        fragment_cache_bytes: share.cache_bytes / FRAGMENT_CACHE_DIVISOR,
        cache_disk: Some(DiskTierSettings { folder: folder.cache_folder(), bytes_max, space_divisor: part, reserve }),
        spill_folder: folder.spill_folder(),
        spill_bytes_max: share.spill_bytes_max,
        threads: share.threads,
    }
}

/// Returns the resources as the executor takes them, with percentages of the disk converted to bytes.
pub(super) fn worker_limits(resources: &WorkerResources, disk: &FolderDisk) -> WorkerLimits {
    // Percentages do not limit a disk of unknown size.
    let disk_bytes = disk.total_bytes().unwrap_or(u64::MAX);
    let percent = |percent: u8| disk_bytes / 100 * u64::from(percent);
    let cache_disk = match resources.options.max_cache_pct {
        // 0 bytes disable the cache on disk for the whole instance, whatever a cluster asks for.
        Some(part) if resources.cache_disk_bytes != 0 => DiskQuota { bytes_max: percent(part), space_divisor: 1 },
        _ => DiskQuota { bytes_max: resources.cache_disk_bytes, space_divisor: resources.cache_disk_divisor },
    };
    WorkerLimits {
        threads: usize::try_from(resources.cores).unwrap_or(usize::MAX),
        memory_bytes: usize::try_from(resources.memory_bytes).unwrap_or(usize::MAX),
        cache_bytes: resources.cache_bytes,
        cache_disk,
        spill_bytes_max: resources
            .options
            .max_spill_pct
            .map_or_else(|| ResourceConfig::default().spill_bytes_max, percent),
    }
}

#[cfg(test)]
mod tests {
    use cluster_model::WorkerOptions;

    use super::*;

    fn resources() -> WorkerResources {
        WorkerResources {
            cores: 2,
            memory_bytes: 1 << 30,
            cache_bytes: 1 << 28,
            cache_disk_bytes: 1 << 20,
            cache_disk_divisor: 8,
            options: WorkerOptions::default(),
        }
    }

    fn with_percentages(max_cache_pct: u8, max_spill_pct: u8) -> WorkerResources {
        let options = WorkerOptions { max_cache_pct: Some(max_cache_pct), max_spill_pct: Some(max_spill_pct) };
        WorkerResources { options, ..resources() }
    }

    #[test]
    fn percentages_are_of_the_disk() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let disk = FolderDisk::new(folder.path());
        let hundredth = disk.total_bytes().expect("the disk has a known size") / 100;
        let said = worker_limits(&with_percentages(3, 100), &disk);
        assert_eq!(said.cache_disk, DiskQuota { bytes_max: 3 * hundredth, space_divisor: 1 });
        assert_eq!(said.spill_bytes_max, 100 * hundredth);
        let unsaid = worker_limits(&resources(), &disk);
        assert_eq!(unsaid.cache_disk, DiskQuota { bytes_max: 1 << 20, space_divisor: 8 });
        let none = worker_limits(&WorkerResources { cache_disk_bytes: 0, ..with_percentages(3, 100) }, &disk);
        assert_eq!(none.cache_disk.bytes_max, 0);
    }
}

//! Scheduler configuration of a worker, from the resources that the instance assigns.

use std::sync::Arc;

use exchange::WorkerShare;
use objects::FolderDisk;
use scheduler::Config;
use shards::{CacheDisk, DiskPart};
use types::Reserve;

use crate::join::Means;
use crate::slot_folder::SlotFolder;

/// Ratio of the column cache to the cache of pre-aggregated groups, the same as in an instance.
const FRAGMENTS_PART: u64 = 16;

/// Returns the configuration at start.
pub(super) fn config(means: &Means, folder: &SlotFolder, reserve_bytes: u64) -> Config {
    let share = share(means, &FolderDisk::of(&folder.cache()));
    let reserve = Reserve { disk: Arc::new(FolderDisk::of(&folder.cache())), bytes: reserve_bytes };
    let DiskPart { bytes_max, part } = share.cache_disk;
    Config {
        memory_bytes: share.memory_bytes,
        cache_bytes: share.cache_bytes,
        fragment_cache_bytes: share.cache_bytes / FRAGMENTS_PART,
        cache_disk: Some(CacheDisk { folder: folder.cache(), bytes_max, part, reserve }),
        spill_folder: folder.spill(),
        spill_bytes_max: share.spill_bytes_max,
        threads: share.threads,
    }
}

/// Returns the resources as the executor takes them, with percentages of the disk converted to bytes.
pub(super) fn share(means: &Means, disk: &FolderDisk) -> WorkerShare {
    // Percentages do not limit a disk of unknown size.
    let disk_bytes = disk.total_bytes().unwrap_or(u64::MAX);
    let percent = |percent: u8| disk_bytes / 100 * u64::from(percent);
    let cache_disk = match means.max_cache_pct {
        // 0 bytes disable the cache on disk for the whole instance, whatever a cluster asks for.
        Some(part) if means.cache_disk_bytes != 0 => DiskPart { bytes_max: percent(part), part: 1 },
        _ => DiskPart { bytes_max: means.cache_disk_bytes, part: means.cache_disk_part },
    };
    WorkerShare {
        threads: usize::try_from(means.cores).unwrap_or(usize::MAX),
        memory_bytes: usize::try_from(means.memory_bytes).unwrap_or(usize::MAX),
        cache_bytes: means.cache_bytes,
        cache_disk,
        spill_bytes_max: means.max_spill_pct.map_or_else(|| Config::default().spill_bytes_max, percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means() -> Means {
        Means {
            cores: 2,
            memory_bytes: 1 << 30,
            cache_bytes: 1 << 28,
            cache_disk_bytes: 1 << 20,
            cache_disk_part: 8,
            max_cache_pct: None,
            max_spill_pct: None,
        }
    }

    #[test]
    fn percentages_are_of_the_disk() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let disk = FolderDisk::of(folder.path());
        let hundredth = disk.total_bytes().expect("the disk has a known size") / 100;
        let said = share(&Means { max_cache_pct: Some(3), max_spill_pct: Some(100), ..means() }, &disk);
        assert_eq!(said.cache_disk, DiskPart { bytes_max: 3 * hundredth, part: 1 });
        assert_eq!(said.spill_bytes_max, 100 * hundredth);
        let unsaid = share(&means(), &disk);
        assert_eq!(unsaid.cache_disk, DiskPart { bytes_max: 1 << 20, part: 8 });
        let none = share(&Means { max_cache_pct: Some(3), cache_disk_bytes: 0, ..means() }, &disk);
        assert_eq!(none.cache_disk.bytes_max, 0);
    }
}

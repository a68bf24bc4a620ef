use std::sync::Arc;

use super::*;
use crate::conformance::{self, CrashingDisk, InterruptedBatches};

#[test]
fn the_simulated_store_fulfils_the_contract() {
    let disk = SimDisk::new(1);
    let folder = tempfile::tempdir().unwrap();
    conformance::check(&|| Ok(Arc::new(disk.open()?)), folder.path());
}

#[test]
fn after_a_crash_the_simulated_store_is_a_prefix_of_its_batches() {
    let mut interrupted = InterruptedBatches::default();
    for seed in 0..200 {
        interrupted += conformance::check_recovery(&SimDisk::new(seed), seed);
    }
    assert!(0 < interrupted.surviving_count && 0 < interrupted.lost_count, "{interrupted:?}");
}

impl CrashingDisk for SimDisk {
    fn open(&self) -> Result<Arc<dyn TxKv>> {
        Ok(Arc::new(Self::open(self)?))
    }

    fn crash_soon(&self, random: u64) {
        self.fail_after(random % 12);
    }

    fn crash(&self) {
        Self::crash(self);
    }
}

#[test]
fn a_failed_write_is_there_afterwards_for_some_seeds_and_not_for_others() {
    let survives = |seed| {
        let disk = SimDisk::new(seed);
        let store = disk.open().unwrap();
        disk.fail_after(0);
        let mut batch = Batch::new();
        batch.put(Space::StoreMetadata, &b"key"[..], &b"value"[..]);
        assert!(matches!(store.write(batch), Err(Error::Write { .. })));
        assert!(store.is_poisoned());
        assert!(matches!(store.get(Space::StoreMetadata, b"key"), Err(Error::Poisoned { .. })));
        disk.crash();
        disk.open().unwrap().get(Space::StoreMetadata, b"key").unwrap().is_some()
    };
    let survivor_count = (0..20).filter(|&seed| survives(seed)).count();
    assert!((1..20).contains(&survivor_count), "{survivor_count} of 20 survived");
}

#[test]
fn the_handle_of_a_crashed_life_is_dead_while_the_next_one_works() {
    let disk = SimDisk::new(1);
    let before = disk.open().unwrap();
    disk.crash();
    let after = disk.open().unwrap();
    assert!(before.is_poisoned());
    assert!(!after.is_poisoned());
    drop(before);
    assert!(matches!(disk.open(), Err(Error::AlreadyOpen { .. })), "the living handle still holds the disk");
}

use std::sync::Arc;

use super::*;
use crate::conformance::{self, CrashingDisk, InterruptedBatches};
use crate::crash_disk::CrashDisk;

/// File size so small that the log switches files every few batches.
const SMALL_BYTES: u64 = 2_000;

#[test]
fn the_store_fulfils_the_contract() {
    for file_bytes in [100, SMALL_BYTES, FILE_BYTES] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.redb");
        conformance::check(&|| Ok(Arc::new(open(&path, file_bytes, trees::CACHE_BYTES)?)), folder.path());
    }
}

#[test]
fn after_lost_and_torn_writes_the_store_is_a_prefix_of_its_batches() {
    let mut interrupted = InterruptedBatches::default();
    for seed in 0..120 {
        let disk = Disk { disk: CrashDisk::new(seed), file_bytes: if seed % 2 == 0 { SMALL_BYTES } else { 20_000 } };
        drop(disk.open_store().unwrap());
        interrupted += conformance::check_recovery(&disk, seed);
    }
    assert!(0 < interrupted.surviving_count && 0 < interrupted.lost_count, "{interrupted:?}");
}

struct Disk {
    disk: CrashDisk,
    file_bytes: u64,
}

impl Disk {
    fn open_store(&self) -> Result<WalStore> {
        let [trees, first, second] = self.disk.open_files();
        let media: [LogMedium; 2] = [Box::new(first), Box::new(second)];
        WalStore::open(trees::open_with_wal_on(trees)?, media, self.file_bytes, FlushMode::Inline)
    }
}

impl CrashingDisk for Disk {
    fn open(&self) -> Result<Arc<dyn TxKv>> {
        Ok(Arc::new(self.open_store()?))
    }

    fn crash_soon(&self, random: u64) {
        // A batch takes two requests, or about ten if it switches files.
        self.disk.fail_after(random % 60);
    }

    fn crash(&self) {
        self.disk.crash();
    }
}

#[test]
fn a_batch_is_one_write_and_one_sync() {
    let disk = Disk { disk: CrashDisk::new(0), file_bytes: FILE_BYTES };
    let store = disk.open_store().unwrap();
    store.write(one_put("first")).unwrap();
    let before = disk.disk.request_count();
    store.write(one_put("second")).unwrap();
    assert_eq!(disk.disk.request_count() - before, 2);
}

#[test]
fn every_failed_request_poisons_the_store() {
    for request in 0..12 {
        let disk = Disk { disk: CrashDisk::new(request), file_bytes: 10 };
        let store = disk.open_store().unwrap();
        disk.disk.fail_after(request);
        let failed = (0..12).find_map(|_| store.write(one_put("key")).err());
        assert!(matches!(failed, Some(Error::Write { .. })), "request {request}: {failed:?}");
        assert!(store.is_poisoned());
        assert!(matches!(store.get(Space::StoreMetadata, b"key"), Err(Error::Poisoned { .. })));
        assert!(matches!(store.write(one_put("key")), Err(Error::Poisoned { .. })));
        assert!(matches!(
            store.scan(Space::StoreMetadata, KeyRange::all(), Direction::Forward),
            Err(Error::Poisoned { .. })
        ));
        assert!(matches!(store.delete_prefix(Space::StoreMetadata, b""), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_log_that_lacks_a_durable_record_is_refused_and_a_torn_end_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    let write = |range: std::ops::Range<u32>| {
        let store = open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap();
        range.for_each(|number| store.write(one_put(&format!("key {number}"))).unwrap());
    };
    write(0..3);
    let log = file_path(&path, 0);
    let whole = std::fs::read(&log).unwrap();
    let at = |key: &str| whole.windows(key.len()).position(|part| part == key.as_bytes()).unwrap();
    let damage = |position: usize| {
        let mut damaged = whole.clone();
        damaged[position] ^= 1;
        std::fs::write(&log, damaged).unwrap();
    };

    for (key, after) in [("key 0", 0), ("key 1", 1)] {
        damage(at(key));
        let refused = open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap_err();
        assert!(matches!(refused, Error::LogGap { after: found, found: 3, .. } if found == after), "{refused:?}");
    }
    damage(at("key 2"));
    let store = open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap();
    assert_eq!(store.get(Space::StoreMetadata, b"key 1").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(store.get(Space::StoreMetadata, b"key 2").unwrap(), None);
}

#[test]
fn a_log_that_was_left_beside_another_store_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap().write(one_put("key")).unwrap();
    std::fs::remove_file(&path).unwrap();
    let store = open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap();
    assert_eq!(store.get(Space::StoreMetadata, b"key").unwrap(), None);
    store.write(one_put("other")).unwrap();
    drop(store);
    assert!(
        open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap().get(Space::StoreMetadata, b"other").unwrap().is_some()
    );
}

#[test]
fn a_store_from_before_the_log_gets_one_and_is_then_refused_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    crate::redb::open(&path).unwrap().write(one_put("old")).unwrap();
    assert!(!file_path(&path, 0).exists());
    assert!(open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap().get(Space::StoreMetadata, b"old").unwrap().is_some());
    assert!(matches!(crate::redb::open(&path), Err(Error::UnsupportedFormat { found: 4, supported: 3, .. })));
    std::fs::remove_file(file_path(&path, 1)).unwrap();
    let refused = open(&path, FILE_BYTES, trees::CACHE_BYTES).unwrap_err();
    assert!(matches!(&refused, Error::Open { path: file, .. } if *file == file_path(&path, 1)), "{refused:?}");
}

#[test]
fn the_trees_catch_up_beside_writers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    let store = Arc::new(open(&path, SMALL_BYTES, trees::CACHE_BYTES).unwrap());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                (0..100).for_each(|number| store.write(one_put(&format!("{writer} {number}"))).unwrap())
            });
        }
        for _ in 0..50 {
            let count = store.scan(Space::StoreMetadata, KeyRange::all(), Direction::Reverse).unwrap().count();
            assert!(count <= 400);
        }
    });
    let keys =
        |store: &WalStore| store.scan(Space::StoreMetadata, KeyRange::all(), Direction::Forward).unwrap().count();
    assert_eq!(keys(&store), 400);
    assert!(0 < store.shared.trees.wal_position().unwrap().last_applied);
    drop(store);
    assert_eq!(keys(&open(&path, SMALL_BYTES, trees::CACHE_BYTES).unwrap()), 400);
}

fn one_put(key: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(Space::StoreMetadata, key.as_bytes().to_vec(), &b"value"[..]);
    batch
}

#[test]
fn a_batch_that_no_frame_holds_is_refused_and_does_no_harm() {
    let disk = Disk { disk: CrashDisk::new(0), file_bytes: FILE_BYTES };
    let store = disk.open_store().unwrap();
    assert!(matches!(store.write(longest_values(64)), Err(Error::BatchTooLong { .. })));
    assert!(!store.is_poisoned() && store.get(Space::StoreMetadata, &[0]).unwrap().is_none());
}

fn longest_values(count: u8) -> Batch {
    let value = Bytes::from(vec![0; crate::VALUE_BYTES_MAX]);
    let mut batch = Batch::new();
    for key in 0..count {
        batch.put(Space::StoreMetadata, vec![key], value.clone());
    }
    batch
}

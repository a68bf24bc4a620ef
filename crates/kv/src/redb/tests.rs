use std::sync::Arc;

use super::*;
use crate::conformance::{self, CrashingDisk, Interrupted};
use crate::crash_disk::CrashDisk;

#[test]
fn the_store_fulfils_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    conformance::check(&|| Ok(Arc::new(open(&path)?)), folder.path());
}

#[test]
fn after_lost_and_torn_writes_the_store_is_a_prefix_of_its_batches() {
    let mut interrupted = Interrupted::default();
    for seed in 0..60 {
        let disk = CrashDisk::new(seed);
        // A file gets its name only when its making is through, so making it is not at the mercy of crashes.
        drop(open_trees(&disk).unwrap());
        interrupted += conformance::check_recovery(&Trees(disk), seed);
    }
    assert!(0 < interrupted.kept_count && 0 < interrupted.lost_count, "{interrupted:?}");
}

/// A disk with the trees alone.
struct Trees(CrashDisk);

impl CrashingDisk for Trees {
    fn open(&self) -> Result<Arc<dyn TxKv>> {
        Ok(Arc::new(open_trees(&self.0)?))
    }

    fn crash_soon(&self, random: u64) {
        // A batch of the suite takes about ten requests.
        self.0.fail_after(random % 120);
    }

    fn crash(&self) {
        self.0.crash();
    }
}

#[test]
fn every_failed_request_of_a_write_poisons_the_store() {
    let requests_per_write = {
        let disk = CrashDisk::new(0);
        let store = open_trees(&disk).unwrap();
        let before = disk.request_count();
        store.write(one_put()).unwrap();
        disk.request_count() - before
    };
    assert!(3 < requests_per_write, "a commit writes and syncs twice");
    for request in 0..requests_per_write {
        let disk = CrashDisk::new(request);
        let store = open_trees(&disk).unwrap();
        disk.fail_after(request);
        assert!(matches!(store.write(one_put()), Err(Error::Write { .. })), "request {request}");
        assert!(store.is_poisoned());
        assert!(matches!(store.get(Space::Meta, b"key"), Err(Error::Poisoned { .. })));
        assert!(matches!(store.write(one_put()), Err(Error::Poisoned { .. })));
        assert!(matches!(store.scan(Space::Meta, KeyRange::all(), Direction::Forward), Err(Error::Poisoned { .. })));
        assert!(matches!(store.delete_prefix(Space::Meta, b""), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_file_whose_making_was_cut_short_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    std::fs::write(beside(&path, "partial"), b"half a header").unwrap();
    open(&path).unwrap().write(one_put()).unwrap();
    assert_eq!(open(&path).unwrap().get(Space::Meta, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(!beside(&path, "partial").exists());
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    std::fs::write(&path, b"somebody's notes").unwrap();
    assert!(matches!(open(&path), Err(Error::Open { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody's notes");
}

#[test]
fn a_file_of_a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    create(&path, |_| Ok(())).unwrap();
    let database = Database::open(&path).unwrap();
    commit(&database, |transaction| {
        let definition = TableDefinition::<&str, u64>::new("kiln");
        transaction.open_table(definition)?.insert("format", create::FORMAT + 1)?;
        Ok(())
    })
    .unwrap();
    drop(database);
    assert!(matches!(open(&path), Err(Error::Format { found, .. }) if found == create::FORMAT + 1));
}

fn open_trees(disk: &CrashDisk) -> Result<Store> {
    let [file] = disk.files();
    open_on(file, create::FORMAT)
}

fn one_put() -> Batch {
    let mut batch = Batch::new();
    batch.put(Space::Meta, &b"key"[..], &b"value"[..]);
    batch
}

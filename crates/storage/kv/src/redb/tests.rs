use std::sync::Arc;

use redb::ReadableDatabase;
use types::Random;
use types::random::SeededRandom;

use super::*;
use crate::conformance::{self, CrashingDisk, InterruptedBatches};
use crate::crash_disk::CrashDisk;

#[test]
fn the_store_fulfils_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    conformance::check(&|| Ok(Arc::new(open(&path)?)), folder.path());
}

#[test]
fn after_lost_and_torn_writes_the_store_is_a_prefix_of_its_batches() {
    let mut interrupted = InterruptedBatches::default();
    for seed in 0..60 {
        let disk = CrashDisk::new(seed);
        // Creation is not tested here: a file gets its name only when it is complete.
        drop(open_trees(&disk).unwrap());
        interrupted += conformance::check_recovery(&Trees(disk), seed);
    }
    assert!(0 < interrupted.surviving_count && 0 < interrupted.lost_count, "{interrupted:?}");
}

/// A crashing disk with a standalone `redb` store.
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
        assert!(matches!(store.get(Space::StoreMetadata, b"key"), Err(Error::Poisoned { .. })));
        assert!(matches!(store.write(one_put()), Err(Error::Poisoned { .. })));
        assert!(matches!(
            store.scan(Space::StoreMetadata, KeyRange::all(), Direction::Forward),
            Err(Error::Poisoned { .. })
        ));
        assert!(matches!(store.delete_prefix(Space::StoreMetadata, b""), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_file_whose_making_was_cut_short_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    std::fs::write(path_with_extension(&path, "partial"), b"half a header").unwrap();
    open(&path).unwrap().write(one_put()).unwrap();
    assert_eq!(open(&path).unwrap().get(Space::StoreMetadata, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(!path_with_extension(&path, "partial").exists());
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
    create_store(&path, |_| Ok(())).unwrap();
    let database = Database::open(&path).unwrap();
    commit(&database, |transaction| {
        let definition = TableDefinition::<&str, u64>::new("kiln");
        transaction.open_table(definition)?.insert("format", create::FORMAT + 1)?;
        Ok(())
    })
    .unwrap();
    drop(database);
    assert!(matches!(open(&path), Err(Error::UnsupportedFormat { found, .. }) if found == create::FORMAT + 1));
}

/// Creates a file as older versions did, without checksums.
fn make_unchecked(path: &Path, format: u64, entries: &[(Space, Vec<u8>, Vec<u8>)]) {
    let database = Database::create(path).unwrap();
    commit(&database, |transaction| {
        for (space, key, value) in entries {
            let name: SpaceTable = TableDefinition::new(space.unchecked_table_name());
            transaction.open_table(name)?.insert(&key[..], &value[..])?;
        }
        let mut table = transaction.open_table(create::FORMAT_TABLE)?;
        table.insert("format", format)?;
        if format == with_wal::FORMAT_WITH_WAL_UNCHECKED {
            table.insert("log", 7)?;
            table.insert("applied", 42)?;
        }
        Ok(())
    })
    .unwrap();
}

fn entries() -> Vec<(Space, Vec<u8>, Vec<u8>)> {
    let spaces =
        [Space::StoreMetadata, Space::UnflushedRows, Space::UnflushedRows, Space::LogicalLog, Space::IndexEntries];
    (0..2_000_usize)
        .map(|number| {
            let value = format!("value {number}").repeat(number % 7).into_bytes();
            (spaces[number % spaces.len()], format!("key {number:05}").into_bytes(), value)
        })
        .collect()
}

/// A space, a key in it, and the key's value.
type Entry = (Space, Vec<u8>, Vec<u8>);

/// Scans all entries of the store and checks that point reads return the values in `entries`.
fn read_all(store: &RedbStore, entries: &[Entry]) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    for space in Space::ALL {
        for entry in store.scan(space, KeyRange::all(), Direction::Forward)? {
            let (key, value) = entry?;
            found.push((space, key.to_vec(), value.to_vec()));
        }
    }
    for (space, key, value) in entries {
        assert_eq!(store.get(*space, key)?.as_deref(), Some(&value[..]));
    }
    found.sort();
    Ok(found)
}

#[test]
fn a_file_of_an_older_version_is_upgraded_and_no_older_version_opens_it() {
    let mut entries = entries();
    entries.sort();
    let folder = tempfile::tempdir().unwrap();
    for (format, role, upgraded) in [
        (1, FileRole::Standalone, create::FORMAT),
        (1, FileRole::WithWal, create::FORMAT),
        (with_wal::FORMAT_WITH_WAL_UNCHECKED, FileRole::WithWal, with_wal::FORMAT_WITH_WAL),
    ] {
        let path = folder.path().join(format!("{format}{role:?}"));
        make_unchecked(&path, format, &entries);
        for _ in 0..2 {
            let store = open_file(&path, role, CACHE_BYTES).unwrap();
            assert_eq!(read_all(&store, &entries).unwrap(), entries);
            assert_eq!(create::read_format(&store.database).unwrap(), Some(upgraded));
            let names = store.database.begin_read().unwrap().list_tables().unwrap().count();
            assert_eq!(names, 1 + Space::ALL.len());
        }
        let store = open_file(&path, FileRole::WithWal, CACHE_BYTES).unwrap();
        let mark = store.has_wal().unwrap().then(|| store.wal_position().unwrap());
        drop(store);
        let expected = with_wal::WalPosition { store_identity: 7, last_applied: 42 };
        assert_eq!(mark, (format == with_wal::FORMAT_WITH_WAL_UNCHECKED).then_some(expected));
        // Trees behind a log cannot be opened as a standalone store.
        assert_eq!(open(&path).is_ok(), format == 1);
    }
}

#[test]
fn an_upgrade_that_was_cut_short_goes_on() {
    let mut entries = entries();
    entries.sort();
    for seed in 0..12 {
        let disk = CrashDisk::new(seed);
        let [file] = disk.open_files();
        let database = database_builder(CACHE_BYTES).create_with_backend(file).unwrap();
        commit(&database, |transaction| {
            for (space, key, value) in &entries {
                let name: SpaceTable = TableDefinition::new(space.unchecked_table_name());
                transaction.open_table(name)?.insert(&key[..], &value[..])?;
            }
            transaction.open_table(create::FORMAT_TABLE)?.insert("format", 1)?;
            Ok(())
        })
        .unwrap();
        drop(database);
        for attempt in 1..10_000 {
            disk.fail_after((1 + seed) * attempt);
            let opened = open_trees(&disk);
            let is_open = opened.is_ok();
            drop(opened);
            disk.crash();
            if is_open {
                break;
            }
        }
        assert_eq!(read_all(&open_trees(&disk).unwrap(), &entries).unwrap(), entries);
    }
}

#[test]
fn whatever_is_damaged_on_the_disk_is_an_error_or_was_not_used() {
    let mut entries = entries();
    entries.sort();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    let store = open_file(&path, FileRole::WithWal, CACHE_BYTES).unwrap();
    store.attach_wal().unwrap();
    let mut batch = Batch::new();
    for (space, key, value) in &entries {
        batch.put(*space, key.clone(), value.clone());
    }
    store.write(batch).unwrap();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let damaged_path = folder.path().join("damaged.redb");
    let random = SeededRandom::new(1);
    let below = |count: usize| usize::try_from(random.next_u64() % count as u64).unwrap();
    let (mut noticed, mut unused) = (0, 0);
    for round in 0..150 {
        let mut damaged = whole.clone();
        // Skips zero bytes, most of which are unused space.
        let at = loop {
            let at = below(damaged.len());
            if damaged[at] != 0 {
                break at;
            }
        };
        for byte in damaged.iter_mut().skip(at).take([1, 8, 512, 4_096][round % 4]) {
            *byte = match round % 3 {
                0 => *byte ^ (1 << below(8)),
                1 => 0,
                _ => u8::try_from(below(256)).unwrap(),
            };
        }
        if damaged == whole {
            continue;
        }
        std::fs::write(&damaged_path, &damaged).unwrap();
        match open_file(&damaged_path, FileRole::WithWal, CACHE_BYTES).and_then(|store| read_all(&store, &entries)) {
            Ok(found) => {
                assert_eq!(found, entries, "round {round}, at {at}");
                unused += 1;
            }
            Err(_) => noticed += 1,
        }
    }
    assert!(20 < noticed && 0 < unused, "{noticed} noticed, {unused} of unused bytes");
}

#[test]
fn a_value_that_is_damaged_while_the_store_is_open_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.redb");
    let mut batch = Batch::new();
    batch.put(Space::UnflushedRows, &b"good"[..], &b"a value that stays"[..]);
    batch.put(Space::UnflushedRows, &b"kaputt"[..], &b"a value that changes"[..]);
    batch.put(Space::UnflushedRows, &b"later"[..], &b"another that stays"[..]);
    open(&path).unwrap().write(batch).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = b"a value that changes";
    let places: Vec<usize> = (0..bytes.len() - needle.len()).filter(|&at| bytes[at..].starts_with(needle)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b'X';
    }
    std::fs::write(&path, bytes).unwrap();
    let store = open(&path).unwrap();
    assert_eq!(store.get(Space::UnflushedRows, b"good").unwrap().as_deref(), Some(&b"a value that stays"[..]));
    let error = store.get(Space::UnflushedRows, b"kaputt").unwrap_err();
    assert!(matches!(error, Error::DamagedEntry { space: Space::UnflushedRows, .. }) && error.is_damage(), "{error}");
    let found: Vec<Result<_>> =
        store.scan(Space::UnflushedRows, KeyRange::all(), Direction::Forward).unwrap().collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].is_ok() && matches!(found[1], Err(Error::DamagedEntry { .. })));
    // A checkpoint does not copy a damaged value.
    assert!(store.checkpoint(&folder.path().join("copy")).is_err());
}

fn open_trees(disk: &CrashDisk) -> Result<RedbStore> {
    let [file] = disk.open_files();
    open_on_backend(file, FileRole::Standalone)
}

fn one_put() -> Batch {
    let mut batch = Batch::new();
    batch.put(Space::StoreMetadata, &b"key"[..], &b"value"[..]);
    batch
}

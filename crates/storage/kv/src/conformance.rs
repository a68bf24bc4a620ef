//! Conformance tests of the [`TxKv`] contract, run by every backend. They panic where the contract is broken.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use types::Random;
use types::random::SeededRandom;

use crate::{Batch, Direction, Entries, Error, KeyRange, Result, Space, TxKv};

/// Function that opens the store under test; called again after the earlier handle was dropped.
pub type OpenStore<'a> = &'a dyn Fn() -> Result<Arc<dyn TxKv>>;

/// Checks all parts of the contract that need no crash. `folder` must be empty; checkpoints are written to it.
pub fn check(open: OpenStore<'_>, folder: &Path) {
    reads_see_what_batches_wrote(&*open().expect("the store opens"));
    scans_follow_key_order(&*open().expect("the store opens again"));
    scans_hold_their_moment(&*open().expect("the store opens again"));
    prefixes_are_deleted_in_their_space_only(&*open().expect("the store opens again"));
    batches_survive_a_restart(open);
    a_second_handle_is_refused(open);
    oversized_keys_are_refused_and_do_no_harm(&*open().expect("the store opens again"));
    checkpoints_hold_one_moment(&*open().expect("the store opens again"), folder);
}

fn reads_see_what_batches_wrote(store: &dyn TxKv) {
    store.write(batch(&[(Space::Catalog, "a", Some("1")), (Space::Shards, "a", Some("2"))])).expect("write");
    assert_eq!(get(store, Space::Catalog, "a").as_deref(), Some("1"));
    assert_eq!(get(store, Space::Shards, "a").as_deref(), Some("2"), "spaces do not mix");
    assert_eq!(get(store, Space::StoreMetadata, "a"), None);

    let later_wins = [
        (Space::Catalog, "b", Some("1")),
        (Space::Catalog, "a", None),
        (Space::Catalog, "b", Some("2")),
        (Space::Catalog, "c", Some("1")),
        (Space::Catalog, "c", None),
    ];
    store.write(batch(&later_wins)).expect("write");
    assert_eq!(get(store, Space::Catalog, "a"), None);
    assert_eq!(get(store, Space::Catalog, "b").as_deref(), Some("2"));
    assert_eq!(get(store, Space::Catalog, "c"), None);

    let values = store.multi_get(Space::Catalog, &[b"c", b"b", b"b"]).expect("multi_get");
    assert_eq!(values, [None, Some(Bytes::from("2")), Some(Bytes::from("2"))]);

    store.write(Batch::new()).expect("an empty batch is fine");
    store.write(batch(&[(Space::Catalog, "never there", None)])).expect("deleting nothing is fine");
    store.write(batch(&[(Space::Catalog, "", Some("")), (Space::Catalog, "b", None)])).expect("empty key and value");
    assert_eq!(get(store, Space::Catalog, "").as_deref(), Some(""));
}

fn scans_follow_key_order(store: &dyn TxKv) {
    let mut entries = Batch::new();
    for key in [&b"b"[..], b"a\0", b"a", b"\xFF\xFF", b"\xFF", b"ab"] {
        entries.put(Space::UnflushedRows, Bytes::from(key), Bytes::from("x"));
    }
    store.write(entries).expect("write");
    let check = |range: KeyRange, expected: &[&[u8]]| {
        let forward = keys(store.scan(Space::UnflushedRows, range.clone(), Direction::Forward).expect("scan"));
        assert_eq!(forward, expected, "{range:?}");
        let mut reverse = keys(store.scan(Space::UnflushedRows, range.clone(), Direction::Reverse).expect("scan"));
        reverse.reverse();
        assert_eq!(reverse, expected, "{range:?} in reverse");
    };
    check(KeyRange::all(), &[b"a", b"a\0", b"ab", b"b", b"\xFF", b"\xFF\xFF"]);
    check(KeyRange::prefix(b"a"), &[b"a", b"a\0", b"ab"]);
    check(KeyRange::prefix(b"\xFF"), &[b"\xFF", b"\xFF\xFF"]);
    check(KeyRange::prefix(b""), &[b"a", b"a\0", b"ab", b"b", b"\xFF", b"\xFF\xFF"]);
    check(KeyRange::between(&b"a\0"[..], &b"b"[..]), &[b"a\0", b"ab"]);
    check(KeyRange::from(&b"b"[..]), &[b"b", b"\xFF", b"\xFF\xFF"]);
    let excluded = |key: &'static [u8]| Bound::Excluded(Bytes::from(key));
    let included = |key: &'static [u8]| Bound::Included(Bytes::from(key));
    check(KeyRange::new(excluded(b"a"), included(b"b")), &[b"a\0", b"ab", b"b"]);
    check(KeyRange::new(included(b"ab"), included(b"ab")), &[b"ab"]);
    check(KeyRange::new(excluded(b"a"), excluded(b"a")), &[]);
    check(KeyRange::new(excluded(b"a"), included(b"a")), &[]);
    check(KeyRange::between(&b"b"[..], &b"a"[..]), &[]);
    check(KeyRange::between(&b"c"[..], &b"d"[..]), &[]);
    store.delete_prefix(Space::UnflushedRows, b"").expect("delete_prefix");
}

fn scans_hold_their_moment(store: &dyn TxKv) {
    store
        .write(batch(&[(Space::UnflushedRows, "a", Some("1")), (Space::UnflushedRows, "b", Some("1"))]))
        .expect("write");
    let mut before = store.scan(Space::UnflushedRows, KeyRange::all(), Direction::Forward).expect("scan");
    assert_eq!(before.next().expect("an entry").expect("entry").0, "a");
    store
        .write(batch(&[(Space::UnflushedRows, "b", Some("2")), (Space::UnflushedRows, "c", Some("2"))]))
        .expect("write");
    let rest: Vec<_> = before.map(|entry| entry.expect("entry")).collect();
    assert_eq!(rest, [(Bytes::from("b"), Bytes::from("1"))], "later writes do not show");
    store.delete_prefix(Space::UnflushedRows, b"").expect("delete_prefix");
}

fn prefixes_are_deleted_in_their_space_only(store: &dyn TxKv) {
    let entries = [
        (Space::UnflushedRows, "t1/a", Some("x")),
        (Space::UnflushedRows, "t1/b", Some("x")),
        (Space::UnflushedRows, "t2/a", Some("x")),
        (Space::DeletedRows, "t1/a", Some("x")),
    ];
    store.write(batch(&entries)).expect("write");
    store.delete_prefix(Space::UnflushedRows, b"t1/").expect("delete_prefix");
    store.delete_prefix(Space::UnflushedRows, b"t9/").expect("nothing to delete is fine");
    assert_eq!(
        keys(store.scan(Space::UnflushedRows, KeyRange::all(), Direction::Forward).expect("scan")),
        [&b"t2/a"[..]]
    );
    assert_eq!(get(store, Space::DeletedRows, "t1/a").as_deref(), Some("x"));
}

fn batches_survive_a_restart(open: OpenStore<'_>) {
    let store = open().expect("open");
    store
        .write(batch(&[(Space::StoreMetadata, "kept", Some("yes")), (Space::StoreMetadata, "gone", Some("no"))]))
        .expect("write");
    store.write(batch(&[(Space::StoreMetadata, "gone", None)])).expect("write");
    drop(store);
    let store = open().expect("open");
    assert_eq!(get(&*store, Space::StoreMetadata, "kept").as_deref(), Some("yes"));
    assert_eq!(get(&*store, Space::StoreMetadata, "gone"), None);
}

fn a_second_handle_is_refused(open: OpenStore<'_>) {
    let first = open().expect("open");
    assert!(matches!(open(), Err(Error::AlreadyOpen { .. })), "only one handle at a time");
    first.write(batch(&[(Space::StoreMetadata, "first", Some("still works"))])).expect("write");
    drop(first);
    open().expect("the handle is free again");
}

fn oversized_keys_are_refused_and_do_no_harm(store: &dyn TxKv) {
    let mut oversized = batch(&[(Space::StoreMetadata, "beside", Some("x"))]);
    oversized.put(Space::StoreMetadata, vec![0; crate::KEY_BYTES_MAX + 1], Bytes::new());
    assert!(matches!(store.write(oversized), Err(Error::KeyTooLong { .. })));
    assert_eq!(get(store, Space::StoreMetadata, "beside"), None, "nothing of a refused batch is written");
    assert!(!store.is_poisoned());
    let mut longest = Batch::new();
    longest.put(Space::StoreMetadata, vec![7; crate::KEY_BYTES_MAX], vec![7; 1024 * 1024]);
    store.write(longest).expect("the longest key is stored");
    store.delete_prefix(Space::StoreMetadata, &[7]).expect("delete_prefix");
}

fn checkpoints_hold_one_moment(store: &dyn TxKv, folder: &Path) {
    let path = folder.join("copy.redb");
    store.write(batch(&[(Space::Catalog, "k", Some("then")), (Space::Shards, "k", Some("then"))])).expect("write");
    store.checkpoint(&path).expect("checkpoint");
    store.write(batch(&[(Space::Catalog, "k", Some("now"))])).expect("write");
    assert!(matches!(store.checkpoint(&path), Err(Error::CheckpointExists { .. })), "a copy replaces nothing");
    assert!(matches!(store.checkpoint(&folder.join("no folder/copy.redb")), Err(Error::Checkpoint { .. })));
    assert!(!store.is_poisoned(), "a failed copy leaves the store usable");

    let copy = crate::redb::open(&path).expect("a copy is a store");
    for space in Space::ALL {
        let original = store.scan(space, KeyRange::all(), Direction::Forward).expect("scan");
        let mut expected: Vec<_> = original.map(|entry| entry.expect("entry")).collect();
        if space == Space::Catalog {
            for entry in expected.iter_mut().filter(|entry| entry.0 == "k") {
                entry.1 = Bytes::from("then");
            }
        }
        let copied = copy.scan(space, KeyRange::all(), Direction::Forward).expect("scan");
        assert_eq!(copied.map(|entry| entry.expect("entry")).collect::<Vec<_>>(), expected, "{space:?}");
    }
}

/// A disk that can lose unacknowledged writes.
pub trait CrashingDisk {
    /// Opens the store on the disk.
    fn open(&self) -> Result<Arc<dyn TxKv>>;
    /// Makes a later write fail; `random` decides which one.
    fn crash_soon(&self, random: u64);
    /// Crashes the current store; unacknowledged writes may be lost.
    fn crash(&self);
}

/// Outcomes of the batches whose write failed.
#[derive(Debug, Default, Clone, Copy)]
pub struct InterruptedBatches {
    /// Number of batches found after the crash.
    pub surviving_count: usize,
    /// Number of batches not found after the crash.
    pub lost_count: usize,
}

impl std::ops::AddAssign for InterruptedBatches {
    fn add_assign(&mut self, other: Self) {
        self.surviving_count += other.surviving_count;
        self.lost_count += other.lost_count;
    }
}

/// Writes random batches, crashes and reopens, several times on one disk; checks that the store contains all
/// acknowledged batches and at most the one in flight.
pub fn check_recovery(disk: &dyn CrashingDisk, seed: u64) -> InterruptedBatches {
    let random = SeededRandom::new(seed);
    let mut interrupted = InterruptedBatches::default();
    let mut acknowledged = Model::new();
    // Expected content if the failed write took effect.
    let mut attempted = None;
    for life in 0..5 {
        let last = life == 4;
        if !last {
            disk.crash_soon(random.next_u64());
        }
        match disk.open() {
            Ok(store) => {
                let content = contents(&*store);
                if let Some(attempted) = attempted.take().filter(|attempted| *attempted != acknowledged) {
                    let survived = content == attempted;
                    interrupted.surviving_count += usize::from(survived);
                    interrupted.lost_count += usize::from(!survived);
                    if survived {
                        acknowledged = attempted;
                    }
                }
                assert!(
                    content == acknowledged,
                    "seed {seed}, life {life}: the store's content is no prefix of the written batches"
                );
                for _ in 0..20 {
                    let batch = random_batch(&random);
                    let mut after = acknowledged.clone();
                    apply(&mut after, &batch);
                    if store.write(batch).is_err() {
                        attempted = Some(after);
                        break;
                    }
                    acknowledged = after;
                }
            }
            // Opening writes too, so a crash may hit it.
            Err(error) => assert!(!last, "seed {seed}: the store does not open after the last crash: {error:?}"),
        }
        disk.crash();
    }
    interrupted
}

type Model = BTreeMap<(Space, Bytes), Bytes>;

fn random_batch(random: &SeededRandom) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..=random.next_u64() % 8 {
        let space = [Space::Catalog, Space::Shards, Space::StoreMetadata][(random.next_u64() % 3) as usize];
        let key = (random.next_u64() % 40).to_be_bytes().to_vec();
        if random.next_u64().is_multiple_of(4) {
            batch.delete(space, key);
        } else {
            // Some values span several pages of the file.
            let bytes = if random.next_u64().is_multiple_of(6) { 9_000 } else { 20 };
            let mut value = vec![0; bytes];
            random.fill(&mut value);
            batch.put(space, key, value);
        }
    }
    batch
}

fn apply(model: &mut Model, batch: &Batch) {
    for op in batch.ops() {
        match op {
            crate::Op::Put { space, key, value } => model.insert((*space, key.clone()), value.clone()),
            crate::Op::Delete { space, key } => model.remove(&(*space, key.clone())),
        };
    }
}

fn contents(store: &dyn TxKv) -> Model {
    let mut model = Model::new();
    for space in Space::ALL {
        for entry in store.scan(space, KeyRange::all(), Direction::Forward).expect("scan") {
            let (key, value) = entry.expect("entry");
            model.insert((space, key), value);
        }
    }
    model
}

fn batch(ops: &[(Space, &'static str, Option<&'static str>)]) -> Batch {
    let mut batch = Batch::new();
    for &(space, key, value) in ops {
        match value {
            Some(value) => batch.put(space, key, value),
            None => batch.delete(space, key),
        };
    }
    batch
}

fn get(store: &dyn TxKv, space: Space, key: &str) -> Option<String> {
    let value = store.get(space, key.as_bytes()).expect("get")?;
    Some(String::from_utf8(value.to_vec()).expect("the suite writes UTF-8 values"))
}

fn keys(entries: Entries) -> Vec<Bytes> {
    entries.map(|entry| entry.expect("entry").0).collect()
}

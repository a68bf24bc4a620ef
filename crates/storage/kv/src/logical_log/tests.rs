use std::sync::Arc;

use types::SystemClock;

use super::*;
use crate::sim::SimDisk;
use crate::{Op, conformance};

fn logged(disk: &SimDisk) -> RecordingStore {
    RecordingStore::open(Arc::new(disk.open().unwrap()), Arc::new(SystemClock::new()), u64::MAX).unwrap()
}

fn put(kv: &dyn TxKv, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(Space::StoreMetadata, key.to_vec(), value.to_vec());
    kv.write(batch).unwrap();
}

fn numbers(records: &[Bytes]) -> Vec<u64> {
    records.iter().map(|record| Record::parse(record).unwrap().number).collect()
}

fn stored(kv: &dyn TxKv) -> Vec<u64> {
    kv.scan(Space::LogicalLog, KeyRange::all(), Direction::Forward)
        .unwrap()
        .map(|entry| parse_record_key(&entry.unwrap().0).unwrap().0)
        .collect()
}

/// A logged store that hides the space `LogicalLog`, so that it behaves like the wrapped store.
#[derive(Debug)]
struct WithoutLog(RecordingStore);

impl TxKv for WithoutLog {
    fn write(&self, batch: Batch) -> Result<()> {
        self.0.write(batch)
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.get(space, key)
    }

    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.0.multi_get(space, keys)
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries> {
        if space == Space::LogicalLog { Ok(Box::new(std::iter::empty())) } else { self.0.scan(space, range, direction) }
    }

    fn delete_prefix(&self, space: Space, prefix: &[u8]) -> Result<()> {
        self.0.delete_prefix(space, prefix)
    }

    fn checkpoint(&self, path: &Path) -> Result<()> {
        self.0.checkpoint(path)?;
        crate::redb::open(path)?.delete_prefix(Space::LogicalLog, b"")
    }

    fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }
}

#[test]
fn a_store_with_a_log_is_a_store() {
    let (disk, folder) = (SimDisk::new(1), tempfile::tempdir().unwrap());
    let open = || {
        let kv = RecordingStore::open(Arc::new(disk.open()?), Arc::new(SystemClock::new()), u64::MAX)?;
        Ok(Arc::new(WithoutLog(kv)) as Arc<dyn TxKv>)
    };
    conformance::check(&open, folder.path());
}

#[test]
fn what_the_records_say_is_what_the_store_holds() {
    let log = logged(&SimDisk::new(1));
    put(&log, b"a", b"1");
    put(&log, b"b", b"2");
    put(&log, b"a", b"3");
    log.delete_prefix(Space::StoreMetadata, b"b").unwrap();
    let copy = SimDisk::new(2).open().unwrap();
    for record in log.unarchived_records(usize::MAX).unwrap() {
        copy.write(Record::parse(&record).unwrap().batch).unwrap();
    }
    let content = |kv: &dyn TxKv| -> Vec<_> {
        kv.scan(Space::StoreMetadata, KeyRange::all(), Direction::Forward).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(content(&copy), content(&log));
    assert_eq!(content(&copy).len(), 1);
}

#[test]
fn records_go_once_they_are_copied_and_the_newest_stays() {
    let disk = SimDisk::new(1);
    let log = logged(&disk);
    (0..3).for_each(|_| put(&log, b"a", b"1"));
    assert_eq!(numbers(&log.unarchived_records(usize::MAX).unwrap()), [1, 2, 3]);
    assert_eq!(numbers(&log.unarchived_records(1).unwrap()), [1]);
    log.mark_archived(3);
    assert_eq!(log.progress().unarchived_bytes, 0);
    assert!(log.unarchived_records(usize::MAX).unwrap().is_empty());
    assert_eq!(stored(&log), [1, 2, 3]);
    put(&log, b"a", b"2");
    assert_eq!(stored(&log), [4]);
    log.mark_archived(4);
    drop(log);
    let log = logged(&disk);
    assert_eq!(log.progress().newest_record, 4);
    // Archive progress is not persisted: after a restart the newest record is reported as unarchived.
    assert_eq!(numbers(&log.unarchived_records(usize::MAX).unwrap()), [4]);
    put(&log, b"a", b"3");
    assert_eq!(stored(&log), [4, 5]);
}

#[test]
fn a_crash_leaves_a_record_of_every_write_that_is_there() {
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let log = logged(&disk);
        put(&log, b"a", b"1");
        disk.fail_after(0);
        let mut batch = Batch::new();
        batch.put(Space::StoreMetadata, b"a".to_vec(), b"2".to_vec());
        assert!(log.write(batch).is_err());
        disk.crash();
        let log = logged(&disk);
        let is_there = log.get(Space::StoreMetadata, b"a").unwrap().unwrap() == b"2"[..];
        assert_eq!(log.progress().newest_record, 1 + u64::from(is_there));
    }
}

#[test]
fn a_long_record_is_stored_in_parts() {
    let disk = SimDisk::new(1);
    let log = logged(&disk);
    let value = vec![7; 2 * PART_BYTES];
    put(&log, b"a", &value);
    drop(log);
    let log = logged(&disk);
    let records = log.unarchived_records(1).unwrap();
    let record = Record::parse(&records[0]).unwrap();
    assert_eq!(
        record.batch.ops(),
        [Op::Put { space: Space::StoreMetadata, key: b"a"[..].into(), value: value.into() }]
    );
    assert_eq!(stored(&log), [1, 1, 1]);
    log.mark_archived(1);
    put(&log, b"a", b"2");
    assert_eq!(stored(&log), [2]);
}

#[test]
fn the_first_record_of_a_store_from_before_the_log_is_not_number_one() {
    let disk = SimDisk::new(1);
    put(&disk.open().unwrap(), b"a", b"1");
    let log = logged(&disk);
    put(&log, b"a", b"2");
    assert_eq!(numbers(&log.unarchived_records(usize::MAX).unwrap()), [2]);
}

#[test]
fn a_batch_beside_its_record_is_written_once() {
    for previous in [None, Some(77)] {
        check_that_a_batch_is_written_once(previous);
    }
}

fn check_that_a_batch_is_written_once(previous: Option<u64>) {
    let mut batch = Batch::new();
    for number in 0..100_u8 {
        batch.put(Space::UnflushedRows, vec![number], vec![number; 50]);
    }
    let of_all = Record::encode(7, 1_000, previous, &batch);
    let of_others = Record::encode(8, 2_000, previous, batch.clone().put(Space::UnflushedRows, &b"b"[..], &b"1"[..]));
    for (value, is_told) in [(of_all.clone(), true), (of_others, false), (of_all.slice(1..), false)] {
        let mut beside = batch.clone();
        beside.put(Space::LogicalLog, record_key(7, 0), value.clone()).delete(Space::LogicalLog, record_key(3, 0));
        // A second copy of the record is stored as an ordinary value.
        beside.put(Space::LogicalLog, record_key(8, 0), value.clone());
        let written = Record::encode(9, 0, None, &beside);
        let values_count = if is_told { 1 } else { 2 };
        assert!(of_all.len() + values_count * value.len() <= written.len() + 200, "{} bytes", written.len());
        let read = Record::parse(&written).unwrap();
        assert_eq!((read.number, read.written_us, &read.batch), (9, 0, &beside));
    }
    // The record beside its batch takes no more than a header.
    let mut beside = batch.clone();
    beside.put(Space::LogicalLog, record_key(7, 0), of_all.clone());
    assert!(Record::encode(9, 0, None, &beside).len() < of_all.len() + 60);
}

#[test]
fn each_record_contains_the_checksum_of_the_one_before_it_across_restarts_and_restores() {
    let disk = SimDisk::new(1);
    let log = logged(&disk);
    put(&log, b"a", b"1");
    put(&log, b"a", b"2");
    drop(log);
    let log = logged(&disk);
    put(&log, b"a", b"3");
    let records: Vec<Record> =
        log.unarchived_records(usize::MAX).unwrap().iter().map(|record| Record::parse(record).unwrap()).collect();
    assert_eq!(records[0].previous_checksum, Some(NO_PREDECESSOR));
    for pair in records.windows(2) {
        assert_eq!(pair[1].previous_checksum, Some(pair[0].checksum));
        assert!(pair[1].follows(pair[0].checksum) && !pair[1].follows(pair[1].checksum));
    }
    assert_eq!(newest_record(&log).unwrap().unwrap(), records[2]);
    assert_eq!(oldest_record(&log).unwrap().unwrap(), records[0]);
    assert_eq!(find_record(&log, 2).unwrap().unwrap(), records[1]);
    assert_eq!(find_record(&log, 4).unwrap(), None);
    // A restored store continues after the record that it was restored to.
    let restored = SimDisk::new(2);
    let store = restored.open().unwrap();
    let mut batch = Batch::new();
    reset_log_to(&store, &records[1], &mut batch).unwrap();
    store.write(batch).unwrap();
    drop(store);
    let log = logged(&restored);
    assert_eq!(newest_record(&log).unwrap().unwrap(), records[1]);
    put(&log, b"a", b"4");
    assert_eq!(newest_record(&log).unwrap().unwrap().previous_checksum, Some(records[1].checksum));
}

#[test]
fn a_store_of_before_records_were_chained_goes_on() {
    let disk = SimDisk::new(1);
    let mut batch = Batch::new();
    batch.put(Space::StoreMetadata, &b"a"[..], &b"1"[..]);
    let old = Record::encode(5, 1_000, None, &batch);
    put_record(&mut batch, 5, &old);
    disk.open().unwrap().write(batch).unwrap();
    let log = logged(&disk);
    put(&log, b"a", b"2");
    let [old, new] = [5, 6].map(|number| find_record(&log, number).unwrap().unwrap());
    assert_eq!((old.previous_checksum, new.previous_checksum), (None, Some(old.checksum)));
    assert!(old.follows(99) && new.follows(old.checksum));
}

#[test]
fn a_damaged_record_is_refused() {
    let log = logged(&SimDisk::new(1));
    put(&log, b"a", b"1");
    let record = log.unarchived_records(1).unwrap().remove(0);
    for at in 0..record.len() {
        let mut damaged = record.to_vec();
        damaged[at] ^= 1;
        assert!(Record::parse(&damaged.into()).is_err());
        assert!(Record::parse(&record.slice(..at)).is_err());
    }
}

#[test]
fn writes_wait_while_too_much_waits_to_be_copied() {
    let log = Arc::new(
        RecordingStore::open(Arc::new(SimDisk::new(1).open().unwrap()), Arc::new(SystemClock::new()), 10).unwrap(),
    );
    put(&*log, b"a", b"1");
    let writer = std::thread::spawn({
        let log = Arc::clone(&log);
        move || put(&*log, b"a", b"2")
    });
    std::thread::yield_now();
    assert_eq!(log.progress().newest_record, 1);
    log.mark_archived(1);
    writer.join().unwrap();
    assert_eq!(log.progress().newest_record, 2);
}

#[test]
fn a_batch_that_could_not_be_written_twice_is_refused_before_it_is_written() {
    let disk = SimDisk::new(0);
    let log = logged(&disk);
    let value = Bytes::from(vec![0; crate::VALUE_BYTES_MAX]);
    let mut batch = Batch::new();
    for key in 0..31 {
        batch.put(Space::StoreMetadata, vec![key], value.clone());
    }
    assert!(matches!(log.write(batch), Err(Error::BatchTooLong { .. })));
    assert_eq!(log.progress().newest_record, 0);
    put(&log, b"a", b"1");
}

/// Golden files: every released format must stay readable. Files are never rewritten; a new format gets a new file.
#[test]
fn records_are_stored_as_ever() {
    let mut batch = Batch::new();
    batch.put(Space::UnflushedRows, &b"key"[..], &b"value"[..]).delete(Space::StoreMetadata, &b"gone"[..]);
    let told = batch.clone();
    for (name, previous) in [("record.v1", None), ("record.v2", Some(0x0102_0304_0506_0708))] {
        let mut batch = told.clone();
        batch.put(Space::LogicalLog, record_key(7, 0), Record::encode(7, 1_000, previous, &told));
        let bytes = Record::encode(9, 2_000, previous, &batch);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.bin"));
        if std::env::var_os("KILN_WRITE_GOLDEN").is_some() && !path.exists() {
            std::fs::write(&path, &bytes).unwrap();
        }
        let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(golden == bytes, "{} is what is written now", path.display());
        let read = Record::parse(&golden.into()).unwrap();
        assert_eq!((read.number, read.written_us, read.previous_checksum, &read.batch), (9, 2_000, previous, &batch));
    }
}

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use catalog::{CatalogState, Change, persistence};
use history::{
    CHECKPOINTS, HistorySettings, LOG, NEWER_VERSION, RestoredStore, begin_timeline, compare_with_storage,
    fork_root_timeline, lacks_first_checkpoint, restore,
};
use kv::TxKv;
use kv::logical_log::RecordingStore;
use kv::sim::SimDisk;
use objects::Objects;
use types::{Clock, CommitTs, Oid};
use uuid::Uuid;

use super::*;
use crate::fixtures::{begin, bucket, commit, load, object_name, put, shard_ids, table};

const SECOND_US: i64 = 1_000_000;

/// Clock that is advanced manually, and by a second with every reading.
#[derive(Debug)]
struct HandClock(AtomicI64);

impl HandClock {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_000_000 * SECOND_US)))
    }

    fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * SECOND_US, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now_us(&self) -> i64 {
        self.0.fetch_add(SECOND_US, Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// Warehouse whose history is archived only when the test asks for it.
struct House {
    disk: SimDisk,
    objects: Objects,
    clock: Arc<HandClock>,
    folder: tempfile::TempDir,
    instance: Uuid,
}

impl House {
    fn new() -> Self {
        let (disk, objects, clock) = (SimDisk::new(1), bucket(), HandClock::new());
        Self { disk, objects, clock, folder: tempfile::tempdir().unwrap(), instance: Uuid::from_u128(7) }
    }

    fn open(&self) -> Arc<Transactions> {
        self.open_over(Arc::new(self.disk.open().unwrap()))
    }

    fn open_over(&self, kv: Arc<dyn TxKv>) -> Arc<Transactions> {
        let log = Arc::new(RecordingStore::open(kv, self.clock(), u64::MAX).unwrap());
        let settings = HistorySettings {
            instance: self.instance,
            work_folder: self.folder.path().join("history"),
            store_file: self.folder.path().join("none"),
            reserve: None,
            upload_interval: Duration::from_secs(1),
            checkpoint_interval: Duration::from_secs(3_600),
            retention: Duration::from_secs(86_400),
            claim: None,
        };
        Transactions::open_with_history(log, self.objects.clone(), self.clock(), settings).unwrap()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    async fn restore(&self, moment: TimeTravelTarget, incomplete: bool) -> Result<(CatalogState, RestoredStore)> {
        let data = tempfile::tempdir().unwrap();
        let restored = restore(&self.objects, &data.path().join("new"), moment, incomplete, &|_| ()).await?;
        let file = data.path().join("new").join("catalog.redb");
        let state = read(&data.path().join("new").join(history::RESTORING).join("catalog.redb"));
        assert!(!file.exists());
        Ok((state, restored))
    }

    async fn log_objects(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.objects.list(LOG).await.unwrap().into_iter().map(|object| object.name).collect();
        names.sort();
        names
    }
}

fn read(file: &std::path::Path) -> CatalogState {
    persistence::read(&kv::redb::open(file).unwrap()).unwrap().unwrap().0
}

fn history(transactions: &Transactions) -> &History {
    transactions.core.history.as_ref().unwrap()
}

/// Writes the object of a shard to the bucket, and adds the shard to the table.
async fn add(house: &House, transactions: &Arc<Transactions>, id: u128) {
    house.objects.put(&object_name(100, id), Bytes::from_static(b"rows")).await.unwrap();
    commit(transactions, vec![load(100, &[id])]).await;
}

/// Adds one shard in each of several commits; returns the snapshot after each.
async fn grow(house: &House, transactions: &Arc<Transactions>, shards: std::ops::Range<u128>) -> Vec<Snapshot> {
    let mut seen = vec![transactions.current()];
    for id in shards {
        add(house, transactions, id).await;
        seen.push(transactions.current());
    }
    seen
}

async fn with_table(house: &House) -> Arc<Transactions> {
    let transactions = house.open();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    transactions
}

#[tokio::test]
async fn the_log_alone_restores_every_snapshot() {
    let house = House::new();
    let transactions = with_table(&house).await;
    let seen = grow(&house, &transactions, 1..5).await;
    history(&transactions).upload_log().await.unwrap();
    for snapshot in &seen {
        let (state, restored) = house.restore(TimeTravelTarget::Commit(snapshot.ts), false).await.unwrap();
        assert_eq!((&state, restored.commit), (&*snapshot.state, snapshot.ts));
        assert_eq!(restored.instance, house.instance);
    }
    let (state, _) = house.restore(TimeTravelTarget::Newest, false).await.unwrap();
    assert_eq!(state, *seen[4].state);
    let later = house.restore(TimeTravelTarget::Commit(CommitTs(99)), false).await;
    assert!(matches!(later, Err(HistoryError::InFuture)));
}

#[tokio::test]
async fn a_checkpoint_and_the_log_after_it_restore_what_the_log_before_it_no_longer_tells() {
    let house = House::new();
    let transactions = with_table(&house).await;
    grow(&house, &transactions, 1..3).await;
    history(&transactions).write_checkpoint().await.unwrap();
    for object in house.log_objects().await {
        house.objects.delete(&object).await.unwrap();
    }
    let seen = grow(&house, &transactions, 3..5).await;
    history(&transactions).upload_log().await.unwrap();
    for snapshot in &seen {
        let (state, _) = house.restore(TimeTravelTarget::Commit(snapshot.ts), false).await.unwrap();
        assert_eq!(state, *snapshot.state);
    }
    let before = house.restore(TimeTravelTarget::Commit(CommitTs(seen[0].ts.0 - 1)), false).await;
    assert!(matches!(before, Err(HistoryError::Gap { from: 1, .. } | HistoryError::NoCheckpoint)), "{before:?}");
}

#[tokio::test]
async fn a_gap_in_the_log_is_told_and_ends_an_incomplete_restore() {
    let house = House::new();
    let transactions = with_table(&house).await;
    let mut seen = Vec::new();
    for id in 1..4 {
        add(&house, &transactions, id).await;
        history(&transactions).upload_log().await.unwrap();
        seen.push(transactions.current());
    }
    let objects = house.log_objects().await;
    house.objects.delete(&objects[1]).await.unwrap();
    let refused = house.restore(TimeTravelTarget::Newest, false).await;
    assert!(matches!(refused, Err(HistoryError::Gap { .. })), "{refused:?}");
    let (state, restored) = house.restore(TimeTravelTarget::Newest, true).await.unwrap();
    assert_eq!(state, *seen[0].state);
    assert!(restored.gap.is_some());
    // Records before the gap are complete.
    let (state, _) = house.restore(TimeTravelTarget::Commit(CommitTs(seen[0].ts.0 - 1)), false).await.unwrap();
    assert_eq!(shard_ids(&state, 100), []);
}

#[tokio::test]
async fn damage_is_found_and_a_damaged_checkpoint_is_passed_over() {
    let house = House::new();
    let transactions = with_table(&house).await;
    let seen = grow(&house, &transactions, 1..3).await;
    history(&transactions).write_checkpoint().await.unwrap();
    let checkpoint = house.objects.list(CHECKPOINTS).await.unwrap();
    let checkpoint = checkpoint.iter().find(|object| object.name.ends_with(".zst")).unwrap();
    flip(&house.objects, &checkpoint.name).await;
    let (state, _) = house.restore(TimeTravelTarget::Newest, false).await.unwrap();
    assert_eq!(state, *seen[2].state);
    flip(&house.objects, &house.log_objects().await[0]).await;
    let refused = house.restore(TimeTravelTarget::Newest, false).await;
    assert!(matches!(refused, Err(HistoryError::Damaged { .. })), "{refused:?}");
}

async fn flip(objects: &Objects, name: &str) {
    let mut bytes = objects.get(name).await.unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    objects.put(name, bytes.into()).await.unwrap();
}

#[tokio::test]
async fn missing_objects_are_told() {
    let house = House::new();
    let transactions = with_table(&house).await;
    grow(&house, &transactions, 1..3).await;
    history(&transactions).upload_log().await.unwrap();
    house.objects.delete(&object_name(100, 2)).await.unwrap();
    let refused = house.restore(TimeTravelTarget::Newest, false).await;
    assert!(matches!(refused, Err(HistoryError::MissingObjects { count: 1, .. })), "{refused:?}");
    let (_, restored) = house.restore(TimeTravelTarget::Newest, true).await.unwrap();
    assert_eq!(restored.missing_objects, [object_name(100, 2)]);
}

#[tokio::test]
async fn what_was_not_copied_before_a_crash_is_copied_after_it() {
    let house = House::new();
    let transactions = with_table(&house).await;
    add(&house, &transactions, 1).await;
    history(&transactions).upload_log().await.unwrap();
    add(&house, &transactions, 2).await;
    house.disk.crash();
    drop(transactions);
    let transactions = house.open();
    add(&house, &transactions, 3).await;
    history(&transactions).upload_log().await.unwrap();
    let (state, _) = house.restore(TimeTravelTarget::Newest, false).await.unwrap();
    assert_eq!(shard_ids(&state, 100), [1, 2, 3]);
    assert_eq!(state, *transactions.current().state);
}

#[tokio::test]
async fn a_restored_warehouse_goes_on_and_what_the_old_one_did_later_is_not_mixed_with_it() {
    let house = House::new();
    let transactions = with_table(&house).await;
    let seen = grow(&house, &transactions, 1..4).await;
    history(&transactions).write_checkpoint().await.unwrap();
    let data = house.folder.path().join("new");
    let restored = restore(&house.objects, &data, TimeTravelTarget::Commit(seen[1].ts), false, &|_| ()).await.unwrap();
    restored.install(&data.join("catalog.redb")).unwrap();
    // The old server does not notice the restore, and continues.
    add(&house, &transactions, 4).await;
    history(&transactions).upload_log().await.unwrap();

    let kv: Arc<dyn TxKv> = Arc::new(kv::redb::open(data.join("catalog.redb")).unwrap());
    begin_timeline(&kv, &house.objects).await.unwrap();
    // Nothing was written yet, and yet the old server's later commits are abandoned.
    let (state, _) = house.restore(TimeTravelTarget::Newest, false).await.unwrap();
    assert_eq!(shard_ids(&state, 100), [1]);
    let again = house.open_over(kv);
    assert_eq!(shard_ids(&again.current().state, 100), [1]);
    add(&house, &again, 5).await;
    history(&again).upload_log().await.unwrap();
    let (state, _) = house.restore(TimeTravelTarget::Newest, false).await.unwrap();
    assert_eq!(shard_ids(&state, 100), [1, 5]);
    // The checkpoint of the old timeline contains commits that the new timeline does not.
    history(&again).write_checkpoint().await.unwrap();
    let (state, _) = house.restore(TimeTravelTarget::Newest, false).await.unwrap();
    assert_eq!(shard_ids(&state, 100), [1, 5]);
    let past = again.as_of(TimeTravelTarget::Commit(seen[0].ts)).await.unwrap();
    assert_eq!(shard_ids(&past.state, 100), []);
}

/// Reads each snapshot by its number and by a time at which it was the newest.
async fn look_back(house: &House, transactions: &Transactions, seen: &[Snapshot], times: &[i64]) {
    for (snapshot, time) in seen.iter().zip(times) {
        let by_number = transactions.as_of(TimeTravelTarget::Commit(snapshot.ts)).await.unwrap();
        let by_time = transactions.as_of(TimeTravelTarget::Time(*time)).await.unwrap();
        assert_eq!((by_number.ts, by_time.ts), (snapshot.ts, snapshot.ts));
        assert_eq!(by_number.state, snapshot.state);
        assert_eq!(by_time.state, snapshot.state);
    }
    assert!(matches!(transactions.as_of(TimeTravelTarget::Commit(CommitTs(99))).await, Err(HistoryError::InFuture)));
    let later = TimeTravelTarget::Time(house.clock.now_us() + 60 * SECOND_US);
    assert!(matches!(transactions.as_of(later).await, Err(HistoryError::InFuture)));
}

#[tokio::test]
async fn every_commit_can_be_looked_back_at_from_memory_and_from_the_bucket() {
    let house = House::new();
    let transactions = with_table(&house).await;
    let mut times = Vec::new();
    let mut seen = Vec::new();
    for id in 1..6 {
        add(&house, &transactions, id).await;
        seen.push(transactions.current());
        times.push(house.clock.now_us());
    }
    look_back(&house, &transactions, &seen, &times).await;
    drop(transactions);
    let transactions = house.open();
    look_back(&house, &transactions, &seen, &times).await;
    history(&transactions).write_checkpoint().await.unwrap();
    drop(transactions);
    look_back(&house, &house.open(), &seen, &times).await;
}

#[tokio::test]
async fn objects_are_kept_as_long_as_a_moment_that_needs_them_can_be_looked_back_at() {
    let house = House::new();
    let transactions = with_table(&house).await;
    add(&house, &transactions, 1).await;
    let before = transactions.current().ts;
    commit(&transactions, vec![Change::RemoveAllRows { table: Oid(100) }]).await;
    transactions.clean_once().await.unwrap();
    house.objects.get(&object_name(100, 1)).await.unwrap();
    house.clock.pass(86_000);
    transactions.clean_once().await.unwrap();
    let past = transactions.as_of(TimeTravelTarget::Commit(before)).await.unwrap();
    assert_eq!(shard_ids(&past.state, 100), [1]);
    house.clock.pass(86_400);
    // A snapshot is still open.
    transactions.clean_once().await.unwrap();
    house.objects.get(&object_name(100, 1)).await.unwrap();
    assert!(matches!(transactions.as_of(TimeTravelTarget::Commit(before)).await, Err(HistoryError::TooOld)));
    drop(past);
    assert_eq!(transactions.clean_once().await.unwrap().garbage, 1);
    assert!(house.objects.get(&object_name(100, 1)).await.is_err());
    drop(transactions);
    let transactions = house.open();
    assert!(transactions.core.snapshots.pin_older(before, Arc::new(CatalogState::new_warehouse())).is_none());
}

#[tokio::test]
async fn old_checkpoints_and_logs_go_and_the_retention_stays_whole() {
    let house = House::new();
    let transactions = with_table(&house).await;
    let mut seen = Vec::new();
    for id in 1..10 {
        add(&house, &transactions, id).await;
        seen.push((transactions.current(), house.clock.now_us()));
        history(&transactions).write_checkpoint().await.unwrap();
        house.clock.pass(6 * 3_600);
    }
    let now = house.clock.now_us();
    let checkpoints = house.objects.list(CHECKPOINTS).await.unwrap().len();
    assert!((8..=14).contains(&checkpoints), "{checkpoints} objects of checkpoints");
    let mut kept = 0;
    for (snapshot, time) in &seen {
        if now - time < 86_400 * SECOND_US {
            kept += 1;
            let (state, _) = house.restore(TimeTravelTarget::Time(*time), false).await.unwrap();
            assert_eq!(state, *snapshot.state);
        }
    }
    assert!(3 <= kept, "{kept}");
    assert!(house.restore(TimeTravelTarget::Commit(seen[0].0.ts), false).await.is_err(), "long gone");
    assert_eq!(begin(&transactions).view().ts, seen[8].0.ts);
}

/// Returns the error with which a server would refuse to start on the disk.
async fn compare(house: &House, disk: &SimDisk) -> Result<()> {
    compare_with_storage(&disk.open().unwrap(), &house.objects).await
}

/// Kills the server; returns a copy of its disk.
fn kill(house: &House, transactions: Arc<Transactions>) -> SimDisk {
    house.disk.crash();
    drop(transactions);
    house.disk.duplicate(2)
}

#[tokio::test]
async fn a_disk_that_is_behind_its_storage_is_refused_whatever_else_the_storage_keeps() {
    let house = House::new();
    compare(&house, &house.disk).await.unwrap();
    let transactions = with_table(&house).await;
    grow(&house, &transactions, 1..3).await;
    let uncopied = kill(&house, transactions);
    compare(&house, &uncopied).await.unwrap();
    let transactions = house.open();
    history(&transactions).upload_log().await.unwrap();
    let older = kill(&house, transactions);
    compare(&house, &older).await.unwrap();
    compare(&house, &uncopied).await.unwrap();
    let transactions = house.open();
    grow(&house, &transactions, 3..5).await;
    // Not archived yet, so the difference cannot be detected.
    compare(&house, &older).await.unwrap();
    history(&transactions).write_checkpoint().await.unwrap();
    for with_log in [true, false] {
        if !with_log {
            for object in house.log_objects().await {
                house.objects.delete(&object).await.unwrap();
            }
        }
        for stale in [&older, &uncopied, &SimDisk::new(3)] {
            let refused = compare(&house, stale).await;
            assert!(matches!(refused, Err(HistoryError::StoreBehind { .. })), "{refused:?}");
            assert!(refused.unwrap_err().is_divergence());
        }
    }
    let newest = kill(&house, transactions);
    compare(&house, &newest).await.unwrap();
}

#[tokio::test]
async fn a_disk_of_another_history_is_refused() {
    let house = House::new();
    let transactions = with_table(&house).await;
    history(&transactions).upload_log().await.unwrap();
    let copy = kill(&house, transactions);
    // The copy continues separately, and its records are not archived.
    let transactions = house.open_over(Arc::new(copy.open().unwrap()));
    grow(&house, &transactions, 7..9).await;
    copy.crash();
    let transactions = house.open();
    add(&house, &transactions, 1).await;
    history(&transactions).upload_log().await.unwrap();
    let refused = compare(&house, &copy).await;
    assert!(matches!(refused, Err(HistoryError::Diverged { .. })), "{refused:?}");
    // The same if only the checkpoint shows the divergence.
    history(&transactions).write_checkpoint().await.unwrap();
    for object in house.log_objects().await {
        house.objects.delete(&object).await.unwrap();
    }
    let refused = compare(&house, &copy).await;
    assert!(matches!(refused, Err(HistoryError::Diverged { .. })), "{refused:?}");
    // A storage that has lost archived records, or never had them, does not match either.
    add(&house, &transactions, 2).await;
    let newest = kill(&house, transactions);
    let other = House::new();
    let refused = compare(&other, &newest).await;
    assert!(matches!(refused, Err(HistoryError::LogLost { from: 1, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_log_that_two_servers_have_written_is_not_restored() {
    for seconds in [0, 5] {
        let house = House::new();
        let transactions = with_table(&house).await;
        history(&transactions).upload_log().await.unwrap();
        let copy = kill(&house, transactions);
        let transactions = house.open();
        grow(&house, &transactions, 1..3).await;
        history(&transactions).upload_log().await.unwrap();
        house.clock.pass(seconds);
        let second = house.open_over(Arc::new(copy.open().unwrap()));
        // One record less than the first server has written, which hides the divergence, or one more.
        grow(&house, &second, if seconds == 0 { 7..8 } else { 7..10 }).await;
        history(&second).upload_log().await.unwrap();
        let refused = house.restore(TimeTravelTarget::Newest, true).await;
        assert!(matches!(refused, Err(HistoryError::TwoHistories { .. })), "{refused:?}");
        let refused = second.as_of(TimeTravelTarget::Time(house.clock.now_us() - 1)).await;
        assert!(refused.is_ok(), "what is in memory is its own");
    }
}

#[tokio::test]
async fn a_disk_that_does_not_belong_to_its_storage_begins_a_timeline_of_its_own() {
    let house = House::new();
    let transactions = with_table(&house).await;
    history(&transactions).upload_log().await.unwrap();
    let older = kill(&house, transactions);
    let transactions = house.open();
    grow(&house, &transactions, 1..3).await;
    history(&transactions).write_checkpoint().await.unwrap();
    let newest = kill(&house, transactions);
    assert!(compare(&house, &older).await.is_err());
    let kv: Arc<dyn TxKv> = Arc::new(older.open().unwrap());
    fork_root_timeline(&kv).await.unwrap();
    compare_with_storage(&*kv, &house.objects).await.unwrap();
    begin_timeline(&kv, &house.objects).await.unwrap();
    compare_with_storage(&*kv, &house.objects).await.unwrap();
    assert!(lacks_first_checkpoint(&*kv, &house.objects).await.unwrap());
    let transactions = house.open_over(Arc::clone(&kv));
    history(&transactions).write_checkpoint().await.unwrap();
    assert!(!lacks_first_checkpoint(&*kv, &house.objects).await.unwrap());
    add(&house, &transactions, 9).await;
    history(&transactions).upload_log().await.unwrap();
    compare_with_storage(&*kv, &house.objects).await.unwrap();
    let (state, _) = house.restore(TimeTravelTarget::Newest, false).await.unwrap();
    assert_eq!(shard_ids(&state, 100), [9]);
    // The other disk is on the abandoned timeline now.
    let refused = compare(&house, &newest).await;
    assert!(matches!(refused, Err(HistoryError::Abandoned { own: 1, newer: 2 })), "{refused:?}");
}

#[tokio::test]
async fn what_a_newer_version_has_written_is_refused_and_said_to_be_so() {
    let house = House::new();
    let transactions = with_table(&house).await;
    history(&transactions).upload_log().await.unwrap();
    let name = house.log_objects().await.remove(0);
    let bytes = house.objects.get(&name).await.unwrap();
    let mut newer = bytes.to_vec();
    newer[7] = b'3';
    house.objects.put(&name, newer.into()).await.unwrap();
    for refused in [
        compare(&house, &kill(&house, transactions)).await,
        house.restore(TimeTravelTarget::Newest, true).await.map(drop),
    ] {
        assert!(matches!(refused, Err(HistoryError::Damaged { reason: NEWER_VERSION, .. })), "{refused:?}");
    }
    house.objects.put(&name, bytes).await.unwrap();
    let begin = Bytes::from_static(b"{\"format\": 3, \"parent\": 1, \"after\": 2}");
    house.objects.put("log/00000002/begin.json", begin).await.unwrap();
    let refused = house.restore(TimeTravelTarget::Newest, true).await;
    assert!(matches!(refused, Err(HistoryError::Damaged { reason: NEWER_VERSION, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_storage_without_a_history_and_a_full_folder_are_refused() {
    let house = House::new();
    assert!(matches!(house.restore(TimeTravelTarget::Newest, false).await, Err(HistoryError::EmptyStorage { .. })));
    let full = restore(&house.objects, std::path::Path::new("/"), TimeTravelTarget::Newest, false, &|_| ()).await;
    assert!(matches!(full, Err(HistoryError::NotEmpty { .. })));
}

#[tokio::test]
async fn a_storage_that_fails_is_seen_and_commits_go_on() {
    let mut house = House::new();
    let storage = house.folder.path().join("storage");
    std::fs::create_dir(&storage).unwrap();
    let url = format!("file://{}", storage.display());
    house.objects = Objects::open(&url, Arc::new(types::SystemClock::new()), Arc::new(types::SystemRandom)).unwrap();
    let transactions = house.open();
    // A folder with the name of the next log object makes its upload fail.
    let first = storage.join("log/00000001/0000000000000001-0000000000000002");
    std::fs::create_dir_all(first.join("in the way")).unwrap();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let told = async {
        loop {
            if let Some(error) = transactions.history_status().unwrap().last_error {
                break error;
            }
            tokio::task::yield_now().await;
        }
    };
    let (clock, health) = (types::SystemClock::new(), ServiceHealth::default());
    let error = tokio::select! {
        () = transactions.run_log_archiver(&health) => unreachable!("it ends with the server"),
        () = clock.sleep(Duration::from_secs(60)) => panic!("no failure is told"),
        error = told => error,
    };
    assert!(error.contains("0000000000000001-0000000000000002"), "{error}");
    assert_eq!(health.last_failure().as_ref(), Some(&error));
    commit(&transactions, vec![load(100, &[1])]).await;
    let status = transactions.history_status().unwrap();
    assert!(0 < status.log.unarchived_bytes && status.last_error.is_some());
    history(&transactions).upload_log().await.unwrap();
    let status = transactions.history_status().unwrap();
    assert_eq!((status.log.unarchived_bytes, status.last_error), (0, None));
}

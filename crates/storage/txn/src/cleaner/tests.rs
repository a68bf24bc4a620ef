use bytes::Bytes;
use catalog::Change;
use kv::sim::SimDisk;
use objects::Objects;
use types::Oid;

use super::*;
use crate::fixtures::*;

/// Minimum age that even an object written just now exceeds.
const NONE: Duration = Duration::ZERO;

async fn write(objects: &Objects, name: &str) {
    objects.put(name, Bytes::from_static(b"rows")).await.unwrap();
}

/// Announces, writes and stages the objects.
async fn upload(transaction: &mut crate::Transaction, objects: &Objects, table: u32, shards: &[u128]) {
    for &shard in shards {
        transaction.announce_upload(&object_name(table, shard)).await.unwrap();
        write(objects, &object_name(table, shard)).await;
    }
    transaction.stage(vec![load(table, shards)]).unwrap();
}

/// Returns the numbers of table 100's shards in the bucket.
async fn stored(objects: &Objects) -> Vec<u128> {
    let mut found: Vec<u128> = objects
        .list(TABLES)
        .await
        .unwrap()
        .iter()
        .map(|object| {
            let file = object.name.strip_prefix("tables/100/").unwrap().strip_suffix(".parquet").unwrap();
            u128::from_str_radix(file, 16).unwrap()
        })
        .collect();
    found.sort_unstable();
    found
}

#[tokio::test]
async fn a_commit_keeps_its_objects_and_deletes_what_it_announced_in_vain() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut transaction = begin(&transactions);
    upload(&mut transaction, &objects, 100, &[1]).await;
    transaction.set_savepoint("s");
    upload(&mut transaction, &objects, 100, &[2]).await;
    transaction.rollback_to_savepoint("s").unwrap();
    transaction.commit().await.unwrap();
    let report = transactions.clean_once().await.unwrap();
    assert_eq!(report, CleanReport { garbage: 1, ..CleanReport::default() });
    assert_eq!(stored(&objects).await, [1]);
}

#[tokio::test]
async fn a_rollback_deletes_its_objects() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut transaction = begin(&transactions);
    upload(&mut transaction, &objects, 100, &[1, 2]).await;
    transactions.clean_once().await.unwrap();
    assert_eq!(stored(&objects).await, [1, 2], "the transaction goes on");
    transaction.rollback();
    assert_eq!(transactions.clean_once().await.unwrap().uploads, 2);
    assert_eq!(stored(&objects).await, [0_u128; 0]);
    assert_eq!(transactions.clean_once().await.unwrap(), CleanReport::default(), "there is nothing left to do");
}

#[tokio::test]
async fn an_object_that_is_still_written_after_the_rollback_is_deleted_when_it_is_done() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    let transaction = begin(&transactions);
    let writer = transaction.uploads();
    writer.announce(&object_name(100, 1)).await.unwrap();
    transaction.rollback();
    assert_eq!(transactions.clean_once().await.unwrap(), CleanReport::default());
    write(&objects, &object_name(100, 1)).await;
    drop(writer);
    assert_eq!(transactions.clean_once().await.unwrap().uploads, 1);
    assert_eq!(stored(&objects).await, [0_u128; 0]);
}

#[tokio::test]
async fn a_conflict_deletes_the_objects_of_the_second() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut transaction = begin(&transactions);
    upload(&mut transaction, &objects, 100, &[1]).await;
    commit(&transactions, vec![Change::DropTable(Oid(100))]).await;
    assert!(matches!(transaction.commit().await, Err(Error::Conflict(_))));
    transactions.clean_once().await.unwrap();
    assert_eq!(stored(&objects).await, [0_u128; 0]);
}

#[tokio::test]
async fn objects_of_a_crashed_load_go_after_the_restart() {
    let (disk, objects) = (SimDisk::new(1), bucket());
    let transactions = open(&disk, &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut kept = begin(&transactions);
    upload(&mut kept, &objects, 100, &[1]).await;
    kept.commit().await.unwrap();
    let mut lost = begin(&transactions);
    upload(&mut lost, &objects, 100, &[2, 3]).await;
    disk.crash();
    let restarted = open(&disk, &objects);
    assert_eq!(restarted.clean_once().await.unwrap().uploads, 2);
    assert_eq!(stored(&objects).await, [1]);
    drop(restarted);
    disk.crash();
    let report = open(&disk, &objects).clean_once().await.unwrap();
    assert_eq!(report, CleanReport::default(), "the announcements are gone too");
}

#[tokio::test]
async fn dropped_rows_stay_while_a_snapshot_sees_them() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut transaction = begin(&transactions);
    upload(&mut transaction, &objects, 100, &[1]).await;
    transaction.commit().await.unwrap();
    let reader = transactions.current();
    commit(&transactions, vec![Change::RemoveAllRows { table: Oid(100) }]).await;
    transactions.clean_once().await.unwrap();
    transactions.delete_orphans(NONE).await.unwrap();
    assert_eq!(stored(&objects).await, [1], "the reader may still read");
    let second = reader.clone();
    drop(reader);
    transactions.clean_once().await.unwrap();
    assert_eq!(stored(&objects).await, [1], "a clone of the snapshot may still read");
    drop(second);
    transactions.clean_once().await.unwrap();
    assert_eq!(stored(&objects).await, [0_u128; 0]);
}

#[tokio::test]
async fn garbage_is_remembered_across_a_restart() {
    let (disk, objects) = (SimDisk::new(1), bucket());
    let transactions = open(&disk, &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut transaction = begin(&transactions);
    upload(&mut transaction, &objects, 100, &[1, 2]).await;
    transaction.commit().await.unwrap();
    commit(&transactions, vec![Change::DropTable(Oid(100))]).await;
    disk.crash();
    assert_eq!(open(&disk, &objects).clean_once().await.unwrap().garbage, 2);
    assert_eq!(stored(&objects).await, [0_u128; 0]);
}

#[tokio::test]
async fn more_garbage_than_one_write_takes_goes_too() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    let ids: Vec<u128> = (0..2_500).collect();
    commit(&transactions, vec![put(table(100, "t")), load(100, &ids)]).await;
    for &id in &ids {
        write(&objects, &object_name(100, id)).await;
    }
    commit(&transactions, vec![Change::RemoveAllRows { table: Oid(100) }]).await;
    assert_eq!(transactions.clean_once().await.unwrap().garbage, 2_500);
    assert_eq!(stored(&objects).await, [0_u128; 0]);
}

#[tokio::test]
async fn orphans_go_and_everything_known_stays() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut committed = begin(&transactions);
    upload(&mut committed, &objects, 100, &[1, 2]).await;
    committed.commit().await.unwrap();
    let reader = transactions.current();
    let mut dropping = begin(&transactions);
    dropping.stage(vec![Change::RemoveAllRows { table: Oid(100) }]).unwrap();
    upload(&mut dropping, &objects, 100, &[3]).await;
    dropping.commit().await.unwrap();
    let mut going_on = begin(&transactions);
    upload(&mut going_on, &objects, 100, &[4]).await;
    write(&objects, &object_name(100, 5)).await;
    let young = transactions.delete_orphans(Duration::from_secs(3_600)).await.unwrap();
    assert_eq!(young.orphans, 0, "an object may be younger than what is known");
    assert_eq!(transactions.delete_orphans(NONE).await.unwrap().orphans, 1);
    assert_eq!(stored(&objects).await, [1, 2, 3, 4]);
    drop(reader);
}

#[tokio::test]
async fn what_is_not_named_as_a_shard_is_left_alone() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    for name in ["tables/100/notes.txt", "tables/x", "tables/t/0123456789abcdef0123456789abcdef.parquet"] {
        write(&objects, name).await;
    }
    assert_eq!(transactions.delete_orphans(NONE).await.unwrap(), CleanReport::default());
    assert_eq!(objects.list(TABLES).await.unwrap().len(), 3);
}

/// Loads and truncates until it has committed often enough; readers check that their objects exist.
async fn churn(transactions: Arc<Transactions>, objects: Objects, writer: u128) {
    for round in 0..40_u128 {
        let mut transaction = begin(&transactions);
        if round % 5 == 4 {
            transaction.stage(vec![Change::RemoveAllRows { table: Oid(100) }]).unwrap();
        }
        upload(&mut transaction, &objects, 100, &[writer * 1_000 + round]).await;
        match transaction.commit().await {
            Ok(_) | Err(Error::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
        let reader = transactions.current();
        tokio::task::yield_now().await;
        for shard in reader.state.shards(Oid(100)).shards.iter() {
            objects.head(&shard.object).await.expect("a snapshot finds its objects");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn cleaning_beside_loads_and_readers_takes_nothing_from_them() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let writers = (0..4).map(|writer| tokio::spawn(churn(Arc::clone(&transactions), objects.clone(), writer)));
    let mut writers = futures::future::join_all(writers.collect::<Vec<_>>());
    let done = loop {
        if let std::task::Poll::Ready(done) = futures::poll!(&mut writers) {
            break done;
        }
        transactions.clean_once().await.unwrap();
        transactions.delete_orphans(NONE).await.unwrap();
    };
    done.into_iter().for_each(|writer| writer.expect("a writer's checks hold"));
    transactions.clean_once().await.unwrap();
    let mut left = shard_ids(&transactions.current().state, 100);
    left.sort_unstable();
    assert_eq!(stored(&objects).await, left, "what is stored is what is committed");
}

#[tokio::test]
async fn an_object_that_two_tables_name_goes_with_the_last_of_them() {
    let (objects, disk) = (bucket(), SimDisk::new(1));
    let transactions = open(&disk, &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut transaction = begin(&transactions);
    upload(&mut transaction, &objects, 100, &[1, 2]).await;
    transaction.commit().await.unwrap();
    let rows = Arc::clone(transactions.current().state.rows(Oid(100)));
    commit(&transactions, vec![put(table(101, "n")), Change::CloneRows { table: Oid(101), rows }]).await;
    commit(&transactions, vec![Change::DropTable(Oid(100))]).await;
    assert_eq!(transactions.clean_once().await.unwrap(), CleanReport::default());
    drop(transactions);
    let transactions = open(&disk, &objects);
    assert_eq!(shard_ids(&transactions.current().state, 101), [1, 2]);
    assert_eq!(stored(&objects).await, [1, 2]);
    commit(&transactions, vec![Change::RemoveAllRows { table: Oid(101) }]).await;
    assert_eq!(transactions.clean_once().await.unwrap().garbage, 2);
    assert!(stored(&objects).await.is_empty());
}

#[tokio::test]
async fn garbage_that_a_clone_names_again_is_none() {
    let objects = bucket();
    let transactions = open(&SimDisk::new(1), &objects);
    commit(&transactions, vec![put(table(100, "t")), put(table(101, "n"))]).await;
    let mut transaction = begin(&transactions);
    upload(&mut transaction, &objects, 100, &[1]).await;
    transaction.commit().await.unwrap();
    let before = transactions.current();
    commit(&transactions, vec![Change::RemoveAllRows { table: Oid(100) }]).await;
    let mut transaction = begin(&transactions);
    let rows = Arc::clone(before.state.rows(Oid(100)));
    transaction.hold_guard(Arc::new(before));
    transaction.stage(vec![Change::CloneRows { table: Oid(101), rows }]).unwrap();
    assert_eq!(transactions.clean_once().await.unwrap(), CleanReport::default());
    transaction.commit().await.unwrap();
    assert_eq!(transactions.clean_once().await.unwrap(), CleanReport::default());
    assert_eq!(stored(&objects).await, [1]);
    let classes = transactions.check_storage().await.unwrap();
    let named = classes.iter().find(|row| row.class == StorageClass::Referenced).unwrap();
    assert_eq!((named.objects, classes.len()), (1, 2));
}

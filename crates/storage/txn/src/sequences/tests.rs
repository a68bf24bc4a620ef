use std::collections::BTreeSet;

use catalog::{Change, Role, Schema};
use kv::sim::SimDisk;
use types::SqlType;

use super::*;
use crate::Transactions;
use crate::fixtures::{begin, bucket, commit, open};

fn sequence() -> Arc<Sequence> {
    Arc::new(Sequence {
        oid: Oid(100),
        schema: Schema::PUBLIC,
        name: "s".to_owned(),
        owner: Role::BOOTSTRAP,
        sql_type: SqlType::Int8,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cache: 1,
        cycle: false,
        owned_by: None,
        counter: Oid(100),
        begins: 1,
        comment: None,
    })
}

#[track_caller]
fn next(transactions: &Transactions, sequence: &Arc<Sequence>, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    transactions.next_sequence_numbers(sequence, count, &mut numbers).unwrap();
    numbers
}

#[tokio::test]
async fn numbers_follow_each_other_and_a_restart_skips_what_was_reserved() {
    let (disk, bucket) = (SimDisk::new(1), bucket());
    let transactions = open(&disk, &bucket);
    commit(&transactions, vec![Change::PutSequence(sequence())]).await;
    assert_eq!(next(&transactions, &sequence(), 1), [1]);
    assert_eq!(next(&transactions, &sequence(), 3), [2, 3, 4]);
    let position = transactions.sequence_position(&sequence());
    assert_eq!(position, SequencePosition { last_value: 4, is_called: true, prepaid: 29 });
    drop(transactions);
    let transactions = open(&disk, &bucket);
    assert_eq!(next(&transactions, &sequence(), 1), [34]);
}

#[tokio::test]
async fn no_number_comes_twice_whenever_the_power_fails() {
    let (disk, bucket) = (SimDisk::new(1), bucket());
    let mut seen = BTreeSet::new();
    commit(&open(&disk, &bucket), vec![Change::PutSequence(sequence())]).await;
    for round in 0..40 {
        let transactions = open(&disk, &bucket);
        for asked in 0..round {
            for number in next(&transactions, &sequence(), asked % 7) {
                assert!(seen.insert(number), "round {round}: {number} came before");
            }
        }
        drop(transactions);
        disk.crash();
    }
    assert!(seen.len() > 1_000, "{}", seen.len());
}

#[tokio::test]
async fn a_number_is_not_taken_back_with_the_transaction_that_asked() {
    let (disk, bucket) = (SimDisk::new(1), bucket());
    let transactions = open(&disk, &bucket);
    let mut transaction = begin(&transactions);
    transaction.stage(vec![Change::PutSequence(sequence())]).unwrap();
    assert_eq!(next(&transactions, &sequence(), 2), [1, 2], "it gives numbers before its commit");
    transaction.commit().await.unwrap();
    assert_eq!(next(&transactions, &sequence(), 1), [3]);
}

#[tokio::test]
async fn setting_a_value_survives_and_a_new_counter_begins_again() {
    let (disk, bucket) = (SimDisk::new(1), bucket());
    let transactions = open(&disk, &bucket);
    commit(&transactions, vec![Change::PutSequence(sequence())]).await;
    transactions.set_sequence(&sequence(), 70, false);
    drop(transactions);
    let transactions = open(&disk, &bucket);
    assert_eq!(next(&transactions, &sequence(), 2), [70, 71]);
    let restarted = Arc::new(Sequence { counter: Oid(101), begins: 5, ..Sequence::clone(&sequence()) });
    assert_eq!(next(&transactions, &restarted, 1), [5]);
    assert_eq!(next(&transactions, &sequence(), 1), [72], "as long as nobody commits the restart");
    drop(transactions);
    let kv = disk.open().unwrap();
    let transactions = SequenceCounters::recover(&kv, &CatalogState::new_warehouse()).unwrap();
    assert_eq!(transactions.counters.lock().len(), 0);
    let left = kv.scan(Space::Sequences, KeyRange::prefix(COUNTER_KEY_PREFIX), Direction::Forward).unwrap().count();
    assert_eq!(left, 0, "counters of no sequence are forgotten");
}

#[tokio::test]
async fn the_end_is_told_and_a_cycle_has_none() {
    let transactions = open(&SimDisk::new(1), &bucket());
    let short = Arc::new(Sequence { max: 3, ..Sequence::clone(&sequence()) });
    let mut numbers = Vec::new();
    transactions.next_sequence_numbers(&short, 5, &mut numbers).unwrap_err();
    assert_eq!(numbers, [1, 2, 3]);
    transactions.next_sequence_numbers(&short, 1, &mut numbers).unwrap_err();
    let longer = Arc::new(Sequence { max: 4, ..Sequence::clone(&sequence()) });
    assert_eq!(next(&transactions, &longer, 1), [4]);
    let round = Arc::new(Sequence { max: 3, cycle: true, ..Sequence::clone(&sequence()) });
    assert_eq!(next(&transactions, &round, 4), [1, 2, 3, 1]);
    let down =
        Arc::new(Sequence { increment: -2, min: i64::MIN, max: 1, counter: Oid(200), ..Sequence::clone(&sequence()) });
    assert_eq!(next(&transactions, &down, 3), [1, -1, -3]);
}

#[test]
fn a_damaged_counter_is_refused() {
    let kv = SimDisk::new(1).open().unwrap();
    let mut batch = counter_batch(Oid(7), 5, true);
    batch.put(Space::Sequences, [COUNTER_KEY_PREFIX, &7_u32.to_be_bytes()].concat(), vec![1, 2]);
    kv.write(batch).unwrap();
    let state = CatalogState::new_warehouse()
        .apply(&Change::PutSequence(Arc::new(Sequence { counter: Oid(7), ..Sequence::clone(&sequence()) })));
    SequenceCounters::recover(&kv, &state.unwrap()).unwrap_err();
}

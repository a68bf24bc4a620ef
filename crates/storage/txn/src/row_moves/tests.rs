use std::sync::Arc;

use catalog::{Change, CompactedShards, FlushedRows, RowPosition, TableRows};
use rowstore::{Tuple, Value};
use types::{ColumnId, Oid, RowId, ShardId};

use crate::fixtures::*;
use crate::{Isolation, RowChange, RowFate, Transaction, Transactions};

const TABLE: Oid = Oid(100);
const ROW: RowId = RowId(1);

/// Creates a table with one fresh row.
async fn one_row() -> Arc<Transactions> {
    let transactions = fresh();
    commit(&transactions, vec![put(table(TABLE.0, "t"))]).await;
    write(&transactions, None, Some(1)).await;
    transactions
}

fn tuple(value: i64) -> Tuple {
    Tuple::encode([(ColumnId(1), Value::Int(value))]).unwrap()
}

fn set(transaction: &mut Transaction, was: Option<RowPosition>, value: Option<i64>) {
    transaction.write_rows(TABLE, [RowChange { id: ROW, old_position: was, new_version: value.map(tuple) }]).unwrap();
}

async fn write(transactions: &Arc<Transactions>, was: Option<RowPosition>, value: Option<i64>) {
    let mut transaction = begin(transactions);
    set(&mut transaction, was, value);
    transaction.commit().await.unwrap();
}

fn place(shard: u128, ordinal: u32) -> RowPosition {
    RowPosition::Shard { shard: ShardId(uuid::Uuid::from_u128(shard)), ordinal }
}

/// Flushes the fresh rows to a shard in which the row is the fourth.
async fn settle(transactions: &Arc<Transactions>, generation: u64, id: u128) {
    commit(transactions, vec![Change::SealFreshRows { table: TABLE }]).await;
    finish(transactions, generation, id).await;
}

async fn finish(transactions: &Arc<Transactions>, generation: u64, id: u128) {
    let flushed =
        FlushedRows { generation, shards: vec![shard(TABLE.0, id)], positions: vec![(ROW, 0, 3)], sample: None };
    commit(transactions, vec![Change::Flush { table: TABLE, flushed: Arc::new(flushed) }]).await;
}

/// Replaces a shard by one in which the row is the sixth.
async fn compact(transactions: &Arc<Transactions>, old: u128, new: u128) {
    let old = ShardId(uuid::Uuid::from_u128(old));
    let compacted = CompactedShards {
        removed: [(old, Arc::default())].into_iter().collect(),
        shards: vec![shard(TABLE.0, new)],
        positions: [(old, vec![(3, 0, 5)])].into_iter().collect(),
    };
    commit(transactions, vec![Change::CompactShards { table: TABLE, compacted: Arc::new(compacted) }]).await;
}

fn now(transaction: &Transaction, place: RowPosition) -> RowFate {
    transaction.find_row_fate(&transaction.newest(), TABLE, ROW, place)
}

/// Counts how often a reader finds the row, given the positions in shards that the tests use.
fn found(rows: &TableRows) -> usize {
    let fresh = rows.fresh_rows().filter(|(id, _)| *id == ROW).count();
    let in_shard = rows.shards.shards.iter().filter(|shard| {
        let ordinal = if shard.id == ShardId(uuid::Uuid::from_u128(9)) { 5 } else { 3 };
        rows.deleted_positions(shard.id).is_none_or(|deleted| !deleted.contains(ordinal))
    });
    fresh + in_shard.count()
}

#[tokio::test]
async fn a_row_is_the_same_wherever_it_has_moved() {
    let transactions = one_row().await;
    let old = transactions.begin(Isolation::RepeatableRead);
    assert_eq!(now(&old, RowPosition::Fresh), RowFate::Same(RowPosition::Fresh));
    settle(&transactions, 1, 7).await;
    assert_eq!(now(&old, RowPosition::Fresh), RowFate::Same(place(7, 3)));
    let later = transactions.begin(Isolation::RepeatableRead);
    compact(&transactions, 7, 9).await;
    assert_eq!(now(&old, RowPosition::Fresh), RowFate::Same(place(9, 5)));
    assert_eq!(now(&later, place(7, 3)), RowFate::Same(place(9, 5)));
}

#[tokio::test]
async fn a_fresh_row_that_was_changed_and_has_settled_is_not_the_same() {
    let transactions = one_row().await;
    let old = transactions.begin(Isolation::RepeatableRead);
    write(&transactions, Some(RowPosition::Fresh), Some(2)).await;
    assert_eq!(now(&old, RowPosition::Fresh), RowFate::Changed);
    settle(&transactions, 1, 7).await;
    assert_eq!(now(&old, RowPosition::Fresh), RowFate::Changed);
    write(&transactions, Some(place(7, 3)), None).await;
    assert_eq!(now(&old, RowPosition::Fresh), RowFate::Deleted);
}

#[tokio::test]
async fn a_settled_row_that_was_changed_and_has_settled_again_is_not_deleted() {
    let transactions = one_row().await;
    settle(&transactions, 1, 7).await;
    let old = transactions.begin(Isolation::RepeatableRead);
    write(&transactions, Some(place(7, 3)), Some(2)).await;
    assert_eq!(now(&old, place(7, 3)), RowFate::Changed);
    settle(&transactions, 2, 8).await;
    assert_eq!(now(&old, place(7, 3)), RowFate::Changed);
    write(&transactions, Some(place(8, 3)), None).await;
    assert_eq!(now(&old, place(7, 3)), RowFate::Deleted);
}

#[tokio::test]
async fn a_savepoint_comes_back_on_the_rows_that_the_transaction_looks_at() {
    let transactions = one_row().await;
    commit(&transactions, vec![Change::SealFreshRows { table: TABLE }]).await;
    let mut transaction = begin(&transactions);
    set(&mut transaction, Some(RowPosition::Fresh), Some(2));
    transaction.set_savepoint("s");
    finish(&transactions, 1, 7).await;
    transaction.refresh().unwrap();
    set(&mut transaction, Some(RowPosition::Fresh), Some(3));
    // The move is newer than the transaction's view.
    compact(&transactions, 7, 9).await;
    transaction.rollback_to_savepoint("s").unwrap();
    assert_eq!(found(transaction.view().state.rows(TABLE)), 1);
    transaction.refresh().unwrap();
    assert_eq!(found(transaction.view().state.rows(TABLE)), 1);
    transaction.commit().await.unwrap();
    assert_eq!(found(begin(&transactions).view().state.rows(TABLE)), 1);
}

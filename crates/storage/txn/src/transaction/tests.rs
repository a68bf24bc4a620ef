use catalog::{Index, Table};
use rowstore::Value;
use types::{ColumnId, Oid};

use super::*;
use crate::fixtures::*;

#[tokio::test]
async fn others_see_a_commit_and_nothing_before_it() {
    let transactions = fresh();
    let mut writer = begin(&transactions);
    writer.stage(vec![put(table(100, "t")), load(100, &[1])]).unwrap();
    assert!(writer.view().state.table(Oid(100)).is_some());
    assert!(transactions.current().state.table(Oid(100)).is_none());
    let ts = writer.commit().await.unwrap();
    let now = transactions.current();
    assert_eq!((now.ts, shard_ids(&now.state, 100)), (ts, vec![1]));
}

#[tokio::test]
async fn a_refused_stage_leaves_nothing_behind() {
    let transactions = fresh();
    let mut writer = begin(&transactions);
    let refused = writer.stage(vec![put(table(100, "t")), put(table(101, "t"))]);
    assert!(matches!(refused, Err(Error::Catalog(catalog::Error::DuplicateName { .. }))));
    assert!(!writer.is_dirty());
    assert!(writer.view().state.table(Oid(100)).is_none());
}

#[tokio::test]
async fn read_committed_moves_on_with_its_own_changes_and_repeatable_read_does_not() {
    let transactions = fresh();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut moving = transactions.begin(Isolation::ReadCommitted);
    let mut fixed = transactions.begin(Isolation::RepeatableRead);
    for (transaction, id) in [(&mut moving, 1), (&mut fixed, 2)] {
        transaction.stage(vec![load(100, &[id])]).unwrap();
    }
    commit(&transactions, vec![load(100, &[3])]).await;
    moving.refresh().unwrap();
    fixed.refresh().unwrap();
    assert_eq!(shard_ids(&moving.view().state, 100), [3, 1]);
    assert_eq!(shard_ids(&fixed.view().state, 100), [2]);
    fixed.commit().await.unwrap();
    moving.commit().await.unwrap();
    assert_eq!(shard_ids(&transactions.current().state, 100), [3, 2, 1]);
}

#[tokio::test]
async fn the_second_to_change_a_table_is_told_at_commit_and_at_its_next_statement() {
    let transactions = fresh();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let altered = || Table { comment: Some("c".to_owned()), ..table(100, "t") };
    let mut at_commit = begin(&transactions);
    let mut at_refresh = begin(&transactions);
    at_commit.stage(vec![put(altered())]).unwrap();
    at_refresh.stage(vec![put(altered())]).unwrap();
    commit(&transactions, vec![Change::DropTable(Oid(100))]).await;
    assert!(matches!(at_commit.commit().await, Err(Error::Conflict(_))));
    assert!(matches!(at_refresh.refresh(), Err(Error::Conflict(_))));
}

#[tokio::test]
async fn savepoints_take_back_what_came_after_them() {
    let transactions = fresh();
    let mut transaction = begin(&transactions);
    transaction.stage(vec![put(table(100, "t"))]).unwrap();
    transaction.set_savepoint("s");
    transaction.stage(vec![load(100, &[1])]).unwrap();
    transaction.set_savepoint("s");
    transaction.stage(vec![load(100, &[2])]).unwrap();
    transaction.rollback_to_savepoint("s").unwrap();
    assert_eq!(shard_ids(&transaction.view().state, 100), [1]);
    // The inner savepoint exists until it is released; then the outer one of the same name is found.
    transaction.rollback_to_savepoint("s").unwrap();
    transaction.release_savepoint("s").unwrap();
    transaction.rollback_to_savepoint("s").unwrap();
    assert_eq!(shard_ids(&transaction.view().state, 100), [0_u128; 0]);
    transaction.release_savepoint("s").unwrap();
    assert!(matches!(transaction.rollback_to_savepoint("s"), Err(Error::UnknownSavepoint { .. })));
    transaction.commit().await.unwrap();
    assert!(transactions.current().state.table(Oid(100)).is_some());
}

#[tokio::test]
async fn a_savepoint_outlives_a_refresh() {
    let transactions = fresh();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut transaction = begin(&transactions);
    transaction.stage(vec![load(100, &[1])]).unwrap();
    transaction.set_savepoint("s");
    transaction.stage(vec![load(100, &[2])]).unwrap();
    commit(&transactions, vec![load(100, &[3])]).await;
    transaction.refresh().unwrap();
    transaction.rollback_to_savepoint("s").unwrap();
    assert_eq!(shard_ids(&transaction.view().state, 100), [3, 1]);
}

#[tokio::test]
async fn a_transaction_without_changes_commits_without_a_write() {
    let transactions = fresh();
    let before = transactions.current().ts;
    assert_eq!(begin(&transactions).commit().await.unwrap(), before);
    assert_eq!(transactions.current().ts, before);
}

#[tokio::test]
async fn an_ended_transaction_announces_nothing_more() {
    let transactions = fresh();
    let transaction = begin(&transactions);
    let uploads = transaction.uploads();
    transaction.rollback();
    assert!(matches!(uploads.announce("tables/1/x").await, Err(Error::TransactionEnded { .. })));
}

fn indexed(unique: bool) -> Change {
    let index = Index {
        oid: Oid(200),
        name: "t_a".to_owned(),
        columns: vec![ColumnId(1)],
        unique,
        orders: Vec::new(),
        included: Vec::new(),
        options: Vec::new(),
    };
    put(Table { indexes: vec![index], ..table(100, "t") })
}

#[tokio::test]
async fn rows_are_refused_where_a_key_came_that_they_were_not_asked_for() {
    let transactions = fresh();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut writer = transactions.begin(Isolation::RepeatableRead);
    let tuple = Tuple::encode([(ColumnId(1), Value::Int(7))]).unwrap();
    writer.write_rows(Oid(100), [RowChange { id: RowId(1), old_position: None, new_version: Some(tuple) }]).unwrap();
    commit(&transactions, vec![indexed(true)]).await;
    assert!(matches!(writer.commit().await, Err(Error::Conflict(_))));
}

#[tokio::test]
async fn rows_written_before_an_index_came_are_found_by_it() {
    let indexed = || indexed(false);
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        for (is_own, is_refreshed) in [(false, false), (false, true), (true, true)] {
            let transactions = fresh();
            commit(&transactions, vec![put(table(100, "t"))]).await;
            let mut writer = transactions.begin(isolation);
            let tuple = Tuple::encode([(ColumnId(1), Value::Int(7))]).unwrap();
            writer
                .write_rows(Oid(100), [RowChange { id: RowId(1), old_position: None, new_version: Some(tuple) }])
                .unwrap();
            if is_own {
                writer.stage(vec![indexed()]).unwrap();
                let view = writer.view().state;
                assert_eq!(
                    view.rows(Oid(100)).own_rows.layer.entries(Oid(200), &[], &[0xff]).count(),
                    1,
                    "seen at once"
                );
            } else {
                commit(&transactions, vec![indexed()]).await;
            }
            if is_refreshed {
                writer.refresh().unwrap();
            }
            writer.commit().await.unwrap();
            let state = transactions.current().state;
            let entries = state.rows(Oid(100)).fresh.active.entries(Oid(200), &[], &[0xff]).count();
            assert_eq!(entries, 1, "{isolation:?}, own index: {is_own}, refreshed: {is_refreshed}");
        }
    }
}

#[tokio::test]
async fn rows_that_no_write_could_hold_are_refused_and_leave_nothing_behind() {
    let transactions = fresh();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let tuple = |bytes: usize| {
        let text = "x".repeat(bytes);
        Tuple::encode([(ColumnId(1), Value::Text(text.as_str()))]).unwrap()
    };
    let new = |row, tuple: &Tuple| RowChange { id: RowId(row), old_position: None, new_version: Some(tuple.clone()) };
    let mut writer = begin(&transactions);
    let (small, long) = (tuple(1), tuple(TUPLE_BYTES_MAX - 100));
    let refused = writer.write_rows(Oid(100), [new(1, &small), new(2, &tuple(TUPLE_BYTES_MAX))]);
    assert!(matches!(refused, Err(Error::RowTooBig { bytes, limit: TUPLE_BYTES_MAX }) if TUPLE_BYTES_MAX < bytes));
    assert!(!writer.is_dirty());
    let fit = ROW_BYTES_MAX / TUPLE_BYTES_MAX as u64;
    writer.write_rows(Oid(100), (0..fit).map(|row| new(row, &long))).unwrap();
    let refused = writer.write_rows(Oid(100), [new(fit, &long)]);
    assert!(matches!(refused, Err(Error::CommitTooBig { limit: ROW_BYTES_MAX, .. })));
    assert_eq!(writer.view().state.rows(Oid(100)).own_rows.layer.len(), fit as usize);
}

#[tokio::test]
async fn a_definition_that_no_value_holds_is_refused_and_harms_nobody() {
    let transactions = fresh();
    let mut writer = begin(&transactions);
    let comment = Some("x".repeat(kv::VALUE_BYTES_MAX));
    writer.stage(vec![put(Table { comment, ..table(100, "t") })]).unwrap();
    assert!(matches!(writer.commit().await, Err(Error::DefinitionTooBig(_))));
    commit(&transactions, vec![put(table(100, "t"))]).await;
}

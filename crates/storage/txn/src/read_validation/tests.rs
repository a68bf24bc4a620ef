use std::sync::Arc;

use rowstore::{IndexEntry, RowVersion, Tuple, Value};
use types::ColumnId;

use super::*;

const TABLE: Oid = Oid(1);
const INDEX: Oid = Oid(2);

fn shard(number: u128) -> ShardId {
    ShardId(uuid::Uuid::from_u128(number))
}

fn read(from: u8, to: u8, rows: &[u64]) -> ReadSet {
    let rows = rows.iter().map(|row| RowId(*row)).collect();
    let places = HashSet::from([(shard(9), 4)]);
    let mut set = ReadSet::default();
    set.add_key(KeyRead {
        table: TABLE,
        index: INDEX,
        from_key: vec![from],
        to_key: vec![to],
        rows,
        positions: places,
    });
    set
}

fn put(own: &mut UncommittedRows, id: u64, key: u8) {
    let tuple = Tuple::encode([(ColumnId(1), Value::Int(key.into()))]).unwrap();
    let keys = Arc::new([(INDEX, IndexEntry::new(&[key], RowId(id)))]);
    own.layer.put(
        RowId(id),
        Arc::new(RowVersion { commit_ts: RowVersion::UNCOMMITTED, tuple, index_entries: keys }),
        false,
    );
}

fn changed(set: &ReadSet, table: Oid, write: impl Fn(&mut UncommittedRows)) -> bool {
    let (writes, mut own) = (WriteLog::default(), UncommittedRows::default());
    writes.begin_reader();
    write(&mut own);
    writes.record(CommitTs(5), &[], [(table, &own)].into_iter());
    assert!(writes.first_changed_table(set, CommitTs(5)).is_none(), "what was seen is not new");
    writes.first_changed_table(set, CommitTs(4)).is_some()
}

#[test]
fn a_row_that_comes_into_the_range_or_leaves_it_is_a_change() {
    let set = read(10, 20, &[7]);
    assert!(changed(&set, TABLE, |own| put(own, 1, 15)));
    assert!(!changed(&set, TABLE, |own| put(own, 1, 20)), "beside the range");
    assert!(!changed(&set, Oid(8), |own| put(own, 1, 15)), "another table");
    assert!(changed(&set, TABLE, |own| put(own, 7, 99)), "a found row got another key");
    assert!(changed(&set, TABLE, |own| own.layer.remove(RowId(7), true)));
    assert!(!changed(&set, TABLE, |own| own.layer.remove(RowId(8), true)));
    assert!(changed(&set, TABLE, |own| own.delete_from_shard(shard(9), 4)));
    assert!(!changed(&set, TABLE, |own| own.delete_from_shard(shard(9), 5)));
}

#[test]
fn any_write_changes_a_table_that_was_read_whole() {
    let mut set = ReadSet::default();
    set.add_table(TABLE);
    assert!(changed(&set, TABLE, |own| put(own, 1, 15)));
    assert!(!changed(&set, Oid(8), |own| put(own, 1, 15)));
}

#[test]
fn rows_of_shards_are_not_told_apart_once_they_have_moved() {
    let set = read(10, 20, &[7]);
    let writes = WriteLog::default();
    writes.begin_reader();
    writes.record(CommitTs(3), &[Change::RemoveAllRows { table: Oid(8) }], std::iter::empty());
    assert!(writes.first_changed_table(&set, CommitTs(0)).is_none());
    let mut own = UncommittedRows::default();
    own.delete_from_shard(shard(10), 0);
    writes.writes.lock().push(TableWrite { commit: CommitTs(4), table: TABLE, kind: WriteKind::RowsMoved });
    assert!(writes.first_changed_table(&set, CommitTs(0)).is_none(), "a move is no change");
    writes.record(CommitTs(5), &[], [(TABLE, &own)].into_iter());
    assert!(writes.first_changed_table(&set, CommitTs(0)).is_some());
}

#[test]
fn a_row_that_was_fresh_may_be_deleted_from_a_shard() {
    let mut set = ReadSet::default();
    let (rows, places) = (HashSet::from([RowId(7)]), HashSet::new());
    set.add_key(KeyRead { table: TABLE, index: INDEX, from_key: vec![10], to_key: vec![20], rows, positions: places });
    let writes = WriteLog::default();
    writes.begin_reader();
    writes.writes.lock().push(TableWrite { commit: CommitTs(4), table: TABLE, kind: WriteKind::RowsMoved });
    let mut own = UncommittedRows::default();
    own.delete_from_shard(shard(10), 0);
    writes.record(CommitTs(5), &[], [(TABLE, &own)].into_iter());
    assert!(writes.first_changed_table(&set, CommitTs(3)).is_some(), "it flushed, and may be the one");
    assert!(writes.first_changed_table(&set, CommitTs(4)).is_none(), "it was fresh when it was read: this is another");
}

#[test]
fn nothing_is_kept_for_nobody() {
    let writes = WriteLog::default();
    let own = UncommittedRows::default();
    writes.record(CommitTs(1), &[], [(TABLE, &own)].into_iter());
    assert!(writes.writes.lock().is_empty());
    writes.begin_reader();
    writes.begin_reader();
    writes.record(CommitTs(2), &[], [(TABLE, &own)].into_iter());
    writes.end_reader();
    assert_eq!(writes.writes.lock().len(), 1);
    writes.end_reader();
    assert!(writes.writes.lock().is_empty());
}

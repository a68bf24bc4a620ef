use std::sync::Arc;

use types::{CommitTs, RowId};

use super::FreshRows;
use crate::{RowVersion, Tuple};

fn row(ts: u64) -> Arc<RowVersion> {
    Arc::new(RowVersion { commit_ts: CommitTs(ts), tuple: Tuple::encode([]).unwrap(), index_entries: Arc::default() })
}

fn ts(rows: &FreshRows, id: u64) -> Option<u64> {
    rows.get(RowId(id)).map(|row| row.commit_ts.0)
}

#[test]
fn changes_while_rows_settle_are_seen_and_told_when_they_have_settled() {
    let mut rows = FreshRows::default();
    (1..=4).for_each(|id| rows.put(RowId(id), row(1)));
    rows.remove(RowId(4));
    rows.begin_flush();
    let at_seal = rows.clone();
    rows.put(RowId(1), row(2));
    rows.remove(RowId(2));
    rows.put(RowId(5), row(2));
    assert_eq!((1..=5).map(|id| ts(&rows, id)).collect::<Vec<_>>(), [Some(2), None, Some(1), None, Some(2)]);
    assert_eq!(rows.len(), 3);
    assert_eq!(at_seal.len(), 3);

    let late = rows.finish_flush();
    assert_eq!(late, [RowId(1), RowId(2)]);
    assert_eq!((1..=5).map(|id| ts(&rows, id)).collect::<Vec<_>>(), [Some(2), None, None, None, Some(2)]);
    assert_eq!(rows.generation, 2);
}

#[test]
fn a_row_changed_and_then_deleted_while_it_settles_is_told_once() {
    let mut rows = FreshRows::default();
    rows.put(RowId(1), row(1));
    rows.begin_flush();
    rows.put(RowId(1), row(2));
    rows.remove(RowId(1));
    assert_eq!(ts(&rows, 1), None);
    assert!(rows.is_empty());
    assert_eq!(rows.finish_flush(), [RowId(1)]);
}

use super::*;
use crate::fixtures::{column, shard};

mod many;

const A: ColumnId = ColumnId(1);

#[test]
fn statistics_made_step_by_step_equal_those_made_at_once() {
    let shards: Vec<Arc<ShardMeta>> =
        (0..20).map(|i| shard(100, i, (i as i64) * 500..(i as i64) * 500 + 600)).collect();
    let at_once = TableShards::default().append(&shards, None);
    let mut step_by_step = TableShards::default().clone();
    for (index, shard) in shards.iter().enumerate() {
        step_by_step = step_by_step.append(std::slice::from_ref(shard), None);
        if index.is_multiple_of(3) {
            assert!(step_by_step.column(A).is_some());
        }
    }
    assert_eq!(step_by_step.column(A), at_once.column(A));
    assert_eq!(at_once.rows, 12_000);
    let distinct = at_once.distinct(A).unwrap();
    assert!((9_500..10_700).contains(&distinct), "{distinct} instead of about 10,100");
}

#[test]
fn asking_does_not_look_at_earlier_shards_again() {
    let first = TableShards::default().append(&[shard(100, 1, 0..10)], None);
    assert!(first.column(A).is_some());
    let second = first.append(&[shard(100, 2, 10..20)], None);
    assert_eq!(second.merged.start.as_ref().map(|(_, done)| *done), Some(1));
    // Nobody asked the second: the third starts where the first left off.
    let third = second.append(&[shard(100, 3, 20..30)], None);
    assert_eq!(third.merged.start.as_ref().map(|(_, done)| *done), Some(1));
    assert_eq!(third.column(A).unwrap().rows, 30);
}

#[test]
fn rows_older_than_a_column_answer_null_or_its_missing_value() {
    let shards = TableShards::default().append(&[shard(100, 1, 0..10)], None);
    let late = column(2, "b");
    let nulls = shards.summary(&late);
    assert_eq!((nulls.rows, nulls.nulls, nulls.distinct, nulls.unique), (10, 10, 0, false));
    let valued = shards.summary(&Column { missing: Some("7".to_owned()), ..late });
    assert_eq!((valued.rows, valued.nulls, valued.distinct, valued.min), (10, 0, 1, None));
}

#[test]
fn an_empty_table_proves_uniqueness() {
    assert!(TableShards::default().is_unique(A));
    assert!(TableShards::default().append(&[shard(100, 1, 0..10)], None).is_unique(A));
    assert!(!TableShards::default().append(&[shard(100, 1, 0..10)], None).is_unique(ColumnId(2)));
}

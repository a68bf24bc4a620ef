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
    let distinct = at_once.distinct(A).expect("all shards carry it");
    assert!((9_500..10_700).contains(&distinct), "{distinct} instead of about 10,100");
}

#[test]
fn asking_does_not_look_at_earlier_shards_again() {
    let first = TableShards::default().append(&[shard(100, 1, 0..10)], None);
    assert!(first.column(A).is_some());
    let second = first.append(&[shard(100, 2, 10..20)], None);
    assert_eq!(second.statistics.prefix_statistics.as_ref().map(|(_, done)| *done), Some(1));
    // The statistics of the second state were never computed, so the third's continue those of the first.
    let third = second.append(&[shard(100, 3, 20..30)], None);
    assert_eq!(third.statistics.prefix_statistics.as_ref().map(|(_, done)| *done), Some(1));
    assert_eq!(third.column(A).expect("all shards carry it").rows, 30);
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

#[test]
fn what_was_added_since_is_known_whatever_went() {
    let of = |ids: &[u128]| {
        let shards: Vec<Arc<ShardMeta>> = ids.iter().map(|id| shard(100, *id, 0..10)).collect();
        TableShards::default().append(&shards, None)
    };
    let added = |now: &TableShards, before: &TableShards, most: usize| -> Vec<u128> {
        now.added_since(before, most).iter().map(|shard| shard.id.0.as_u128()).collect()
    };
    let before = of(&[1, 2, 3, 4]);
    let none: [u128; 0] = [];
    assert_eq!(added(&before, &before, 9), none);
    assert_eq!(added(&of(&[1, 2, 3, 4, 5, 6]), &before, 9), [6, 5]);
    assert_eq!(added(&of(&[1, 2, 3, 4, 5, 6]), &before, 1), [6], "the newest");
    assert_eq!(added(&of(&[2, 5]), &before, 9), [5], "a compaction");
    assert_eq!(added(&of(&[1, 2]), &before, 9), none, "some went");
    assert_eq!(added(&of(&[7, 8]), &before, 9), [8, 7], "all went");
    assert_eq!(added(&of(&[]), &before, 9), none);
    assert_eq!(added(&before, &of(&[]), 9), [4, 3, 2, 1]);
}

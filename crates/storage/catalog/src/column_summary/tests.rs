use super::*;
use crate::fixtures::shard;

const A: ColumnId = ColumnId(1);

/// Returns the summary of column `a` over shards with these values, whose statistics `change` modifies.
fn summary(ranges: &[std::ops::Range<i64>], change: impl Fn(usize, &mut ColumnStats)) -> ColumnSummary {
    let mut merged = MergedStatistics::default();
    for (index, range) in ranges.iter().enumerate() {
        let mut shard = ShardMeta::clone(&shard(100, index as u128, range.clone()));
        change(index, &mut shard.columns[0]);
        merged.add(&shard);
    }
    merged.finish();
    merged.column(A).unwrap().clone()
}

#[track_caller]
fn check_unique(ranges: &[std::ops::Range<i64>], expected: bool) {
    assert_eq!(summary(ranges, |_, _| ()).unique, expected, "{ranges:?}");
}

#[test]
fn disjoint_ranges_prove_uniqueness_in_any_order() {
    check_unique(&[0..10, 10..20, 20..30], true);
    check_unique(&[20..30, 0..10, 10..20], true);
    check_unique(&[20..30, 0..10, 9..20], false);
    check_unique(&[0..10, 20..30, 10..21], false);
    check_unique(&[0..100, 10..20], false);
    check_unique(&[10..20, 0..100], false);
    check_unique(&[0..1, 0..1], false);
}

#[test]
fn a_shard_that_does_not_ascend_strictly_disproves_it_for_good() {
    let ranges = [0..10, 10..20, 20..30];
    assert!(!summary(&ranges, |index, stats| stats.strictly_ascending = index != 1).unique);
}

#[test]
fn a_shard_without_the_column_leaves_nothing_proven() {
    let mut merged = MergedStatistics::default();
    merged.add(&shard(100, 1, 0..10));
    let mut older = ShardMeta::clone(&shard(100, 2, 10..20));
    older.columns.clear();
    merged.add(&older);
    merged.finish();
    assert!(!merged.column(A).unwrap().unique);
    assert_eq!(merged.column(A).unwrap().rows, 10);
}

#[test]
fn bounds_are_the_outermost_ones_and_unknown_when_one_is() {
    let found = summary(&[5..10, 0..3, 4..6], |_, _| ());
    assert_eq!((found.min, found.max), (Some(Datum::Int(0)), Some(Datum::Int(9))));
    let found = summary(&[5..10, 0..3], |index, stats| {
        if index == 1 {
            stats.max = None;
        }
    });
    assert_eq!((found.min, found.max), (Some(Datum::Int(0)), None));
}

#[test]
fn a_shard_of_nulls_does_not_bound() {
    let found = summary(&[5..10, 0..3], |index, stats| {
        if index == 1 {
            (stats.min, stats.max, stats.nulls) = (None, None, 3);
        }
    });
    assert_eq!((found.min, found.max, found.nulls), (Some(Datum::Int(5)), Some(Datum::Int(9)), 3));
    assert!(found.bounds_exact);
}

#[test]
fn frequent_values_add_up() {
    let found = summary(&[0..10, 0..10, 0..10], |index, stats| {
        stats.heavy_hitters = vec![(Datum::Int(1), 5), (Datum::Int(index as i64 + 2), 7)];
    });
    assert_eq!(found.heavy_hitters[0], (Datum::Int(1), 15));
    assert_eq!(found.heavy_hitters.len(), 4);
}

#[test]
fn runs_average_over_rows() {
    let found = summary(&[0..10, 0..30], |index, stats| stats.average_run = if index == 0 { 1.0 } else { 3.0 });
    assert!((found.average_run - 2.0).abs() < 1e-9, "40 rows in 20 runs, not {}", found.average_run);
}

//! Tests of tables with packed shards.

use std::collections::HashSet;

use shards::prune::may_match;
use shards::{ColumnDef, ColumnStats, CompareOp, Datum, Hll, PackedShards, Predicate, RowGroupMeta, RowIds, Test};
use types::random::SeededRandom;
use types::{Random, RowId, SqlType};
use uuid::Uuid;

use super::*;

const B: ColumnId = ColumnId(2);
const PACK: usize = PackedShards::COUNT_MAX;

/// Builds a shard of 1,000 values of `a`, which is ordered like the shards, and `b`, which is not. Shards whose number
/// ends in 7 lack `b`.
fn shard(number: usize) -> Arc<ShardMeta> {
    let id = ShardId(Uuid::from_u128((number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)));
    let stats = |column, first: usize| {
        let mut distinct = Hll::default();
        (first..first + 3).for_each(|value| distinct.add_hash(SeededRandom::new(value as u64).next_u64()));
        ColumnStats {
            column,
            nulls: 0,
            nulls_guessed: false,
            min: Some(Datum::Int(first as i64)),
            max: Some(Datum::Int(first as i64 + 999)),
            bounds_exact: true,
            distinct,
            ascending: true,
            strictly_ascending: true,
            average_run: 1.0,
            heavy_hitters: vec![(Datum::Int(-1), 10)],
            bytes: 4_000,
        }
    };
    let mut columns = vec![stats(A, number * 1_000), stats(B, number * 7_919 % 100_003 * 1_000)];
    columns.truncate(if number % 10 == 7 { 1 } else { 2 });
    Arc::new(ShardMeta {
        id,
        object: format!("tables/100/{id}.parquet"),
        rows: 1_000 + number as u64 % 3,
        bytes: 10_000 + number as u64,
        tail_bytes: 100,
        tail_checksum: number as u64,
        columns,
        row_groups: vec![RowGroupMeta { rows: 1_000 + number as u64 % 3, bytes: 9_000 }],
        row_ids: RowIds::From(RowId(number as u64 * 2_000)),
        buckets: None,
    })
}

fn shards(numbers: std::ops::Range<usize>) -> Vec<Arc<ShardMeta>> {
    numbers.map(shard).collect()
}

fn columns(missing: Option<&str>) -> Vec<ColumnDef> {
    let column = |id, missing: Option<&str>| ColumnDef {
        id,
        name: format!("c{id}"),
        sql_type: SqlType::Int8,
        nullable: true,
        missing: missing.map(str::to_owned),
    };
    vec![column(A, None), column(B, missing)]
}

fn equals(column: ColumnId, value: i64) -> Predicate {
    Predicate { column, test: Test::Compare(CompareOp::Eq, Datum::Int(value)) }
}

fn between(column: ColumnId, low: i64, high: i64) -> Predicate {
    Predicate { column, test: Test::Between(Datum::Int(low), Datum::Int(high)) }
}

/// Returns the shard without statistics that packs do not store per shard.
fn plain(shard: &ShardMeta) -> ShardMeta {
    let mut shard = shard.clone();
    for stats in &mut shard.columns {
        (stats.distinct, stats.heavy_hitters) = (Hll::default(), Vec::new());
    }
    shard
}

/// Checks that the table contains exactly these shards, and that its statistics match theirs.
#[track_caller]
fn check(table: &TableShards, model: &[Arc<ShardMeta>]) {
    let list = &table.shards;
    assert_eq!(list.len(), model.len());
    assert!(list.ids().eq(model.iter().map(|shard| shard.id)), "other shards, or in another order");
    assert!(list.objects().eq(model.iter().map(|shard| shard.object.as_str())));
    let sizes = model.iter().map(|shard| ShardSize { id: shard.id, rows: shard.rows, bytes: shard.bytes });
    assert!(list.sizes().eq(sizes));
    assert_eq!(table.rows, model.iter().map(|shard| shard.rows).sum::<u64>());
    assert_eq!(table.bytes, model.iter().map(|shard| shard.bytes).sum::<u64>());
    for (number, shard) in model.iter().enumerate().step_by(997) {
        let (found, known) = list.find(shard.id).expect("it is there");
        assert_eq!((found, plain(&known)), (number, plain(shard)));
        assert_eq!((list.id(number), list.rows(number)), (Some(shard.id), shard.rows));
        assert_eq!(list.distinct(number, A), Some(3));
    }
    assert!(list.get(model.len()).is_none() && list.id(model.len()).is_none());
    let summary = table.column(A).cloned().unwrap_or_default();
    assert_eq!((summary.rows, summary.nulls), (table.rows, 0));
    let bound = |bound: fn(&ColumnStats) -> &Option<Datum>| model.iter().map(move |shard| bound(&shard.columns[0]));
    let least = bound(|stats| &stats.min).map(|min| min.as_ref().expect("known").clone());
    assert_eq!(summary.min, least.reduce(|one, other| if other < one { other } else { one }));
    let predicates =
        [equals(A, 5_000_500), equals(B, 77_000_001), between(A, 100_000, 140_500), between(B, -1, 2_999_999)];
    for (predicate, missing) in predicates.iter().zip([None, Some("77000001"), None, Some("5")]) {
        let (predicates, columns) = (std::slice::from_ref(predicate), columns(missing));
        let wanted = model.iter().enumerate().filter(|(_, shard)| may_match(shard, predicates, &columns));
        let wanted: Vec<_> = wanted.map(|(number, shard)| (number, plain(shard))).collect();
        let found: Vec<_> =
            table.prune(predicates, &columns).iter().map(|(number, shard)| (*number, plain(shard))).collect();
        assert_eq!(found, wanted, "{predicates:?}");
        let asked = |zone: &shards::ZoneMapEntry<'_>| predicates[0].test.may_pass(zone);
        let wanted = model.iter().enumerate().filter(|(_, shard)| {
            shard
                .column(predicates[0].column)
                .is_none_or(|stats| asked(&shards::ZoneMapEntry::from_stats(shard.rows, stats)))
        });
        let wanted: Vec<usize> = wanted.map(|(number, _)| number).collect();
        assert_eq!(list.positions_by_zone(predicates[0].column, asked).collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn a_list_is_the_same_however_its_shards_came_and_went() {
    let random = SeededRandom::new(5);
    let below = |most: usize| usize::try_from(random.next_u64() % most as u64).expect("small");
    let (mut table, mut model) = (TableShards::default(), Vec::<Arc<ShardMeta>>::new());
    let mut next = 0;
    for round in 0..12 {
        let before = (table.clone(), model.clone());
        if round % 3 == 2 {
            // Removes adjacent shards, a few scattered ones, or nearly all.
            let (first, share) = (below(model.len()), [2, 200, 3][round / 3 % 3]);
            let goes = |number: usize| match round / 3 % 3 {
                0 => (first..first + 700).contains(&number),
                1 => below(share) == 0,
                _ => below(share) != 0,
            };
            let gone: HashSet<usize> = (0..model.len()).filter(|number| goes(*number)).collect();
            let ids: Vec<ShardId> = gone.iter().map(|number| model[*number].id).collect();
            table = table.without_shards(&ids);
            let mut number = 0;
            model.retain(|_| {
                number += 1;
                !gone.contains(&(number - 1))
            });
        } else {
            let more = shards(next..next + 1 + below(PACK * 2));
            next += more.len();
            table = table.append(&more, None);
            model.extend(more);
        }
        check(&table, &model);
        check(&before.0, &before.1);
        assert_eq!(table.shards, model.iter().collect::<ShardList>(), "however they came");
    }
    assert!(table.shards != shards(0..model.len()).iter().collect::<ShardList>());
    let kept: Vec<ShardId> = model.iter().rev().step_by(500).map(|shard| shard.id).collect();
    let left: Vec<_> = model.iter().filter(|shard| kept.contains(&shard.id)).cloned().collect();
    check(&table.only_shards(&kept), &left);
}

#[test]
fn statistics_of_many_shards_are_those_of_all() {
    let all = shards(0..2 * PACK + 100);
    let table = TableShards::default().append(&all, None);
    let of_a = table.column(A).expect("all carry it");
    assert!(of_a.unique && of_a.ascending && of_a.bounds_exact, "{of_a:?}");
    assert_eq!((of_a.rows, of_a.bytes), (table.rows, 4_000 * all.len() as u64));
    let wanted = all.len() * 3;
    assert!(of_a.distinct.abs_diff(wanted as u64) * 20 < wanted as u64, "{} instead of {wanted}", of_a.distinct);
    assert_eq!(of_a.heavy_hitters, [(Datum::Int(-1), 10 * all.len() as u64)]);
    // Rows older than `b`.
    let of_b = table.column(B).expect("most carry it");
    assert!(!of_b.unique && of_b.rows < table.rows);
    // A value range between those of packed shards disproves uniqueness; a range after them does not.
    assert!(table.append(&shards(3 * PACK..3 * PACK + 9), None).is_unique(A));
    assert!(!table.append(&shards(7..8), None).is_unique(A));
    // Counts of frequent values are scaled by the remaining rows.
    let gone: Vec<ShardId> = all[..PACK].iter().map(|shard| shard.id).collect();
    let left = table.without_shards(&gone);
    let of_a = left.column(A).expect("all carry it");
    assert!(of_a.unique && of_a.rows == left.rows);
    assert!(of_a.distinct.abs_diff((PACK as u64 + 100) * 3) * 20 < PACK as u64 * 3, "{}", of_a.distinct);
    let few = table.without_shards(&all[1..PACK].iter().map(|shard| shard.id).collect::<Vec<_>>());
    let of_a = few.column(A).expect("all carry it");
    assert_eq!(of_a.rows, few.rows);
    assert!(of_a.heavy_hitters[0].1.abs_diff(10 * (PACK as u64 + 101)) <= 10, "{:?}", of_a.heavy_hitters);
}

#[test]
fn what_is_stored_of_packed_shards_tells_what_they_hold_together() {
    let all = shards(0..PACK + 10);
    let table = TableShards::default().append(&all, None);
    let stored: Vec<_> = table.shards.iter_for_store().collect();
    let again = TableShards::default().append(&stored, None);
    assert_eq!(again.shards, table.shards);
    for column in [A, B] {
        assert_eq!(again.column(column), table.column(column));
    }
}

#[test]
fn who_asks_again_gets_what_was_found() {
    let table = TableShards::default().append(&shards(0..PACK + 500), None);
    let asked = [between(A, 1_000_000, 1_010_000)];
    let found = table.prune(&asked, &columns(None));
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), Vec::from_iter(1_000..=1_010));
    assert!(Arc::ptr_eq(&found, &table.prune(&asked, &columns(None))));
    // Deleted rows do not exclude a shard.
    let mut deleted = table.clone();
    deleted.mark_deleted(found[0].1.id, &RoaringBitmap::from_iter([1, 2, 3]));
    assert!(Arc::ptr_eq(&found, &deleted.prune(&asked, &columns(None))));
    // Other predicates give other shards.
    assert_eq!(table.prune(&[between(A, 1_000_000, 1_000_000)], &columns(None)).len(), 1);
    let more = table.append(&[shard(1_005)], None);
    assert_eq!(more.prune(&asked, &columns(None)).len(), 12);
    assert_eq!(table.without_shards(&[found[0].1.id]).prune(&asked, &columns(None)).len(), 10);
    assert!(Arc::ptr_eq(&found, &table.prune(&asked, &columns(None))));
    // Another value for rows older than the column: the column was added with it, or was given another.
    let of_b = [equals(B, -7)];
    assert!(table.prune(&of_b, &columns(None)).is_empty());
    assert_eq!(table.prune(&of_b, &columns(Some("-7"))).len(), (PACK + 500) / 10);
    assert!(table.prune(&of_b, &columns(Some("-8"))).is_empty());
}

#[test]
fn few_answers_are_kept() {
    let table = TableShards::default().append(&shards(0..1_000), None);
    let asked = |number: i64| [equals(A, number * 1_000)];
    let first = table.prune(&asked(0), &columns(None));
    for number in 1..31 {
        let _ = table.prune(&asked(number), &columns(None));
    }
    assert!(Arc::ptr_eq(&first, &table.prune(&asked(0), &columns(None))), "the last ones are");
    for number in 100..132 {
        let _ = table.prune(&asked(number), &columns(None));
    }
    let again = table.prune(&asked(0), &columns(None));
    assert!(!Arc::ptr_eq(&first, &again) && *first == *again, "those before are not");
}

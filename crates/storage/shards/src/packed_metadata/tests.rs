use proptest::prelude::*;
use proptest::sample::select;
use types::SqlType;
use uuid::Uuid;

use super::*;
use crate::prune::{Pruner, may_match};
use crate::{ColumnDef, ColumnStats, CompareOp, Datum, Hll, Predicate, ShardBuckets, Test};

/// Returns a strategy for values that are equal, near or far apart, of the kind that a number selects.
fn datum(kind: i32) -> BoxedStrategy<Datum> {
    match kind {
        1 => prop_oneof![-5_i64..5, Just(i64::MIN), Just(i64::MAX), 1_000_000_i64..1_000_009]
            .prop_map(Datum::Int)
            .boxed(),
        2 => {
            let float = prop_oneof![Just(f64::NAN), Just(-0.0), Just(0.0), Just(f64::NEG_INFINITY), -3.0..3.0];
            float.prop_map(Datum::Float).boxed()
        }
        3 => prop_oneof!["[ab]{0,2}", "customer-0[12]", "customer-00000000[12]", "\u{10ffff}{0,2}"]
            .prop_map(Datum::Text)
            .boxed(),
        4 => prop_oneof![-5_i128..5, Just(i128::MAX), Just(i128::MIN), Just(i128::from(i64::MAX) + 1)]
            .prop_map(Datum::Decimal)
            .boxed(),
        5 => prop::collection::vec(select(vec![0_u8, 1, 0xff]), 0..11).prop_map(Datum::Bytes).boxed(),
        _ => any::<bool>().prop_map(Datum::Bool).boxed(),
    }
}

const KINDS: std::ops::Range<i32> = 1..7;

/// Returns a strategy for statistics of a column of a kind; some shards have another kind, as after a change of type.
fn stats(column: i32) -> impl Strategy<Value = ColumnStats> {
    let kind = prop_oneof![20 => Just(column), 1 => KINDS];
    let bounds = kind.prop_flat_map(|kind| (datum(kind), datum(kind)));
    let known = prop_oneof![8 => Just((true, true)), 1 => Just((false, false)), 1 => Just((true, false))];
    let nulls = prop_oneof![3 => Just(0_u64), 1 => Just(10), 1 => 0..10_u64];
    (bounds, known, nulls, any::<[bool; 4]>(), 0_u64..3, prop::bool::weighted(0.1)).prop_map(
        move |((one, other), (has_min, has_max), nulls, [exact, ascending, strictly, _], distinct, guessed)| {
            let (min, max) = if other < one { (other, one) } else { (one, other) };
            let mut sketch = Hll::default();
            (0..distinct).for_each(|value| sketch.add_hash(value));
            ColumnStats {
                column: ColumnId(column),
                nulls,
                nulls_guessed: guessed,
                min: has_min.then_some(min),
                max: has_max.then_some(max),
                bounds_exact: exact,
                distinct: sketch,
                ascending,
                strictly_ascending: strictly,
                average_run: 1.0 + distinct as f32 / 3.0,
                heavy_hitters: vec![(Datum::Int(1), distinct)],
                bytes: distinct * 1_000,
            }
        },
    )
}

fn shard() -> impl Strategy<Value = ShardMeta> {
    let columns: Vec<_> = KINDS.map(stats).collect();
    // The last columns are newer than some shards; row groups and row ids vary.
    let rest = (1_u128..1 << 40, 0..4_usize, prop_oneof![5 => Just(6_usize), 1 => 3..6_usize], any::<bool>());
    (columns, rest, prop::bool::weighted(0.1)).prop_map(|(mut columns, (id, groups, carried, is_ours), is_empty)| {
        columns.truncate(carried);
        let id = ShardId(Uuid::from_u128(id << 64 | id));
        let object = if is_ours { format!("tables/7/{id}.parquet") } else { format!("s3://theirs/{}", id.0) };
        let row_ids = [RowIds::None, RowIds::Stored, RowIds::From(RowId(0)), RowIds::From(RowId(1 << 63))];
        ShardMeta {
            id,
            object,
            rows: if is_empty { 0 } else { 10 },
            bytes: id.0.as_u128() as u64,
            tail_bytes: 100 + groups as u64,
            tail_checksum: id.0.as_u128() as u64,
            columns,
            row_groups: (0..groups as u64).map(|rows| RowGroupMeta { rows, bytes: rows * 100 }).collect(),
            row_ids: row_ids[groups],
            buckets: buckets(groups),
        }
    })
}

/// Returns a strategy for buckets: mostly none, else by one of two schemes, or those of a shard without rows.
fn buckets(number: usize) -> Option<ShardBuckets> {
    let runs: &[(u8, u32)] = match number {
        1 => &[(3, 9), (63, 1), (3, u32::MAX)],
        2 => &[(0, 1_000)],
        3 => &[],
        _ => return None,
    };
    Some(ShardBuckets::new(u64::MAX - number as u64 % 2, runs.to_vec()))
}

fn test(column: i32) -> impl Strategy<Value = Test> {
    let op = select(vec![
        CompareOp::Eq,
        CompareOp::NotEq,
        CompareOp::Less,
        CompareOp::LessEq,
        CompareOp::Greater,
        CompareOp::GreaterEq,
    ]);
    let value = move || prop_oneof![9 => datum(column), 1 => KINDS.prop_flat_map(datum)];
    let pattern = (select(vec!["a", "b", "", "customer-0", "customer-00000000", "d"]), any::<bool>());
    let leaf = prop_oneof![
        6 => (op, value()).prop_map(|(op, value)| Test::Compare(op, value)),
        2 => prop::collection::vec(value(), 0..4).prop_map(Test::In),
        2 => (value(), value()).prop_map(|(low, high)| Test::Between(low, high)),
        1 => pattern.prop_map(|(prefix, is_negated)| Test::Like {
            pattern: blocks::LikePattern { prefix: prefix.into(), ..Default::default() },
            is_negated,
        }),
        1 => Just(Test::IsNull),
        1 => Just(Test::IsNotNull),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Test::All),
            prop::collection::vec(inner, 0..3).prop_map(Test::Any),
        ]
    })
}

fn predicate() -> impl Strategy<Value = Predicate> {
    // No shard has column 8, and the table has no column 7.
    (1..9_i32)
        .prop_flat_map(|column| test(column.min(6)).prop_map(move |test| Predicate { column: ColumnId(column), test }))
}

/// Returns the table's columns; some have a missing value.
fn definitions() -> Vec<ColumnDef> {
    let types = [
        (1, SqlType::Int8, None),
        (2, SqlType::Float8, None),
        (3, SqlType::Text, None),
        (4, SqlType::Numeric { precision: 38, scale: 0 }, Some("3")),
        (5, SqlType::Bytea, None),
        (6, SqlType::Bool, Some("true")),
        (8, SqlType::Bool, Some("false")),
    ];
    let column = |(id, sql_type, missing): (i32, SqlType, Option<&str>)| ColumnDef {
        id: ColumnId(id),
        name: format!("c{id}"),
        sql_type,
        nullable: true,
        missing: missing.map(str::to_owned),
    };
    types.into_iter().map(column).collect()
}

/// Removes what packing does not store for each shard.
fn plain(shard: &ShardMeta) -> ShardMeta {
    let mut shard = shard.clone();
    for stats in &mut shard.columns {
        (stats.distinct, stats.heavy_hitters) = (Hll::default(), Vec::new());
    }
    shard
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_packed_comes_back(shards in prop::collection::vec(shard().prop_map(Arc::new), 0..90)) {
        let packed = PackedShards::pack(&shards);
        prop_assert_eq!(packed.len(), shards.len());
        for (place, shard) in shards.iter().enumerate() {
            prop_assert_eq!(packed.meta(place), plain(shard));
            prop_assert_eq!(packed.object(place), shard.object.clone());
            prop_assert_eq!(packed.position(shard.id).map(|place| packed.ids()[place]), Some(shard.id));
            for stats in &shard.columns {
                prop_assert_eq!(packed.distinct(place, stats.column), Some(stats.distinct.estimate()));
            }
        }
        prop_assert_eq!(packed.position(ShardId(Uuid::from_u128(7))), None);
    }

    #[test]
    fn shards_are_left_out_as_one_by_one(
        shards in prop::collection::vec(shard().prop_map(Arc::new), 1..150),
        all_predicates in prop::collection::vec(prop::collection::vec(predicate(), 1..3), 8),
    ) {
        let packed = PackedShards::pack(&shards);
        let columns = definitions();
        for predicates in &all_predicates {
            let wanted = shards.iter().enumerate().filter(|(_, shard)| may_match(shard, predicates, &columns));
            let wanted: Vec<usize> = wanted.map(|(place, _)| place).collect();
            prop_assert_eq!(packed.matching(&Pruner::new(predicates, &columns)), wanted, "{:?}", predicates);
        }
    }

    #[test]
    fn zones_are_asked_as_one_by_one(
        shards in prop::collection::vec(shard().prop_map(Arc::new), 1..100),
        least in datum(1),
        nulls in any::<bool>(),
    ) {
        // As index lookups do: a zone without bounds may contain any value.
        let ask = |zone: &crate::ZoneMapEntry<'_>| {
            let (Some(_), Some(max)) = (zone.min, zone.max) else { return true };
            nulls && zone.nulls != Some(0) || max.compare(&least).is_none_or(std::cmp::Ordering::is_ge)
        };
        let packed = PackedShards::pack(&shards);
        let says_yes = |shard: &ShardMeta| {
            shard.column(ColumnId(1)).is_none_or(|stats| ask(&crate::ZoneMapEntry::from_stats(shard.rows, stats)))
        };
        let wanted: Vec<usize> = (0..shards.len()).filter(|place| says_yes(&shards[*place])).collect();
        prop_assert_eq!(packed.filter_by_zone(ColumnId(1), ask).collect::<Vec<_>>(), wanted);
    }
}

/// Kiln's own shards never have such statistics, but external files may.
#[test]
fn bounds_of_a_shard_without_values_are_asked_about_too() {
    let mut shards = [neighbour(0), neighbour(1)];
    let of_first = Arc::make_mut(&mut shards[0]);
    of_first.columns[0].nulls = of_first.rows;
    let ask = |zone: &crate::ZoneMapEntry<'_>| zone.max.is_none_or(|max| *max < Datum::Int(1_000));
    assert_eq!(PackedShards::pack(&shards).filter_by_zone(ColumnId(1), ask).collect::<Vec<_>>(), [0]);
}

/// Returns the metadata of a shard of a table that is loaded daily.
fn neighbour(number: i64) -> Arc<ShardMeta> {
    let stats = |column, min: i64, max: i64| ColumnStats {
        column: ColumnId(column),
        nulls: 0,
        nulls_guessed: false,
        min: Some(Datum::Int(min)),
        max: Some(Datum::Int(max)),
        bounds_exact: true,
        distinct: Hll::default(),
        ascending: false,
        strictly_ascending: false,
        average_run: 1.0,
        heavy_hitters: Vec::new(),
        bytes: 1 << 20,
    };
    let id = ShardId(Uuid::from_u128(u128::from(number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64));
    let scattered = number * 7_919 % 4_096 * 1_000;
    Arc::new(ShardMeta {
        id,
        object: format!("tables/7/{id}.parquet"),
        rows: 1_000_000,
        bytes: 100 << 20,
        tail_bytes: 10_000,
        tail_checksum: number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15),
        columns: vec![stats(1, number * 1_000, number * 1_000 + 999), stats(2, scattered, scattered + 999)],
        row_groups: vec![RowGroupMeta { rows: 1_000_000, bytes: 100 << 20 }],
        row_ids: RowIds::From(RowId(number.cast_unsigned() * 1_000_000)),
        buckets: None,
    })
}

/// Ranges of days leave few shards, and so do narrow ranges of an unordered column.
#[test]
fn neighbours_take_little_memory() {
    let shards: Vec<_> = (0..4_096).map(neighbour).collect();
    let packed = PackedShards::pack(&shards);
    let each = packed.memory_bytes() / shards.len();
    assert!(each < 64, "{each} bytes for a shard");
    for column in [1, 2] {
        let predicates =
            [Predicate { column: ColumnId(column), test: Test::Compare(CompareOp::Eq, Datum::Int(2_000_500)) }];
        assert_eq!(packed.matching(&Pruner::new(&predicates, &[])).len(), 1);
    }
}

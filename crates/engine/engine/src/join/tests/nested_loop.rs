//! Randomized joins compared with a nested loop.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Int64Type};

use super::Random;
use super::rows::{Keys, Row, Value, batches, forms, rows, value};
use crate::expression::{ArrowFunction, Expression};
use crate::join::{
    BuildCollector, JoinHashTable, JoinKind, JoinSpec, OutputColumn, ProbeMatches, ProbeScratch, Residual,
    TextKeyFilter,
};
use crate::{BATCH_ROWS, Batch, ColumnData, NEVER_STOPPED, Result, Selection};

const KINDS: [JoinKind; 11] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::LeftSemi,
    JoinKind::RightSemi,
    JoinKind::LeftAnti,
    JoinKind::LeftNotIn,
    JoinKind::RightAnti,
    JoinKind::LeftMark,
    JoinKind::RightMark,
];

/// Returns whether a pair of rows fulfils the residual condition.
fn passes_residual(build: &Row, probe: &Row) -> bool {
    let number = |row: &Row| if let Some(Value::Number(number)) = row.last() { *number } else { panic!("no number") };
    is_no_third(number(build) + number(probe))
}

fn is_no_third(sum: i128) -> bool {
    sum % 3 != 0
}

/// The same condition as a function of two columns.
#[derive(Debug)]
struct ResidualFunction;

impl ArrowFunction for ResidualFunction {
    fn id(&self) -> u64 {
        12
    }

    fn argument_types(&self) -> &[DataType] {
        &[DataType::Int64, DataType::Int64]
    }

    fn call(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        assert!(rows > 0 && rows <= BATCH_ROWS);
        let number = |side: usize, row: usize| i128::from(arguments[side].as_primitive::<Int64Type>().value(row));
        let values = (0..rows).map(|row| Some(is_no_third(number(0, row) + number(1, row))));
        Ok(Arc::new(values.collect::<BooleanArray>()))
    }

    fn is_immutable(&self) -> bool {
        true
    }

    fn sql(&self) -> String {
        "fulfils".to_owned()
    }
}

/// Returns the residual condition over the number columns of both sides.
fn residual(keys: usize) -> Residual {
    let arguments = vec![Expression::Column(0), Expression::Column(1)];
    let condition = Expression::ArrowCall { function: Arc::new(ResidualFunction), arguments };
    Residual { columns: vec![OutputColumn::Build(keys), OutputColumn::Probe(keys)], condition }
}

/// Computes the join by a nested loop.
fn nested_loop_join(spec: &JoinSpec, build: &[Row], probe: &[Row]) -> Vec<Row> {
    let matches = |left: &Row, right: &Row| {
        let are_equal = |(build, probe): &(usize, usize)| left[*build].equals(&right[*probe], spec.nulls_are_equal);
        spec.keys.iter().all(are_equal) && (spec.residual.is_none() || passes_residual(left, right))
    };
    let mut all = Vec::new();
    let row = |left: Option<&Row>, right: Option<&Row>, mark: bool| -> Row {
        let cell = |side: Option<&Row>, position: usize| side.map_or(Value::Null, |row| row[position].clone());
        let of = |column: &OutputColumn| match *column {
            OutputColumn::Build(position) => cell(left, position),
            OutputColumn::Probe(position) => cell(right, position),
            OutputColumn::Mark => Value::Bool(mark),
        };
        spec.output.iter().map(of).collect()
    };
    for left in build {
        let count = probe.iter().filter(|right| matches(left, right)).count();
        match spec.kind {
            JoinKind::Left | JoinKind::Full if count == 0 => all.push(row(Some(left), None, false)),
            JoinKind::LeftSemi if count > 0 => all.push(row(Some(left), None, true)),
            JoinKind::LeftAnti if count == 0 => all.push(row(Some(left), None, true)),
            JoinKind::LeftNotIn => {
                let (own, theirs) = spec.keys[0];
                let is_unknown = |right: &Row| right[theirs] == Value::Null || left[own] == Value::Null;
                if count == 0 && !probe.iter().any(is_unknown) {
                    all.push(row(Some(left), None, true));
                }
            }
            JoinKind::LeftMark => all.push(row(Some(left), None, count > 0)),
            _ => {}
        }
    }
    for right in probe {
        let matching: Vec<&Row> = build.iter().filter(|left| matches(left, right)).collect();
        match spec.kind {
            JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => {
                all.extend(matching.iter().map(|left| row(Some(left), Some(right), true)));
                if matching.is_empty() && matches!(spec.kind, JoinKind::Right | JoinKind::Full) {
                    all.push(row(None, Some(right), false));
                }
            }
            JoinKind::RightSemi if !matching.is_empty() => all.push(row(None, Some(right), true)),
            JoinKind::RightAnti if matching.is_empty() => all.push(row(None, Some(right), true)),
            JoinKind::RightMark => all.push(row(None, Some(right), !matching.is_empty())),
            _ => {}
        }
    }
    all
}

/// Computes the join with several workers.
fn hash_join(
    spec: &JoinSpec,
    build: &[Row],
    probe: &[Row],
    keys: &[Keys],
    workers: usize,
    chance: &mut Random,
) -> Vec<Row> {
    let spec = Arc::new(spec.clone());
    let mut builds: Vec<BuildCollector> = (0..workers).map(|_| BuildCollector::new(&spec)).collect();
    for batch in batches(build, &spec.build_types, chance) {
        let worker = chance.below(workers as u64) as usize;
        builds[worker].push(batch).expect("a batch of the right forms");
    }
    let table = JoinHashTable::finish(Arc::clone(&spec), builds, 1 << 20, &NEVER_STOPPED).expect("a table");
    let table = Arc::new(table);
    assert_eq!(table.rows(), build.len());
    let mut all = Vec::new();
    let mut next = |batch: Batch| {
        assert!(batch.rows > 0 && batch.rows <= BATCH_ROWS, "{} rows", batch.rows);
        assert!(batch.columns.iter().all(|column| column.rows() == batch.rows));
        all.extend((0..batch.rows).map(|row| batch.columns.iter().map(|column| value(column, row)).collect::<Row>()));
        Ok(())
    };
    let mut scratches: Vec<ProbeScratch> = (0..workers).map(|_| ProbeScratch::default()).collect();
    let forms = forms(keys);
    for batch in batches(probe, &forms, chance) {
        let batch = apply_random_filters(&table, &spec, batch, chance).expect("filters");
        let worker = chance.below(workers as u64) as usize;
        table.probe(&batch, &mut scratches[worker], &mut next).expect("probing");
    }
    for part in 0..workers {
        table.output_build_rows(part, workers, &forms, &mut next).expect("build rows after probing");
    }
    all
}

/// Computes the join with the build side split into chunks.
fn chunked_hash_join(spec: &JoinSpec, build: &[Row], probe: &[Row], keys: &[Keys], chance: &mut Random) -> Vec<Row> {
    let (spec, forms, pieces) = (Arc::new(spec.clone()), forms(keys), 3);
    let mut all = Vec::new();
    let mut next = |batch: Batch| {
        assert!(batch.rows > 0 && batch.rows <= BATCH_ROWS, "{} rows", batch.rows);
        all.extend((0..batch.rows).map(|row| batch.columns.iter().map(|column| value(column, row)).collect::<Row>()));
        Ok(())
    };
    let probing = batches(probe, &forms, chance);
    let matched: Vec<ProbeMatches> = probing.iter().map(|batch| ProbeMatches::new(batch.rows)).collect();
    let mut scratch = ProbeScratch::default();
    for piece in 0..pieces {
        let mut side = BuildCollector::new(&spec);
        let rows = &build[build.len() * piece / pieces..build.len() * (piece + 1) / pieces];
        for batch in batches(rows, &spec.build_types, chance) {
            side.push(batch).expect("a batch of the right forms");
        }
        let table = JoinHashTable::finish(Arc::clone(&spec), vec![side], 0, &NEVER_STOPPED).expect("a table");
        for (batch, matched) in probing.iter().zip(&matched) {
            table.probe_chunk(batch, matched, piece + 1 == pieces, &mut scratch, &mut next).expect("probing");
        }
        table.output_build_rows(0, 1, &forms, &mut next).expect("build rows after probing");
    }
    all
}

/// Applies randomly chosen runtime filters to a probe batch.
fn apply_random_filters(
    table: &Arc<JoinHashTable>,
    spec: &JoinSpec,
    batch: Batch,
    chance: &mut Random,
) -> Result<Batch> {
    let mut batch = batch;
    for (key, (_, position)) in spec.keys.iter().enumerate() {
        let column = &batch.columns[*position];
        if chance.below(2) == 0
            && let Some(filter) = table.key_filter(key)
            && let ColumnData::Ints { values, .. } = &column.data
        {
            let kept = filter.matching_rows(values, column.validity.as_deref());
            batch = batch.select(&Selection::from_bitmap(&kept))?;
        } else if chance.below(2) == 0
            && let Some(mut filter) = TextKeyFilter::try_new(table, key)
        {
            let kept = filter.matching_rows(column)?;
            batch = batch.select(&Selection::from_bitmap(&kept))?;
        }
    }
    Ok(batch)
}

fn sorted(rows: &[Row]) -> Vec<String> {
    let cell = |value: &Value| match value {
        // Equal floats may differ in their sign or NaN bits, and a join returns either side's own value.
        Value::Float(float) if float.is_nan() => "NaN".to_owned(),
        value => format!("{value:?}"),
    };
    let mut rows: Vec<String> = rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(",")).collect();
    rows.sort();
    rows
}

fn output(kind: JoinKind, columns: usize) -> Vec<OutputColumn> {
    let build = (0..columns).map(OutputColumn::Build);
    let probe = (0..columns).map(OutputColumn::Probe);
    match kind {
        JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftNotIn => build.collect(),
        JoinKind::RightSemi | JoinKind::RightAnti => probe.collect(),
        JoinKind::LeftMark => build.chain([OutputColumn::Mark]).collect(),
        JoinKind::RightMark => [OutputColumn::Mark].into_iter().chain(probe).collect(),
        _ => probe.chain(build).collect(),
    }
}

struct Case<'a> {
    keys: &'a [Keys],
    build_rows: usize,
    probe_rows: usize,
    spread: u64,
    nulls: u64,
    seed: u64,
}

/// Checks every join kind, with and without a residual condition, and with NULLs equal or not.
fn check(case: &Case<'_>) {
    let mut chance = Random::new(case.seed);
    let build = rows(case.keys, case.build_rows, case.spread, case.nulls, &mut chance);
    let probe = rows(case.keys, case.probe_rows, case.spread + case.spread / 4 + 1, case.nulls, &mut chance);
    check_rows(case.keys, &build, &probe, &mut chance);
}

fn check_rows(keys: &[Keys], build: &[Row], probe: &[Row], chance: &mut Random) {
    for kind in KINDS {
        for (nulls_are_equal, has_residual) in [(false, false), (true, false), (false, true), (true, true)] {
            let spec = JoinSpec {
                kind,
                keys: (0..keys.len()).map(|key| (key, key)).collect(),
                nulls_are_equal,
                output: output(kind, keys.len() + 1),
                residual: has_residual.then(|| residual(keys.len())),
                build_types: forms(keys),
            };
            if kind == JoinKind::LeftNotIn && (keys.len() != 1 || nulls_are_equal || has_residual) {
                continue;
            }
            let workers = 1 + chance.below(3) as usize;
            let expected = nested_loop_join(&spec, build, probe);
            let found = hash_join(&spec, build, probe, keys, workers, chance);
            let of = format!("{kind:?} on {:?}, NULLs equal {nulls_are_equal}, residual {has_residual}", keys);
            assert_eq!(sorted(&found), sorted(&expected), "{of}");
            let found = chunked_hash_join(&spec, build, probe, keys, chance);
            assert_eq!(sorted(&found), sorted(&expected), "{of}, in pieces");
        }
    }
}

fn check_keys(keys: &[Keys]) {
    // About half of all pairs match, so that fewer rows suffice.
    let is_coarse = keys.iter().all(|keys| matches!(keys, Keys::Bools));
    let fewer = if is_coarse { 4 } else { 1 };
    for (seed, (build_rows, probe_rows, spread, nulls)) in [
        (150, 200, 12, 20),
        (150, 200, 400, 5),
        (300, 300, 60, 0),
        (0, 70, 10, 10),
        (70, 0, 10, 10),
        (4, 64, 2, 0),
        (64, 130, 5, 100),
        (200, 100, 5_000, 3),
    ]
    .into_iter()
    .enumerate()
    {
        let (build_rows, probe_rows) = (build_rows / fewer, probe_rows / fewer);
        check(&Case { keys, build_rows, probe_rows, spread, nulls, seed: seed as u64 + 1 });
    }
}

/// NULL keys on either side, on both or on none, and empty sides.
#[test]
fn not_in_with_nulls_and_without() {
    for (seed, (build_rows, probe_rows, nulls)) in
        [(90, 40, (3, 0)), (90, 40, (0, 2)), (90, 40, (5, 5)), (90, 40, (0, 0)), (90, 0, (9, 0)), (0, 9, (0, 9))]
            .into_iter()
            .enumerate()
    {
        let mut chance = Random::new(seed as u64 + 40);
        for keys in [Keys::Dense, Keys::Sparse, Keys::Texts, Keys::Huge] {
            let build = rows(&[keys], build_rows, 60, nulls.0, &mut chance);
            let probe = rows(&[keys], probe_rows, 60, nulls.1, &mut chance);
            check_rows(&[keys], &build, &probe, &mut chance);
        }
    }
}

#[test]
fn integers_near_each_other() {
    check_keys(&[Keys::Dense]);
}

#[test]
fn integers_far_apart() {
    check_keys(&[Keys::Sparse]);
}

#[test]
fn the_least_and_the_greatest_integers() {
    check_keys(&[Keys::Extreme]);
    check_keys(&[Keys::Extreme, Keys::Extreme]);
}

#[test]
fn truth_values() {
    check_keys(&[Keys::Bools]);
    check_keys(&[Keys::Bools, Keys::Dense]);
}

#[test]
fn numbers_narrow_and_wide() {
    check_keys(&[Keys::Mixed]);
    check_keys(&[Keys::Huge]);
}

#[test]
fn floats() {
    check_keys(&[Keys::Floats]);
    check_keys(&[Keys::Floats, Keys::Dense]);
}

#[test]
fn strings_with_codes_and_without() {
    check_keys(&[Keys::Texts]);
}

#[test]
fn several_keys() {
    check_keys(&[Keys::Dense, Keys::Dense]);
    check_keys(&[Keys::Dense, Keys::Texts]);
    check_keys(&[Keys::Sparse, Keys::Sparse]);
    check_keys(&[Keys::Extreme, Keys::Sparse, Keys::Texts]);
    check_keys(&[Keys::Huge, Keys::Floats, Keys::Extreme, Keys::Bools]);
}

#[test]
fn no_keys() {
    check_keys(&[]);
}

#[test]
fn a_row_with_very_many_matches() {
    let case = Case { keys: &[Keys::Dense], build_rows: 9_000, probe_rows: 2, spread: 1, nulls: 0, seed: 5 };
    check(&case);
}

/// Enough rows for the index structures of larger tables.
#[test]
fn larger_tables() {
    for keys in [Keys::Dense, Keys::Sparse, Keys::Texts] {
        check(&Case { keys: &[keys], build_rows: 1_200, probe_rows: 150, spread: 30_000, nulls: 1, seed: 9 });
    }
}

/// Unique keys with and without NULLs: dense, sparse and very sparse, in order and shuffled.
#[test]
fn unique_keys() {
    for (factor, is_shuffled, nulls) in
        [1, 20, 1_000_003].into_iter().flat_map(|factor| [(factor, false, 0), (factor, true, 0), (factor, true, 3)])
    {
        let mut chance = Random::new(factor as u64);
        let mut row = |key: i128, nulls: u64| {
            let key = if chance.below(100) < nulls { Value::Null } else { Value::Number(key * factor) };
            vec![key, Value::Number(i128::from(chance.below(1000)))]
        };
        let mut build: Vec<Row> = (0..1000).map(|key| row(key, nulls)).collect();
        let probe: Vec<Row> = (0..60).map(|key| row(key * 23 - 100, nulls)).collect();
        if is_shuffled {
            (1..build.len()).rev().for_each(|last| build.swap(last, chance.below(last as u64 + 1) as usize));
        }
        check_rows(&[Keys::Dense], &build, &probe, &mut chance);
    }
}

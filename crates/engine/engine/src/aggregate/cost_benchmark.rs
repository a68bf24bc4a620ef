//! Measures the cost of aggregating a row with two workers. Run it with
//! `cargo test --release -p engine -- --ignored --nocapture grouped_row`.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::StringViewArray;

use super::flush_decision::CACHED_TABLE_GROUPS;
use super::tests::Random;
use super::{AggregateKind, AggregateSpec, FlushedGroups, Groups, StateSpec, StringUnifier};
use crate::{BATCH_ROWS, Batch, Bounds, Column, ColumnData, Dictionary, NEVER_STOPPED};

/// Rows of each worker.
const ROWS: usize = 2_000_000;
const WORKERS: usize = 2;

/// Returns the CPU time of this thread, which other threads' load does not change.
fn cpu_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat is readable");
    Duration::from_nanos(statistics.split(' ').next().and_then(|time| time.parse().ok()).expect("a CPU time"))
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, f64) {
    let start = cpu_time();
    let result = run();
    (result, (cpu_time() - start).as_secs_f64() * 1e9 / (ROWS * WORKERS) as f64)
}

/// Creates a column of integers with the bounds of all batches.
fn numbers(values: Vec<i64>, bounds: Bounds) -> Column {
    Column::new(ColumnData::Ints { values: Arc::new(values), bounds })
}

/// Creates the rows of a worker: keys, then a value.
fn batches(keys: &[Keys], worker: usize, chance: &mut Random) -> Vec<Batch> {
    let mut all = Vec::new();
    for start in (0..ROWS).step_by(BATCH_ROWS) {
        let rows = start..ROWS.min(start + BATCH_ROWS);
        let mut columns: Vec<Column> = keys.iter().map(|key| key.column(worker, rows.clone(), chance)).collect();
        columns.push(numbers(rows.clone().map(|row| row as i64 % 1000).collect(), Bounds { min: 0, max: 1000 }));
        all.push(Batch { rows: rows.len(), columns });
    }
    all
}

/// Distribution of the keys.
enum Keys {
    /// Random keys: the number of distinct keys, and the distance between them.
    Random(u64, i64),
    /// Unique keys in a scattered order, with this distance between them.
    Unique(i64),
    /// Ascending keys, each repeated so many times.
    Ordered(usize),
    /// Random strings of a dictionary.
    Strings(Arc<Dictionary>),
    /// Unique strings without a dictionary.
    UniqueTexts,
}

impl Keys {
    fn column(&self, worker: usize, rows: std::ops::Range<usize>, chance: &mut Random) -> Column {
        let jumping = |row: usize| ((worker * ROWS + row) * 7_368_787 % (ROWS * WORKERS)) as i64;
        match self {
            Self::Random(count, factor) => {
                let values = rows.map(|_| chance.below(*count) as i64 * factor).collect();
                numbers(values, Bounds { min: 0, max: *count as i128 * i128::from(*factor) })
            }
            Self::Unique(factor) => {
                let values = rows.map(|row| jumping(row) * factor).collect();
                numbers(values, Bounds { min: 0, max: (ROWS * WORKERS) as i128 * i128::from(*factor) })
            }
            Self::Ordered(each) => {
                let values: Vec<i64> = rows.map(|row| ((worker * ROWS + row) / each) as i64).collect();
                let bounds = Bounds { min: values[0].into(), max: values[values.len() - 1].into() };
                numbers(values, bounds)
            }
            Self::Strings(strings) => {
                let codes = rows.map(|_| chance.below(strings.len() as u64) as u32).collect();
                Column::new(ColumnData::Dictionary { indices: Arc::new(codes), dictionary: Arc::clone(strings) })
            }
            Self::UniqueTexts => {
                let texts = rows.map(|row| format!("Customer#{:012}", jumping(row)));
                Column::new(ColumnData::Texts(StringViewArray::from_iter_values(texts)))
            }
        }
    }
}

/// Aggregates and prints nanoseconds per row: of all workers while they pre-aggregate, of one worker while the others
/// wait, and of all workers while they merge.
fn measure(name: &str, keys: &[Keys]) {
    let states = vec![
        StateSpec { kind: AggregateKind::Count, column: None, filter: None },
        StateSpec { kind: AggregateKind::Sum, column: Some(keys.len()), filter: None },
    ];
    let spec = Arc::new(AggregateSpec { keys: (0..keys.len()).collect(), states, ..AggregateSpec::default() });
    let mut chance = Random(7);
    let batches: Vec<_> = (0..WORKERS).map(|worker| batches(keys, worker, &mut chance)).collect();
    for (how, few, in_parts) in [
        ("one table", usize::MAX, false),
        ("one table, then parts", usize::MAX, true),
        ("a few in a table", CACHED_TABLE_GROUPS, false),
    ] {
        let add = |batches: &Vec<Batch>| {
            let mut groups = Groups::with_first_check(&spec, few);
            batches.iter().for_each(|batch| groups.add(batch).expect("rows"));
            groups
        };
        let (mut groups, adding) = timed(|| batches.iter().map(add).collect::<Vec<Groups>>());
        let bytes: usize = groups.iter().map(Groups::memory_bytes).sum();
        let (rows, one, together) = if in_parts || groups.iter().any(Groups::has_flushed) {
            let (aside, putting) = timed(|| {
                groups
                    .into_iter()
                    .flat_map(|part| part.flush_to_partitions().expect("keys"))
                    .map(FlushedGroups::partition_strings)
            });
            let (aside, collecting) = timed(|| aside.collect());
            let (common, begun) = timed(|| StringUnifier::try_new(&spec, aside).expect("one form"));
            let (shards, numbering) = timed(|| {
                (0..common.task_count()).map(|shard| common.unify_strings(shard).expect("few strings")).collect()
            });
            let (divided, ended) = timed(|| common.partition_groups(shards).expect("few strings"));
            let one = begun + ended;
            let (rows, together) = timed(|| divided.all_rows(&spec, &NEVER_STOPPED).expect("groups").rows());
            (rows, one, putting + collecting + numbering + together)
        } else {
            let (rows, one) = timed(|| {
                groups.sort_by_key(Groups::len);
                let mut all = groups.pop().expect("workers");
                groups.into_iter().for_each(|part| all.merge(part, &NEVER_STOPPED).expect("groups"));
                all.finish().expect("groups").rows()
            });
            (rows, one, 0.0)
        };
        println!(
            "{name:28} {how:21} {rows:8} groups, {:5} MB, a row: {adding:6.1} ns of all, {one:6.1} ns of one, {together:6.1} ns of all: {:6.1} ns",
            bytes >> 20,
            (adding + together) / WORKERS as f64 + one
        );
    }
}

#[test]
#[ignore = "measures"]
fn nanoseconds_of_a_grouped_row() {
    const FAR: i64 = 1_000_003;
    let strings = |count: usize| {
        Keys::Strings(Dictionary::new(StringViewArray::from_iter_values(
            (0..count).map(|number| format!("string {number:09}")),
        )))
    };
    measure("once, sparse", &[Keys::Unique(FAR)]);
    measure("once, two keys", &[Keys::Unique(FAR), Keys::Random(100, FAR)]);
    measure("once, dense", &[Keys::Unique(1)]);
    measure("once, texts", &[Keys::UniqueTexts]);
    measure("20 k strings, 3 k days", &[strings(20_000), Keys::Random(3_000, 1)]);
    measure("2 M sparse", &[Keys::Random(2_000_000, FAR)]);
    measure("1 M sparse", &[Keys::Random(1_000_000, FAR)]);
    measure("400 k sparse", &[Keys::Random(400_000, FAR)]);
    measure("100 k sparse", &[Keys::Random(100_000, FAR)]);
    measure("10 k sparse", &[Keys::Random(10_000, FAR)]);
    measure("1 M dense", &[Keys::Random(1_000_000, 1)]);
    measure("100 k dense", &[Keys::Random(100_000, 1)]);
    measure("four of each in order", &[Keys::Ordered(4)]);
    measure("ten groups", &[Keys::Random(10, 1)]);
}

//! Benchmark of the cost per probe row. Run with `cargo test --release -p engine -- --ignored --nocapture join`.

use std::sync::Arc;
use std::time::Duration;

use super::tests::Random;
use super::{BuildCollector, JoinHashTable, JoinKind, JoinSpec, OutputColumn, ProbeScratch};
use crate::{BATCH_ROWS, Batch, Bounds, Column, ColumnData, NEVER_STOPPED, PhysicalType};

const PROBES: usize = 10_000_000;

/// Builds batches of a key column and a number column.
fn batches(keys: &[i64]) -> Vec<Batch> {
    let column = |keys: &[i64]| Column::new(ColumnData::Ints { values: Arc::new(keys.to_vec()), bounds: Bounds::I64 });
    let batch = |keys: &[i64]| Batch { rows: keys.len(), columns: vec![column(keys), column(keys)] };
    keys.chunks(BATCH_ROWS).map(batch).collect()
}

/// Returns the CPU time of this thread, which other processes do not distort.
fn running() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux provides schedstat");
    Duration::from_nanos(statistics.split(' ').next().and_then(|time| time.parse().ok()).expect("a number"))
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = running();
    let result = run();
    (result, running() - start)
}

/// Joins, and prints nanoseconds per row of the build side and of the probe side.
fn measure(name: &str, kind: JoinKind, build: &[i64], probe: &[i64], output: &[OutputColumn]) {
    let spec = Arc::new(JoinSpec {
        kind,
        keys: vec![(0, 0)],
        nulls_are_equal: false,
        output: output.to_vec(),
        residual: None,
        build_types: vec![PhysicalType::Ints, PhysicalType::Ints],
    });
    let (build_batches, probe_batches) = (batches(build), batches(probe));
    let (table, building) = timed(|| {
        let mut side = BuildCollector::new(&spec);
        build_batches.into_iter().for_each(|batch| side.push(batch).expect("integers"));
        JoinHashTable::finish(Arc::clone(&spec), vec![side], 1 << 20, &NEVER_STOPPED).expect("a table")
    });
    let mut rows = 0;
    let mut scratch = ProbeScratch::default();
    let ((), probing) = timed(|| {
        for batch in &probe_batches {
            let mut next = |batch: Batch| {
                rows += batch.rows;
                Ok(())
            };
            table.probe(batch, &mut scratch, &mut next).expect("probing");
        }
    });
    let each = |time: Duration, rows: usize| time.as_secs_f64() * 1e9 / rows as f64;
    println!(
        "{name:36} build {:6.1} ns a row, probe {:6.2} ns a row, {rows} rows, {} KB",
        each(building, build.len()),
        each(probing, probe.len()),
        table.memory_bytes() / 1024,
    );
}

#[test]
#[ignore = "measures"]
fn nanoseconds_of_a_row() {
    let mut chance = Random::new(1);
    let mut shuffled = |rows: i64, factor: i64| {
        let mut keys: Vec<i64> = (0..rows).map(|key| key * factor).collect();
        (1..keys.len()).rev().for_each(|last| keys.swap(last, chance.below(last as u64 + 1) as usize));
        keys
    };
    let (small, dense, ranked) = (shuffled(10_000, 1), shuffled(1_000_000, 1), shuffled(1_000_000, 4));
    let sparse = shuffled(1_000_000, 1_000_003);
    let small_sparse = shuffled(10_000, 1_000_003);
    let repeated: Vec<i64> = dense.iter().flat_map(|key| [key / 4]).collect();
    let mut chance = Random::new(2);
    let mut picked = |keys: &[i64], misses: u64| -> Vec<i64> {
        let mut pick = || {
            let key = keys[chance.below(keys.len() as u64) as usize];
            if chance.below(100) < misses { key.wrapping_add(1).wrapping_neg() } else { key }
        };
        (0..PROBES).map(|_| pick()).collect()
    };
    let (build, probe) = (OutputColumn::Build(1), OutputColumn::Probe(1));
    for (name, keys) in [
        ("10 k dense", &small),
        ("1 M dense", &dense),
        ("1 M of 4 M", &ranked),
        ("10 k sparse", &small_sparse),
        ("1 M sparse", &sparse),
        ("1 M, 4 of each", &repeated),
    ] {
        let (hits, half) = (picked(keys, 0), picked(keys, 50));
        measure(&format!("{name}, no columns"), JoinKind::Inner, keys, &hits, &[]);
        measure(&format!("{name}, a column of both"), JoinKind::Inner, keys, &hits, &[probe, build]);
        measure(&format!("{name}, half match"), JoinKind::Inner, keys, &half, &[probe, build]);
        measure(&format!("{name}, semi, half match"), JoinKind::RightSemi, keys, &half, &[probe]);
        measure(&format!("{name}, left anti"), JoinKind::LeftAnti, keys, &hits, &[build]);
    }
    let ordered: Vec<i64> = (0..PROBES as i64).map(|row| row / 10 * 4).collect();
    let keys: Vec<i64> = (0..1_000_000).map(|key| key * 4).collect();
    measure("1 M of 4 M, both in order", JoinKind::Inner, &keys, &ordered, &[probe, build]);
}

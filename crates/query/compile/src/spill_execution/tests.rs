use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::datatypes::Schema;
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::empty::EmptyExec;
use engine::sort::{SortCollector, SortKey, SortSpec};
use engine::{Batch, Bounds, Column, ColumnData, PhysicalType};

use super::{MergedReader, RunWriter, SortedRuns, SpilledRunMerger};
use crate::explain_metrics::{FragmentMetrics, SpillMetrics};
use crate::plan::OperatorId;
use crate::run_error::RunError;
use crate::scan_reader::SourceItem;

/// Memory for the blocks of a few runs.
const MEMORY_BYTES: usize = 256 << 10;
const RUNS: i64 = 40;
const ROWS: i64 = 1_000;

fn batch(values: Vec<i64>) -> Batch {
    let rows = values.len();
    Batch { rows, columns: vec![Column::new(ColumnData::Ints { values: Arc::new(values), bounds: Bounds::I64 })] }
}

fn context(memory_bytes: usize) -> Arc<TaskContext> {
    let pool = Arc::new(GreedyMemoryPool::new(memory_bytes));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    Arc::new(TaskContext::default().with_runtime(runtime))
}

fn spec() -> Arc<SortSpec> {
    let keys = vec![SortKey { column: 0, is_descending: true, nulls_first: false }];
    Arc::new(SortSpec { keys, fetch: None, column_types: vec![PhysicalType::Ints], windows: None })
}

/// Returns runs with interleaved numbers.
fn runs(context: &Arc<TaskContext>, stop: &Arc<AtomicBool>) -> engine::Result<SortedRuns> {
    let spec = spec();
    let mut writer = RunWriter::new(context, stop);
    for run in 0..RUNS {
        let mut part = SortCollector::new(&spec);
        part.push(batch((0..ROWS).map(|row| row * RUNS + run).collect()))?;
        writer.sort(part)?;
    }
    assert!(writer.has_runs());
    Ok(SortedRuns { spec, runs: writer.finish() })
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_are_too_many_are_merged_in_passes() {
    let (context, stop) = (context(MEMORY_BYTES), Arc::default());
    let (pool, disk) = (Arc::clone(context.memory_pool()), Arc::clone(&context.runtime_env().disk_manager));
    let (measured, operator) = (Arc::<FragmentMetrics>::default(), EmptyExec::new(Arc::new(Schema::empty())));
    let spills = SpillMetrics { fragment_metrics: Arc::clone(&measured), operator: Some(OperatorId::new(&operator)) };
    let runs = runs(&context, &stop).unwrap();
    assert!(0 < disk.used_disk_space());
    let mut merged = MergedReader::new(SpilledRunMerger::new(&context, &stop, spills), runs);
    let mut numbers = Vec::new();
    while let Some(given) = merged.next().await.unwrap_or_else(|_| panic!("there is room for some")) {
        let SourceItem::Rows(batch) = given else { panic!("no rows") };
        let ColumnData::Ints { values, .. } = &batch.columns[0].data else { panic!("integers") };
        numbers.extend_from_slice(values);
    }
    assert_eq!(numbers, (0..RUNS * ROWS).rev().collect::<Vec<_>>());
    let merged_runs = measured.by_operator()[&OperatorId::new(&operator)].spilled.runs;
    assert!(5 < merged_runs && merged_runs < 20, "{merged_runs} runs were made of others");
    assert_eq!((pool.reserved(), disk.used_disk_space()), (0, 0), "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_without_room_for_two_are_not_merged() {
    let (context, stop) = (context(MEMORY_BYTES), Arc::default());
    let runs = runs(&context, &stop).unwrap();
    let spills = SpillMetrics { fragment_metrics: Arc::default(), operator: None };
    let tight = self::context(10 << 10);
    let refused = MergedReader::new(SpilledRunMerger::new(&tight, &stop, spills), runs).next().await;
    assert!(matches!(refused, Err(RunError::Failed(DataFusionError::ResourcesExhausted(_)))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_nobody_waits_for_is_not_written() {
    let (context, stop) = (context(MEMORY_BYTES), Arc::new(AtomicBool::new(true)));
    let refused = runs(&context, &stop);
    assert!(matches!(refused, Err(engine::Error::Stopped)));
    assert_eq!(context.runtime_env().disk_manager.used_disk_space(), 0);
}

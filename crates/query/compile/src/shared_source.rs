//! Divides the source of a pipeline among its workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use engine::aggregate::GroupRows;
use engine::join::JoinHashTable;
use engine::pipeline::Source;
use engine::sort::SortedRows;
use engine::{BATCH_ROWS, Batch, Column, arrow_convert};
use futures::StreamExt;
use parking_lot::Mutex;
use scan::{PageRun, ShardScanExec};
use shards::{Datum, Predicate, Test};

use crate::fragment_cache::CachedShards;
use crate::plan::{Input, ScanInput};
use crate::run_error::RunError;
use crate::run_pipelines::{FragmentRun, PipelineResult};
use crate::scan_reader::{ScanReader, SharedScan, SourceItem};
use crate::spill_execution::{MergedReader, SpilledGroupReader, SpilledGroups, SpilledJoin, SpilledJoinReader};

/// Source of a pipeline, shared by its workers.
pub(super) enum SharedSource {
    Scan(Arc<SharedScan>, PageRun),
    Operators(Mutex<Vec<SendableRecordBatchStream>>),
    Groups(Arc<GroupRows>, AtomicUsize),
    SpilledJoin(Arc<SpilledJoin>),
    SpilledGroups(Arc<SpilledGroups>),
    Sorted(Arc<SortedRows>, AtomicUsize),
    /// Merged runs of a sort, all of which one worker reads.
    Merged(Mutex<Option<Box<MergedReader>>>),
}

/// One worker's reader of a source.
pub(super) enum SourceReader {
    Scan(Box<ScanReader>),
    Operators(Arc<SharedSource>, Option<SendableRecordBatchStream>),
    Groups(Arc<SharedSource>),
    SpilledJoin(SpilledJoinReader),
    SpilledGroups(SpilledGroupReader),
    Sorted(Arc<SharedSource>),
    Merged(Option<Box<MergedReader>>),
}

impl FragmentRun {
    /// Returns the shared source of a pipeline and the number of its workers. With `reuse`, shards whose groups are
    /// cached are not scanned.
    pub(super) fn shared_source(
        &self,
        number: usize,
        source: Source,
        reuse: Option<&CachedShards>,
        most: usize,
    ) -> Result<(SharedSource, usize), RunError> {
        let has_top = self.top_k_filter(number).is_some();
        match source {
            Source::Groups(number) => match self.result(number) {
                Some(PipelineResult::Groups(groups)) => {
                    let parts = groups.rows().div_ceil(BATCH_ROWS * 4).clamp(1, most);
                    Ok((SharedSource::Groups(groups, AtomicUsize::new(0)), parts))
                }
                Some(PipelineResult::GroupPartitions(spec, parts)) => {
                    let spills = self.spills_of_sink(number);
                    let parts = SpilledGroups::new(&self.context, &self.stop, &spec, &parts, spills);
                    let count = parts.len().clamp(1, most);
                    Ok((SharedSource::SpilledGroups(Arc::new(parts)), count))
                }
                _ => Err(engine::Error::Internal("a pipeline reads groups that no pipeline has built").into()),
            },
            Source::Sorted(number) => match self.result(number) {
                Some(PipelineResult::Sorted(rows)) => {
                    let parts = rows.rows().div_ceil(BATCH_ROWS * 4).clamp(1, most);
                    Ok((SharedSource::Sorted(rows, AtomicUsize::new(0)), parts))
                }
                Some(PipelineResult::Runs(runs)) => {
                    // Files are released as soon as their rows were passed on.
                    self.results.lock()[number] = None;
                    let merged = MergedReader::new(self.run_merger(number), runs);
                    Ok((SharedSource::Merged(Mutex::new(Some(Box::new(merged)))), 1))
                }
                _ => Err(engine::Error::Internal("a pipeline reads sorted rows that no pipeline has built").into()),
            },
            Source::Input(number) => match &self.compiled.inputs[number] {
                Input::Scan(input) => {
                    let (work, pages) = self.prepare_scan(input, scan_of(input)?, has_top, reuse);
                    let parts = pages.part_count().clamp(1, most);
                    Ok((SharedSource::Scan(Arc::new(work), pages), parts))
                }
                Input::Operators(input) => {
                    let partitions = input.operators.properties().output_partitioning().partition_count();
                    let execute = |number| input.operators.execute(number, Arc::clone(&self.context));
                    let streams = (0..partitions).map(execute);
                    let streams = streams.collect::<DfResult<Vec<_>>>()?;
                    Ok((SharedSource::Operators(Mutex::new(streams)), partitions.max(1)))
                }
            },
        }
    }

    /// Prepares a scan: hash tables that it probes become key filters, and their bounds prune shards.
    fn prepare_scan(
        &self,
        input: &ScanInput,
        scan: &ShardScanExec,
        has_top: bool,
        reuse: Option<&CachedShards>,
    ) -> (SharedScan, PageRun) {
        let built = self.results.lock();
        let tables = input.keys.iter().filter_map(|(column, pipeline, key)| match built.get(*pipeline)?.as_ref()? {
            PipelineResult::HashTable(table) => Some((*column, Arc::clone(table), *key)),
            _ => None,
        });
        let texts: Vec<_> = tables.collect();
        let filter =
            |(column, table, key): &(usize, Arc<JoinHashTable>, usize)| Some((*column, table.key_filter(*key)?));
        let mut keys: Vec<_> = texts.iter().filter_map(filter).collect();
        let columns = &scan.scan.columns;
        let known = keys.iter().filter(|(_, filter)| !filter.passes_nulls()).map(|(column, filter)| {
            let (min, max) = filter.bounds();
            let datum = |value: i64| match columns[*column].sql_type.arrow_type() {
                DataType::Decimal128(..) => Datum::Decimal(value.into()),
                _ => Datum::Int(value),
            };
            let test = if min <= max { Test::Between(datum(min), datum(max)) } else { Test::Any(Vec::new()) };
            Predicate { column: columns[*column].id, test }
        });
        let pages = scan.start_page_run(known.collect(), BATCH_ROWS);
        let rows = scan.scan.shards.iter().flat_map(|shard| &shard.meta.row_groups).map(|group| group.rows).sum();
        keys.retain(|(_, filter)| filter.is_worthwhile(rows));
        let pages = if has_top { pages.without_read_ahead() } else { pages };
        let tells_shards = reuse.is_some();
        let pages = match reuse {
            Some(reuse) => pages.without_cached_shards(|shard| reuse.is_cached(shard)),
            None => pages,
        };
        let (filters, wanted) = (input.filters.clone(), input.late_columns.clone());
        let (passed, removed) = (AtomicU64::new(0), AtomicU64::new(0));
        let (calls, now) = (Mutex::default(), Arc::clone(&self.clock));
        let schema = scan.schema();
        let work = SharedScan {
            schema,
            filters,
            keys,
            string_keys: texts,
            late_columns: wanted,
            reports_shards: tells_shards,
            passed_rows: passed,
            removed_rows: removed,
            arrow_calls: calls,
            clock: now,
        };
        (work, pages)
    }
}

fn scan_of(input: &ScanInput) -> Result<&ShardScanExec, RunError> {
    input
        .scan
        .downcast_ref::<ShardScanExec>()
        .ok_or_else(|| engine::Error::Internal("the scan input of a pipeline is not a ShardScanExec").into())
}

impl SourceReader {
    /// Returns the reader of worker `number`.
    pub(super) fn new(share: &Arc<SharedSource>, number: usize) -> Self {
        match &**share {
            SharedSource::Scan(work, pages) => Self::Scan(Box::new(ScanReader::new(work, pages.worker_reader(number)))),
            SharedSource::Operators(_) => Self::Operators(Arc::clone(share), None),
            SharedSource::Groups(..) => Self::Groups(Arc::clone(share)),
            SharedSource::SpilledJoin(parts) => Self::SpilledJoin(SpilledJoinReader::new(parts)),
            SharedSource::SpilledGroups(parts) => Self::SpilledGroups(SpilledGroupReader::new(parts)),
            SharedSource::Sorted(..) => Self::Sorted(Arc::clone(share)),
            SharedSource::Merged(rows) => Self::Merged(rows.lock().take()),
        }
    }

    /// Returns the next item; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<SourceItem>, RunError> {
        match self {
            Self::Scan(batches) => Ok(batches.next().await??),
            Self::Operators(share, current) => {
                let SharedSource::Operators(streams) = &**share else { return Ok(None) };
                loop {
                    if current.is_none() {
                        *current = streams.lock().pop();
                    }
                    let Some(stream) = current else { return Ok(None) };
                    match stream.next().await.transpose()? {
                        Some(batch) if batch.num_rows() == 0 => {}
                        Some(batch) => {
                            let columns = columns(&batch, &stream.schema())?;
                            return Ok(Some(SourceItem::Rows(Batch { rows: batch.num_rows(), columns })));
                        }
                        None => *current = None,
                    }
                }
            }
            Self::Groups(share) => {
                let SharedSource::Groups(groups, next) = &**share else { return Ok(None) };
                Ok(groups.batch(next.fetch_add(1, Ordering::Relaxed)).map(SourceItem::Rows))
            }
            Self::SpilledJoin(batches) => batches.next().await,
            Self::SpilledGroups(batches) => batches.next().await,
            Self::Merged(Some(batches)) => batches.next().await,
            Self::Merged(None) => Ok(None),
            Self::Sorted(share) => {
                let SharedSource::Sorted(rows, next) = &**share else { return Ok(None) };
                Ok(rows.batch(next.fetch_add(1, Ordering::Relaxed))?.map(SourceItem::Rows))
            }
        }
    }
}

/// Returns the columns of a batch with the types of `schema`. The batch of a `PlaceholderRowExec` has untyped columns.
fn columns(rows: &RecordBatch, schema: &SchemaRef) -> engine::Result<Vec<Column>> {
    let columns = rows.columns().iter().zip(schema.fields());
    let typed = columns.map(|(column, field)| match column.data_type() {
        DataType::Null => arrow_convert::from_array(&new_null_array(field.data_type(), rows.num_rows())),
        _ => arrow_convert::from_array(column),
    });
    typed.collect()
}

//! Divides the source of a pipeline among its workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use engine::aggregate::GroupRows;
use engine::join::JoinTable;
use engine::pipeline::Source;
use engine::sort::SortedRows;
use engine::{BATCH_ROWS, Batch, Column, arrow_form};
use futures::StreamExt;
use parking_lot::Mutex;
use scan::{PageRun, ShardScanExec};
use shards::{Datum, Predicate, Test};

use crate::ended::Ended;
use crate::pipelines::{Built, Run};
use crate::plan::{Input, ScanInput};
use crate::reuse::Reuse;
use crate::source::{Given, ScanBatches, ScanWork};
use crate::spill::{GroupParts, JoinParts, JoinedBatches, MergedBatches, RegroupedBatches};

/// Source of a pipeline, shared by its workers.
pub(super) enum Share {
    Scan(Arc<ScanWork>, PageRun),
    Foreign(Mutex<Vec<SendableRecordBatchStream>>),
    Groups(Arc<GroupRows>, AtomicUsize),
    Joined(Arc<JoinParts>),
    Regrouped(Arc<GroupParts>),
    Sorted(Arc<SortedRows>, AtomicUsize),
    /// Merged runs of a sort, all of which one worker reads.
    Merged(Mutex<Option<Box<MergedBatches>>>),
}

/// One worker's reader of a source.
pub(super) enum Batches {
    Scan(Box<ScanBatches>),
    Foreign(Arc<Share>, Option<SendableRecordBatchStream>),
    Groups(Arc<Share>),
    Joined(JoinedBatches),
    Regrouped(RegroupedBatches),
    Sorted(Arc<Share>),
    Merged(Option<Box<MergedBatches>>),
}

impl Run {
    /// Returns the shared source of a pipeline and the number of its workers. With `reuse`, shards whose groups are
    /// cached are not scanned.
    pub(super) fn share(
        &self,
        number: usize,
        source: Source,
        reuse: Option<&Reuse>,
        most: usize,
    ) -> Result<(Share, usize), Ended> {
        let has_top = self.top(number).is_some();
        match source {
            Source::Groups(number) => match self.built(number) {
                Some(Built::Groups(groups)) => {
                    let parts = groups.rows().div_ceil(BATCH_ROWS * 4).clamp(1, most);
                    Ok((Share::Groups(groups, AtomicUsize::new(0)), parts))
                }
                Some(Built::GroupParts(spec, parts)) => {
                    let spills = self.spills_of_sink(number);
                    let parts = GroupParts::new(&self.context, &self.stop, &spec, &parts, spills);
                    let count = parts.len().clamp(1, most);
                    Ok((Share::Regrouped(Arc::new(parts)), count))
                }
                _ => Err(engine::Error::Form("a pipeline reads groups that no pipeline has built").into()),
            },
            Source::Sorted(number) => match self.built(number) {
                Some(Built::Sorted(rows)) => {
                    let parts = rows.rows().div_ceil(BATCH_ROWS * 4).clamp(1, most);
                    Ok((Share::Sorted(rows, AtomicUsize::new(0)), parts))
                }
                Some(Built::Runs(runs)) => {
                    // Files are released as soon as their rows were passed on.
                    self.built.lock()[number] = None;
                    let merged = MergedBatches::new(self.merging(number), runs);
                    Ok((Share::Merged(Mutex::new(Some(Box::new(merged)))), 1))
                }
                _ => Err(engine::Error::Form("a pipeline reads sorted rows that no pipeline has built").into()),
            },
            Source::Input(number) => match &self.lowered.inputs[number] {
                Input::Scan(input) => {
                    let (work, pages) = self.scan(input, scan_of(input)?, has_top, reuse);
                    let parts = pages.part_count().clamp(1, most);
                    Ok((Share::Scan(Arc::new(work), pages), parts))
                }
                Input::Foreign(input) => {
                    let partitions = input.operators.properties().output_partitioning().partition_count();
                    let execute = |number| input.operators.execute(number, Arc::clone(&self.context));
                    let streams = (0..partitions).map(execute);
                    let streams = streams.collect::<DfResult<Vec<_>>>()?;
                    Ok((Share::Foreign(Mutex::new(streams)), partitions.max(1)))
                }
            },
        }
    }

    /// Prepares a scan: hash tables that it probes become key filters, and their bounds prune shards.
    fn scan(
        &self,
        input: &ScanInput,
        scan: &ShardScanExec,
        has_top: bool,
        reuse: Option<&Reuse>,
    ) -> (ScanWork, PageRun) {
        let built = self.built.lock();
        let tables = input.keys.iter().filter_map(|(column, pipeline, key)| match built.get(*pipeline)?.as_ref()? {
            Built::Table(table) => Some((*column, Arc::clone(table), *key)),
            _ => None,
        });
        let texts: Vec<_> = tables.collect();
        let filter = |(column, table, key): &(usize, Arc<JoinTable>, usize)| Some((*column, table.key_filter(*key)?));
        let mut keys: Vec<_> = texts.iter().filter_map(filter).collect();
        let columns = &scan.scan.columns;
        let known = keys.iter().filter(|(_, filter)| !filter.keeps_nulls()).map(|(column, filter)| {
            let (min, max) = filter.bounds();
            let datum = |value: i64| match columns[*column].sql_type.arrow_type() {
                DataType::Decimal128(..) => Datum::Decimal(value.into()),
                _ => Datum::Int(value),
            };
            let test = if min <= max { Test::Between(datum(min), datum(max)) } else { Test::Any(Vec::new()) };
            Predicate { column: columns[*column].id, test }
        });
        let pages = scan.pages(known.collect(), BATCH_ROWS);
        let rows = scan.scan.shards.iter().flat_map(|shard| &shard.meta.row_groups).map(|group| group.rows).sum();
        keys.retain(|(_, filter)| filter.is_worth(rows));
        let pages = if has_top { pages.one_by_one() } else { pages };
        let tells_shards = reuse.is_some();
        let pages = match reuse {
            Some(reuse) => pages.without(|shard| reuse.is_known(shard)),
            None => pages,
        };
        let (filters, wanted) = (input.filters.clone(), input.wanted.clone());
        let (passed, removed) = (AtomicU64::new(0), AtomicU64::new(0));
        let (calls, now) = (Mutex::default(), Arc::clone(&self.now));
        let schema = scan.schema();
        let work = ScanWork { schema, filters, keys, texts, wanted, tells_shards, passed, removed, calls, now };
        (work, pages)
    }
}

fn scan_of(input: &ScanInput) -> Result<&ShardScanExec, Ended> {
    input.scan.downcast_ref::<ShardScanExec>().ok_or_else(|| engine::Error::Form("an input that is no scan").into())
}

impl Batches {
    /// Returns the reader of worker `number`.
    pub(super) fn of(share: &Arc<Share>, number: usize) -> Self {
        match &**share {
            Share::Scan(work, pages) => Self::Scan(Box::new(ScanBatches::new(work, pages.worker(number)))),
            Share::Foreign(_) => Self::Foreign(Arc::clone(share), None),
            Share::Groups(..) => Self::Groups(Arc::clone(share)),
            Share::Joined(parts) => Self::Joined(JoinedBatches::new(parts)),
            Share::Regrouped(parts) => Self::Regrouped(RegroupedBatches::new(parts)),
            Share::Sorted(..) => Self::Sorted(Arc::clone(share)),
            Share::Merged(rows) => Self::Merged(rows.lock().take()),
        }
    }

    /// Returns the next item; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Given>, Ended> {
        match self {
            Self::Scan(batches) => Ok(batches.next().await??),
            Self::Foreign(share, current) => {
                let Share::Foreign(streams) = &**share else { return Ok(None) };
                loop {
                    if current.is_none() {
                        *current = streams.lock().pop();
                    }
                    let Some(stream) = current else { return Ok(None) };
                    match stream.next().await.transpose()? {
                        Some(batch) if batch.num_rows() == 0 => {}
                        Some(batch) => {
                            let columns = columns(&batch, &stream.schema())?;
                            return Ok(Some(Given::Rows(Batch { rows: batch.num_rows(), columns })));
                        }
                        None => *current = None,
                    }
                }
            }
            Self::Groups(share) => {
                let Share::Groups(groups, next) = &**share else { return Ok(None) };
                Ok(groups.batch(next.fetch_add(1, Ordering::Relaxed)).map(Given::Rows))
            }
            Self::Joined(batches) => batches.next().await,
            Self::Regrouped(batches) => batches.next().await,
            Self::Merged(Some(batches)) => batches.next().await,
            Self::Merged(None) => Ok(None),
            Self::Sorted(share) => {
                let Share::Sorted(rows, next) = &**share else { return Ok(None) };
                Ok(rows.batch(next.fetch_add(1, Ordering::Relaxed))?.map(Given::Rows))
            }
        }
    }
}

/// Returns the columns of a batch with the types of `schema`. The batch of a `PlaceholderRowExec` has untyped columns.
fn columns(rows: &RecordBatch, schema: &SchemaRef) -> engine::Result<Vec<Column>> {
    let columns = rows.columns().iter().zip(schema.fields());
    let typed = columns.map(|(column, field)| match column.data_type() {
        DataType::Null => arrow_form::column(&new_null_array(field.data_type(), rows.num_rows())),
        _ => arrow_form::column(column),
    });
    typed.collect()
}

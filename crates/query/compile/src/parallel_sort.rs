//! Sorts the rows of a pipeline in parallel, or collects runs that were spilled.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use engine::pipeline::SinkState;
use engine::sort::{SortCollector, SortSpec, SortedRows, Sorter};

use crate::memory_accounting;
use crate::pipeline_workers::{self, PipelineWorker};
use crate::run_error::RunError;
use crate::run_pipelines::{FragmentRun, PipelineResult};
use crate::spill_execution::{SortedRuns, SpilledRunMerger};

impl FragmentRun {
    /// Sorts the rows of all workers.
    pub(super) async fn sort_rows(
        &self,
        number: usize,
        spec: &Arc<SortSpec>,
        members: Vec<PipelineWorker>,
    ) -> Result<(Option<PipelineResult>, Option<MemoryReservation>), RunError> {
        let whole = memory_accounting::reservation(&self.memory_of_sink(number));
        if !reserve_for_sort(&members, &whole) {
            return Ok((Some(self.spill_sorted(number, spec, members).await?), None));
        }
        let reserve = |bytes| whole.try_resize(bytes).map_err(|_| engine::Error::OutOfMemory("the rows of a sort"));
        let (mut sortings, mut held): (Vec<SortCollector>, Vec<_>) = (Vec::new(), Vec::new());
        for member in members {
            if let SinkState::Sorting(part) = member.worker.into_sink_state() {
                sortings.push(*part);
            }
            held.push(member.resources);
        }
        let sorter = Sorter::new(spec, sortings)?;
        drop(held);
        reserve(sorter.memory_bytes())?;
        let rows = self.sort_in_memory(sorter).await?;
        reserve(rows.memory_bytes())?;
        Ok((Some(PipelineResult::Sorted(Arc::new(rows))), Some(whole)))
    }

    /// Sorts them on disk, as runs.
    async fn spill_sorted(
        &self,
        number: usize,
        spec: &Arc<SortSpec>,
        members: Vec<PipelineWorker>,
    ) -> Result<PipelineResult, RunError> {
        let members = self.spill_all(members).await?;
        let runs = SortedRuns { spec: Arc::clone(spec), runs: members.iter().flat_map(PipelineWorker::runs).collect() };
        tracing::debug!(runs = runs.runs.len(), "the rows of a sort exceeded memory and were spilled as sorted runs");
        self.spills_of_sink(number).add_runs(&runs.runs);
        drop(members);
        Ok(PipelineResult::Runs(if spec.windows.is_some() {
            self.run_merger(number).add_windows(runs).await?
        } else {
            runs
        }))
    }

    /// Returns the merger of a pipeline's runs.
    pub(super) fn run_merger(&self, number: usize) -> SpilledRunMerger {
        SpilledRunMerger::new(&self.context, &self.stop, self.spills_of_sink(number))
    }

    /// Sorts rows in memory: scatters them to buckets by ranges of keys, then sorts the buckets in parallel.
    async fn sort_in_memory(&self, sorter: Sorter) -> Result<SortedRows, RunError> {
        if sorter.keeps_arrival_order() {
            return self.add_windows(sorter.into_sorted(&[])).await;
        }
        let most = self.parallelism();
        let sorter = Arc::new(sorter);
        let scatter = Arc::clone(&sorter);
        let shares = pipeline_workers::run_numbered_tasks(sorter.shares(), most, &self.stop, move |share| {
            scatter.scatter(share)
        })
        .await?;
        let shares = Arc::new(shares);
        let bucket = Arc::clone(&sorter);
        let buckets = pipeline_workers::run_numbered_tasks(sorter.buckets(), most, &self.stop, move |number| {
            bucket.sort_bucket(number, &shares)
        });
        let buckets = buckets.await?;
        let sorter =
            Arc::try_unwrap(sorter).map_err(|_| engine::Error::Internal("a sort is still in use by a task"))?;
        self.add_windows(sorter.into_sorted(&buckets)).await
    }

    /// Adds the columns of window functions.
    async fn add_windows(&self, rows: SortedRows) -> Result<SortedRows, RunError> {
        let (count, most) = (rows.window_shares(), self.parallelism());
        if count == 0 {
            return Ok(rows);
        }
        let rows = Arc::new(rows);
        let read = Arc::clone(&rows);
        let starts =
            pipeline_workers::run_numbered_tasks(count, most, &self.stop, move |share| read.partition_starts(share))
                .await?;
        let starts = rows.concat_starts(&starts.into_iter().collect::<engine::Result<Vec<_>>>()?);
        let read = Arc::clone(&rows);
        let columns = pipeline_workers::run_numbered_tasks(count, most, &self.stop, move |share| {
            read.window_columns(share, &starts)
        })
        .await?;
        let rows =
            Arc::try_unwrap(rows).map_err(|_| engine::Error::Internal("sorted rows are still in use by a task"))?;
        Ok(rows.with_windows(columns.into_iter().collect::<engine::Result<_>>()?)?)
    }

    /// Returns the number of parallel tasks.
    fn parallelism(&self) -> usize {
        self.context.session_config().target_partitions().max(1)
    }
}

/// Reserves the memory for sorting the rows of all workers; `false` if it is too much, or some rows were spilled.
fn reserve_for_sort(members: &[PipelineWorker], whole: &MemoryReservation) -> bool {
    for member in members {
        // Memory for handing over rows is not needed any more.
        let bytes = member.sorting().map_or(0, SortCollector::memory_bytes);
        member.resources.memory.shrink(member.resources.memory.size().saturating_sub(bytes));
    }
    let sortings = || members.iter().filter_map(PipelineWorker::sorting);
    !members.iter().any(PipelineWorker::has_spilled)
        && Sorter::can_sort(sortings().map(SortCollector::rows).sum())
        && whole.try_resize(Sorter::sort_memory_bytes(sortings())).is_ok()
}

//! Sorts the rows of a pipeline in parallel, or collects runs that were spilled.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use engine::pipeline::Collected;
use engine::sort::{SortSpec, SortedRows, Sorter, Sorting};

use crate::ended::Ended;
use crate::memory;
use crate::pipelines::{Built, Run};
use crate::spill::{Merging, Runs};
use crate::workers::{self, Member};

impl Run {
    /// Sorts the rows of all workers.
    pub(super) async fn in_order(
        &self,
        number: usize,
        spec: &Arc<SortSpec>,
        members: Vec<Member>,
    ) -> Result<(Option<Built>, Option<MemoryReservation>), Ended> {
        let whole = memory::reservation(&self.memory_of_sink(number));
        if !has_room(&members, &whole) {
            return Ok((Some(self.in_runs(number, spec, members).await?), None));
        }
        let reserve = |bytes| whole.try_resize(bytes).map_err(|_| engine::Error::Memory("a sort"));
        let (mut sortings, mut held): (Vec<Sorting>, Vec<_>) = (Vec::new(), Vec::new());
        for member in members {
            if let Collected::Sorting(part) = member.worker.finish() {
                sortings.push(*part);
            }
            held.push(member.own);
        }
        let sorter = Sorter::new(spec, sortings)?;
        drop(held);
        reserve(sorter.memory_bytes())?;
        let rows = self.sorted(sorter).await?;
        reserve(rows.memory_bytes())?;
        Ok((Some(Built::Sorted(Arc::new(rows))), Some(whole)))
    }

    /// Sorts them on disk, as runs.
    async fn in_runs(&self, number: usize, spec: &Arc<SortSpec>, members: Vec<Member>) -> Result<Built, Ended> {
        let members = self.spilled(members).await?;
        let runs = Runs { spec: Arc::clone(spec), runs: members.iter().flat_map(Member::runs).collect() };
        tracing::debug!(runs = runs.runs.len(), "rows have no room in memory to be sorted: they were spilled as runs");
        self.spills_of_sink(number).add_runs(&runs.runs);
        drop(members);
        Ok(Built::Runs(if spec.windows.is_some() { self.merging(number).with_windows(runs).await? } else { runs }))
    }

    /// Returns the merger of a pipeline's runs.
    pub(super) fn merging(&self, number: usize) -> Merging {
        Merging::new(&self.context, &self.stop, self.spills_of_sink(number))
    }

    /// Sorts rows in memory: scatters them to buckets by ranges of keys, then sorts the buckets in parallel.
    async fn sorted(&self, sorter: Sorter) -> Result<SortedRows, Ended> {
        if sorter.is_in_order() {
            return self.windowed(sorter.in_order(&[])).await;
        }
        let most = self.most();
        let sorter = Arc::new(sorter);
        let scatter = Arc::clone(&sorter);
        let shares = workers::all(sorter.shares(), most, &self.stop, move |share| scatter.scatter(share)).await?;
        let shares = Arc::new(shares);
        let bucket = Arc::clone(&sorter);
        let buckets = workers::all(sorter.buckets(), most, &self.stop, move |number| bucket.bucket(number, &shares));
        let buckets = buckets.await?;
        let sorter = Arc::try_unwrap(sorter).map_err(|_| engine::Error::Form("a sort is still in use by a task"))?;
        self.windowed(sorter.in_order(&buckets)).await
    }

    /// Adds the columns of window functions.
    async fn windowed(&self, rows: SortedRows) -> Result<SortedRows, Ended> {
        let (count, most) = (rows.shares(), self.most());
        if count == 0 {
            return Ok(rows);
        }
        let rows = Arc::new(rows);
        let read = Arc::clone(&rows);
        let starts = workers::all(count, most, &self.stop, move |share| read.partition_starts(share)).await?;
        let starts = rows.all_starts(&starts.into_iter().collect::<engine::Result<Vec<_>>>()?);
        let read = Arc::clone(&rows);
        let columns = workers::all(count, most, &self.stop, move |share| read.window_columns(share, &starts)).await?;
        let rows = Arc::try_unwrap(rows).map_err(|_| engine::Error::Form("sorted rows are still in use by a task"))?;
        Ok(rows.with_windows(columns.into_iter().collect::<engine::Result<_>>()?)?)
    }

    /// Returns the number of parallel tasks.
    fn most(&self) -> usize {
        self.context.session_config().target_partitions().max(1)
    }
}

/// Reserves the memory for sorting the rows of all workers; `false` if it is too much, or some rows were spilled.
fn has_room(members: &[Member], whole: &MemoryReservation) -> bool {
    for member in members {
        // Memory for handing over rows is not needed any more.
        let bytes = member.sorting().map_or(0, Sorting::memory_bytes);
        member.own.held.shrink(member.own.held.size().saturating_sub(bytes));
    }
    let sortings = || members.iter().filter_map(Member::sorting);
    !members.iter().any(Member::has_spilled)
        && Sorter::can_have(sortings().map(Sorting::rows).sum())
        && whole.try_resize(Sorter::room_bytes(sortings())).is_ok()
}

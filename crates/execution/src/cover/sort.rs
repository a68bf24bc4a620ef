//! Sorts what a pipeline has collected, several threads together.

use std::sync::Arc;

use engine::sort::{SortedRows, Sorter};

use super::pipelines::Run;
use super::run::Ended;
use super::workers;

impl Run {
    pub(super) async fn sorted(&self, sorter: Sorter) -> Result<SortedRows, Ended> {
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
        let sorter = Arc::try_unwrap(sorter).map_err(|_| engine::Error::Form("rows that are still being sorted"))?;
        self.windowed(sorter.in_order(&buckets)).await
    }

    /// With what window functions compute of them.
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
        let rows = Arc::try_unwrap(rows).map_err(|_| engine::Error::Form("rows that are still being read"))?;
        Ok(rows.with_windows(columns.into_iter().collect::<engine::Result<_>>()?)?)
    }

    /// How many tasks run side by side.
    fn most(&self) -> usize {
        self.context.session_config().target_partitions().max(1)
    }
}

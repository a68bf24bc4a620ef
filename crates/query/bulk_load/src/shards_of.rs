//! Cuts one stream of rows into shards, each with a contiguous range of the stream.

use std::sync::Arc;

use arrow::array::RecordBatch;
use scheduler::beside;
use shards::{BucketRuns, ShardMeta, ShardWriter};
use storage_error::from_shards;
use tokio_util::task::AbortOnDropHandle;
use types::{SqlError, SqlResult};

use super::load::{Load, Portion};

/// Rows that are buffered before a stream starts a shard of its own; more if more may be staged as fresh rows.
const HELD_ROWS_MAX: usize = 65_536;
/// Bytes of buffered rows at which a stream starts a shard earlier, per [`HELD_ROWS_MAX`] rows.
const HELD_BYTES_MAX: usize = 16 << 20;

/// Bytes from which a shard ends at the end of a bucket.
///
/// A shard with one bucket is read by one worker. Smaller shards span buckets, because there are many of these;
/// compaction merges them.
pub const SMALL_BUCKET_BYTES: u64 = 4 << 20;

/// Writer that cuts one stream of rows into shards.
pub struct ShardsOf {
    load: Arc<Load>,
    /// Buffered first rows, while they are too few for a shard.
    held: Vec<RecordBatch>,
    held_rows: usize,
    held_bytes: usize,
    /// True if first rows are buffered.
    holds: bool,
    /// Shard that is being written.
    open: Option<ShardWriter>,
    /// Buckets of the open shard's rows, in order.
    runs: BucketRuns,
    /// Full shard that is being uploaded while the next one fills.
    ending: Option<AbortOnDropHandle<Result<ShardMeta, shards::Error>>>,
    done: Vec<Arc<ShardMeta>>,
}

impl ShardsOf {
    /// Creates a writer for one of several streams, which returns its rows unwritten if they are too few for a shard.
    pub(super) fn stream(load: Arc<Load>) -> Self {
        Self {
            load,
            held: Vec::new(),
            held_rows: 0,
            held_bytes: 0,
            holds: true,
            open: None,
            runs: BucketRuns::default(),
            ending: None,
            done: Vec::new(),
        }
    }

    /// Creates a writer that makes a shard of any number of rows, such as those that the streams returned unwritten.
    pub fn rest(load: Arc<Load>) -> Self {
        Self { holds: false, ..Self::stream(load) }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn push(&mut self, batch: RecordBatch) -> SqlResult<()> {
        if self.holds && self.open.is_none() {
            self.held_rows += batch.num_rows();
            self.held_bytes += batch.get_array_memory_size();
            self.held.push(batch);
            let (rows_max, bytes_max) = held_max(self.load.fresh_rows_max);
            if rows_max <= self.held_rows || bytes_max <= self.held_bytes {
                (self.held_rows, self.held_bytes) = (0, 0);
                for batch in std::mem::take(&mut self.held) {
                    self.write(&batch).await?;
                }
            }
            return Ok(());
        }
        self.write(&batch).await
    }

    /// Ends the stream and returns its shards and unwritten rows.
    pub async fn finish(mut self) -> SqlResult<Portion> {
        self.end_shard().await?;
        self.join().await?;
        Ok(Portion { shards: self.done, held: self.held })
    }

    /// Writes rows to the open shard, which ends at the end of a bucket unless it is small.
    ///
    /// A shard with one bucket is read by one worker, and its rows may be in the table's order.
    async fn write(&mut self, batch: &RecordBatch) -> SqlResult<()> {
        let Some(bucketing) = &self.load.bucketing else { return self.write_to_open(batch).await };
        let buckets = bucketing.buckets(batch)?;
        let (mut start, mut end) = (0, 0);
        for run in buckets.chunk_by(|one, other| one == other) {
            let is_next = self.runs.last().is_some_and(|last| last != run[0]);
            if is_next && self.open.as_ref().is_some_and(|shard| SMALL_BUCKET_BYTES <= shard.bytes()) {
                self.write_to_open(&batch.slice(start, end - start)).await?;
                self.end_shard().await?;
                start = end;
            }
            self.runs.add(run);
            end += run.len();
        }
        self.write_to_open(&batch.slice(start, end - start)).await
    }

    async fn write_to_open(&mut self, batch: &RecordBatch) -> SqlResult<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let shard = match &mut self.open {
            Some(shard) => shard,
            none => none.insert(self.load.create_shard().await?),
        };
        shard.write(batch).await.map_err(from_shards)?;
        if self.load.shard_bytes <= shard.bytes() {
            self.end_shard().await?;
        }
        Ok(())
    }

    /// Finishes the open shard in the background, after waiting for the previous one.
    async fn end_shard(&mut self) -> SqlResult<()> {
        let Some(shard) = self.open.take() else { return Ok(()) };
        self.join().await?;
        let runs = std::mem::take(&mut self.runs);
        let buckets = self.load.bucketing.as_ref().and_then(|bucketing| runs.finish(&bucketing.keys));
        let ending = async move { Ok(ShardMeta { buckets, ..shard.finish().await? }) };
        self.ending = Some(AbortOnDropHandle::new(tokio::spawn(beside(ending))));
        Ok(())
    }

    async fn join(&mut self) -> SqlResult<()> {
        if let Some(ending) = self.ending.take() {
            let ended = ending.await.map_err(|error| SqlError::internal(format!("finishing a shard: {error}")))?;
            self.done.push(Arc::new(ended.map_err(from_shards)?));
        }
        Ok(())
    }
}

/// Returns the rows and bytes at which buffering ends.
fn held_max(fresh_rows_max: usize) -> (usize, usize) {
    let rows = HELD_ROWS_MAX.max(fresh_rows_max.saturating_add(1));
    (rows, HELD_BYTES_MAX.saturating_mul(rows.div_ceil(HELD_ROWS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_are_held_as_may_be_fresh() {
        assert_eq!(held_max(10_000), (HELD_ROWS_MAX, HELD_BYTES_MAX));
        assert_eq!(held_max(HELD_ROWS_MAX), (HELD_ROWS_MAX + 1, 2 * HELD_BYTES_MAX));
        assert_eq!(held_max(1_000_000), (1_000_001, 16 * HELD_BYTES_MAX));
        assert_eq!(held_max(usize::MAX).0, usize::MAX);
    }
}

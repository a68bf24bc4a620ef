//! Cuts one stream of rows into shards, each with a contiguous range of the stream.

use std::sync::Arc;

use arrow::array::RecordBatch;
use scheduler::in_same_query;
use shards::{BucketRunsBuilder, ShardMeta, ShardWriter};
use storage_error::from_shards;
use tokio_util::task::AbortOnDropHandle;
use types::{SqlError, SqlResult};

use super::load::{Load, StreamResult};

/// Rows that are buffered before a stream starts a shard of its own; more if more may be staged as fresh rows.
const BUFFERED_ROWS_MAX: usize = 65_536;
/// Bytes of buffered rows at which a stream starts a shard earlier, per [`BUFFERED_ROWS_MAX`] rows.
const BUFFERED_BYTES_MAX: usize = 16 << 20;

/// Bytes from which a shard ends at the end of a bucket.
///
/// A shard with one bucket is read by one worker. Smaller shards span buckets, because there are many of these;
/// compaction merges them.
pub const BUCKET_SHARD_BYTES_MIN: u64 = 4 << 20;

/// Writer that cuts one stream of rows into shards.
pub struct ShardSplitter {
    load: Arc<Load>,
    /// Buffered first rows, while they are too few for a shard.
    buffered: Vec<RecordBatch>,
    buffered_rows: usize,
    buffered_bytes: usize,
    /// True if first rows are buffered.
    buffers_first_rows: bool,
    /// Shard that is being written.
    open_shard: Option<ShardWriter>,
    /// Buckets of the open shard's rows, in order.
    bucket_runs: BucketRunsBuilder,
    /// Full shard that is being uploaded while the next one fills.
    finishing_shard: Option<AbortOnDropHandle<Result<ShardMeta, shards::Error>>>,
    finished_shards: Vec<Arc<ShardMeta>>,
}

impl ShardSplitter {
    /// Creates a writer for one of several streams, which returns its rows unwritten if they are too few for a shard.
    pub(super) fn for_stream(load: Arc<Load>) -> Self {
        Self {
            load,
            buffered: Vec::new(),
            buffered_rows: 0,
            buffered_bytes: 0,
            buffers_first_rows: true,
            open_shard: None,
            bucket_runs: BucketRunsBuilder::default(),
            finishing_shard: None,
            finished_shards: Vec::new(),
        }
    }

    /// Creates a writer that makes a shard of any number of rows, such as those that the streams returned unwritten.
    pub fn for_all_rows(load: Arc<Load>) -> Self {
        Self { buffers_first_rows: false, ..Self::for_stream(load) }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn push(&mut self, batch: RecordBatch) -> SqlResult<()> {
        if self.buffers_first_rows && self.open_shard.is_none() {
            self.buffered_rows += batch.num_rows();
            self.buffered_bytes += batch.get_array_memory_size();
            self.buffered.push(batch);
            let (rows_max, bytes_max) = buffer_limits(self.load.fresh_rows_max);
            if rows_max <= self.buffered_rows || bytes_max <= self.buffered_bytes {
                (self.buffered_rows, self.buffered_bytes) = (0, 0);
                for batch in std::mem::take(&mut self.buffered) {
                    self.write(&batch).await?;
                }
            }
            return Ok(());
        }
        self.write(&batch).await
    }

    /// Ends the stream and returns its shards and unwritten rows.
    pub async fn finish(mut self) -> SqlResult<StreamResult> {
        self.end_shard().await?;
        self.wait_for_upload().await?;
        Ok(StreamResult { shards: self.finished_shards, unwritten: self.buffered })
    }

    /// Writes rows to the open shard, which ends at the end of a bucket unless it is small.
    ///
    /// A shard with one bucket is read by one worker, and its rows may be in the table's order.
    async fn write(&mut self, batch: &RecordBatch) -> SqlResult<()> {
        let Some(bucketing) = &self.load.bucketing else { return self.write_to_open(batch).await };
        let buckets = bucketing.assign_buckets(batch)?;
        let (mut start, mut end) = (0, 0);
        for run in buckets.chunk_by(|one, other| one == other) {
            let is_next = self.bucket_runs.last().is_some_and(|last| last != run[0]);
            if is_next && self.open_shard.as_ref().is_some_and(|shard| BUCKET_SHARD_BYTES_MIN <= shard.bytes()) {
                self.write_to_open(&batch.slice(start, end - start)).await?;
                self.end_shard().await?;
                start = end;
            }
            self.bucket_runs.add(run);
            end += run.len();
        }
        self.write_to_open(&batch.slice(start, end - start)).await
    }

    async fn write_to_open(&mut self, batch: &RecordBatch) -> SqlResult<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let shard = match &mut self.open_shard {
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
        let Some(shard) = self.open_shard.take() else { return Ok(()) };
        self.wait_for_upload().await?;
        let runs = std::mem::take(&mut self.bucket_runs);
        let buckets = self.load.bucketing.as_ref().and_then(|bucketing| runs.finish(&bucketing.keys));
        let ending = async move { Ok(ShardMeta { buckets, ..shard.finish().await? }) };
        self.finishing_shard = Some(AbortOnDropHandle::new(tokio::spawn(in_same_query(ending))));
        Ok(())
    }

    async fn wait_for_upload(&mut self) -> SqlResult<()> {
        if let Some(ending) = self.finishing_shard.take() {
            let ended = ending.await.map_err(|error| {
                SqlError::internal(format!("the task that finishes and uploads a shard failed: {error}"))
            })?;
            self.finished_shards.push(Arc::new(ended.map_err(from_shards)?));
        }
        Ok(())
    }
}

/// Returns the rows and bytes at which buffering ends.
fn buffer_limits(fresh_rows_max: usize) -> (usize, usize) {
    let rows = BUFFERED_ROWS_MAX.max(fresh_rows_max.saturating_add(1));
    (rows, BUFFERED_BYTES_MAX.saturating_mul(rows.div_ceil(BUFFERED_ROWS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_are_held_as_may_be_fresh() {
        assert_eq!(buffer_limits(10_000), (BUFFERED_ROWS_MAX, BUFFERED_BYTES_MAX));
        assert_eq!(buffer_limits(BUFFERED_ROWS_MAX), (BUFFERED_ROWS_MAX + 1, 2 * BUFFERED_BYTES_MAX));
        assert_eq!(buffer_limits(1_000_000), (1_000_001, 16 * BUFFERED_BYTES_MAX));
        assert_eq!(buffer_limits(usize::MAX).0, usize::MAX);
    }
}

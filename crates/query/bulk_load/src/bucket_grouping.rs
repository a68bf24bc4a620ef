//! Groups the rows of a load by bucket without sorting, in rounds of as many rows as fit memory.
//!
//! Within a round, the rows of a bucket keep their order of arrival.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use datafusion::common::Result as DfResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use functions::error::{from_datafusion, to_datafusion};
use futures::{StreamExt, stream};
use scan::{BucketAssigner, row_bytes};
use shards::BUCKET_COUNT;
use types::SqlResult;

use super::hilbert_order::SingleUseStream;

/// Divisor of the query's memory: all streams of a load together use a third of it.
const MEMORY_DIVISOR: usize = 3;
/// Minimum bytes of a round, however little memory is left: a shard with few rows of many buckets is of little use.
const ROUND_BYTES_MIN: usize = 64 << 20;
/// Approximate rows of an output batch.
const BATCH_ROWS: usize = 8_192;

/// Executes `rows` and groups each of its streams by bucket, in rounds.
pub(super) fn plan_bucket_grouping(
    rows: Arc<dyn ExecutionPlan>,
    bucketing: BucketAssigner,
    task: &Arc<TaskContext>,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    let inputs = execute_stream_partitioned(rows, Arc::clone(task)).map_err(from_datafusion)?;
    let bytes_max = match task.memory_pool().memory_limit() {
        MemoryLimit::Finite(all) => all / MEMORY_DIVISOR / inputs.len().max(1),
        _ => usize::MAX,
    };
    let bucketing = Arc::new(bucketing);
    let leaf = |input: SendableRecordBatchStream| -> Arc<dyn PartitionStream> {
        let rounds =
            BucketGrouping::new(input, Arc::clone(&bucketing), task.memory_pool(), bytes_max.max(ROUND_BYTES_MIN));
        let rounds =
            stream::try_unfold(rounds, async |mut rounds| Ok(rounds.next().await?.map(|batch| (batch, rounds))));
        Arc::new(SingleUseStream::new(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rounds))))
    };
    let leaves = inputs.into_iter().map(leaf).collect();
    let leaf = StreamingTableExec::try_new(schema, leaves, None, [], false, None);
    Ok(Arc::new(leaf.map_err(from_datafusion)?))
}

/// State of grouping one stream.
struct BucketGrouping {
    input: Option<SendableRecordBatchStream>,
    bucketing: Arc<BucketAssigner>,
    bytes_max: usize,
    memory: MemoryReservation,
    /// Batch that did not fit the previous round.
    next: Option<RecordBatch>,
    round: Vec<GroupedBatch>,
    /// Output that remains of the round: buckets, each with the index of the first batch not yet read for it.
    pending: VecDeque<(usize, usize)>,
}

/// Batch with its row indices grouped by bucket.
struct GroupedBatch {
    batch: RecordBatch,
    /// Row indices, bucket by bucket.
    rows: Vec<usize>,
    /// End of each bucket in `rows`.
    ends: [usize; BUCKET_COUNT],
}

impl BucketGrouping {
    fn new(
        input: SendableRecordBatchStream,
        bucketing: Arc<BucketAssigner>,
        memory: &Arc<dyn MemoryPool>,
        bytes_max: usize,
    ) -> Self {
        let memory = MemoryConsumer::new("rows of a load, by bucket").register(memory);
        let (next, round, left) = (None, Vec::new(), VecDeque::new());
        Self { input: Some(input), bucketing, bytes_max, memory, next, round, pending: left }
    }

    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.next_output()? {
                return Ok(Some(batch));
            }
            self.round.clear();
            self.memory.free();
            self.collect_round().await?;
            if self.round.is_empty() {
                return Ok(None);
            }
            self.pending = (0..BUCKET_COUNT).map(|bucket| (bucket, 0)).collect();
        }
    }

    /// Collects the next round: reads batches until memory is used up or the input ends.
    async fn collect_round(&mut self) -> DfResult<()> {
        let Some(mut input) = self.input.take() else { return Ok(()) };
        loop {
            let batch = match self.next.take() {
                Some(batch) => batch,
                None => match input.next().await {
                    Some(batch) => batch?,
                    None => return Ok(()),
                },
            };
            let bytes = row_bytes(&batch) + batch.num_rows() * size_of::<usize>();
            let wanted = self.memory.size() + bytes;
            if wanted <= ROUND_BYTES_MIN {
                self.memory.grow(bytes);
            } else if self.bytes_max < wanted || self.memory.try_grow(bytes).is_err() {
                if !self.round.is_empty() {
                    (self.next, self.input) = (Some(batch), Some(input));
                    return Ok(());
                }
                // The batch is in memory already, and a round needs at least one.
                self.memory.grow(bytes);
            }
            let buckets = self.bucketing.assign_buckets(&batch).map_err(to_datafusion)?;
            self.round.push(GroupedBatch::new(batch, &buckets));
        }
    }

    /// Returns the next rows of the round, all of one bucket.
    fn next_output(&mut self) -> DfResult<Option<RecordBatch>> {
        while let Some((bucket, first)) = self.pending.front_mut() {
            let (mut batches, mut rows) = (Vec::new(), Vec::new());
            while let Some(source) = self.round.get(*first)
                && rows.len() < BATCH_ROWS
            {
                let own = source.rows_of(*bucket);
                if !own.is_empty() {
                    rows.extend(own.iter().map(|row| (batches.len(), *row)));
                    batches.push(&source.batch);
                }
                *first += 1;
            }
            if *first == self.round.len() {
                self.pending.pop_front();
            }
            if !rows.is_empty() {
                return Ok(Some(interleave_record_batch(&batches, &rows)?));
            }
        }
        Ok(None)
    }
}

impl GroupedBatch {
    fn new(batch: RecordBatch, buckets: &[u8]) -> Self {
        let mut ends = [0; BUCKET_COUNT];
        buckets.iter().for_each(|bucket| ends[usize::from(*bucket)] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut rows = vec![0; buckets.len()];
        for (row, bucket) in buckets.iter().enumerate() {
            let place = &mut ends[usize::from(*bucket)];
            rows[*place] = row;
            *place += 1;
        }
        Self { batch, rows, ends }
    }

    /// Returns the row indices of a bucket, ascending.
    fn rows_of(&self, bucket: usize) -> &[usize] {
        let start = bucket.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[start..self.ends[bucket]]
    }
}

#[cfg(test)]
mod tests;

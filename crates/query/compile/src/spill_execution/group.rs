//! Merges spilled groups partition by partition.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use engine::aggregate::{AggregateSpec, GroupRows, Groups};
use engine::spill::HashPartitioning;
use parking_lot::Mutex;

use super::partition_memory::{PartitionMemory, SharedMemory};
use super::{SpillPartition, SpillPartitions, Spiller};
use crate::explain_metrics::SpillMetrics;
use crate::memory_accounting;
use crate::run_error::RunError;
use crate::scan_reader::SourceItem;

/// Partitions of spilled groups, shared by the workers that read them.
pub(crate) struct SpilledGroups {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    /// Specification that merges the spilled states.
    spec: Arc<AggregateSpec>,
    pending_partitions: Mutex<Vec<(SpillPartition, HashPartitioning)>>,
    shared_memory: Arc<SharedMemory>,
    spills: SpillMetrics,
}

/// One worker's reader of the partitions.
pub(crate) struct SpilledGroupReader {
    shared: Arc<SpilledGroups>,
    current: Option<(GroupRows, usize, PartitionMemory)>,
}

/// Returns the partitioning of spilled groups.
pub(crate) fn group_partitioning(spec: &AggregateSpec) -> HashPartitioning {
    HashPartitioning { keys: spec.merge_spec().keys, nulls_are_equal: true, level: 0 }
}

impl SpilledGroups {
    /// Returns the partitions of groups by `spec`.
    pub(crate) fn new(
        context: &Arc<TaskContext>,
        stop: &Arc<AtomicBool>,
        spec: &AggregateSpec,
        parts: &SpillPartitions,
        spills: SpillMetrics,
    ) -> Self {
        spills.add(parts);
        let parting = group_partitioning(spec);
        let there = parts.parts.iter().filter(|part| part.rows != 0);
        Self {
            context: Arc::clone(context),
            stop: Arc::clone(stop),
            spec: Arc::new(spec.merge_spec()),
            pending_partitions: Mutex::new(there.map(|part| (part.clone(), parting.clone())).collect()),
            shared_memory: Arc::default(),
            spills,
        }
    }

    /// Returns the number of partitions to process.
    pub(crate) fn len(&self) -> usize {
        self.pending_partitions.lock().len()
    }
}

impl SpilledGroupReader {
    pub(crate) fn new(shared: &Arc<SpilledGroups>) -> Self {
        Self { shared: Arc::clone(shared), current: None }
    }

    /// Returns the next groups; `None` after the last partition.
    pub(crate) async fn next(&mut self) -> Result<Option<SourceItem>, RunError> {
        loop {
            if let Some((rows, next, _)) = &mut self.current {
                *next += 1;
                if let Some(batch) = rows.batch(*next - 1) {
                    return Ok(Some(SourceItem::Rows(batch)));
                }
                self.current = None;
            }
            let part = self.shared.pending_partitions.lock().pop();
            let Some((part, parting)) = part else { return Ok(None) };
            self.current = self.group(part, &parting).await?;
        }
    }

    /// Merges the groups of a partition; `None` if it was partitioned further.
    async fn group(
        &self,
        part: SpillPartition,
        parting: &HashPartitioning,
    ) -> Result<Option<(GroupRows, usize, PartitionMemory)>, RunError> {
        let shared = &self.shared;
        let memory = shared.spills.memory(&shared.context);
        let mut room = shared.shared_memory.new_member(memory_accounting::reservation(&memory));
        let mut groups = Groups::new(&shared.spec);
        let mut pieces = part.blocks.into_iter();
        while let Some(piece) = pieces.next() {
            groups.add(&piece.read()?)?;
            // The rows of the groups need room beside the groups.
            if room.reserve(groups.memory_bytes() * 2).await {
                tokio::task::yield_now().await;
                continue;
            }
            let finer = parting.next_level().ok_or(engine::Error::OutOfMemory("the groups of an aggregation"))?;
            let mut spiller = Spiller::new(&shared.context, &memory, &shared.stop, finer.clone(), 1);
            groups.drain(&mut |batch| spiller.push(&batch))?;
            room.clear();
            for piece in pieces {
                spiller.push(&piece.read()?)?;
                tokio::task::yield_now().await;
            }
            let parts = spiller.finish()?;
            shared.spills.add(&parts);
            let there = parts.parts.into_iter().filter(|part| part.rows != 0);
            shared.pending_partitions.lock().extend(there.map(|part| (part, finer.clone())));
            return Ok(None);
        }
        let rows = groups.finish()?;
        room.resize(rows.memory_bytes());
        Ok(Some((rows, 0, room)))
    }
}

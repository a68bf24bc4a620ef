//! Merges spilled groups partition by partition.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use engine::aggregate::{AggregateSpec, GroupRows, Groups};
use engine::spill::Parting;
use parking_lot::Mutex;

use super::room::{Room, Rooms};
use super::{Part, Parts, Spiller};
use crate::ended::Ended;
use crate::measure::Spills;
use crate::memory;
use crate::source::Given;

/// Partitions of spilled groups, shared by the workers that read them.
pub(crate) struct GroupParts {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    /// Specification that merges the spilled states.
    spec: Arc<AggregateSpec>,
    open: Mutex<Vec<(Part, Parting)>>,
    rooms: Arc<Rooms>,
    spills: Spills,
}

/// One worker's reader of the partitions.
pub(crate) struct RegroupedBatches {
    shared: Arc<GroupParts>,
    current: Option<(GroupRows, usize, Room)>,
}

/// Returns the partitioning of spilled groups.
pub(crate) fn parting(spec: &AggregateSpec) -> Parting {
    Parting { keys: spec.of_partial().keys, nulls_are_equal: true, level: 0 }
}

impl GroupParts {
    /// Returns the partitions of groups by `spec`.
    pub(crate) fn new(
        context: &Arc<TaskContext>,
        stop: &Arc<AtomicBool>,
        spec: &AggregateSpec,
        parts: &Parts,
        spills: Spills,
    ) -> Self {
        spills.add(parts);
        let parting = parting(spec);
        let there = parts.parts.iter().filter(|part| part.rows != 0);
        Self {
            context: Arc::clone(context),
            stop: Arc::clone(stop),
            spec: Arc::new(spec.of_partial()),
            open: Mutex::new(there.map(|part| (part.clone(), parting.clone())).collect()),
            rooms: Arc::default(),
            spills,
        }
    }

    /// Returns the number of partitions to process.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }
}

impl RegroupedBatches {
    pub(crate) fn new(shared: &Arc<GroupParts>) -> Self {
        Self { shared: Arc::clone(shared), current: None }
    }

    /// Returns the next groups; `None` after the last partition.
    pub(crate) async fn next(&mut self) -> Result<Option<Given>, Ended> {
        loop {
            if let Some((rows, next, _)) = &mut self.current {
                *next += 1;
                if let Some(batch) = rows.batch(*next - 1) {
                    return Ok(Some(Given::Rows(batch)));
                }
                self.current = None;
            }
            let part = self.shared.open.lock().pop();
            let Some((part, parting)) = part else { return Ok(None) };
            self.current = self.group(part, &parting).await?;
        }
    }

    /// Merges the groups of a partition; `None` if it was partitioned further.
    async fn group(&self, part: Part, parting: &Parting) -> Result<Option<(GroupRows, usize, Room)>, Ended> {
        let shared = &self.shared;
        let memory = shared.spills.memory(&shared.context);
        let mut room = shared.rooms.room(memory::reservation(&memory));
        let mut groups = Groups::new(&shared.spec);
        let mut pieces = part.pieces.into_iter();
        while let Some(piece) = pieces.next() {
            groups.add(&piece.read()?)?;
            // The rows of the groups need room beside the groups.
            if room.has(groups.memory_bytes() * 2).await {
                tokio::task::yield_now().await;
                continue;
            }
            let finer = parting.finer().ok_or(engine::Error::Memory("groups"))?;
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
            shared.open.lock().extend(there.map(|part| (part, finer.clone())));
            return Ok(None);
        }
        let rows = groups.finish()?;
        room.resize(rows.memory_bytes());
        Ok(Some((rows, 0, room)))
    }
}

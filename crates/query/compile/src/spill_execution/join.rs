//! Hash join on disk: partition by partition, the hash table is built from the build side and probed by the probe side.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use engine::Batch;
use engine::join::{BuildCollector, JoinHashTable, JoinKind, JoinSpec, ProbeMatches};
use engine::pipeline::BuildChunkPosition;
use engine::spill::HashPartitioning;
use parking_lot::Mutex;

use super::partition_memory::{PartitionMemory, SharedMemory};
use super::spill_file::SpillBlock;
use super::{SpillPartition, SpillPartitions, Spiller};
use crate::explain_metrics::SpillMetrics;
use crate::memory_accounting;
use crate::run_error::RunError;
use crate::scan_reader::SourceItem;

/// Partitions of a join, shared by the workers.
pub(crate) struct SpilledJoin {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    spec: Arc<JoinSpec>,
    /// Hash table without rows.
    empty_table: Arc<JoinHashTable>,
    /// True if the probe side has rows in any partition.
    has_probe_rows: bool,
    pending_partitions: Mutex<Vec<JoinPartition>>,
    shared_memory: Arc<SharedMemory>,
    spills: SpillMetrics,
}

/// The same partition of both sides.
struct JoinPartition {
    build: SpillPartition,
    probe: SpillPartition,
    /// Current partitioning; `None` if further partitioning is of no use.
    partitioning: Option<HashPartitioning>,
    /// Matches so far, if the build side is processed in several chunks.
    matches: Option<ChunkMatches>,
}

/// Matches that the probe rows of a partition found in earlier chunks of the build side.
struct ChunkMatches {
    /// Matches by probe-side piece, created when a piece is first read.
    by_probe_block: Vec<Arc<ProbeMatches>>,
    pass: BuildChunkPosition,
}

/// One worker's reader of the partitions.
pub(crate) struct SpilledJoinReader {
    shared: Arc<SpilledJoin>,
    current: Option<OpenPartition>,
    memory: PartitionMemory,
}

/// Partition whose hash table is built.
struct OpenPartition {
    probe: SpillPartition,
    next: usize,
    has_ended: bool,
    /// Build rows for which there was no memory yet.
    remaining_build: Vec<SpillBlock>,
    /// Matches, if they are needed for the remaining chunks.
    matches: Option<ChunkMatches>,
}

/// Returns the partitioning of the build side and the matching one of the probe side.
pub(crate) fn join_partitionings(spec: &JoinSpec) -> (HashPartitioning, HashPartitioning) {
    let of = |keys: Vec<usize>| HashPartitioning { keys, nulls_are_equal: spec.nulls_are_equal, level: 0 };
    (of(spec.keys.iter().map(|(build, _)| *build).collect()), of(spec.keys.iter().map(|(_, probe)| *probe).collect()))
}

impl SpilledJoin {
    pub(crate) fn new(
        context: &Arc<TaskContext>,
        stop: &Arc<AtomicBool>,
        spec: &Arc<JoinSpec>,
        (build, probe): (&SpillPartitions, SpillPartitions),
        spills: SpillMetrics,
    ) -> engine::Result<Self> {
        spills.add(build);
        spills.add(&probe);
        let parting = join_partitionings(spec).0;
        let has_probe_rows = probe.has_rows();
        let gives_nothing = spec.kind == JoinKind::LeftNotIn && probe.has_null_keys;
        let mut open = partition_pairs(spec.kind, build.parts.iter().cloned(), probe, Some(&parting));
        if gives_nothing {
            open.clear();
        }
        Ok(Self {
            context: Arc::clone(context),
            stop: Arc::clone(stop),
            empty_table: Arc::new(empty_table(spec)?),
            has_probe_rows,
            spec: Arc::clone(spec),
            pending_partitions: Mutex::new(open),
            shared_memory: Arc::default(),
            spills,
        })
    }

    /// Returns the number of partitions to process.
    pub(crate) fn len(&self) -> usize {
        self.pending_partitions.lock().len()
    }

    /// Partitions a partition further, by more bits of its key hashes.
    async fn repartition(&self, part: JoinPartition, finer: &HashPartitioning) -> Result<(), RunError> {
        let (_, probe_keys) = join_partitionings(&self.spec);
        let divided = async |side: SpillPartition, parting: HashPartitioning| {
            let memory = self.spills.memory(&self.context);
            let mut spiller = Spiller::new(&self.context, &memory, &self.stop, parting, 1);
            for piece in side.blocks {
                spiller.push(&piece.read()?)?;
                tokio::task::yield_now().await;
            }
            let parts = spiller.finish()?;
            self.spills.add(&parts);
            Ok::<SpillPartitions, RunError>(parts)
        };
        let rows = part.build.rows;
        let probe = divided(part.probe, HashPartitioning { level: finer.level, ..probe_keys }).await?;
        let build = divided(part.build, finer.clone()).await?;
        // Rows that stay together have the same key.
        let is_of_use = build.parts.iter().all(|part| part.rows < rows);
        let parts = partition_pairs(self.spec.kind, build.parts.into_iter(), probe, is_of_use.then_some(finer));
        self.pending_partitions.lock().extend(parts);
        Ok(())
    }
}

/// Returns a hash table without rows.
pub(crate) fn empty_table(spec: &Arc<JoinSpec>) -> engine::Result<JoinHashTable> {
    JoinHashTable::finish(Arc::clone(spec), Vec::new(), 0, &AtomicBool::new(false))
}

/// Returns the partition pairs that can produce output.
fn partition_pairs(
    kind: JoinKind,
    build: impl Iterator<Item = SpillPartition>,
    probe: SpillPartitions,
    parting: Option<&HashPartitioning>,
) -> Vec<JoinPartition> {
    let gives = |part: &JoinPartition| {
        (part.build.rows != 0 || kind.outputs_unmatched_probe_rows())
            && (part.probe.rows != 0 || kind.outputs_build_rows())
    };
    let pair = |(build, probe)| JoinPartition { build, probe, partitioning: parting.cloned(), matches: None };
    build.zip(probe.parts).map(pair).filter(gives).collect()
}

impl ChunkMatches {
    /// Returns a piece of the probe side with the matches of its rows.
    fn probe_chunk(&mut self, number: usize, rows: Batch) -> SourceItem {
        if self.by_probe_block.len() == number {
            self.by_probe_block.push(Arc::new(ProbeMatches::new(rows.rows)));
        }
        SourceItem::ProbeChunk(rows, Arc::clone(&self.by_probe_block[number]), self.pass)
    }
}

impl SpilledJoinReader {
    pub(crate) fn new(shared: &Arc<SpilledJoin>) -> Self {
        let held = memory_accounting::reservation(&shared.spills.memory(&shared.context));
        Self { shared: Arc::clone(shared), current: None, memory: shared.shared_memory.new_member(held) }
    }

    /// Returns the next item: a hash table, the rows that probe it, its end; `None` after the last partition.
    pub(crate) async fn next(&mut self) -> Result<Option<SourceItem>, RunError> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(piece) = current.probe.blocks.get(current.next) {
                    let (number, rows) = (current.next, piece.read()?);
                    current.next += 1;
                    return Ok(Some(match &mut current.matches {
                        Some(matches) => matches.probe_chunk(number, rows),
                        None => SourceItem::Rows(rows),
                    }));
                }
                if !std::mem::replace(&mut current.has_ended, true) {
                    return Ok(Some(SourceItem::EndOfHashTable(Arc::clone(&self.shared.empty_table))));
                }
            }
            let part = match self.current.take() {
                Some(OpenPartition { probe, remaining_build: later, matches, .. }) if !later.is_empty() => {
                    self.memory.shrink(0);
                    JoinPartition {
                        build: SpillPartition { blocks: later, ..SpillPartition::default() },
                        probe,
                        partitioning: None,
                        matches,
                    }
                }
                _ => {
                    self.memory.clear();
                    let Some(part) = self.shared.pending_partitions.lock().pop() else { return Ok(None) };
                    part
                }
            };
            if let Some(table) = self.build_table(part).await? {
                return Ok(Some(SourceItem::HashTable(table)));
            }
        }
    }

    /// Builds the hash table of a partition; `None` if the partition was partitioned further.
    async fn build_table(&mut self, mut part: JoinPartition) -> Result<Option<Arc<JoinHashTable>>, RunError> {
        let shared = Arc::clone(&self.shared);
        let (mut build, mut loaded) = self.load_build(&part.build.blocks).await?;
        if loaded < part.build.blocks.len() {
            if let Some(finer) = part.partitioning.as_ref().and_then(HashPartitioning::next_level) {
                drop(build);
                self.memory.clear();
                shared.repartition(part, &finer).await?;
                return Ok(None);
            }
            if part.matches.is_none() && shared.spec.kind.needs_all_build_chunks() {
                drop(build);
                self.memory.shrink(0);
                part.matches = Some(self.reserve_matches(&part.probe).await?);
                (build, loaded) = self.load_build(&part.build.blocks).await?;
            }
            if loaded == 0 {
                return Err(engine::Error::OutOfMemory("the build rows of a join that have the same key").into());
            }
        }
        let table = JoinHashTable::finish(Arc::clone(&shared.spec), vec![build], 0, &shared.stop)?;
        if shared.has_probe_rows {
            table.record_probe_rows_elsewhere();
        }
        // Building it took more.
        self.memory.shrink(table.memory_bytes());
        let later = part.build.blocks[loaded..].to_vec();
        let matches = part.matches.map(|matches| {
            let pass = BuildChunkPosition { is_first: matches.by_probe_block.is_empty(), is_last: later.is_empty() };
            ChunkMatches { pass, ..matches }
        });
        self.current =
            Some(OpenPartition { probe: part.probe, next: 0, has_ended: false, remaining_build: later, matches });
        Ok(Some(Arc::new(table)))
    }

    /// Reserves memory for the matches of a probe side.
    async fn reserve_matches(&mut self, probe: &SpillPartition) -> Result<ChunkMatches, RunError> {
        let bytes = ProbeMatches::memory_bytes(probe.rows) + ProbeMatches::memory_bytes(1) * probe.blocks.len();
        if !self.memory.reserve_lasting(bytes).await {
            return Err(engine::Error::OutOfMemory("the matches of a join's probe side").into());
        }
        Ok(ChunkMatches { by_probe_block: Vec::new(), pass: BuildChunkPosition { is_first: true, is_last: false } })
    }

    /// Loads as many build pieces as fit in memory together with their hash table.
    async fn load_build(&mut self, pieces: &[SpillBlock]) -> Result<(BuildCollector, usize), RunError> {
        let mut build = BuildCollector::new(&self.shared.spec);
        for (number, piece) in pieces.iter().enumerate() {
            let rows = piece.read()?;
            let bytes = JoinHashTable::estimate_build_bytes_with(&build, &rows);
            let can_be = JoinHashTable::can_hold_rows(build.row_count() + rows.rows);
            if !can_be || !self.memory.reserve(bytes).await {
                return Ok((build, number));
            }
            build.push(rows)?;
            tokio::task::yield_now().await;
        }
        Ok((build, pieces.len()))
    }
}

//! Hash join on disk: partition by partition, the hash table is built from the build side and probed by the probe side.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use engine::Batch;
use engine::join::{Build, JoinKind, JoinSpec, JoinTable, Matched};
use engine::pipeline::Pass;
use engine::spill::Parting;
use parking_lot::Mutex;

use super::file::Piece;
use super::room::{Room, Rooms};
use super::{Part, Parts, Spiller};
use crate::ended::Ended;
use crate::measure::Spills;
use crate::memory;
use crate::source::Given;

/// Partitions of a join, shared by the workers.
pub(crate) struct JoinParts {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    spec: Arc<JoinSpec>,
    /// Hash table without rows.
    none: Arc<JoinTable>,
    /// True if the probe side has rows in any partition.
    has_probe_rows: bool,
    open: Mutex<Vec<JoinPart>>,
    rooms: Arc<Rooms>,
    spills: Spills,
}

/// The same partition of both sides.
struct JoinPart {
    build: Part,
    probe: Part,
    /// Current partitioning; `None` if further partitioning is of no use.
    parting: Option<Parting>,
    /// Matches so far, if the build side is processed in several chunks.
    matches: Option<Matches>,
}

/// Matches that the probe rows of a partition found in earlier chunks of the build side.
struct Matches {
    /// Matches by probe-side piece, created when a piece is first read.
    of_pieces: Vec<Arc<Matched>>,
    pass: Pass,
}

/// One worker's reader of the partitions.
pub(crate) struct JoinedBatches {
    shared: Arc<JoinParts>,
    current: Option<Current>,
    room: Room,
}

/// Partition whose hash table is built.
struct Current {
    probe: Part,
    next: usize,
    has_ended: bool,
    /// Build rows for which there was no memory yet.
    later: Vec<Piece>,
    /// Matches, if they are needed for the remaining chunks.
    matches: Option<Matches>,
}

/// Returns the partitioning of the build side and the matching one of the probe side.
pub(crate) fn partings(spec: &JoinSpec) -> (Parting, Parting) {
    let of = |keys: Vec<usize>| Parting { keys, nulls_are_equal: spec.nulls_are_equal, level: 0 };
    (of(spec.keys.iter().map(|(build, _)| *build).collect()), of(spec.keys.iter().map(|(_, probe)| *probe).collect()))
}

impl JoinParts {
    pub(crate) fn new(
        context: &Arc<TaskContext>,
        stop: &Arc<AtomicBool>,
        spec: &Arc<JoinSpec>,
        (build, probe): (&Parts, Parts),
        spills: Spills,
    ) -> engine::Result<Self> {
        spills.add(build);
        spills.add(&probe);
        let parting = partings(spec).0;
        let has_probe_rows = probe.has_rows();
        let gives_nothing = spec.kind == JoinKind::LeftNotIn && probe.has_null_keys;
        let mut open = pairs(spec.kind, build.parts.iter().cloned(), probe, Some(&parting));
        if gives_nothing {
            open.clear();
        }
        Ok(Self {
            context: Arc::clone(context),
            stop: Arc::clone(stop),
            none: Arc::new(no_rows(spec)?),
            has_probe_rows,
            spec: Arc::clone(spec),
            open: Mutex::new(open),
            rooms: Arc::default(),
            spills,
        })
    }

    /// Returns the number of partitions to process.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }

    /// Partitions a partition further, by more bits of its key hashes.
    async fn divide(&self, part: JoinPart, finer: &Parting) -> Result<(), Ended> {
        let (_, probe_keys) = partings(&self.spec);
        let divided = async |side: Part, parting: Parting| {
            let memory = self.spills.memory(&self.context);
            let mut spiller = Spiller::new(&self.context, &memory, &self.stop, parting, 1);
            for piece in side.pieces {
                spiller.push(&piece.read()?)?;
                tokio::task::yield_now().await;
            }
            let parts = spiller.finish()?;
            self.spills.add(&parts);
            Ok::<Parts, Ended>(parts)
        };
        let rows = part.build.rows;
        let probe = divided(part.probe, Parting { level: finer.level, ..probe_keys }).await?;
        let build = divided(part.build, finer.clone()).await?;
        // Rows that stay together have the same key.
        let is_of_use = build.parts.iter().all(|part| part.rows < rows);
        let parts = pairs(self.spec.kind, build.parts.into_iter(), probe, is_of_use.then_some(finer));
        self.open.lock().extend(parts);
        Ok(())
    }
}

/// Returns a hash table without rows.
pub(crate) fn no_rows(spec: &Arc<JoinSpec>) -> engine::Result<JoinTable> {
    JoinTable::finish(Arc::clone(spec), Vec::new(), 0, &AtomicBool::new(false))
}

/// Returns the partition pairs that can produce output.
fn pairs(kind: JoinKind, build: impl Iterator<Item = Part>, probe: Parts, parting: Option<&Parting>) -> Vec<JoinPart> {
    let gives = |part: &JoinPart| {
        (part.build.rows != 0 || kind.keeps_probe_rows()) && (part.probe.rows != 0 || kind.gives_rest())
    };
    let pair = |(build, probe)| JoinPart { build, probe, parting: parting.cloned(), matches: None };
    build.zip(probe.parts).map(pair).filter(gives).collect()
}

impl Matches {
    /// Returns a piece of the probe side with the matches of its rows.
    fn given(&mut self, number: usize, rows: Batch) -> Given {
        if self.of_pieces.len() == number {
            self.of_pieces.push(Arc::new(Matched::none(rows.rows)));
        }
        Given::Piece(rows, Arc::clone(&self.of_pieces[number]), self.pass)
    }
}

impl JoinedBatches {
    pub(crate) fn new(shared: &Arc<JoinParts>) -> Self {
        let held = memory::reservation(&shared.spills.memory(&shared.context));
        Self { shared: Arc::clone(shared), current: None, room: shared.rooms.room(held) }
    }

    /// Returns the next item: a hash table, the rows that probe it, its end; `None` after the last partition.
    pub(crate) async fn next(&mut self) -> Result<Option<Given>, Ended> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(piece) = current.probe.pieces.get(current.next) {
                    let (number, rows) = (current.next, piece.read()?);
                    current.next += 1;
                    return Ok(Some(match &mut current.matches {
                        Some(matches) => matches.given(number, rows),
                        None => Given::Rows(rows),
                    }));
                }
                if !std::mem::replace(&mut current.has_ended, true) {
                    return Ok(Some(Given::EndOfTable(Arc::clone(&self.shared.none))));
                }
            }
            let part = match self.current.take() {
                Some(Current { probe, later, matches, .. }) if !later.is_empty() => {
                    self.room.shrink(0);
                    JoinPart { build: Part { pieces: later, ..Part::default() }, probe, parting: None, matches }
                }
                _ => {
                    self.room.clear();
                    let Some(part) = self.shared.open.lock().pop() else { return Ok(None) };
                    part
                }
            };
            if let Some(table) = self.begin(part).await? {
                return Ok(Some(Given::Table(table)));
            }
        }
    }

    /// Builds the hash table of a partition; `None` if the partition was partitioned further.
    async fn begin(&mut self, mut part: JoinPart) -> Result<Option<Arc<JoinTable>>, Ended> {
        let shared = Arc::clone(&self.shared);
        let (mut build, mut loaded) = self.load(&part.build.pieces).await?;
        if loaded < part.build.pieces.len() {
            if let Some(finer) = part.parting.as_ref().and_then(Parting::finer) {
                drop(build);
                self.room.clear();
                shared.divide(part, &finer).await?;
                return Ok(None);
            }
            if part.matches.is_none() && shared.spec.kind.asks_whole_build() {
                drop(build);
                self.room.shrink(0);
                part.matches = Some(self.matches(&part.probe).await?);
                (build, loaded) = self.load(&part.build.pieces).await?;
            }
            if loaded == 0 {
                return Err(engine::Error::Memory("the build rows of a join that have the same key").into());
            }
        }
        let table = JoinTable::finish(Arc::clone(&shared.spec), vec![build], 0, &shared.stop)?;
        if shared.has_probe_rows {
            table.see_rows_elsewhere();
        }
        // Building it took more.
        self.room.shrink(table.memory_bytes());
        let later = part.build.pieces[loaded..].to_vec();
        let matches = part.matches.map(|matches| {
            let pass = Pass { is_first: matches.of_pieces.is_empty(), is_last: later.is_empty() };
            Matches { pass, ..matches }
        });
        self.current = Some(Current { probe: part.probe, next: 0, has_ended: false, later, matches });
        Ok(Some(Arc::new(table)))
    }

    /// Reserves memory for the matches of a probe side.
    async fn matches(&mut self, probe: &Part) -> Result<Matches, Ended> {
        let bytes = Matched::memory_bytes(probe.rows) + Matched::memory_bytes(1) * probe.pieces.len();
        if !self.room.keep(bytes).await {
            return Err(engine::Error::Memory("the matches of a join's probe side").into());
        }
        Ok(Matches { of_pieces: Vec::new(), pass: Pass { is_first: true, is_last: false } })
    }

    /// Loads as many build pieces as fit in memory together with their hash table.
    async fn load(&mut self, pieces: &[Piece]) -> Result<(Build, usize), Ended> {
        let mut build = Build::new(&self.shared.spec);
        for (number, piece) in pieces.iter().enumerate() {
            let rows = piece.read()?;
            let bytes = JoinTable::room_bytes_with(&build, &rows);
            let can_be = JoinTable::can_have(build.rows() + rows.rows);
            if !can_be || !self.room.has(bytes).await {
                return Ok((build, number));
            }
            build.push(rows)?;
            tokio::task::yield_now().await;
        }
        Ok((build, pieces.len()))
    }
}

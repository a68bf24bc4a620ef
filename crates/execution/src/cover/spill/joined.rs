//! A join whose build side is in parts: of each the table is made, the same part of the probe side goes through it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use engine::join::{Build, JoinKind, JoinSpec, JoinTable};
use engine::spill::Parting;
use parking_lot::Mutex;

use super::file::Piece;
use super::turns::{Turn, Turns};
use super::{Part, Parts, Spiller};
use crate::cover::measure::Spills;
use crate::cover::run::Ended;
use crate::cover::source::Given;
use crate::cover::workers;

/// What the workers of a join share.
pub(in crate::cover) struct JoinParts {
    context: Arc<TaskContext>,
    stop: Arc<AtomicBool>,
    spec: Arc<JoinSpec>,
    /// A table without rows.
    none: Arc<JoinTable>,
    open: Mutex<Vec<JoinPart>>,
    turns: Arc<Turns>,
    spills: Spills,
}

/// The same part of both sides.
struct JoinPart {
    build: Part,
    probe: Part,
    /// How it was divided; `None` where that was of no use.
    parting: Option<Parting>,
}

/// One worker's way through parts.
pub(in crate::cover) struct JoinedBatches {
    shared: Arc<JoinParts>,
    current: Option<Current>,
}

/// A part whose table is made.
struct Current {
    probe: Part,
    next: usize,
    has_ended: bool,
    /// Build rows for which there was no room beside the others.
    later: Vec<Piece>,
    _turn: Turn,
}

/// How the rows of a build side are divided, and those of the probe side alike.
pub(in crate::cover) fn partings(spec: &JoinSpec) -> (Parting, Parting) {
    let of = |keys: Vec<usize>| Parting { keys, nulls_are_equal: spec.nulls_are_equal, level: 0 };
    (of(spec.keys.iter().map(|(build, _)| *build).collect()), of(spec.keys.iter().map(|(_, probe)| *probe).collect()))
}

impl JoinParts {
    pub(in crate::cover) fn new(
        context: &Arc<TaskContext>,
        stop: &Arc<AtomicBool>,
        spec: &Arc<JoinSpec>,
        (build, probe): (&Parts, Parts),
        spills: Spills,
    ) -> engine::Result<Self> {
        spills.add(build);
        spills.add(&probe);
        let parting = partings(spec).0;
        let open = pairs(spec.kind, build.parts.iter().cloned(), probe, Some(&parting));
        Ok(Self {
            context: Arc::clone(context),
            stop: Arc::clone(stop),
            none: Arc::new(no_rows(spec)?),
            spec: Arc::clone(spec),
            open: Mutex::new(open),
            turns: Arc::default(),
            spills,
        })
    }

    /// How many parts there are to go through.
    pub(in crate::cover) fn len(&self) -> usize {
        self.open.lock().len()
    }

    /// Divides a part by more of its keys' bits.
    async fn divide(&self, part: JoinPart, finer: &Parting) -> Result<(), Ended> {
        let (_, probe_keys) = partings(&self.spec);
        let divided = async |side: Part, parting: Parting| {
            let mut spiller = Spiller::new(&self.context, &self.stop, parting, 1);
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
        // Rows that stay together have one key.
        let is_of_use = build.parts.iter().all(|part| part.rows < rows);
        let parts = pairs(self.spec.kind, build.parts.into_iter(), probe, is_of_use.then_some(finer));
        self.open.lock().extend(parts);
        Ok(())
    }
}

/// A table of no rows.
pub(in crate::cover) fn no_rows(spec: &Arc<JoinSpec>) -> engine::Result<JoinTable> {
    JoinTable::finish(Arc::clone(spec), Vec::new(), 0)
}

/// The parts that give anything.
fn pairs(kind: JoinKind, build: impl Iterator<Item = Part>, probe: Parts, parting: Option<&Parting>) -> Vec<JoinPart> {
    let gives = |part: &JoinPart| {
        (part.build.rows != 0 || kind.keeps_probe_rows()) && (part.probe.rows != 0 || kind.gives_rest())
    };
    let pair = |(build, probe)| JoinPart { build, probe, parting: parting.cloned() };
    build.zip(probe.parts).map(pair).filter(gives).collect()
}

/// Whether a build side may be gone through in pieces: what becomes of a probe row with one does not depend on the others.
fn may_be_in_pieces(kind: JoinKind) -> bool {
    !kind.keeps_probe_rows() && kind != JoinKind::RightSemi
}

impl JoinedBatches {
    pub(in crate::cover) fn new(shared: &Arc<JoinParts>) -> Self {
        Self { shared: Arc::clone(shared), current: None }
    }

    /// What comes next: a table, the rows that go through it, its end; `None` after the last part.
    pub(in crate::cover) async fn next(&mut self) -> Result<Option<Given>, Ended> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(piece) = current.probe.pieces.get(current.next) {
                    current.next += 1;
                    return Ok(Some(Given::Rows(piece.read()?)));
                }
                if !std::mem::replace(&mut current.has_ended, true) {
                    return Ok(Some(Given::EndOfTable(Arc::clone(&self.shared.none))));
                }
            }
            let part = match self.current.take() {
                Some(Current { probe, later, .. }) if !later.is_empty() => {
                    JoinPart { build: Part { pieces: later, ..Part::default() }, probe, parting: None }
                }
                _ => match self.shared.open.lock().pop() {
                    Some(part) => part,
                    None => return Ok(None),
                },
            };
            if let Some(table) = self.begin(part).await? {
                return Ok(Some(Given::Table(table)));
            }
        }
    }

    /// Makes the table of a part; `None` where it is in more parts now.
    async fn begin(&mut self, part: JoinPart) -> Result<Option<Arc<JoinTable>>, Ended> {
        let shared = &self.shared;
        let (mut build, mut held, mut loaded) = self.load(&part.build.pieces).await?;
        if loaded < part.build.pieces.len() {
            if let Some(finer) = part.parting.as_ref().and_then(Parting::finer) {
                drop((build, held));
                shared.divide(part, &finer).await?;
                return Ok(None);
            }
            if loaded == 0 || !may_be_in_pieces(shared.spec.kind) {
                return Err(engine::Error::Memory("the rows of a join's build side that have one key").into());
            }
            // The last of them was one too many.
            drop((build, held));
            let pieces = loaded;
            (build, held, loaded) = self.load(&part.build.pieces[..pieces]).await?;
            if loaded < pieces {
                return Err(engine::Error::Memory("the build side of a join").into());
            }
        }
        let table = JoinTable::finish(Arc::clone(&shared.spec), vec![build], 0)?;
        // Less than what making it took.
        held.shrink(held.size().saturating_sub(table.memory_bytes()));
        let later = part.build.pieces[loaded..].to_vec();
        let turn = shared.turns.begin(held);
        self.current = Some(Current { probe: part.probe, next: 0, has_ended: false, later, _turn: turn });
        Ok(Some(Arc::new(table)))
    }

    /// Build rows, as many pieces as there is room for, and room for their table.
    async fn load(&self, pieces: &[Piece]) -> Result<(Build, MemoryReservation, usize), Ended> {
        let held = workers::reservation(&self.shared.context);
        let mut build = Build::new(&self.shared.spec);
        for (number, piece) in pieces.iter().enumerate() {
            build.push(piece.read()?)?;
            let bytes = build.memory_bytes() + JoinTable::room_bytes(std::iter::once(&build));
            if !JoinTable::can_have(build.rows()) || !self.shared.turns.has_room(&held, bytes).await {
                return Ok((build, held, number));
            }
            tokio::task::yield_now().await;
        }
        Ok((build, held, pieces.len()))
    }
}

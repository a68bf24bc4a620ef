//! One worker's way through a pipeline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use types::Conjuncts;
use types::conjuncts::{Effect, Place};

use super::meter::Meter;
use super::{Busy, Now, Pipeline, Sink, Step};
use crate::aggregate::{CompactGroups, Groups};
use crate::expression::{Calls, Expression, Memory};
use crate::join::{Build, JoinTable, Matched, ProbeScratch};
use crate::portions::{ErrorGranularity, in_portions};
use crate::sort::Sorting;
use crate::vector::bytes_copied;
use crate::{Batch, Error, Result, Selection};

/// A worker of a pipeline, and what it has collected so far.
pub struct Worker {
    pipeline: Arc<Pipeline>,
    locals: Vec<Local>,
    collected: Collected,
    /// Rows that have come to each step, and to the sink.
    rows: Vec<u64>,
    meter: Meter,
    border: Border,
    /// A worker of the pipeline that reads this one's groups. Rows that reach its end stay there until this one is done.
    next: Option<Box<Worker>>,
    /// Whether a limit lets no more rows pass.
    has_enough: bool,
}

/// What a worker asks while it is busy with one batch, which may become millions.
#[derive(Default)]
pub struct Border {
    /// Set when nobody wants the rows any more.
    pub stop: Arc<AtomicBool>,
    /// Takes rows that have reached the end, where they have become many.
    pub relief: Option<Box<Relief>>,
    /// Is told of what has been collected, whenever that has become more.
    pub room: Option<Box<Room>>,
    /// Takes what has been collected where there is no room for it; what it has taken is not the worker's any more.
    pub spill: Option<Box<Spill>>,
    /// Takes what a sort has no room for.
    pub sort: Option<Box<SpillSorted>>,
    /// Build rows go there at once, for others have gone there.
    is_spilling: bool,
    /// By the numbers of limits: how many rows have come there, to all workers.
    pub limits: Arc<[AtomicU64]>,
    /// A step or the sink after a LIMIT failed: rows that the LIMIT counted are lost.
    has_failed_after_limit: bool,
    /// What the rows that lie at the end take, where nobody takes them.
    held: usize,
    /// Tells the time, where it is measured.
    now: Option<Arc<Now>>,
}

impl Border {
    /// Asks these.
    #[must_use]
    pub fn new(stop: Arc<AtomicBool>, relief: Option<Box<Relief>>, room: Box<Room>, limits: Arc<[AtomicU64]>) -> Self {
        Self { stop, relief, room: Some(room), limits, ..Self::default() }
    }

    /// Gives what has no room to `spill`.
    #[must_use]
    pub fn spilling_to(self, spill: Box<Spill>) -> Self {
        Self { spill: Some(spill), ..self }
    }

    /// Gives what a sort has no room for to `sort`.
    #[must_use]
    pub fn sorting_to(self, sort: Box<SpillSorted>) -> Self {
        Self { sort: Some(sort), ..self }
    }

    /// Has the time measured that steps take.
    #[must_use]
    pub fn timed_by(self, now: Arc<Now>) -> Self {
        Self { now: Some(now), ..self }
    }
}

/// Takes all batches; may wait.
pub type Relief = dyn FnMut(Vec<Batch>) -> Result<()> + Send;

/// Takes the bytes that are held; [`Error::Memory`] where they are too many.
pub type Room = dyn FnMut(usize) -> Result<()> + Send;

/// Takes rows out of memory: those of a build side, groups as [`Groups::drain`] gives them, or those at the end.
pub type Spill = dyn FnMut(Batch) -> Result<()> + Send;

/// Takes rows out of memory that are to be sorted with others.
pub type SpillSorted = dyn FnMut(Sorting) -> Result<()> + Send;

/// Batches that lie at the end before somebody is asked to take them.
const HELD_MAX: usize = 32;

/// What a step of one worker has to itself.
enum Local {
    Filter(Memory, Conjuncts),
    Project(Memory),
    Probe(Arc<JoinTable>, Box<ProbeScratch>),
    Limit,
}

/// Which of the pieces of a build side a batch goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    pub is_first: bool,
    pub is_last: bool,
}

/// What became of the batches.
pub enum Collected {
    Groups(Box<Groups>),
    Build(Box<Build>),
    Sorting(Box<Sorting>),
    /// To be taken by whoever drives the worker.
    Rows(Vec<Batch>),
}

impl Worker {
    /// A worker; `table_of` gives the tables that earlier pipelines built.
    ///
    /// # Errors
    /// Where a table is not there.
    pub fn new(
        pipeline: &Arc<Pipeline>,
        table_of: impl Fn(usize) -> Option<Arc<JoinTable>>,
        border: Border,
    ) -> Result<Self> {
        let local = |step: &Step| match step {
            Step::Filter(conditions) => {
                let places = conditions.iter().map(|condition| Place::of(condition.never_fails()));
                Ok(Local::Filter(Memory::timed_by(border.now.clone()), Conjuncts::new(places.collect())))
            }
            Step::Project(_) | Step::Repeat(_) => Ok(Local::Project(Memory::timed_by(border.now.clone()))),
            Step::Probe { built_by, .. } => {
                let table = table_of(*built_by).ok_or(Error::Form("a table that is not built yet"))?;
                Ok(Local::Probe(table, Box::new(ProbeScratch::new(&border.stop, border.now.clone()))))
            }
            Step::Limit { .. } => Ok(Local::Limit),
        };
        let locals = pipeline.steps.iter().map(local).collect::<Result<Vec<_>>>()?;
        let collected = match &pipeline.sink {
            Sink::Groups(spec) => Collected::Groups(Box::new(Groups::new(spec))),
            Sink::Build(spec) => Collected::Build(Box::new(Build::new(spec))),
            Sink::Sort(spec) => Collected::Sorting(Box::new(Sorting::new(spec))),
            Sink::Rows => Collected::Rows(Vec::new()),
        };
        let rows = vec![0; locals.len() + 1];
        let (meter, pipeline) = (Meter::new(border.now.clone(), locals.len()), Arc::clone(pipeline));
        Ok(Self { pipeline, locals, collected, rows, meter, border, next: None, has_enough: false })
    }

    /// Begins with what a worker of the pipeline before has collected in the same sink.
    #[must_use]
    pub fn beginning_with(self, collected: Collected) -> Self {
        Self { collected, ..self }
    }

    /// Lets a worker of the pipeline that reads its groups have those that are complete before all rows are there.
    pub fn lead_to(&mut self, next: Self) {
        self.next = Some(Box::new(next));
    }

    /// The worker that it leads to, taken away.
    pub fn take_next(&mut self) -> Option<Self> {
        self.next.take().map(|next| *next)
    }

    /// Says that rows from here on are of another stretch of the source.
    ///
    /// # Errors
    /// Those of the steps that complete groups go through.
    pub fn end_stretch(&mut self) -> Result<()> {
        let (Collected::Groups(groups), Some(next)) = (&mut self.collected, &mut self.next) else { return Ok(()) };
        let outside = self.meter.enter(0);
        let ended = groups.end_stretch();
        self.meter.leave(outside);
        let ended = ended?;
        let bytes = groups.memory_bytes();
        End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter }.hold(bytes)?;
        let Some(ended) = ended else { return Ok(()) };
        (0..).map_while(|number| ended.batch(number)).try_for_each(|batch| next.push(batch))
    }

    /// Takes a batch of the source through all steps.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        let mut end = End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter };
        let pushed = push(&self.pipeline.steps, &mut self.locals, &mut self.rows, &mut end, batch);
        self.has_enough |= matches!(pushed, Err(Error::Enough));
        unless_enough(pushed)
    }

    /// As [`Worker::push`], where the first step is a join with a piece of its build side, and the batch comes again with the others.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn push_piece(&mut self, batch: &Batch, matched: &Matched, pass: Pass) -> Result<()> {
        let (Some((Local::Probe(table, scratch), locals)), Some((_, steps)), Some((came, rows))) =
            (self.locals.split_first_mut(), self.pipeline.steps.split_first(), self.rows.split_first_mut())
        else {
            return Err(Error::Form("a piece of what is no join"));
        };
        if pass.is_first {
            *came += batch.rows as u64;
        }
        let mut end = End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter };
        if end.border.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let outside = end.meter.enter(steps.len() + 1);
        let mut next = |batch| push(steps, locals, rows, &mut end, batch);
        let pushed = table.probe_piece(batch, matched, pass.is_last, scratch, &mut next);
        end.meter.leave(outside);
        self.has_enough |= matches!(pushed, Err(Error::Enough));
        unless_enough(pushed)
    }

    /// Returns whether an error can be ignored if other workers reach the limit: it is about values, and no row that was counted at a limit is missing.
    #[must_use]
    pub fn may_ignore(&self, error: &Error) -> bool {
        error.is_about_values() && !self.border.has_failed_after_limit
    }

    /// Whether a limit lets no more rows pass, of whatever comes.
    #[must_use]
    pub fn has_enough(&self) -> bool {
        self.has_enough
    }

    /// Takes a share of what the build side of a join still has to give through the steps after it, once all workers are done with their
    /// batches.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn push_rest(&mut self, step: usize, part: usize, parts: usize) -> Result<()> {
        let (Some(Local::Probe(table, _)), Some(Step::Probe { forms, .. })) =
            (self.locals.get(step), self.pipeline.steps.get(step))
        else {
            return Err(Error::Form("a rest of what is no join"));
        };
        let table = Arc::clone(table);
        let (steps, locals) = (&self.pipeline.steps[step + 1..], &mut self.locals[step + 1..]);
        let rows = &mut self.rows[step + 1..];
        let mut end = End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter };
        let outside = end.meter.enter(steps.len() + 1);
        let pushed = table.rest(part, parts, forms, &mut |batch| push(steps, locals, rows, &mut end, batch));
        end.meter.leave(outside);
        unless_enough(pushed)
    }

    /// What it sorts, if it does.
    #[must_use]
    pub fn sorting(&self) -> Option<&Sorting> {
        match &self.collected {
            Collected::Sorting(sorting) => Some(sorting),
            _ => None,
        }
    }

    /// Puts another table in the place of the one that a step probes.
    ///
    /// # Errors
    /// Where that step is no probe.
    pub fn put_table(&mut self, step: usize, table: Arc<JoinTable>) -> Result<()> {
        let Some(Local::Probe(there, _)) = self.locals.get_mut(step) else {
            return Err(Error::Form("a table for what is no join"));
        };
        *there = table;
        Ok(())
    }

    /// Gives what has been collected to whoever takes what has no room.
    ///
    /// # Errors
    /// Where nobody does, and theirs.
    pub fn spill(&mut self) -> Result<()> {
        End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter }.spill()
    }

    /// Takes the groups away that it has collected so far; `None` where it collects something else.
    ///
    /// # Errors
    /// Those of whoever counts what is collected.
    pub fn take_groups(&mut self) -> Result<Option<Groups>> {
        let Collected::Groups(groups) = &mut self.collected else { return Ok(None) };
        let taken = groups.take();
        if let Some(room) = &mut self.border.room {
            room(0)?;
        }
        Ok(Some(taken))
    }

    /// Adds groups of the same kind to those that it has collected.
    ///
    /// # Errors
    /// As [`Groups::merge`], and of those who count what is collected.
    pub fn add_groups(&mut self, more: Groups) -> Result<()> {
        let stop = Arc::clone(&self.border.stop);
        self.add_to_groups(|groups| groups.merge(more, &stop))
    }

    /// Likewise, of groups that are kept.
    ///
    /// # Errors
    /// As [`Worker::add_groups`].
    pub fn add_compact(&mut self, more: &CompactGroups) -> Result<()> {
        let stop = Arc::clone(&self.border.stop);
        self.add_to_groups(|groups| groups.add_compact(more, &stop))
    }

    fn add_to_groups(&mut self, add: impl FnOnce(&mut Groups) -> Result<()>) -> Result<()> {
        let Collected::Groups(groups) = &mut self.collected else {
            return Err(Error::Form("groups for what has none"));
        };
        add(groups)?;
        let bytes = groups.memory_bytes();
        End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter }.hold(bytes)
    }

    /// What it has collected so far.
    #[must_use]
    pub fn collected(&self) -> &Collected {
        &self.collected
    }

    /// How many rows have come to each step; the last number is the sink's.
    #[must_use]
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// When it was busy with each step; the last is the sink.
    pub fn busy(&self) -> impl Iterator<Item = Option<Busy>> {
        self.meter.of_steps()
    }

    /// What functions over Arrow's arrays have cost at each step.
    pub fn calls(&self) -> impl Iterator<Item = Calls> {
        self.locals.iter().map(|local| match local {
            Local::Filter(memory, _) | Local::Project(memory) => memory.calls(),
            Local::Probe(_, scratch) => scratch.calls(),
            Local::Limit => Calls::default(),
        })
    }

    /// Rows that have reached the end, taken away.
    pub fn take_rows(&mut self) -> Vec<Batch> {
        match &mut self.collected {
            Collected::Rows(rows) => {
                self.border.held = 0;
                std::mem::take(rows)
            }
            _ => Vec::new(),
        }
    }

    /// What it has collected.
    #[must_use]
    pub fn finish(self) -> Collected {
        self.collected
    }
}

/// Where batches end, and who is asked.
struct End<'a> {
    collected: &'a mut Collected,
    border: &'a mut Border,
    meter: &'a mut Meter,
}

impl End<'_> {
    fn take(&mut self, batch: Batch) -> Result<()> {
        let bytes = match self.collected {
            Collected::Groups(groups) => {
                groups.add(&batch)?;
                groups.memory_bytes()
            }
            Collected::Build(build) => {
                if let (true, Some(spill)) = (self.border.is_spilling, &mut self.border.spill) {
                    return spill(batch);
                }
                build.push(batch)?;
                build.memory_bytes()
            }
            Collected::Sorting(sorting) => {
                sorting.push(batch)?;
                // What is given away is sorted first.
                let room_bytes = if self.border.sort.is_some() { sorting.room_bytes() } else { 0 };
                sorting.memory_bytes() + room_bytes
            }
            Collected::Rows(rows) => {
                let bytes: usize = batch.columns.iter().map(bytes_copied).sum();
                rows.push(batch);
                match &mut self.border.relief {
                    Some(relief) if HELD_MAX <= rows.len() => return relief(std::mem::take(rows)),
                    Some(_) => return Ok(()),
                    None => self.border.held += bytes,
                }
                self.border.held
            }
        };
        self.hold(bytes)
    }

    /// Asks for room for what has been collected; without it that is given away, where somebody takes it.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        let Some(room) = &mut self.border.room else { return Ok(()) };
        match room(bytes) {
            Err(Error::Memory(_)) if self.border.spill.is_some() || self.border.sort.is_some() => self.spill(),
            outcome => outcome,
        }
    }

    fn spill(&mut self) -> Result<()> {
        match (&mut *self.collected, &mut self.border.spill, &mut self.border.sort) {
            (Collected::Groups(groups), Some(spill), _) => groups.drain(spill)?,
            (Collected::Build(build), Some(spill), _) => build.drain(spill)?,
            (Collected::Rows(rows), Some(spill), _) => rows.drain(..).try_for_each(spill)?,
            (Collected::Sorting(sorting), _, Some(sort)) => sorting.drain(sort)?,
            _ => return Err(Error::Memory("what a program collects")),
        }
        self.border.is_spilling = true;
        self.border.held = 0;
        self.border.room.as_mut().map_or(Ok(()), |room| room(0))
    }
}

fn push(steps: &[Step], locals: &mut [Local], rows: &mut [u64], end: &mut End<'_>, batch: Batch) -> Result<()> {
    if batch.rows == 0 {
        return Ok(());
    }
    if end.border.stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    let (here, rows) = rows.split_first_mut().ok_or(Error::Form("a step that is not there"))?;
    *here += batch.rows as u64;
    let before = end.meter.enter(steps.len());
    let pushed = match (steps.split_first(), locals.split_first_mut()) {
        (Some((step, steps)), Some((local, locals))) => through((step, local), (steps, locals), rows, end, batch),
        _ => end.take(batch),
    };
    end.meter.leave(before);
    pushed
}

/// Takes a batch through a step, and on to those after it.
fn through(
    (step, local): (&Step, &mut Local),
    (steps, locals): (&[Step], &mut [Local]),
    rows: &mut [u64],
    end: &mut End<'_>,
    batch: Batch,
) -> Result<()> {
    let granularity = if steps.iter().any(Step::is_limit) { ErrorGranularity::Row } else { ErrorGranularity::Batch };
    match (step, local) {
        (Step::Filter(conditions), Local::Filter(memory, order)) => {
            let now = end.border.now.clone();
            let compute = |batch| fulfilling(batch, conditions, order, memory, now.as_deref());
            in_portions(batch, granularity, compute, |batch| push(steps, locals, rows, end, batch))
        }
        (Step::Project(expressions), Local::Project(memory)) => {
            let compute = |batch: Batch| projected(expressions, &batch, memory);
            in_portions(batch, granularity, compute, |batch| push(steps, locals, rows, end, batch))
        }
        (Step::Repeat(lists), Local::Project(memory)) => lists.iter().try_for_each(|expressions| {
            let compute = |batch: Batch| projected(expressions, &batch, memory);
            in_portions(batch.clone(), granularity, compute, |batch| push(steps, locals, rows, end, batch))
        }),
        (Step::Probe { .. }, Local::Probe(table, scratch)) => {
            table.probe(&batch, scratch, &mut |batch| push(steps, locals, rows, end, batch))
        }
        (Step::Limit { number, skip, fetch }, Local::Limit) => {
            let taken = end.border.limits.get(*number).ok_or(Error::Form("a limit that nobody counts for"))?;
            let (count, last) = (batch.rows as u64, fetch.map_or(u64::MAX, |fetch| skip.saturating_add(fetch)));
            let before = taken.fetch_add(count, Ordering::Relaxed);
            let place = |row: u64| row.saturating_sub(before).min(count) as usize;
            let (first, after) = (place(*skip), place(last));
            if first < after {
                let pushed = push(steps, locals, rows, end, batch.slice(first, after));
                end.border.has_failed_after_limit |= !matches!(pushed, Ok(()) | Err(Error::Enough));
                pushed?;
            }
            if last <= before.saturating_add(count) { Err(Error::Enough) } else { Ok(()) }
        }
        _ => Err(Error::Form("a step without what it needs")),
    }
}

/// The rows for which all conditions are true.
fn fulfilling(
    batch: Batch,
    conditions: &[Expression],
    order: &mut Conjuncts,
    memory: &mut Memory,
    now: Option<&Now>,
) -> Result<Batch> {
    let mut batch = batch;
    let now = now.filter(|_| order.learn());
    for place in 0..order.len() {
        if batch.rows == 0 {
            break;
        }
        let Some(condition) = order.at(place) else { continue };
        let (rows_in, began_ns) = (batch.rows as u64, now.map(|now| now()));
        let passing = conditions[condition].is_true(&batch, memory)?;
        batch = batch.select(&Selection::of(&passing))?;
        if let (Some(now), Some(began_ns)) = (now, began_ns) {
            let ns = now().saturating_sub(began_ns);
            order.note(condition, Effect { rows_in, rows_out: batch.rows as u64, ns });
        }
    }
    if now.is_some() {
        order.end_round();
    }
    Ok(batch)
}

fn projected(expressions: &[Expression], batch: &Batch, memory: &mut Memory) -> Result<Batch> {
    let columns = expressions.iter().map(|expression| expression.evaluate(batch, memory));
    Ok(Batch { rows: batch.rows, columns: columns.collect::<Result<_>>()? })
}

/// That a limit has been reached ends what goes through the steps, and is no failure.
fn unless_enough(pushed: Result<()>) -> Result<()> {
    match pushed {
        Err(Error::Enough) => Ok(()),
        pushed => pushed,
    }
}

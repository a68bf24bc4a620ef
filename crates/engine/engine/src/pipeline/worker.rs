//! Worker that pushes batches through the steps of a pipeline into its sink.

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

/// Worker of a pipeline with the state of its steps and sink.
pub struct Worker {
    pipeline: Arc<Pipeline>,
    /// State of each step.
    locals: Vec<Local>,
    collected: Collected,
    /// Number of rows that reached each step; the last entry is the sink's.
    rows: Vec<u64>,
    meter: Meter,
    border: Border,
    /// Worker of the pipeline that reads this pipeline's groups. Its output rows are taken only after this worker has
    /// finished.
    next: Option<Box<Worker>>,
    /// Whether a LIMIT has been reached, so that no further row can pass.
    has_enough: bool,
}

/// Callbacks and shared state of a worker: cancellation, output, memory accounting, spilling and LIMIT counters. Also
/// consulted within one batch, which a join may expand to millions of rows.
#[derive(Default)]
pub struct Border {
    /// Set when the query is cancelled or its rows are no longer wanted.
    pub stop: Arc<AtomicBool>,
    /// Receives output rows as soon as several batches are buffered; without it they stay in the worker.
    pub relief: Option<Box<Relief>>,
    /// Memory accounting, called with the bytes of the sink state whenever it grows.
    pub room: Option<Box<Room>>,
    /// Receives the sink state as rows if no memory is left for it; the worker's own state is empty afterwards.
    pub spill: Option<Box<Spill>>,
    /// Receives rows of a sort if no memory is left for them; the receiver sorts them and writes them as a run.
    pub sort: Option<Box<SpillSorted>>,
    /// Whether the worker has spilled: build-side rows then go straight to `spill`.
    is_spilling: bool,
    /// Row counters of LIMIT steps by the steps' numbers, shared by all workers.
    pub limits: Arc<[AtomicU64]>,
    /// Whether a step or the sink after a LIMIT failed, which loses rows that the LIMIT has already counted.
    has_failed_after_limit: bool,
    /// Bytes of buffered output rows, if `relief` is not set.
    held: usize,
    /// Clock; `None` if time is not measured.
    now: Option<Arc<Now>>,
}

impl Border {
    /// Creates a context that can be cancelled, accounts memory and cannot spill.
    #[must_use]
    pub fn new(stop: Arc<AtomicBool>, relief: Option<Box<Relief>>, room: Box<Room>, limits: Arc<[AtomicU64]>) -> Self {
        Self { stop, relief, room: Some(room), limits, ..Self::default() }
    }

    /// Spills build sides, groups and output rows to `spill` when memory runs out.
    #[must_use]
    pub fn spilling_to(self, spill: Box<Spill>) -> Self {
        Self { spill: Some(spill), ..self }
    }

    /// Spills the rows of a sort to `sort` when memory runs out.
    #[must_use]
    pub fn sorting_to(self, sort: Box<SpillSorted>) -> Self {
        Self { sort: Some(sort), ..self }
    }

    /// Measures the time spent in each step with this clock.
    #[must_use]
    pub fn timed_by(self, now: Arc<Now>) -> Self {
        Self { now: Some(now), ..self }
    }
}

/// Receives all buffered output batches; may block.
pub type Relief = dyn FnMut(Vec<Batch>) -> Result<()> + Send;

/// Accounts the bytes that a sink holds; returns [`Error::Memory`] if they exceed the limit.
pub type Room = dyn FnMut(usize) -> Result<()> + Send;

/// Receives spilled rows: rows of a build side, groups in the format of [`Groups::drain`], or output rows.
pub type Spill = dyn FnMut(Batch) -> Result<()> + Send;

/// Receives spilled rows of a sort, which it sorts and writes as a run.
pub type SpillSorted = dyn FnMut(Sorting) -> Result<()> + Send;

/// Number of buffered output batches at which [`Border::relief`] is called.
const HELD_MAX: usize = 32;

/// Per-worker state of a step.
enum Local {
    Filter(Memory, Conjuncts),
    Project(Memory),
    Probe(Arc<JoinTable>, Box<ProbeScratch>),
    Limit,
}

/// Position of a build-side chunk among the chunks that a probe batch is joined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    pub is_first: bool,
    pub is_last: bool,
}

/// State of a worker's sink.
pub enum Collected {
    Groups(Box<Groups>),
    Build(Box<Build>),
    Sorting(Box<Sorting>),
    /// Output rows not yet taken by the caller.
    Rows(Vec<Batch>),
}

impl Worker {
    /// Creates a worker; `table_of` returns the hash tables built by earlier pipelines.
    ///
    /// # Errors
    /// Returns [`Error::Form`] if a hash table is missing.
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
                let table = table_of(*built_by).ok_or(Error::Form("a probe step's hash table has not been built"))?;
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

    /// Continues with the sink state of a worker of the previous pipeline, which has the same sink.
    #[must_use]
    pub fn beginning_with(self, collected: Collected) -> Self {
        Self { collected, ..self }
    }

    /// Passes groups on to a worker of the pipeline that reads them as soon as they are complete, before all rows
    /// have arrived.
    pub fn lead_to(&mut self, next: Self) {
        self.next = Some(Box::new(next));
    }

    /// Removes and returns the downstream worker set by [`Worker::lead_to`].
    pub fn take_next(&mut self) -> Option<Self> {
        self.next.take().map(|next| *next)
    }

    /// Ends a run of the source, such as a page of a clustered table, and passes on the groups that no later run can
    /// contain.
    ///
    /// # Errors
    /// Returns the errors of the downstream worker's steps.
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

    /// Pushes a batch of the source through all steps.
    ///
    /// # Errors
    /// Returns the errors of the steps.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        let mut end = End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter };
        let pushed = push(&self.pipeline.steps, &mut self.locals, &mut self.rows, &mut end, batch);
        self.has_enough |= matches!(pushed, Err(Error::Enough));
        unless_enough(pushed)
    }

    /// Pushes a batch through a pipeline whose first step probes one chunk of a build side. The same batch is pushed
    /// for every chunk; `matched` carries its matches from one to the next.
    ///
    /// # Errors
    /// Returns the errors of the steps.
    pub fn push_piece(&mut self, batch: &Batch, matched: &Matched, pass: Pass) -> Result<()> {
        let (Some((Local::Probe(table, scratch), locals)), Some((_, steps)), Some((came, rows))) =
            (self.locals.split_first_mut(), self.pipeline.steps.split_first(), self.rows.split_first_mut())
        else {
            return Err(Error::Form("a chunk of a build side was pushed, but the first step is no probe"));
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

    /// Returns whether an error can be ignored if other workers reach the limit: it concerns values only, and no row
    /// already counted by a LIMIT is missing.
    #[must_use]
    pub fn may_ignore(&self, error: &Error) -> bool {
        error.is_about_values() && !self.border.has_failed_after_limit
    }

    /// Returns whether a LIMIT has been reached, so that no further row can pass.
    #[must_use]
    pub fn has_enough(&self) -> bool {
        self.has_enough
    }

    /// Emits this worker's share of the build rows that a join returns after probing, and pushes them through the
    /// steps after the join. Must be called after all workers have finished probing.
    ///
    /// # Errors
    /// Returns the errors of the steps.
    pub fn push_rest(&mut self, step: usize, part: usize, parts: usize) -> Result<()> {
        let (Some(Local::Probe(table, _)), Some(Step::Probe { forms, .. })) =
            (self.locals.get(step), self.pipeline.steps.get(step))
        else {
            return Err(Error::Form("build rows were requested from a step that is no probe"));
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

    /// Returns the rows collected for a sort; `None` for other sinks.
    #[must_use]
    pub fn sorting(&self) -> Option<&Sorting> {
        match &self.collected {
            Collected::Sorting(sorting) => Some(sorting),
            _ => None,
        }
    }

    /// Replaces the hash table of a probe step.
    ///
    /// # Errors
    /// Returns [`Error::Form`] if the step is no probe.
    pub fn put_table(&mut self, step: usize, table: Arc<JoinTable>) -> Result<()> {
        let Some(Local::Probe(there, _)) = self.locals.get_mut(step) else {
            return Err(Error::Form("a hash table was set for a step that is no probe"));
        };
        *there = table;
        Ok(())
    }

    /// Spills the sink state.
    ///
    /// # Errors
    /// Returns [`Error::Memory`] if nothing receives spilled rows, and the errors of the receiver.
    pub fn spill(&mut self) -> Result<()> {
        End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter }.spill()
    }

    /// Removes and returns the groups collected so far; `None` for other sinks.
    ///
    /// # Errors
    /// Returns the errors of the memory accounting.
    pub fn take_groups(&mut self) -> Result<Option<Groups>> {
        let Collected::Groups(groups) = &mut self.collected else { return Ok(None) };
        let taken = groups.take();
        if let Some(room) = &mut self.border.room {
            room(0)?;
        }
        Ok(Some(taken))
    }

    /// Merges groups of the same aggregation into the collected groups.
    ///
    /// # Errors
    /// Returns the errors of [`Groups::merge`] and of the memory accounting.
    pub fn add_groups(&mut self, more: Groups) -> Result<()> {
        let stop = Arc::clone(&self.border.stop);
        self.add_to_groups(|groups| groups.merge(more, &stop))
    }

    /// Merges cached groups of the same aggregation into the collected groups.
    ///
    /// # Errors
    /// Returns the errors listed for [`Worker::add_groups`].
    pub fn add_compact(&mut self, more: &CompactGroups) -> Result<()> {
        let stop = Arc::clone(&self.border.stop);
        self.add_to_groups(|groups| groups.add_compact(more, &stop))
    }

    fn add_to_groups(&mut self, add: impl FnOnce(&mut Groups) -> Result<()>) -> Result<()> {
        let Collected::Groups(groups) = &mut self.collected else {
            return Err(Error::Form("groups were added to a sink that does not aggregate"));
        };
        add(groups)?;
        let bytes = groups.memory_bytes();
        End { collected: &mut self.collected, border: &mut self.border, meter: &mut self.meter }.hold(bytes)
    }

    /// Returns the sink state.
    #[must_use]
    pub fn collected(&self) -> &Collected {
        &self.collected
    }

    /// Returns the number of rows that reached each step; the last number is the sink's.
    #[must_use]
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// Returns the busy time of each step; the last one is the sink's.
    pub fn busy(&self) -> impl Iterator<Item = Option<Busy>> {
        self.meter.of_steps()
    }

    /// Returns the cost of Arrow functions in each step.
    pub fn calls(&self) -> impl Iterator<Item = Calls> {
        self.locals.iter().map(|local| match local {
            Local::Filter(memory, _) | Local::Project(memory) => memory.calls(),
            Local::Probe(_, scratch) => scratch.calls(),
            Local::Limit => Calls::default(),
        })
    }

    /// Removes and returns the buffered output rows.
    pub fn take_rows(&mut self) -> Vec<Batch> {
        match &mut self.collected {
            Collected::Rows(rows) => {
                self.border.held = 0;
                std::mem::take(rows)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the sink state and ends the worker.
    #[must_use]
    pub fn finish(self) -> Collected {
        self.collected
    }
}

/// Sink of a worker together with the callbacks it needs.
struct End<'a> {
    collected: &'a mut Collected,
    border: &'a mut Border,
    meter: &'a mut Meter,
}

impl End<'_> {
    /// Adds a batch to the sink.
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
                // Memory for sorting a run before it is spilled is reserved in advance.
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

    /// Accounts the bytes of the sink state, and spills the state if they exceed the limit.
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
            _ => return Err(Error::Memory("the state of an operator")),
        }
        self.border.is_spilling = true;
        self.border.held = 0;
        self.border.room.as_mut().map_or(Ok(()), |room| room(0))
    }
}

/// Pushes a batch through the remaining steps into the sink.
fn push(steps: &[Step], locals: &mut [Local], rows: &mut [u64], end: &mut End<'_>, batch: Batch) -> Result<()> {
    if batch.rows == 0 {
        return Ok(());
    }
    if end.border.stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    let (here, rows) = rows.split_first_mut().ok_or(Error::Form("a worker has fewer row counters than steps"))?;
    *here += batch.rows as u64;
    let before = end.meter.enter(steps.len());
    let pushed = match (steps.split_first(), locals.split_first_mut()) {
        (Some((step, steps)), Some((local, locals))) => through((step, local), (steps, locals), rows, end, batch),
        _ => end.take(batch),
    };
    end.meter.leave(before);
    pushed
}

/// Runs one step on a batch and pushes its output through the steps after it.
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
            let taken = end.border.limits.get(*number).ok_or(Error::Form("a LIMIT step has no row counter"))?;
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
        _ => Err(Error::Form("a step's per-worker state is of another kind of step")),
    }
}

/// Returns the rows for which all conditions are true, and learns the cheapest order of the conditions.
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

/// Turns [`Error::Enough`] into success: a reached LIMIT ends the batch, but is no failure.
fn unless_enough(pushed: Result<()>) -> Result<()> {
    match pushed {
        Err(Error::Enough) => Ok(()),
        pushed => pushed,
    }
}

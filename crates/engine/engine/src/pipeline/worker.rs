//! Worker that pushes batches through the steps of a pipeline into its sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use types::ConjunctOrder;
use types::conjunct_order::{ConditionStats, Mobility};

use super::step_timing::StepTimer;
use super::{BusyTime, NanoClock, Pipeline, Sink, Step};
use crate::aggregate::{CompactGroups, Groups};
use crate::batch_splitting::{ErrorGranularity, compute_in_portions};
use crate::expression::{CallCosts, Expression, ExpressionState};
use crate::join::{BuildCollector, JoinHashTable, ProbeMatches, ProbeScratch};
use crate::sort::SortCollector;
use crate::vector::copied_bytes;
use crate::{Batch, Error, Result, Selection};

/// Worker of a pipeline with the state of its steps and sink.
pub struct Worker {
    pipeline: Arc<Pipeline>,
    /// State of each step.
    step_states: Vec<StepState>,
    sink_state: SinkState,
    /// Number of rows that reached each step; the last entry is the sink's.
    row_counts: Vec<u64>,
    step_timer: StepTimer,
    context: WorkerContext,
    /// Worker of the pipeline that reads this pipeline's groups. Its output rows are taken only after this worker has
    /// finished.
    downstream: Option<Box<Worker>>,
    /// Whether a LIMIT has been reached, so that no further row can pass.
    is_limit_reached: bool,
}

/// Callbacks and shared state of a worker: cancellation, output, memory accounting, spilling and LIMIT counters. Also
/// consulted within one batch, which a join may expand to millions of rows.
#[derive(Default)]
pub struct WorkerContext {
    /// Set when the query is cancelled or its rows are no longer wanted.
    pub stop: Arc<AtomicBool>,
    /// Receives output rows as soon as several batches are buffered; without it they stay in the worker.
    pub output: Option<Box<OutputSink>>,
    /// Memory accounting, called with the bytes of the sink state whenever it grows.
    pub memory: Option<Box<MemoryBudget>>,
    /// Receives the sink state as rows if no memory is left for it; the worker's own state is empty afterwards.
    pub spill: Option<Box<SpillSink>>,
    /// Receives rows of a sort if no memory is left for them; the receiver sorts them and writes them as a run.
    pub sort_spill: Option<Box<SortSpillSink>>,
    /// Whether the worker has spilled: build-side rows then go straight to `spill`.
    is_spilling: bool,
    /// Row counters of LIMIT steps by the steps' numbers, shared by all workers.
    pub limit_counters: Arc<[AtomicU64]>,
    /// Whether a step or the sink after a LIMIT failed, which loses rows that the LIMIT has already counted.
    has_failed_after_limit: bool,
    /// Bytes of buffered output rows, if `output` is not set.
    buffered_bytes: usize,
    /// Clock; `None` if time is not measured.
    clock: Option<Arc<NanoClock>>,
}

impl WorkerContext {
    /// Creates a context that can be cancelled, accounts memory and cannot spill.
    #[must_use]
    pub fn new(
        stop: Arc<AtomicBool>,
        relief: Option<Box<OutputSink>>,
        room: Box<MemoryBudget>,
        limits: Arc<[AtomicU64]>,
    ) -> Self {
        Self { stop, output: relief, memory: Some(room), limit_counters: limits, ..Self::default() }
    }

    /// Spills build sides, groups and output rows to `spill` when memory runs out.
    #[must_use]
    pub fn with_spill(self, spill: Box<SpillSink>) -> Self {
        Self { spill: Some(spill), ..self }
    }

    /// Spills the rows of a sort to `sort` when memory runs out.
    #[must_use]
    pub fn with_sort_spill(self, sort: Box<SortSpillSink>) -> Self {
        Self { sort_spill: Some(sort), ..self }
    }

    /// Measures the time spent in each step with this clock.
    #[must_use]
    pub fn with_clock(self, now: Arc<NanoClock>) -> Self {
        Self { clock: Some(now), ..self }
    }
}

/// Receives all buffered output batches; may block.
pub type OutputSink = dyn FnMut(Vec<Batch>) -> Result<()> + Send;

/// Accounts the bytes that a sink holds; returns [`Error::OutOfMemory`] if they exceed the limit.
pub type MemoryBudget = dyn FnMut(usize) -> Result<()> + Send;

/// Receives spilled rows: rows of a build side, groups in the format of [`Groups::drain`], or output rows.
pub type SpillSink = dyn FnMut(Batch) -> Result<()> + Send;

/// Receives spilled rows of a sort, which it sorts and writes as a run.
pub type SortSpillSink = dyn FnMut(SortCollector) -> Result<()> + Send;

/// Number of buffered output batches at which [`WorkerContext::output`] is called.
const BUFFERED_BATCHES_MAX: usize = 32;

/// Per-worker state of a step.
enum StepState {
    Filter(ExpressionState, ConjunctOrder),
    Project(ExpressionState),
    Probe(Arc<JoinHashTable>, Box<ProbeScratch>),
    Limit,
}

/// Position of a build-side chunk among the chunks that a probe batch is joined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildChunkPosition {
    pub is_first: bool,
    pub is_last: bool,
}

/// State of a worker's sink.
pub enum SinkState {
    Groups(Box<Groups>),
    Build(Box<BuildCollector>),
    Sorting(Box<SortCollector>),
    /// Output rows not yet taken by the caller.
    Rows(Vec<Batch>),
}

impl Worker {
    /// Creates a worker; `table_of` returns the hash tables built by earlier pipelines.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if a hash table is missing.
    pub fn new(
        pipeline: &Arc<Pipeline>,
        table_of: impl Fn(usize) -> Option<Arc<JoinHashTable>>,
        border: WorkerContext,
    ) -> Result<Self> {
        let local = |step: &Step| match step {
            Step::Filter(conditions) => {
                let places = conditions.iter().map(|condition| Mobility::from_never_fails(condition.never_fails()));
                Ok(StepState::Filter(
                    ExpressionState::with_clock(border.clock.clone()),
                    ConjunctOrder::new(places.collect()),
                ))
            }
            Step::Project(_) | Step::Expand(_) => {
                Ok(StepState::Project(ExpressionState::with_clock(border.clock.clone())))
            }
            Step::Probe { build_pipeline: built_by, .. } => {
                let table =
                    table_of(*built_by).ok_or(Error::Internal("a probe step's hash table has not been built"))?;
                Ok(StepState::Probe(table, Box::new(ProbeScratch::new(&border.stop, border.clock.clone()))))
            }
            Step::Limit { .. } => Ok(StepState::Limit),
        };
        let locals = pipeline.steps.iter().map(local).collect::<Result<Vec<_>>>()?;
        let collected = match &pipeline.sink {
            Sink::Aggregate(spec) => SinkState::Groups(Box::new(Groups::new(spec))),
            Sink::Build(spec) => SinkState::Build(Box::new(BuildCollector::new(spec))),
            Sink::Sort(spec) => SinkState::Sorting(Box::new(SortCollector::new(spec))),
            Sink::Output => SinkState::Rows(Vec::new()),
        };
        let rows = vec![0; locals.len() + 1];
        let (step_timer, pipeline) = (StepTimer::new(border.clock.clone(), locals.len()), Arc::clone(pipeline));
        Ok(Self {
            pipeline,
            step_states: locals,
            sink_state: collected,
            row_counts: rows,
            step_timer,
            context: border,
            downstream: None,
            is_limit_reached: false,
        })
    }

    /// Continues with the sink state of a worker of the previous pipeline, which has the same sink.
    #[must_use]
    pub fn with_sink_state(self, collected: SinkState) -> Self {
        Self { sink_state: collected, ..self }
    }

    /// Passes groups on to a worker of the pipeline that reads them as soon as they are complete, before all rows
    /// have arrived.
    pub fn set_downstream(&mut self, next: Self) {
        self.downstream = Some(Box::new(next));
    }

    /// Removes and returns the downstream worker set by [`Worker::set_downstream`].
    pub fn take_downstream(&mut self) -> Option<Self> {
        self.downstream.take().map(|next| *next)
    }

    /// Ends a run of the source, such as a page of a clustered table, and passes on the groups that no later run can
    /// contain.
    ///
    /// # Errors
    /// Returns the errors of the downstream worker's steps.
    pub fn end_run(&mut self) -> Result<()> {
        let (SinkState::Groups(groups), Some(next)) = (&mut self.sink_state, &mut self.downstream) else {
            return Ok(());
        };
        let outside = self.step_timer.enter(0);
        let ended = groups.end_run();
        self.step_timer.leave(outside);
        let ended = ended?;
        let bytes = groups.memory_bytes();
        SinkContext { sink_state: &mut self.sink_state, context: &mut self.context, step_timer: &mut self.step_timer }
            .account(bytes)?;
        let Some(ended) = ended else { return Ok(()) };
        (0..).map_while(|number| ended.batch(number)).try_for_each(|batch| next.push(batch))
    }

    /// Pushes a batch of the source through all steps.
    ///
    /// # Errors
    /// Returns the errors of the steps.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        let mut end = SinkContext {
            sink_state: &mut self.sink_state,
            context: &mut self.context,
            step_timer: &mut self.step_timer,
        };
        let pushed = push(&self.pipeline.steps, &mut self.step_states, &mut self.row_counts, &mut end, batch);
        self.is_limit_reached |= matches!(pushed, Err(Error::LimitReached));
        ignore_limit_reached(pushed)
    }

    /// Pushes a batch through a pipeline whose first step probes one chunk of a build side. The same batch is pushed
    /// for every chunk; `matched` carries its matches from one to the next.
    ///
    /// # Errors
    /// Returns the errors of the steps.
    pub fn push_chunk(&mut self, batch: &Batch, matched: &ProbeMatches, pass: BuildChunkPosition) -> Result<()> {
        let (Some((StepState::Probe(table, scratch), locals)), Some((_, steps)), Some((came, rows))) =
            (self.step_states.split_first_mut(), self.pipeline.steps.split_first(), self.row_counts.split_first_mut())
        else {
            return Err(Error::Internal("a chunk of a build side was pushed, but the first step is no probe"));
        };
        if pass.is_first {
            *came += batch.rows as u64;
        }
        let mut end = SinkContext {
            sink_state: &mut self.sink_state,
            context: &mut self.context,
            step_timer: &mut self.step_timer,
        };
        if end.context.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let outside = end.step_timer.enter(steps.len() + 1);
        let mut next = |batch| push(steps, locals, rows, &mut end, batch);
        let pushed = table.probe_chunk(batch, matched, pass.is_last, scratch, &mut next);
        end.step_timer.leave(outside);
        self.is_limit_reached |= matches!(pushed, Err(Error::LimitReached));
        ignore_limit_reached(pushed)
    }

    /// Returns whether an error can be ignored if other workers reach the limit: it concerns values only, and no row
    /// already counted by a LIMIT is missing.
    #[must_use]
    pub fn can_ignore_error(&self, error: &Error) -> bool {
        error.is_row_error() && !self.context.has_failed_after_limit
    }

    /// Returns whether a LIMIT has been reached, so that no further row can pass.
    #[must_use]
    pub fn is_limit_reached(&self) -> bool {
        self.is_limit_reached
    }

    /// Emits this worker's share of the build rows that a join returns after probing, and pushes them through the
    /// steps after the join. Must be called after all workers have finished probing.
    ///
    /// # Errors
    /// Returns the errors of the steps.
    pub fn push_build_rows(&mut self, step: usize, part: usize, parts: usize) -> Result<()> {
        let (Some(StepState::Probe(table, _)), Some(Step::Probe { probe_types: forms, .. })) =
            (self.step_states.get(step), self.pipeline.steps.get(step))
        else {
            return Err(Error::Internal("build rows were requested from a step that is no probe"));
        };
        let table = Arc::clone(table);
        let (steps, locals) = (&self.pipeline.steps[step + 1..], &mut self.step_states[step + 1..]);
        let rows = &mut self.row_counts[step + 1..];
        let mut end = SinkContext {
            sink_state: &mut self.sink_state,
            context: &mut self.context,
            step_timer: &mut self.step_timer,
        };
        let outside = end.step_timer.enter(steps.len() + 1);
        let pushed =
            table.output_build_rows(part, parts, forms, &mut |batch| push(steps, locals, rows, &mut end, batch));
        end.step_timer.leave(outside);
        ignore_limit_reached(pushed)
    }

    /// Returns the rows collected for a sort; `None` for other sinks.
    #[must_use]
    pub fn sorting(&self) -> Option<&SortCollector> {
        match &self.sink_state {
            SinkState::Sorting(sorting) => Some(sorting),
            _ => None,
        }
    }

    /// Replaces the hash table of a probe step.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if the step is no probe.
    pub fn set_table(&mut self, step: usize, table: Arc<JoinHashTable>) -> Result<()> {
        let Some(StepState::Probe(there, _)) = self.step_states.get_mut(step) else {
            return Err(Error::Internal("a hash table was set for a step that is no probe"));
        };
        *there = table;
        Ok(())
    }

    /// Spills the sink state.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`] if nothing receives spilled rows, and the errors of the receiver.
    pub fn spill(&mut self) -> Result<()> {
        SinkContext { sink_state: &mut self.sink_state, context: &mut self.context, step_timer: &mut self.step_timer }
            .spill()
    }

    /// Removes and returns the groups collected so far; `None` for other sinks.
    ///
    /// # Errors
    /// Returns the errors of the memory accounting.
    pub fn take_groups(&mut self) -> Result<Option<Groups>> {
        let SinkState::Groups(groups) = &mut self.sink_state else { return Ok(None) };
        let taken = groups.take();
        if let Some(room) = &mut self.context.memory {
            room(0)?;
        }
        Ok(Some(taken))
    }

    /// Merges groups of the same aggregation into the collected groups.
    ///
    /// # Errors
    /// Returns the errors of [`Groups::merge`] and of the memory accounting.
    pub fn add_groups(&mut self, more: Groups) -> Result<()> {
        let stop = Arc::clone(&self.context.stop);
        self.add_to_groups(|groups| groups.merge(more, &stop))
    }

    /// Merges cached groups of the same aggregation into the collected groups.
    ///
    /// # Errors
    /// Returns the errors listed for [`Worker::add_groups`].
    pub fn add_compact_groups(&mut self, more: &CompactGroups) -> Result<()> {
        let stop = Arc::clone(&self.context.stop);
        self.add_to_groups(|groups| groups.merge_compact(more, &stop))
    }

    fn add_to_groups(&mut self, add: impl FnOnce(&mut Groups) -> Result<()>) -> Result<()> {
        let SinkState::Groups(groups) = &mut self.sink_state else {
            return Err(Error::Internal("groups were added to a sink that does not aggregate"));
        };
        add(groups)?;
        let bytes = groups.memory_bytes();
        SinkContext { sink_state: &mut self.sink_state, context: &mut self.context, step_timer: &mut self.step_timer }
            .account(bytes)
    }

    /// Returns the sink state.
    #[must_use]
    pub fn sink_state(&self) -> &SinkState {
        &self.sink_state
    }

    /// Returns the number of rows that reached each step; the last number is the sink's.
    #[must_use]
    pub fn row_counts(&self) -> &[u64] {
        &self.row_counts
    }

    /// Returns the busy time of each step; the last one is the sink's.
    pub fn step_busy_times(&self) -> impl Iterator<Item = Option<BusyTime>> {
        self.step_timer.step_times()
    }

    /// Returns the cost of Arrow functions in each step.
    pub fn call_costs(&self) -> impl Iterator<Item = CallCosts> {
        self.step_states.iter().map(|local| match local {
            StepState::Filter(memory, _) | StepState::Project(memory) => memory.call_costs(),
            StepState::Probe(_, scratch) => scratch.calls(),
            StepState::Limit => CallCosts::default(),
        })
    }

    /// Removes and returns the buffered output rows.
    pub fn take_rows(&mut self) -> Vec<Batch> {
        match &mut self.sink_state {
            SinkState::Rows(rows) => {
                self.context.buffered_bytes = 0;
                std::mem::take(rows)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the sink state and ends the worker.
    #[must_use]
    pub fn into_sink_state(self) -> SinkState {
        self.sink_state
    }
}

/// Sink of a worker together with the callbacks it needs.
struct SinkContext<'a> {
    sink_state: &'a mut SinkState,
    context: &'a mut WorkerContext,
    step_timer: &'a mut StepTimer,
}

impl SinkContext<'_> {
    /// Adds a batch to the sink.
    fn add(&mut self, batch: Batch) -> Result<()> {
        let bytes = match self.sink_state {
            SinkState::Groups(groups) => {
                groups.add(&batch)?;
                groups.memory_bytes()
            }
            SinkState::Build(build) => {
                if let (true, Some(spill)) = (self.context.is_spilling, &mut self.context.spill) {
                    return spill(batch);
                }
                build.push(batch)?;
                build.memory_bytes()
            }
            SinkState::Sorting(sorting) => {
                sorting.push(batch)?;
                // Memory for sorting a run before it is spilled is reserved in advance.
                let room_bytes = if self.context.sort_spill.is_some() { sorting.sort_memory_bytes() } else { 0 };
                sorting.memory_bytes() + room_bytes
            }
            SinkState::Rows(rows) => {
                let bytes: usize = batch.columns.iter().map(copied_bytes).sum();
                rows.push(batch);
                match &mut self.context.output {
                    Some(relief) if BUFFERED_BATCHES_MAX <= rows.len() => return relief(std::mem::take(rows)),
                    Some(_) => return Ok(()),
                    None => self.context.buffered_bytes += bytes,
                }
                self.context.buffered_bytes
            }
        };
        self.account(bytes)
    }

    /// Accounts the bytes of the sink state, and spills the state if they exceed the limit.
    fn account(&mut self, bytes: usize) -> Result<()> {
        let Some(room) = &mut self.context.memory else { return Ok(()) };
        match room(bytes) {
            Err(Error::OutOfMemory(_)) if self.context.spill.is_some() || self.context.sort_spill.is_some() => {
                self.spill()
            }
            outcome => outcome,
        }
    }

    fn spill(&mut self) -> Result<()> {
        match (&mut *self.sink_state, &mut self.context.spill, &mut self.context.sort_spill) {
            (SinkState::Groups(groups), Some(spill), _) => groups.drain(spill)?,
            (SinkState::Build(build), Some(spill), _) => build.drain(spill)?,
            (SinkState::Rows(rows), Some(spill), _) => rows.drain(..).try_for_each(spill)?,
            (SinkState::Sorting(sorting), _, Some(sort)) => sorting.drain(sort)?,
            _ => return Err(Error::OutOfMemory("the rows collected by a pipeline's sink")),
        }
        self.context.is_spilling = true;
        self.context.buffered_bytes = 0;
        self.context.memory.as_mut().map_or(Ok(()), |room| room(0))
    }
}

/// Pushes a batch through the remaining steps into the sink.
fn push(
    steps: &[Step],
    locals: &mut [StepState],
    rows: &mut [u64],
    end: &mut SinkContext<'_>,
    batch: Batch,
) -> Result<()> {
    if batch.rows == 0 {
        return Ok(());
    }
    if end.context.stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    let (here, rows) = rows.split_first_mut().ok_or(Error::Internal("a worker has fewer row counters than steps"))?;
    *here += batch.rows as u64;
    let before = end.step_timer.enter(steps.len());
    let pushed = match (steps.split_first(), locals.split_first_mut()) {
        (Some((step, steps)), Some((local, locals))) => run_step((step, local), (steps, locals), rows, end, batch),
        _ => end.add(batch),
    };
    end.step_timer.leave(before);
    pushed
}

/// Runs one step on a batch and pushes its output through the steps after it.
fn run_step(
    (step, local): (&Step, &mut StepState),
    (steps, locals): (&[Step], &mut [StepState]),
    rows: &mut [u64],
    end: &mut SinkContext<'_>,
    batch: Batch,
) -> Result<()> {
    let granularity =
        if steps.iter().any(Step::may_end_early) { ErrorGranularity::Row } else { ErrorGranularity::Batch };
    match (step, local) {
        (Step::Filter(conditions), StepState::Filter(memory, order)) => {
            let now = end.context.clock.clone();
            let compute = |batch| filter_batch(batch, conditions, order, memory, now.as_deref());
            compute_in_portions(batch, granularity, compute, |batch| push(steps, locals, rows, end, batch))
        }
        (Step::Project(expressions), StepState::Project(memory)) => {
            let compute = |batch: Batch| project_batch(expressions, &batch, memory);
            compute_in_portions(batch, granularity, compute, |batch| push(steps, locals, rows, end, batch))
        }
        (Step::Expand(lists), StepState::Project(memory)) => lists.iter().try_for_each(|expressions| {
            let compute = |batch: Batch| project_batch(expressions, &batch, memory);
            compute_in_portions(batch.clone(), granularity, compute, |batch| push(steps, locals, rows, end, batch))
        }),
        (Step::Probe { .. }, StepState::Probe(table, scratch)) => {
            table.probe(&batch, scratch, &mut |batch| push(steps, locals, rows, end, batch))
        }
        (Step::Limit { counter: number, skip, fetch }, StepState::Limit) => {
            let taken =
                end.context.limit_counters.get(*number).ok_or(Error::Internal("a LIMIT step has no row counter"))?;
            let (count, last) = (batch.rows as u64, fetch.map_or(u64::MAX, |fetch| skip.saturating_add(fetch)));
            let before = taken.fetch_add(count, Ordering::Relaxed);
            let place = |row: u64| row.saturating_sub(before).min(count) as usize;
            let (first, after) = (place(*skip), place(last));
            if first < after {
                let pushed = push(steps, locals, rows, end, batch.slice(first, after));
                end.context.has_failed_after_limit |= !matches!(pushed, Ok(()) | Err(Error::LimitReached));
                pushed?;
            }
            if last <= before.saturating_add(count) { Err(Error::LimitReached) } else { Ok(()) }
        }
        _ => Err(Error::Internal("a step's per-worker state is of another kind of step")),
    }
}

/// Returns the rows for which all conditions are true, and learns the cheapest order of the conditions.
fn filter_batch(
    batch: Batch,
    conditions: &[Expression],
    order: &mut ConjunctOrder,
    memory: &mut ExpressionState,
    now: Option<&NanoClock>,
) -> Result<Batch> {
    let mut batch = batch;
    let now = now.filter(|_| order.is_adaptive());
    for place in 0..order.len() {
        if batch.rows == 0 {
            break;
        }
        let Some(condition) = order.condition_at(place) else { continue };
        let (rows_in, began_ns) = (batch.rows as u64, now.map(|now| now()));
        let passing = conditions[condition].is_true(&batch, memory)?;
        batch = batch.select(&Selection::from_bitmap(&passing))?;
        if let (Some(now), Some(began_ns)) = (now, began_ns) {
            let ns = now().saturating_sub(began_ns);
            order.record(condition, ConditionStats { rows_in, rows_out: batch.rows as u64, ns });
        }
    }
    if now.is_some() {
        order.end_round();
    }
    Ok(batch)
}

fn project_batch(expressions: &[Expression], batch: &Batch, memory: &mut ExpressionState) -> Result<Batch> {
    let columns = expressions.iter().map(|expression| expression.evaluate(batch, memory));
    Ok(Batch { rows: batch.rows, columns: columns.collect::<Result<_>>()? })
}

/// Turns [`Error::LimitReached`] into success: a reached LIMIT ends the batch, but is no failure.
fn ignore_limit_reached(pushed: Result<()>) -> Result<()> {
    match pushed {
        Err(Error::LimitReached) => Ok(()),
        pushed => pushed,
    }
}

//! Metrics of a fragment for EXPLAIN ANALYZE.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryPool;
use engine::expression::Calls;
use engine::pipeline::{Busy, Now, Source};
use parking_lot::Mutex;
use scheduler::clock;

use crate::memory::OperatorMemory;
use crate::pipelines::Run;
use crate::plan::{Input, OperatorId};
use crate::share::Share;
use crate::spill::{Parts, SortedRun};
use crate::stage::Stage;
use crate::workers::Member;

/// Metrics of the operators that a fragment was compiled from.
#[derive(Debug, Default)]
pub struct Measured {
    /// Start of the fragment, on the clock of [`Run::now`].
    began_ns: AtomicU64,
    did: Mutex<HashMap<OperatorId, Did>>,
    memory: Mutex<HashMap<OperatorId, Arc<OperatorMemory>>>,
}

/// Metrics of one operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Did {
    /// Rows that the operator produced.
    pub rows: u64,
    /// Time of all workers together, and their first and last moment since the start of the fragment; `None` if there
    /// was nothing to do.
    pub busy: Option<Busy>,
    pub spilled: Spilled,
    /// Peak memory in bytes.
    pub memory: u64,
    /// Calls of expressions over Arrow arrays.
    pub calls: Calls,
}

/// Amount of spilled data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spilled {
    /// Bytes in files.
    pub bytes: u64,
    /// Number of partitions; those that were partitioned again count again.
    pub parts: u64,
    /// Number of runs of a sort, including those that were merged from others.
    pub runs: u64,
}

impl Measured {
    /// Returns the metrics of each operator.
    pub fn did(&self) -> HashMap<OperatorId, Did> {
        let mut did = self.did.lock().clone();
        for (operator, memory) in &*self.memory.lock() {
            if 0 < memory.most() {
                did.entry(*operator).or_default().memory = memory.most() as u64;
            }
        }
        did
    }

    /// Returns the pool from which memory for an operator is taken.
    fn memory(&self, operator: Option<OperatorId>, context: &TaskContext) -> Arc<dyn MemoryPool> {
        let Some(operator) = operator else { return Arc::clone(context.memory_pool()) };
        let mut memory = self.memory.lock();
        let own = memory.entry(operator).or_insert_with(|| Arc::new(OperatorMemory::of(context)));
        Arc::<OperatorMemory>::clone(own)
    }

    /// Records the start of the fragment.
    pub(super) fn begin(&self, now: &Now) {
        self.began_ns.store(now(), Ordering::Relaxed);
    }

    /// Adds time to an operator.
    fn busy(&self, operator: Option<OperatorId>, busy: Option<Busy>) {
        let (Some(operator), Some(busy)) = (operator, busy) else { return };
        let since = |moment_ns: u64| moment_ns.saturating_sub(self.began_ns.load(Ordering::Relaxed));
        let busy = Busy { first_ns: since(busy.first_ns), last_ns: since(busy.last_ns), ..busy };
        let mut did = self.did.lock();
        let did = did.entry(operator).or_default();
        did.busy = Some(did.busy.map_or(busy, |before| before.and(busy)));
    }

    /// Adds calls over Arrow arrays to an operator.
    fn called(&self, operator: Option<OperatorId>, calls: Calls) {
        let Some(operator) = operator.filter(|_| calls != Calls::default()) else { return };
        let mut did = self.did.lock();
        let did = did.entry(operator).or_default();
        did.calls = did.calls.and(calls);
    }
}

/// Returns the clock of the threads that a fragment runs on.
pub(super) fn now() -> Arc<Now> {
    let clock = clock();
    Arc::new(move || u64::try_from(clock.monotonic().as_nanos()).unwrap_or(u64::MAX))
}

/// Records what an operator spills, and accounts its memory.
pub(super) struct Spills {
    pub(super) measured: Arc<Measured>,
    pub(super) operator: Option<OperatorId>,
}

impl Spills {
    /// Returns the pool from which its memory is taken.
    pub(super) fn memory(&self, context: &TaskContext) -> Arc<dyn MemoryPool> {
        self.measured.memory(self.operator, context)
    }

    /// Counts spilled partitions.
    pub(super) fn add(&self, parts: &Parts) {
        let (bytes, parts) = parts.size();
        self.count(Spilled { bytes, parts, runs: 0 });
    }

    /// Counts spilled runs.
    pub(super) fn add_runs(&self, runs: &[SortedRun]) {
        let bytes = runs.iter().map(|run| run.bytes).sum();
        self.count(Spilled { bytes, parts: 0, runs: runs.len() as u64 });
    }

    fn count(&self, more: Spilled) {
        let Some(operator) = self.operator else { return };
        let mut did = self.measured.did.lock();
        let spilled = &mut did.entry(operator).or_default().spilled;
        spilled.bytes += more.bytes;
        spilled.parts += more.parts;
        spilled.runs += more.runs;
    }
}

/// Awaits a future. Returns also the time in which it was polled, without waiting times.
pub(super) async fn timed<F: Future>(next: F, now: &Now) -> (F::Output, Option<Busy>) {
    let mut next = pin!(next);
    let mut busy: Option<Busy> = None;
    let came = poll_fn(|context| {
        let began_ns = now();
        let polled = next.as_mut().poll(context);
        let stretch = Busy::between(began_ns, now());
        busy = Some(busy.map_or(stretch, |before| before.and(stretch)));
        polled
    });
    (came.await, busy)
}

impl Run {
    /// Returns the spill metrics of the join at a step of a pipeline.
    pub(super) fn spills_of_join(&self, number: usize, step: usize) -> Spills {
        Spills { measured: Arc::clone(&self.measured), operator: self.lowered.operator_of_step(number, step) }
    }

    /// Returns the spill metrics of the aggregation or sort that a pipeline ends in.
    pub(super) fn spills_of_sink(&self, number: usize) -> Spills {
        Spills { measured: Arc::clone(&self.measured), operator: self.lowered.operator_of_sink(number) }
    }

    /// Returns the memory pool of a pipeline's sink.
    pub(super) fn memory_of_sink(&self, number: usize) -> Arc<dyn MemoryPool> {
        self.measured.memory(self.lowered.operator_of_sink(number), &self.context)
    }

    /// Returns the memory pool of what a stage collects: that of the join on disk that follows, or of the pipeline's
    /// sink.
    pub(super) fn memory_of_stage(&self, number: usize, stage: &Stage) -> Arc<dyn MemoryPool> {
        match stage.next {
            Some(_) => {
                let join = self.lowered.operator_of_step(number, stage.first + stage.pipeline.steps.len());
                self.measured.memory(join, &self.context)
            }
            None => self.memory_of_sink(number),
        }
    }

    /// Records the rows and calls of a finished stage.
    pub(super) fn measure(&self, number: usize, stage: &Stage, members: &[Member], share: &Share) {
        let mut did = self.measured.did.lock();
        let is_joined = matches!(share, Share::Joined(_));
        for mark in self.lowered.marks[number].iter().filter(|mark| stage.counts(mark.step, is_joined)) {
            let at = mark.step - stage.first;
            let came = members.iter().map(|member| member.worker.rows().get(at).copied().unwrap_or(0));
            did.entry(mark.operator).or_default().rows += came.sum::<u64>();
        }
        if let (Share::Scan(work, _), Some(input)) = (share, self.scan_of(number)) {
            let passed = work.passed.load(Ordering::Relaxed);
            let removed = work.removed.load(Ordering::Relaxed);
            did.entry(OperatorId::of(input.scan.as_ref())).or_default().rows += passed + removed;
            if let Some(filter) = input.filter {
                did.entry(filter).or_default().rows += passed;
            }
        }
        drop(did);
        if let (Share::Scan(work, _), Some(input)) = (share, self.scan_of(number)) {
            self.measured.called(Some(OperatorId::of(input.scan.as_ref())), *work.calls.lock());
        }
        for member in members {
            for (step, calls) in (stage.first..).zip(member.worker.calls()) {
                self.measured.called(self.lowered.operator_of_step(number, step), calls);
            }
            self.measure_times(number, stage, member, share);
        }
    }

    /// Records the times of one worker in a finished stage.
    fn measure_times(&self, number: usize, stage: &Stage, member: &Member, share: &Share) {
        let steps = stage.pipeline.steps.len();
        for (step, busy) in member.worker.busy().enumerate() {
            let ends = step == steps && stage.next.is_none();
            let step = stage.first + step;
            let operator =
                if ends { self.lowered.operator_of_sink(number) } else { self.lowered.operator_of_step(number, step) };
            self.measured.busy(operator, busy);
        }
        let source = self.lowered.program.pipelines[number].source;
        let operator = match (share, source) {
            (Share::Scan(..), _) => self.scan_of(number).map(|input| OperatorId::of(input.scan.as_ref())),
            (Share::Joined(_), _) => self.lowered.operator_of_step(number, stage.first),
            (_, Source::Groups(made_by) | Source::Sorted(made_by)) => self.lowered.operator_of_sink(made_by),
            // Operators that are not compiled have their own metrics.
            (_, Source::Input(_)) => None,
        };
        self.measured.busy(operator, member.source_busy);
        if let (Share::Scan(..), Some(input)) = (share, self.scan_of(number)) {
            self.measured.busy(input.filter, member.source_busy);
        }
    }

    /// Records the time in which the workers' sinks were merged.
    pub(super) fn measure_sink(&self, number: usize, began_ns: u64) {
        self.measured.busy(self.lowered.operator_of_sink(number), Some(Busy::between(began_ns, (self.now)())));
    }

    /// Returns the scan that a pipeline reads, if its source is one.
    fn scan_of(&self, number: usize) -> Option<&crate::plan::ScanInput> {
        let Source::Input(input) = self.lowered.program.pipelines[number].source else { return None };
        match &self.lowered.inputs[input] {
            Input::Scan(input) => Some(input),
            Input::Foreign(_) => None,
        }
    }
}

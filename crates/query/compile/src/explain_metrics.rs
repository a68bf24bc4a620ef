//! Metrics of a fragment for EXPLAIN ANALYZE.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryPool;
use engine::expression::CallCosts;
use engine::pipeline::{BusyTime, NanoClock, Source};
use parking_lot::Mutex;
use scheduler::clock;

use crate::memory_accounting::OperatorMemory;
use crate::pipeline_stage::PipelineStage;
use crate::pipeline_workers::PipelineWorker;
use crate::plan::{Input, OperatorId};
use crate::run_pipelines::FragmentRun;
use crate::shared_source::SharedSource;
use crate::spill_execution::{SortedRun, SpillPartitions};

/// Metrics of the operators that a fragment was compiled from.
#[derive(Debug, Default)]
pub struct FragmentMetrics {
    /// Start of the fragment, on the clock of [`FragmentRun::clock`].
    began_ns: AtomicU64,
    by_operator: Mutex<HashMap<OperatorId, OperatorMetrics>>,
    memory: Mutex<HashMap<OperatorId, Arc<OperatorMemory>>>,
}

/// Metrics of one operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperatorMetrics {
    /// Rows that the operator produced.
    pub rows: u64,
    /// Time of all workers together, and their first and last moment since the start of the fragment; `None` if there
    /// was nothing to do.
    pub busy: Option<BusyTime>,
    pub spilled: SpillStats,
    /// Peak memory in bytes.
    pub memory: u64,
    /// Calls of expressions over Arrow arrays.
    pub calls: CallCosts,
}

/// Amount of spilled data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpillStats {
    /// Bytes in files.
    pub bytes: u64,
    /// Number of partitions; those that were partitioned again count again.
    pub parts: u64,
    /// Number of runs of a sort, including those that were merged from others.
    pub runs: u64,
}

impl FragmentMetrics {
    /// Returns the metrics of each operator.
    pub fn by_operator(&self) -> HashMap<OperatorId, OperatorMetrics> {
        let mut did = self.by_operator.lock().clone();
        for (operator, memory) in &*self.memory.lock() {
            if 0 < memory.peak() {
                did.entry(*operator).or_default().memory = memory.peak() as u64;
            }
        }
        did
    }

    /// Returns the pool from which memory for an operator is taken.
    fn memory(&self, operator: Option<OperatorId>, context: &TaskContext) -> Arc<dyn MemoryPool> {
        let Some(operator) = operator else { return Arc::clone(context.memory_pool()) };
        let mut memory = self.memory.lock();
        let own = memory.entry(operator).or_insert_with(|| Arc::new(OperatorMemory::new(context)));
        Arc::<OperatorMemory>::clone(own)
    }

    /// Records the start of the fragment.
    pub(super) fn begin(&self, now: &NanoClock) {
        self.began_ns.store(now(), Ordering::Relaxed);
    }

    /// Adds time to an operator.
    fn add_busy(&self, operator: Option<OperatorId>, busy: Option<BusyTime>) {
        let (Some(operator), Some(busy)) = (operator, busy) else { return };
        let since = |moment_ns: u64| moment_ns.saturating_sub(self.began_ns.load(Ordering::Relaxed));
        let busy = BusyTime { first_ns: since(busy.first_ns), last_ns: since(busy.last_ns), ..busy };
        let mut did = self.by_operator.lock();
        let did = did.entry(operator).or_default();
        did.busy = Some(did.busy.map_or(busy, |before| before.merge(busy)));
    }

    /// Adds calls over Arrow arrays to an operator.
    fn add_calls(&self, operator: Option<OperatorId>, calls: CallCosts) {
        let Some(operator) = operator.filter(|_| calls != CallCosts::default()) else { return };
        let mut did = self.by_operator.lock();
        let did = did.entry(operator).or_default();
        did.calls = did.calls.merge(calls);
    }
}

/// Returns the clock of the threads that a fragment runs on.
pub(super) fn run_clock() -> Arc<NanoClock> {
    let clock = clock();
    Arc::new(move || u64::try_from(clock.monotonic().as_nanos()).unwrap_or(u64::MAX))
}

/// Records what an operator spills, and accounts its memory.
pub(super) struct SpillMetrics {
    pub(super) fragment_metrics: Arc<FragmentMetrics>,
    pub(super) operator: Option<OperatorId>,
}

impl SpillMetrics {
    /// Returns the pool from which its memory is taken.
    pub(super) fn memory(&self, context: &TaskContext) -> Arc<dyn MemoryPool> {
        self.fragment_metrics.memory(self.operator, context)
    }

    /// Counts spilled partitions.
    pub(super) fn add(&self, parts: &SpillPartitions) {
        let (bytes, parts) = parts.size();
        self.count(SpillStats { bytes, parts, runs: 0 });
    }

    /// Counts spilled runs.
    pub(super) fn add_runs(&self, runs: &[SortedRun]) {
        let bytes = runs.iter().map(|run| run.bytes).sum();
        self.count(SpillStats { bytes, parts: 0, runs: runs.len() as u64 });
    }

    fn count(&self, more: SpillStats) {
        let Some(operator) = self.operator else { return };
        let mut did = self.fragment_metrics.by_operator.lock();
        let spilled = &mut did.entry(operator).or_default().spilled;
        spilled.bytes += more.bytes;
        spilled.parts += more.parts;
        spilled.runs += more.runs;
    }
}

/// Awaits a future. Returns also the time in which it was polled, without waiting times.
pub(super) async fn time_polls<F: Future>(next: F, now: &NanoClock) -> (F::Output, Option<BusyTime>) {
    let mut next = pin!(next);
    let mut busy: Option<BusyTime> = None;
    let came = poll_fn(|context| {
        let began_ns = now();
        let polled = next.as_mut().poll(context);
        let stretch = BusyTime::from_interval(began_ns, now());
        busy = Some(busy.map_or(stretch, |before| before.merge(stretch)));
        polled
    });
    (came.await, busy)
}

impl FragmentRun {
    /// Returns the spill metrics of the join at a step of a pipeline.
    pub(super) fn spills_of_join(&self, number: usize, step: usize) -> SpillMetrics {
        SpillMetrics {
            fragment_metrics: Arc::clone(&self.fragment_metrics),
            operator: self.compiled.operator_of_step(number, step),
        }
    }

    /// Returns the spill metrics of the aggregation or sort that a pipeline ends in.
    pub(super) fn spills_of_sink(&self, number: usize) -> SpillMetrics {
        SpillMetrics {
            fragment_metrics: Arc::clone(&self.fragment_metrics),
            operator: self.compiled.operator_of_sink(number),
        }
    }

    /// Returns the memory pool of a pipeline's sink.
    pub(super) fn memory_of_sink(&self, number: usize) -> Arc<dyn MemoryPool> {
        self.fragment_metrics.memory(self.compiled.operator_of_sink(number), &self.context)
    }

    /// Returns the memory pool of what a stage collects: that of the join on disk that follows, or of the pipeline's
    /// sink.
    pub(super) fn memory_of_stage(&self, number: usize, stage: &PipelineStage) -> Arc<dyn MemoryPool> {
        match stage.next_join {
            Some(_) => {
                let join = self.compiled.operator_of_step(number, stage.first + stage.pipeline.steps.len());
                self.fragment_metrics.memory(join, &self.context)
            }
            None => self.memory_of_sink(number),
        }
    }

    /// Records the rows and calls of a finished stage.
    pub(super) fn measure(
        &self,
        number: usize,
        stage: &PipelineStage,
        members: &[PipelineWorker],
        share: &SharedSource,
    ) {
        let mut did = self.fragment_metrics.by_operator.lock();
        let is_joined = matches!(share, SharedSource::SpilledJoin(_));
        for mark in
            self.compiled.operator_outputs[number].iter().filter(|mark| stage.counts_rows_at(mark.step, is_joined))
        {
            let at = mark.step - stage.first;
            let came = members.iter().map(|member| member.worker.row_counts().get(at).copied().unwrap_or(0));
            did.entry(mark.operator).or_default().rows += came.sum::<u64>();
        }
        if let (SharedSource::Scan(work, _), Some(input)) = (share, self.scan_of(number)) {
            let passed = work.passed_rows.load(Ordering::Relaxed);
            let removed = work.removed_rows.load(Ordering::Relaxed);
            did.entry(OperatorId::new(input.scan.as_ref())).or_default().rows += passed + removed;
            if let Some(filter) = input.filter_operator {
                did.entry(filter).or_default().rows += passed;
            }
        }
        drop(did);
        if let (SharedSource::Scan(work, _), Some(input)) = (share, self.scan_of(number)) {
            self.fragment_metrics.add_calls(Some(OperatorId::new(input.scan.as_ref())), *work.arrow_calls.lock());
        }
        for member in members {
            for (step, calls) in (stage.first..).zip(member.worker.call_costs()) {
                self.fragment_metrics.add_calls(self.compiled.operator_of_step(number, step), calls);
            }
            self.measure_times(number, stage, member, share);
        }
    }

    /// Records the times of one worker in a finished stage.
    fn measure_times(&self, number: usize, stage: &PipelineStage, member: &PipelineWorker, share: &SharedSource) {
        let steps = stage.pipeline.steps.len();
        for (step, busy) in member.worker.step_busy_times().enumerate() {
            let ends = step == steps && stage.next_join.is_none();
            let step = stage.first + step;
            let operator = if ends {
                self.compiled.operator_of_sink(number)
            } else {
                self.compiled.operator_of_step(number, step)
            };
            self.fragment_metrics.add_busy(operator, busy);
        }
        let source = self.compiled.program.pipelines[number].source;
        let operator = match (share, source) {
            (SharedSource::Scan(..), _) => self.scan_of(number).map(|input| OperatorId::new(input.scan.as_ref())),
            (SharedSource::SpilledJoin(_), _) => self.compiled.operator_of_step(number, stage.first),
            (_, Source::Groups(made_by) | Source::Sorted(made_by)) => self.compiled.operator_of_sink(made_by),
            // Operators that are not compiled have their own metrics.
            (_, Source::Input(_)) => None,
        };
        self.fragment_metrics.add_busy(operator, member.source_busy);
        if let (SharedSource::Scan(..), Some(input)) = (share, self.scan_of(number)) {
            self.fragment_metrics.add_busy(input.filter_operator, member.source_busy);
        }
    }

    /// Records the time in which the workers' sinks were merged.
    pub(super) fn measure_sink(&self, number: usize, began_ns: u64) {
        self.fragment_metrics
            .add_busy(self.compiled.operator_of_sink(number), Some(BusyTime::from_interval(began_ns, (self.clock)())));
    }

    /// Returns the scan that a pipeline reads, if its source is one.
    fn scan_of(&self, number: usize) -> Option<&crate::plan::ScanInput> {
        let Source::Input(input) = self.compiled.program.pipelines[number].source else { return None };
        match &self.compiled.inputs[input] {
            Input::Scan(input) => Some(input),
            Input::Operators(_) => None,
        }
    }
}

//! What EXPLAIN ANALYZE asks of a program that has run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::physical_plan::ExecutionPlan;
use engine::pipeline::Source;
use parking_lot::Mutex;

use super::pipelines::Run;
use super::plan::{Input, OperatorId};
use super::share::Share;
use super::spill::Parts;
use super::stage::Stage;
use super::workers::Member;

/// What the operators that a program stands for would have done.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// How many rows they would have given.
    rows: Mutex<HashMap<OperatorId, u64>>,
    spilled: Mutex<HashMap<OperatorId, Spilled>>,
    /// The operators, where they ran themselves.
    left_to: Mutex<Option<Arc<dyn ExecutionPlan>>>,
}

impl Measured {
    pub(crate) fn rows(&self) -> HashMap<OperatorId, u64> {
        self.rows.lock().clone()
    }

    pub(crate) fn spilled(&self) -> HashMap<OperatorId, Spilled> {
        self.spilled.lock().clone()
    }

    /// Operators run instead, which count for themselves.
    pub(super) fn leave_to(&self, plan: &Arc<dyn ExecutionPlan>) {
        self.rows.lock().clear();
        self.spilled.lock().clear();
        *self.left_to.lock() = Some(Arc::clone(plan));
    }

    /// The operators that ran instead.
    pub(super) fn left_to(&self) -> Option<Arc<dyn ExecutionPlan>> {
        self.left_to.lock().clone()
    }
}

/// What had no room in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spilled {
    /// In files.
    pub(crate) bytes: u64,
    /// As often as parts were divided again, more.
    pub(crate) parts: u64,
}

/// Counts what an operator spills.
pub(super) struct Spills {
    measured: Arc<Measured>,
    operator: Option<OperatorId>,
}

impl Spills {
    pub(super) fn add(&self, parts: &Parts) {
        let Some(operator) = self.operator else { return };
        let (bytes, parts) = parts.size();
        let mut spilled = self.measured.spilled.lock();
        let spilled = spilled.entry(operator).or_default();
        spilled.bytes += bytes;
        spilled.parts += parts;
    }
}

impl Run {
    /// Of the join that a step of a pipeline is.
    pub(super) fn spills_of_join(&self, number: usize, step: usize) -> Spills {
        // What comes to the next step is what it gives.
        let mark = self.lowered.marks[number].iter().find(|mark| mark.step == step + 1);
        Spills { measured: Arc::clone(&self.measured), operator: mark.map(|mark| mark.operator) }
    }

    /// Of the groups that a pipeline makes.
    pub(super) fn spills_of_groups(&self, number: usize) -> Spills {
        let pipelines = &self.lowered.program.pipelines;
        let reader = pipelines.iter().position(|pipeline| pipeline.source == Source::Groups(number));
        // Its first step finishes the aggregates.
        let mark = reader.and_then(|reader| self.lowered.marks[reader].iter().find(|mark| mark.step == 1));
        Spills { measured: Arc::clone(&self.measured), operator: mark.map(|mark| mark.operator) }
    }

    /// Counts what has gone through a stage of a pipeline.
    pub(super) fn measure(&self, number: usize, stage: &Stage, members: &[Member], share: &Share) {
        let mut rows = self.measured.rows.lock();
        for mark in self.lowered.marks[number].iter().filter(|mark| stage.counts(mark.step)) {
            let at = mark.step - stage.first;
            let came = members.iter().map(|member| member.worker.rows().get(at).copied().unwrap_or(0));
            *rows.entry(mark.operator).or_default() += came.sum::<u64>();
        }
        if let (Share::Scan(work, _), Source::Input(input)) = (share, self.lowered.program.pipelines[number].source)
            && let Input::Scan(input) = &self.lowered.inputs[input]
        {
            let passed = work.passed.load(Ordering::Relaxed);
            let removed = work.removed.load(Ordering::Relaxed);
            *rows.entry(OperatorId::of(input.scan.as_ref())).or_default() += passed + removed;
            if let Some(filter) = input.filter {
                *rows.entry(filter).or_default() += passed;
            }
        }
    }
}

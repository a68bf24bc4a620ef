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
use super::workers::Member;

/// How many rows the operators that a program stands for would have given.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    rows: Mutex<HashMap<OperatorId, u64>>,
    /// The operators, where they ran themselves.
    left_to: Mutex<Option<Arc<dyn ExecutionPlan>>>,
}

impl Measured {
    pub(crate) fn rows(&self) -> HashMap<OperatorId, u64> {
        self.rows.lock().clone()
    }

    /// Operators run instead, which count for themselves.
    pub(super) fn leave_to(&self, plan: &Arc<dyn ExecutionPlan>) {
        self.rows.lock().clear();
        *self.left_to.lock() = Some(Arc::clone(plan));
    }

    /// The operators that ran instead.
    pub(super) fn left_to(&self) -> Option<Arc<dyn ExecutionPlan>> {
        self.left_to.lock().clone()
    }
}

impl Run {
    /// Counts what has gone through a pipeline.
    pub(super) fn measure(&self, number: usize, members: &[Member], share: &Share) {
        let mut rows = self.measured.rows.lock();
        for mark in &self.lowered.marks[number] {
            let came = members.iter().map(|member| member.worker.rows().get(mark.step).copied().unwrap_or(0));
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

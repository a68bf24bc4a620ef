//! Remembers which operators the engine cannot run while programs are made of a plan, and what was made of the others.
//!
//! Whether an operator can be lowered is known only once all below it is. It is tried as part of the program of the operator above, and again by itself:
//! without this the work would double with each such operator on the way down, and grow with the square of their number.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;

use crate::plan::OperatorId;

/// The operators that could not be lowered, and those that have no program of their own.
#[derive(Clone, Default)]
pub(super) struct Refusals<'a> {
    not_lowered: Operators,
    without_program: Operators,
    covered: Covered,
    /// Partitions operators that give their rows to a program; without it they stay as they are.
    partition: Option<MakePartitions<'a>>,
}

/// Makes partitions of operators, unless programs run all of them.
pub type MakePartitions<'a> = &'a dyn Fn(Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>>;

/// Programs and operators that have taken the place of others.
#[derive(Clone, Default)]
struct Covered(Rc<RefCell<HashMap<OperatorId, Replaced>>>);

/// An operator, which lives as long as it is remembered, and what was put in its place.
struct Replaced {
    _operator: Arc<dyn ExecutionPlan>,
    covered: Arc<dyn ExecutionPlan>,
}

/// Operators by their addresses. They live as long as they are remembered: no other one gets the address.
#[derive(Clone, Default)]
struct Operators(Rc<RefCell<HashMap<OperatorId, Arc<dyn ExecutionPlan>>>>);

impl<'a> Refusals<'a> {
    /// None yet, of plans the rest of which `partition` takes care of.
    pub(super) fn partitioning(partition: MakePartitions<'a>) -> Self {
        Self { partition: Some(partition), ..Self::default() }
    }

    /// None yet, of another plan.
    pub(super) fn of_another(&self) -> Self {
        Self { partition: self.partition, ..Self::default() }
    }

    /// Operators that give their rows to a program.
    pub(super) fn partitioned(&self, operators: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
        match self.partition {
            Some(partition) => partition(operators),
            None => Ok(operators),
        }
    }

    /// The program or operator that has taken the place of another, if that is known.
    pub(super) fn covered(&self, operator: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let known = self.covered.0.borrow();
        known.get(&OperatorId::of(operator.as_ref())).map(|replaced| Arc::clone(&replaced.covered))
    }

    /// Remembers which one has taken an operator's place.
    pub(super) fn note_covered(&self, operator: Arc<dyn ExecutionPlan>, covered: &Arc<dyn ExecutionPlan>) {
        let id = OperatorId::of(operator.as_ref());
        self.covered.0.borrow_mut().insert(id, Replaced { _operator: operator, covered: Arc::clone(covered) });
    }

    /// Whether an operator could not be part of a program.
    pub(super) fn cannot_lower(&self, operator: &Arc<dyn ExecutionPlan>) -> bool {
        self.not_lowered.contain(operator)
    }

    /// Remembers an operator that could not be part of a program.
    pub(super) fn note_not_lowered(&self, operator: &Arc<dyn ExecutionPlan>) {
        self.not_lowered.add(operator);
    }

    /// Whether no program was made of an operator and what lies below it.
    pub(super) fn has_no_program(&self, operator: &Arc<dyn ExecutionPlan>) -> bool {
        self.without_program.contain(operator)
    }

    /// Remembers that no program was made of an operator and what lies below it.
    pub(super) fn note_no_program(&self, operator: &Arc<dyn ExecutionPlan>) {
        self.without_program.add(operator);
    }
}

impl Operators {
    fn contain(&self, operator: &Arc<dyn ExecutionPlan>) -> bool {
        self.0.borrow().contains_key(&OperatorId::of(operator.as_ref()))
    }

    fn add(&self, operator: &Arc<dyn ExecutionPlan>) {
        self.0.borrow_mut().insert(OperatorId::of(operator.as_ref()), Arc::clone(operator));
    }
}

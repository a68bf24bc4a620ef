//! Remembers which operators the engine cannot run while programs are made of a plan.
//!
//! Whether an operator can be lowered is known only once all below it is. It is tried as part of the program of the operator above, and again by itself:
//! without this the work would double with each such operator on the way down.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use crate::plan::OperatorId;

/// The operators that could not be lowered, and those that have no program of their own.
#[derive(Clone, Default)]
pub(super) struct Refusals {
    not_lowered: Operators,
    without_program: Operators,
}

/// Operators by their addresses. They live as long as they are remembered: no other one gets the address.
#[derive(Clone, Default)]
struct Operators(Rc<RefCell<HashMap<OperatorId, Arc<dyn ExecutionPlan>>>>);

impl Refusals {
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

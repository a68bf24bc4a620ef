//! Memoizes, while a plan is compiled, the operators that cannot be compiled and the results for the others.
//!
//! Whether an operator can be compiled is known only once everything below it was tried: as part of the fragment of the
//! operator above, and again on its own. Without memoization the work would double at each such operator on the way
//! down, and grow quadratically with their number.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;

use crate::plan::OperatorId;

/// Operators that cannot be part of a fragment, and those that cannot be the top of one.
#[derive(Clone, Default)]
pub(super) struct CompileMemo<'a> {
    not_lowered: OperatorSet,
    without_program: OperatorSet,
    compiled: CompiledOperators,
    /// Partitions operators that provide rows to a fragment; if absent, they stay as they are.
    partition: Option<PartitionOperators<'a>>,
}

/// Callback that partitions operators, unless fragments do all of their work.
pub type PartitionOperators<'a> = &'a dyn Fn(Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>>;

/// Results by compiled operator.
#[derive(Clone, Default)]
struct CompiledOperators(Rc<RefCell<HashMap<OperatorId, CompiledOperator>>>);

/// An operator, retained so that its address stays unique, and its compiled form.
struct CompiledOperator {
    _operator: Arc<dyn ExecutionPlan>,
    compiled: Arc<dyn ExecutionPlan>,
}

/// Set of operators, by address. They are retained so that no other operator gets the same address.
#[derive(Clone, Default)]
struct OperatorSet(Rc<RefCell<HashMap<OperatorId, Arc<dyn ExecutionPlan>>>>);

impl<'a> CompileMemo<'a> {
    /// Returns an empty memo for plans whose remaining operators `partition` handles.
    pub(super) fn with_partitioner(partition: PartitionOperators<'a>) -> Self {
        Self { partition: Some(partition), ..Self::default() }
    }

    /// Returns an empty memo for another plan.
    pub(super) fn for_other_plan(&self) -> Self {
        Self { partition: self.partition, ..Self::default() }
    }

    /// Partitions operators that provide rows to a fragment.
    pub(super) fn partition(&self, operators: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
        match self.partition {
            Some(partition) => partition(operators),
            None => Ok(operators),
        }
    }

    /// Returns the memoized result for an operator.
    pub(super) fn compiled(&self, operator: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let known = self.compiled.0.borrow();
        known.get(&OperatorId::new(operator.as_ref())).map(|replaced| Arc::clone(&replaced.compiled))
    }

    /// Memoizes the result for an operator.
    pub(super) fn note_compiled(&self, operator: Arc<dyn ExecutionPlan>, covered: &Arc<dyn ExecutionPlan>) {
        let id = OperatorId::new(operator.as_ref());
        self.compiled
            .0
            .borrow_mut()
            .insert(id, CompiledOperator { _operator: operator, compiled: Arc::clone(covered) });
    }

    /// Returns whether an operator is known not to be compilable as part of a fragment.
    pub(super) fn cannot_lower(&self, operator: &Arc<dyn ExecutionPlan>) -> bool {
        self.not_lowered.contains(operator)
    }

    /// Memoizes that an operator cannot be part of a fragment.
    pub(super) fn note_not_lowered(&self, operator: &Arc<dyn ExecutionPlan>) {
        self.not_lowered.add(operator);
    }

    /// Returns whether an operator is known not to be compilable as the top of a fragment.
    pub(super) fn has_no_program(&self, operator: &Arc<dyn ExecutionPlan>) -> bool {
        self.without_program.contains(operator)
    }

    /// Memoizes that an operator cannot be the top of a fragment.
    pub(super) fn note_no_program(&self, operator: &Arc<dyn ExecutionPlan>) {
        self.without_program.add(operator);
    }
}

impl OperatorSet {
    fn contains(&self, operator: &Arc<dyn ExecutionPlan>) -> bool {
        self.0.borrow().contains_key(&OperatorId::new(operator.as_ref()))
    }

    fn add(&self, operator: &Arc<dyn ExecutionPlan>) {
        self.0.borrow_mut().insert(OperatorId::new(operator.as_ref()), Arc::clone(operator));
    }
}

//! Operators of a plan as EXPLAIN shows them: those that fragments were compiled from, and below them those that
//! provide their rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use operators::SharedScanExec;

use crate::fragment_exec::FragmentExec;
use crate::plan::OperatorId;

/// Fragments of a plan and the operators around them.
#[derive(Debug, Default)]
pub struct ShownOperators {
    fragments: Vec<Arc<dyn ExecutionPlan>>,
    /// Operators that run in place of compiled ones, as inputs of fragments.
    replacements: HashMap<OperatorId, Arc<dyn ExecutionPlan>>,
    /// Operators that fragments were compiled from, by fragment.
    originals: HashMap<OperatorId, Arc<dyn ExecutionPlan>>,
}

impl ShownOperators {
    /// Collects the fragments of a plan.
    pub fn from_plan(root: &Arc<dyn ExecutionPlan>) -> Self {
        let mut all = Self::default();
        all.add(root, &mut HashSet::new());
        all
    }

    fn add(&mut self, operator: &Arc<dyn ExecutionPlan>, seen: &mut HashSet<OperatorId>) {
        if !seen.insert(OperatorId::new(operator.as_ref())) {
            // Shared rows are computed once.
            return;
        }
        if let Some(fragment) = operator.downcast_ref::<FragmentExec>() {
            self.fragments.push(Arc::clone(operator));
            self.originals.insert(OperatorId::new(operator.as_ref()), Arc::clone(fragment.original()));
            for (replaced_operator, operators) in fragment.operator_inputs() {
                self.replacements.insert(replaced_operator, Arc::clone(operators));
                self.add(operators, seen);
            }
        }
        if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
            self.add(shared.rows().operators(), seen);
        }
        operator.children().into_iter().for_each(|child| self.add(child, seen));
    }

    /// Returns all fragments.
    pub fn fragments(&self) -> impl Iterator<Item = &FragmentExec> {
        self.fragments.iter().filter_map(|operator| operator.downcast_ref::<FragmentExec>())
    }

    /// Returns the operator that provides rows to a fragment in place of a compiled one.
    pub fn replacement(&self, operator: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
        self.replacements.get(&OperatorId::new(operator.as_ref()))
    }

    /// Returns the operator that EXPLAIN shows: the one that runs in its place, or the one that a fragment was compiled
    /// from.
    pub fn shown<'a>(&'a self, operator: &'a Arc<dyn ExecutionPlan>) -> &'a Arc<dyn ExecutionPlan> {
        let mut shown = self.replacement(operator).unwrap_or(operator);
        while let Some(covered) = self.originals.get(&OperatorId::new(shown.as_ref())) {
            shown = covered;
        }
        shown
    }
}

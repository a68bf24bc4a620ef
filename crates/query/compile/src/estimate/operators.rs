//! The operators that are shown: those that programs stand for, with the ones in their midst that gave programs rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use operators::SharedScanExec;

use crate::fragment::FragmentExec;
use crate::plan::OperatorId;

/// The programs of a plan, and what is below them.
#[derive(Debug, Default)]
pub struct Operators {
    fragments: Vec<Arc<dyn ExecutionPlan>>,
    /// What runs in the place of operators that programs read.
    instead: HashMap<OperatorId, Arc<dyn ExecutionPlan>>,
    /// What programs stand for.
    covered: HashMap<OperatorId, Arc<dyn ExecutionPlan>>,
}

impl Operators {
    pub fn of(root: &Arc<dyn ExecutionPlan>) -> Self {
        let mut all = Self::default();
        all.add(root, &mut HashSet::new());
        all
    }

    fn add(&mut self, operator: &Arc<dyn ExecutionPlan>, seen: &mut HashSet<OperatorId>) {
        if !seen.insert(OperatorId::of(operator.as_ref())) {
            // Rows that several read are made once.
            return;
        }
        if let Some(fragment) = operator.downcast_ref::<FragmentExec>() {
            self.fragments.push(Arc::clone(operator));
            self.covered.insert(OperatorId::of(operator.as_ref()), Arc::clone(fragment.covered()));
            for (stands_for, operators) in fragment.foreign() {
                self.instead.insert(stands_for, Arc::clone(operators));
                self.add(operators, seen);
            }
        }
        if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
            self.add(shared.rows().operators(), seen);
        }
        operator.children().into_iter().for_each(|child| self.add(child, seen));
    }

    /// All programs.
    pub fn fragments(&self) -> impl Iterator<Item = &FragmentExec> {
        self.fragments.iter().filter_map(|operator| operator.downcast_ref::<FragmentExec>())
    }

    /// What gives a program rows in the place of an operator that it stands for.
    pub fn instead(&self, operator: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
        self.instead.get(&OperatorId::of(operator.as_ref()))
    }

    /// What is shown of an operator: what runs in its place, and of a program what it stands for.
    pub fn shown<'a>(&'a self, operator: &'a Arc<dyn ExecutionPlan>) -> &'a Arc<dyn ExecutionPlan> {
        let mut shown = self.instead(operator).unwrap_or(operator);
        while let Some(covered) = self.covered.get(&OperatorId::of(shown.as_ref())) {
            shown = covered;
        }
        shown
    }
}

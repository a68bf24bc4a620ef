//! What the engine computes over Arrow's arrays, for want of a loop of its own.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use planner::SharedScanExec;

use super::node::Property;
use crate::cover::{FragmentExec, OperatorId};

/// Such expressions as SQL, by the operators that they are parts of.
#[derive(Debug, Default)]
pub(super) struct OverArrays(HashMap<OperatorId, Vec<String>>);

impl OverArrays {
    pub(super) fn of(root: &Arc<dyn ExecutionPlan>) -> Self {
        let mut all = Self::default();
        all.collect(root);
        all
    }

    fn collect(&mut self, operator: &Arc<dyn ExecutionPlan>) {
        if let Some(fragment) = operator.downcast_ref::<FragmentExec>() {
            for (operator, expression) in fragment.over_arrays() {
                let known = self.0.entry(operator).or_default();
                if !known.contains(&expression) {
                    known.push(expression);
                }
            }
            self.collect(&fragment.covered());
        }
        if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
            self.collect(shared.rows().operators());
        }
        operator.children().into_iter().for_each(|child| self.collect(child));
    }

    /// The line about an operator.
    pub(super) fn property(&self, operator: &dyn ExecutionPlan) -> Option<Property> {
        let expressions = self.0.get(&OperatorId::of(operator))?;
        Some(Property::list("Arrow Expressions", expressions.iter().cloned()))
    }
}

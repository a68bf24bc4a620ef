//! Expressions that the engine evaluates on Arrow arrays, because it has no loop of its own for them.

use std::collections::HashMap;

use compile::estimate::Operators;
use compile::{FragmentExec, OperatorId};
use datafusion::physical_plan::ExecutionPlan;

use crate::node::Property;

/// Such expressions as SQL, by the operator that they belong to.
#[derive(Debug, Default)]
pub(crate) struct OverArrays(HashMap<OperatorId, Vec<String>>);

impl OverArrays {
    pub(crate) fn of(operators: &Operators) -> Self {
        let mut all: HashMap<OperatorId, Vec<String>> = HashMap::new();
        for (operator, expression) in operators.fragments().flat_map(FragmentExec::over_arrays) {
            let known = all.entry(operator).or_default();
            if !known.contains(&expression) {
                known.push(expression);
            }
        }
        Self(all)
    }

    /// Returns the property with an operator's expressions.
    pub(crate) fn property(&self, operator: &dyn ExecutionPlan) -> Option<Property> {
        let expressions = self.0.get(&OperatorId::of(operator))?;
        Some(Property::list("Arrow Expressions", expressions.iter().cloned()))
    }
}

//! Expressions that the engine evaluates on Arrow arrays, because it has no loop of its own for them.

use std::collections::HashMap;

use compile::estimate::ShownOperators;
use compile::{FragmentExec, OperatorId};
use datafusion::physical_plan::ExecutionPlan;

use crate::plan_node::Property;

/// Such expressions as SQL, by the operator that they belong to.
#[derive(Debug, Default)]
pub(crate) struct ArrowExpressions(HashMap<OperatorId, Vec<String>>);

impl ArrowExpressions {
    pub(crate) fn collect(operators: &ShownOperators) -> Self {
        let mut all: HashMap<OperatorId, Vec<String>> = HashMap::new();
        for (operator, expression) in operators.fragments().flat_map(FragmentExec::arrow_expressions) {
            let expressions = all.entry(operator).or_default();
            if !expressions.contains(&expression) {
                expressions.push(expression);
            }
        }
        Self(all)
    }

    /// Returns the property with an operator's expressions.
    pub(crate) fn property(&self, operator: &dyn ExecutionPlan) -> Option<Property> {
        let expressions = self.0.get(&OperatorId::new(operator))?;
        Some(Property::list("Arrow Expressions", expressions.iter().cloned()))
    }
}

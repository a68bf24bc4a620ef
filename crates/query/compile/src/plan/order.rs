//! The order of an operator's rows.

use std::sync::Arc;

use datafusion::physical_expr::{EquivalenceProperties, LexOrdering};
use datafusion::physical_plan::ExecutionPlan;

/// The order that a plan declares of its rows; of those with one value there is none.
pub(crate) fn declared_order(plan: &Arc<dyn ExecutionPlan>) -> Option<&LexOrdering> {
    let order = plan.properties().output_ordering()?;
    let is_trivial = unordered(plan).ordering_satisfy(order.iter().cloned()).unwrap_or(false);
    (!is_trivial).then_some(order)
}

/// Facts about a plan's rows, if those of all partitions come in the order that it declares. Partitions that are in order one by one
/// may need fewer keys, where each has one value of another.
pub(crate) fn ordered(plan: &Arc<dyn ExecutionPlan>) -> EquivalenceProperties {
    let mut known = unordered(plan);
    if let Some(order) = plan.properties().output_ordering() {
        known.add_ordering(order.iter().cloned());
    }
    known
}

/// Facts about a plan's rows that hold in any order.
pub(crate) fn unordered(plan: &Arc<dyn ExecutionPlan>) -> EquivalenceProperties {
    let mut known = plan.properties().equivalence_properties().clone();
    known.clear_orderings();
    known.clear_per_partition_constants();
    known
}

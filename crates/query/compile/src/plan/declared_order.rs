//! Order that a plan declares for its rows.

use std::sync::Arc;

use datafusion::physical_expr::{EquivalenceProperties, LexOrdering};
use datafusion::physical_plan::ExecutionPlan;

/// Returns the order that a plan declares; `None` if every order satisfies it, because the keys are constant.
pub(crate) fn declared_order(plan: &Arc<dyn ExecutionPlan>) -> Option<&LexOrdering> {
    let order = plan.properties().output_ordering()?;
    let is_trivial = unordered(plan).ordering_satisfy(order.iter().cloned()).unwrap_or(false);
    (!is_trivial).then_some(order)
}

/// Returns the properties of a plan's rows, assuming that all partitions together have its declared order. Partitions
/// that are only sorted individually may need fewer keys, if another key is constant in each.
pub(crate) fn ordered(plan: &Arc<dyn ExecutionPlan>) -> EquivalenceProperties {
    let mut known = unordered(plan);
    if let Some(order) = plan.properties().output_ordering() {
        known.add_ordering(order.iter().cloned());
    }
    known
}

/// Returns the properties of a plan's rows that hold in any order.
pub(crate) fn unordered(plan: &Arc<dyn ExecutionPlan>) -> EquivalenceProperties {
    let mut known = plan.properties().equivalence_properties().clone();
    known.clear_orderings();
    known.clear_per_partition_constants();
    known
}

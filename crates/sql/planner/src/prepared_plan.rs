//! Plans of prepared queries: bound once, and combined with the rows of the present snapshot at each execution.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use binder::{OptimizedPlanCache, QueryPlan, StatementPlan, is_numeric, parameter_index};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableSource};
use functions::error::from_datafusion;
use plan::ShardTable;
use session_context::StatementContext;
use types::SqlResult;
use types::stack_limit::with_planning_stack;

use crate::Planner;
use crate::plan_cache::cacheable_bytes;

#[cfg(test)]
mod tests;

/// Maximum estimated bytes of all prepared plans of a server.
const ALL_PLANS_BYTES_MAX: usize = 64 << 20;
/// Estimated bytes up to which adding rows and parameters to a plan is faster than handing it to another thread.
const SMALL_PLAN_BYTES_MAX: usize = 64 << 10;

/// Analysed plan of a query without the rows of tables; valid for every catalog state with the same definitions.
#[derive(Debug)]
pub struct PreparedPlan {
    query: QueryPlan,
    memory: MemoryReservation,
}

impl PreparedPlan {
    /// Wraps a plan that `planner` made without rows and parameter values; `None` if executions may need different
    /// plans, or if other prepared plans use up the memory for them.
    #[must_use]
    pub fn new(planned: StatementPlan, planner: &Planner) -> Option<Self> {
        let StatementPlan::Query(query) = planned else { return None };
        // Without parameters the plan cache shares it, with its rows. Digits of a numeric parameter decide the plan.
        if query.parameters.is_empty() || query.parameters.iter().any(is_numeric) || !has_all_parameters(&query) {
            return None;
        }
        let memory = MemoryReservation::try_reserve(cacheable_bytes(&query)?, &planner.prepared_bytes)?;
        Some(Self { query, memory })
    }

    /// Returns whether [`PreparedPlan::with_rows_of`] is faster than handing the work to another thread.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.memory.bytes <= SMALL_PLAN_BYTES_MAX
    }

    /// Returns the plan with the rows of `context`, which must have the same definitions, settings and roles.
    ///
    /// # Errors
    /// `54001` for a plan that nests too deeply.
    pub fn with_rows_of(&self, context: &StatementContext) -> SqlResult<QueryPlan> {
        let phases = self.query.planning_timings.reset_copy();
        let plan = with_planning_stack(|| replace_rows(self.query.plan.clone(), context)).map_err(from_datafusion)?;
        Ok(QueryPlan { plan, planning_timings: phases, optimized: OptimizedPlanCache::default(), ..self.query.clone() })
    }
}

/// Returns whether every parameter occurs in the plan; one that does not has shaped it, such as the moment of AS OF.
fn has_all_parameters(query: &QueryPlan) -> bool {
    let mut is_there = vec![false; query.parameters.len()];
    let walked = query.plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                let at =
                    if let Expr::Placeholder(placeholder) = part { parameter_index(&placeholder.id) } else { None };
                if let Some(there) = at.and_then(|at| is_there.get_mut(at)) {
                    *there = true;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.is_ok() && is_there.into_iter().all(|there| there)
}

fn replace_rows(plan: LogicalPlan, context: &StatementContext) -> Result<LogicalPlan> {
    // Scans that shared a source still share one, so that facts about its rows are computed once.
    let mut sources: HashMap<*const (), Arc<dyn TableSource>> = HashMap::new();
    let given = plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let known = sources.entry(Arc::as_ptr(&scan.source).cast());
        let source = match known {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(place) => {
                let provider = source_as_provider(&scan.source)?;
                let Some(table) = provider.downcast_ref::<ShardTable>() else {
                    return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
                };
                let rows = Arc::clone(context.snapshot.rows(table.table.oid));
                Arc::clone(place.insert(provider_as_source(Arc::new(table.with_rows(rows)))))
            }
        };
        scan.source = source;
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    });
    given.map(|given| given.data)
}

/// Reservation of a plan from the memory of all prepared plans; returned when dropped.
#[derive(Debug)]
struct MemoryReservation {
    bytes: usize,
    total: Arc<AtomicUsize>,
}

impl MemoryReservation {
    fn try_reserve(bytes: usize, all: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= ALL_PLANS_BYTES_MAX);
        all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self { bytes, total: Arc::clone(all) })
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

//! Plan cache for queries without parameters: repeated queries are bound and optimized once until the next commit.

use std::collections::HashMap;
use std::sync::Arc;

use binder::{QueryPlan, is_fixed_at_planning};
use catalog::CatalogState;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use optimizer::common_subplans::WithQueryReference;
use parking_lot::Mutex;
use plan::ShardTable;
use session_context::StatementContext;
use settings::Settings;
use types::{CommitTs, Oid};

#[cfg(test)]
mod tests;

/// Maximum number of cached plans; the least recently used one is evicted.
const PLANS_MAX: usize = 256;
/// Maximum bytes of a query text whose plan is cached.
const QUERY_TEXT_BYTES_MAX: usize = 65_536;
/// Maximum estimated bytes of all plans together.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Maximum estimated bytes of one plan, which may be large even if its text is short.
const PLAN_BYTES_MAX: usize = CACHE_BYTES_MAX / 8;
/// Estimated memory of an operator in a cached plan, analysed and optimized forms together: measured on unions of
/// tables, and rounded up.
const OPERATOR_BYTES: usize = 4 << 10;
/// Estimated memory of an expression node in a cached plan, both forms together: measured on chains of OR, rounded up.
const EXPRESSION_NODE_BYTES: usize = 256;
/// Estimated memory of one column in an operator's schema.
const COLUMN_BYTES: usize = 128;

/// Cache of plans by query text, all of one catalog state.
#[derive(Debug, Default)]
pub(crate) struct PlanCache(Mutex<PlanCacheState>);

/// Contents of the cache.
#[derive(Debug, Default)]
struct PlanCacheState {
    /// Catalog state of the plans, and its newest commit; `None` while the cache is empty.
    catalog_state: Option<(CommitTs, Arc<CatalogState>)>,
    plans: HashMap<String, CachedPlan>,
    /// Estimated memory of all plans.
    bytes: usize,
    /// Number of lookups so far, the clock of the LRU order.
    lookups: u64,
}

/// Cached plan, with the parts of the context that it depends on.
#[derive(Debug)]
struct CachedPlan {
    query: QueryPlan,
    bytes: usize,
    settings: Arc<Settings>,
    /// Current role and session role.
    roles: [Oid; 2],
    database: String,
    /// Value of `lookups` at the last use.
    last_lookup: u64,
}

impl PlanCache {
    /// Returns the cached plan of a query text, made by any session, if planning in `context` would give the same.
    pub(crate) fn get(&self, text: &str, context: &StatementContext) -> Option<QueryPlan> {
        let mut state = self.0.lock();
        state.clear_if_outdated(context);
        if !state.has_catalog_state_of(context) {
            return None;
        }
        state.lookups += 1;
        let lookup = state.lookups;
        let plan = state.plans.get_mut(text)?;
        let holds = plan.roles == roles(context)
            && plan.database == context.database
            && (Arc::ptr_eq(&plan.settings, &context.settings)
                || plan.settings.has_same_plan_relevant_settings(&context.settings));
        holds.then(|| {
            plan.last_lookup = lookup;
            QueryPlan { planning_timings: plan.query.planning_timings.reset_copy(), ..plan.query.clone() }
        })
    }

    /// Caches the plan of a query if other statements can share it; they also share the optimized form.
    pub(crate) fn insert(&self, text: &str, query: QueryPlan, context: &StatementContext) -> QueryPlan {
        let is_of_session = context.snapshot.schema_by_name(&context.temp_schema_name()).is_some();
        if QUERY_TEXT_BYTES_MAX < text.len() || is_of_session {
            return query;
        }
        if !query.parameters.is_empty() {
            return query;
        }
        let Some(bytes) = cacheable_bytes(&query).filter(|bytes| *bytes <= PLAN_BYTES_MAX) else { return query };
        let query = query.with_optimized_plan_cache();
        let mut state = self.0.lock();
        state.clear_if_outdated(context);
        if state.catalog_state.is_none() {
            state.catalog_state = Some((context.commit, Arc::clone(&context.snapshot)));
        }
        if !state.has_catalog_state_of(context) {
            return query;
        }
        state.remove(text);
        while PLANS_MAX <= state.plans.len() || CACHE_BYTES_MAX < state.bytes + bytes {
            state.evict_oldest();
        }
        let plan = CachedPlan {
            query: query.clone(),
            bytes,
            settings: Arc::clone(&context.settings),
            roles: roles(context),
            database: context.database.clone(),
            last_lookup: state.lookups,
        };
        state.bytes += bytes;
        state.plans.insert(text.to_owned(), plan);
        query
    }
}

impl PlanCacheState {
    /// Returns whether the plans are of the context's catalog state.
    fn has_catalog_state_of(&self, context: &StatementContext) -> bool {
        self.catalog_state.as_ref().is_some_and(|(_, state)| Arc::ptr_eq(state, &context.snapshot))
    }

    /// Clears the cache if the context's state is newer: an old state pins rows in memory that no statement can see.
    fn clear_if_outdated(&mut self, context: &StatementContext) {
        if self.catalog_state.as_ref().is_some_and(|(commit, _)| *commit < context.commit)
            && !self.has_catalog_state_of(context)
        {
            self.catalog_state = None;
            self.plans.clear();
            self.bytes = 0;
        }
    }

    fn evict_oldest(&mut self) {
        let oldest = self.plans.iter().min_by_key(|(_, plan)| plan.last_lookup).map(|(text, _)| text.clone());
        self.remove(&oldest.expect("a full cache has a plan to evict"));
    }

    fn remove(&mut self, text: &str) {
        if let Some(plan) = self.plans.remove(text) {
            self.bytes -= plan.bytes;
        }
    }
}

fn roles(context: &StatementContext) -> [Oid; 2] {
    [context.role.oid, context.session_role.oid]
}

/// Returns the estimated bytes of a plan; `None` if it must not be cached.
///
/// A cacheable plan means the same for every statement on its catalog state: it reads only committed rows of tables,
/// and depends neither on time, nor on randomness, nor on the session.
pub(crate) fn cacheable_bytes(query: &QueryPlan) -> Option<usize> {
    if !query.locks.is_empty() || query.depends_on_time {
        return None;
    }
    let (mut is_cacheable, mut bytes) = (true, 0);
    let walked = query.plan.apply_with_subqueries(|node| {
        bytes += OPERATOR_BYTES + node.schema().fields().len() * COLUMN_BYTES;
        is_cacheable &= match node {
            LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)
                .is_ok_and(|provider| provider.downcast_ref::<ShardTable>().is_some_and(reads_committed_rows_only)),
            LogicalPlan::Extension(_) => WithQueryReference::from_plan(node).is_some(),
            LogicalPlan::RecursiveQuery(_) => false,
            _ => true,
        };
        node.apply_expressions(|expr| {
            is_cacheable = is_cacheable
                && !expr.exists(|part| {
                    bytes += EXPRESSION_NODE_BYTES;
                    Ok(!is_fixed_at_planning(part))
                })?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_cacheable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    (walked.is_ok() && is_cacheable).then_some(bytes)
}

/// Returns whether a table's rows are committed ones of the present state: neither files, nor an earlier state, nor the
/// transaction's own rows.
fn reads_committed_rows_only(table: &ShardTable) -> bool {
    table.files.is_none() && table.pin.is_none() && table.rows.own_rows.is_empty()
}

//! Common subplan elimination: parts that occur several times in a plan are computed once, into a [`SharedTable`].
//!
//! A WITH query that is read twice occurs twice in the plan, and so does a subquery that is written twice.
//!
//! In reading order:
//!
//! - `with_query_reference.rs` is the node of a reference to a WITH query that is MATERIALIZED or NOT MATERIALIZED,
//! - `materialized_with.rs` takes MATERIALIZED WITH queries out of a plan before anything else happens,
//! - `node_operation.rs` describes nodes without names, and `equal_subplans.rs` finds parts that compute the same by
//!   it,
//! - `fuse_aggregates.rs` finds ungrouped aggregates over the same rows with different conditions, and merges them into
//!   one,
//! - `replacer.rs` replaces parts by scans of shared tables where that is cheaper,
//! - `narrow_shared_table.rs` drops rows and columns from a shared table that no reader needs, once the optimizer has
//!   pushed filters and projections to its scans,
//! - `shared_table.rs` is the shared table.

mod equal_subplans;
mod fuse_aggregates;
mod materialized_with;
mod narrow_shared_table;
mod node_operation;
mod replacer;
mod shared_table;
mod with_query_reference;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use plan::{plan_has_expression, plan_limits};

use self::equal_subplans::{SharedSubplans, SubplanId, Subplans, scan_source};
use self::materialized_with::MaterializedQueries;
use self::narrow_shared_table::{Narrowed, Readers};
use self::replacer::{SharedComputation, SubplanReplacer};
pub use self::shared_table::{SharedScanExtension, SharedScanPlanner, SharedTable};
use self::with_query_reference::WithQueryAliases;
pub use self::with_query_reference::{MaterializeClause, WithQuery, WithQueryReference};
use crate::RewrittenPlan;
use crate::wide_unions::split_wide_unions;

/// Limit of the attempts to optimize a plan, each without the parts that earlier attempts found not worth sharing.
const SHARING_ATTEMPTS_MAX: usize = 4;

/// Limit of the runs of the rules over a plan that still has correlated subqueries.
const RULE_RUNS_MAX: usize = 3;

/// Optimized logical plan with the plans of its shared tables. It is immutable: it may run several times, also
/// concurrently.
#[derive(Debug, Clone)]
pub struct OptimizedPlan {
    pub(crate) plan: LogicalPlan,
    /// Shared tables that the plan scans; each one's plan reads only tables before it.
    pub(crate) shared: Vec<SharedPlan>,
}

/// Shared table together with the plan that computes the rows and columns that its readers need.
#[derive(Debug, Clone)]
pub struct SharedPlan {
    /// Table that readers scan.
    pub table: Arc<SharedTable>,
    /// Plan of the table's rows.
    pub plan: LogicalPlan,
    /// Indices of the table's columns that the plan gives, ascending.
    pub columns: Vec<usize>,
}

impl SharedPlan {
    /// Creates the plan of all rows and columns of a table.
    fn with_all_columns(table: Arc<SharedTable>) -> Self {
        Self { plan: table.plan.clone(), columns: (0..table.column_count()).collect(), table }
    }
}

impl OptimizedPlan {
    /// Returns the plan of the query's rows.
    #[must_use]
    pub fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// Returns the shared tables with their plans; each reads only tables before it.
    #[must_use]
    pub fn shared(&self) -> &[SharedPlan] {
        &self.shared
    }

    /// Returns whether the query does more than read and filter tables: joins, aggregates, sorts, windows, DISTINCT.
    #[must_use]
    pub fn has_costly_operators(&self) -> bool {
        let works = |node: &LogicalPlan| {
            Ok(matches!(
                node,
                LogicalPlan::Join(_)
                    | LogicalPlan::Aggregate(_)
                    | LogicalPlan::Sort(_)
                    | LogicalPlan::Window(_)
                    | LogicalPlan::Distinct(_)
            ))
        };
        !self.shared.is_empty() || self.plan.exists(works).expect("the visitor returns no error")
    }

    /// Returns whether the plan scans shared tables.
    #[must_use]
    pub fn has_shared_tables(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Returns whether function calls contain plans: correlated subqueries without a join form, which the engine cannot
    /// compile.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn has_correlated_calls(&self) -> Result<bool> {
        let shared = self.shared.iter().map(|shared| &shared.plan);
        std::iter::once(&self.plan)
            .chain(shared)
            .try_fold(false, |hides, plan| Ok(hides || materialized_with::has_correlated_calls(plan)?))
    }
}

/// Optimizes `plan`: applies `lower` and then the rules of `state`. MATERIALIZED WITH queries become shared tables
/// first. Repeated parts become shared tables if the rules include Kiln's own.
pub fn optimize(
    plan: LogicalPlan,
    state: &SessionState,
    lower: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<OptimizedPlan> {
    let mut once = MaterializedQueries::new(state, lower);
    let plan = lower(once.replace_queries(plan)?)?;
    let optimized = share_repeated(plan, state, once.next_number(), &once.aliases)?;
    if once.tables.is_empty() { Ok(optimized) } else { once.into_optimized(optimized) }
}

/// Optimizes `plan` like [`optimize`], but without shared tables, for plans whose scans run in several processes.
/// Returns `None` if a WITH query has to be computed once.
pub fn optimize_without_sharing(
    plan: LogicalPlan,
    state: &SessionState,
    lower: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Option<OptimizedPlan>> {
    let mut once = MaterializedQueries::new(state, lower);
    let plan = lower(once.replace_queries(plan)?)?;
    if !once.tables.is_empty() {
        return Ok(None);
    }
    Ok(Some(OptimizedPlan { plan: apply_rules(plan, state)?, shared: Vec::new() }))
}

/// Applies the rules to `plan`, with repeated parts as shared tables that are numbered from `first`.
fn share_repeated(
    plan: LogicalPlan,
    state: &SessionState,
    first: usize,
    with_queries: &WithQueryAliases,
) -> Result<OptimizedPlan> {
    if crate::has_kiln_rules(state) && reads_a_table_twice(&plan)? {
        let parts = Subplans::from_plan(&plan, with_queries)?;
        let mut rejected = HashSet::new();
        for _ in 0..SHARING_ATTEMPTS_MAX {
            let shares = parts.find_shared(&rejected);
            if shares.is_empty() {
                break;
            }
            match share(&plan, &parts, &shares, state, first, with_queries)? {
                SharingAttempt::Done(optimized) => return Ok(optimized),
                SharingAttempt::Rejected(more) => rejected.extend(more),
            }
        }
    }
    Ok(OptimizedPlan { plan: apply_rules(plan, state)?, shared: Vec::new() })
}

/// Result of an attempt to share parts of a plan.
enum SharingAttempt {
    Done(OptimizedPlan),
    /// Parts that are not worth sharing; the next attempt leaves them out.
    Rejected(Vec<SubplanId>),
}

/// Optimizes `plan` with `shares` as shared tables, numbered from `first`.
fn share(
    plan: &LogicalPlan,
    parts: &Subplans,
    shares: &SharedSubplans,
    state: &SessionState,
    first: usize,
    with_queries: &WithQueryAliases,
) -> Result<SharingAttempt> {
    let mut marking = SubplanReplacer::new(plan, parts, shares, state, first, with_queries)?;
    let marked = marking.replace(plan.clone(), None)?.data;
    if !marking.rejected_subplans.is_empty() {
        return Ok(SharingAttempt::Rejected(marking.rejected_subplans));
    }
    let plan = apply_rules(marked, state)?;
    let mut readers = Readers::default();
    readers.add(&plan)?;
    let mut tables = Vec::with_capacity(marking.tables.len());
    // Tables may read tables before them, so the readers of each are complete in reverse order.
    for (shared, table) in marking.tables.into_iter().rev() {
        match narrow_shared_table::narrow(&table, &readers)? {
            Narrowed::Unread => {}
            Narrowed::NotWorthwhile => {
                return Ok(SharingAttempt::Rejected(match shared {
                    SharedComputation::Subplan(part) => vec![part],
                    SharedComputation::Fusion(number) => shares.fusions[number].subplans().collect(),
                }));
            }
            Narrowed::Plan { plan, columns } => {
                let plan = apply_rules(plan, state)?;
                readers.add(&plan)?;
                tables.push(SharedPlan { table, plan, columns });
            }
        }
    }
    tables.reverse();
    Ok(SharingAttempt::Done(OptimizedPlan { plan, shared: tables }))
}

/// Applies the rules of `state` to a plan, without sharing repeated parts.
///
/// # Errors
/// Errors of constant folding, `54001` for too many levels, and internal errors.
pub fn apply_rules(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let mut passed = run_session_rules(plan, state)?;
    // A subquery that was decorrelated may allow others to be.
    for _ in 1..RULE_RUNS_MAX {
        if !passed.has_subqueries || !has_undecorrelated_subqueries(&passed.plan)? {
            break;
        }
        passed = run_session_rules(passed.plan, state)?;
    }
    split_wide_unions(passed.plan)
}

fn run_session_rules(plan: LogicalPlan, state: &SessionState) -> Result<RewrittenPlan> {
    let rules = state.optimizer();
    if crate::has_kiln_rules(state) {
        return crate::run_rules(plan, &rules.rules, state);
    }
    // DataFusion's own optimizer, which tests compare with, takes twice as long with every level of subqueries.
    plan_limits::check_subqueries(&plan)?;
    rules.optimize(plan, state, |_, _| {}).map(|plan| RewrittenPlan { plan, has_subqueries: true })
}

/// Returns whether a plan still has subqueries that should become joins.
fn has_undecorrelated_subqueries(plan: &LogicalPlan) -> Result<bool> {
    plan_has_expression(plan, |expr| match expr {
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        _ => false,
    })
}

/// Returns whether a plan scans a table twice, without which there is nothing to share.
///
/// # Errors
/// None that well-formed plans meet.
pub fn reads_a_table_twice(plan: &LogicalPlan) -> Result<bool> {
    let (mut seen, mut is_read_again) = (HashSet::new(), false);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = scan_source(scan)
            && !seen.insert(table)
        {
            is_read_again = true;
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_read_again)
}

//! Common subplan elimination: parts that occur several times in a plan are computed once, into a [`SharedTable`].
//!
//! A WITH query that is read twice occurs twice in the plan, and so does a subquery that is written twice.
//!
//! In reading order:
//!
//! - `asked.rs` encodes MATERIALIZED and NOT MATERIALIZED in the names of WITH queries,
//! - `once.rs` takes MATERIALIZED WITH queries out of a plan before anything else happens,
//! - `operation.rs` describes nodes without names, and `parts.rs` finds parts that compute the same by it,
//! - `fuse.rs` finds ungrouped aggregates over the same rows with different conditions, and merges them into one,
//! - `mark.rs` replaces parts by scans of shared tables where that is cheaper,
//! - `narrow.rs` drops rows and columns from a shared table that no reader needs, once the optimizer has pushed filters
//!   and projections to its scans,
//! - `table.rs` is the shared table.

mod asked;
mod fuse;
mod mark;
mod narrow;
mod once;
mod operation;
mod parts;
mod table;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use plan::{any_expression, levels};

pub use self::asked::Asked;
use self::mark::{Marking, Shared};
use self::narrow::{Narrowed, Readers};
use self::once::Once;
use self::parts::{PartId, Parts, Shares, scanned};
pub use self::table::{PlanSharedScan, SharedScans, SharedTable};
use crate::Passed;
use crate::union_tiers::in_tiers;

/// Limit of the attempts to optimize a plan, each without the parts that earlier attempts found not worth sharing.
const ROUNDS: usize = 4;

/// Limit of the runs of the rules over a plan that still has correlated subqueries.
const PASSES: usize = 3;

/// Optimized logical plan with the plans of its shared tables. It is immutable: it may run several times, also
/// concurrently.
#[derive(Debug, Clone)]
pub struct Optimized {
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
    fn whole(table: Arc<SharedTable>) -> Self {
        Self { plan: table.body.clone(), columns: (0..table.width()).collect(), table }
    }
}

impl Optimized {
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
    pub fn has_work(&self) -> bool {
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
    pub fn has_shared_rows(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Returns whether function calls contain plans: correlated subqueries without a join form, which the engine cannot
    /// compile.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn hides_plans(&self) -> Result<bool> {
        let shared = self.shared.iter().map(|shared| &shared.plan);
        std::iter::once(&self.plan).chain(shared).try_fold(false, |hides, plan| Ok(hides || once::hides_plans(plan)?))
    }
}

/// Optimizes `plan`: applies `lower` and then the rules of `state`. MATERIALIZED WITH queries become shared tables
/// first. Repeated parts become shared tables if the rules include Kiln's own.
pub fn optimize(
    plan: LogicalPlan,
    state: &SessionState,
    lower: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Optimized> {
    let mut once = Once::new(state, lower);
    let plan = lower(once.taken_out(plan)?)?;
    let optimized = repeated(plan, state, once.next_number())?;
    if once.tables.is_empty() { Ok(optimized) } else { once.narrowed(optimized) }
}

/// Optimizes `plan` like [`optimize`], but without shared tables, for plans whose scans run in several processes.
/// Returns `None` if a WITH query has to be computed once.
pub fn optimize_apart(
    plan: LogicalPlan,
    state: &SessionState,
    lower: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Option<Optimized>> {
    let mut once = Once::new(state, lower);
    let plan = lower(once.taken_out(plan)?)?;
    if !once.tables.is_empty() {
        return Ok(None);
    }
    Ok(Some(Optimized { plan: by_rules(plan, state)?, shared: Vec::new() }))
}

/// Applies the rules to `plan`, with repeated parts as shared tables that are numbered from `first`.
fn repeated(plan: LogicalPlan, state: &SessionState, first: usize) -> Result<Optimized> {
    if crate::is_on(state) && reads_a_table_twice(&plan)? {
        let parts = Parts::of(&plan)?;
        let mut apart = HashSet::new();
        for _ in 0..ROUNDS {
            let shares = parts.shares(&apart);
            if shares.is_empty() {
                break;
            }
            match share(&plan, &parts, &shares, state, first)? {
                Attempt::Done(optimized) => return Ok(optimized),
                Attempt::Apart(more) => apart.extend(more),
            }
        }
    }
    Ok(Optimized { plan: by_rules(plan, state)?, shared: Vec::new() })
}

/// Result of an attempt to share parts of a plan.
enum Attempt {
    Done(Optimized),
    /// Parts that are not worth sharing; the next attempt leaves them out.
    Apart(Vec<PartId>),
}

/// Optimizes `plan` with `shares` as shared tables, numbered from `first`.
fn share(plan: &LogicalPlan, parts: &Parts, shares: &Shares, state: &SessionState, first: usize) -> Result<Attempt> {
    let mut marking = Marking::new(parts, shares, state, first);
    let marked = marking.marked(plan.clone(), None)?.data;
    if !marking.apart.is_empty() {
        return Ok(Attempt::Apart(marking.apart));
    }
    let plan = by_rules(marked, state)?;
    let mut readers = Readers::default();
    readers.add(&plan)?;
    let mut tables = Vec::with_capacity(marking.tables.len());
    // Tables may read tables before them, so the readers of each are complete in reverse order.
    for (shared, table) in marking.tables.into_iter().rev() {
        match narrow::narrowed(&table, &readers)? {
            Narrowed::Unread => {}
            Narrowed::Apart => {
                return Ok(Attempt::Apart(match shared {
                    Shared::Part(part) => vec![part],
                    Shared::Fusion(number) => shares.fusions[number].parts().collect(),
                }));
            }
            Narrowed::To { plan, columns } => {
                let plan = by_rules(plan, state)?;
                readers.add(&plan)?;
                tables.push(SharedPlan { table, plan, columns });
            }
        }
    }
    tables.reverse();
    Ok(Attempt::Done(Optimized { plan, shared: tables }))
}

/// Applies the rules of `state` to a plan, without sharing repeated parts.
///
/// # Errors
/// Errors of constant folding, `54001` for too many levels, and internal errors.
pub fn by_rules(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let mut passed = pass(plan, state)?;
    // A subquery that was decorrelated may allow others to be.
    for _ in 1..PASSES {
        if !passed.has_subqueries || !has_dependent_subqueries(&passed.plan)? {
            break;
        }
        passed = pass(passed.plan, state)?;
    }
    in_tiers(passed.plan)
}

fn pass(plan: LogicalPlan, state: &SessionState) -> Result<Passed> {
    let rules = state.optimizer();
    if crate::is_on(state) {
        return crate::passed(plan, &rules.rules, state);
    }
    // DataFusion's own optimizer, which tests compare with, takes twice as long with every level of subqueries.
    levels::check_subqueries(&plan)?;
    rules.optimize(plan, state, |_, _| {}).map(|plan| Passed { plan, has_subqueries: true })
}

/// Returns whether a plan still has subqueries that should become joins.
fn has_dependent_subqueries(plan: &LogicalPlan) -> Result<bool> {
    any_expression(plan, |expr| match expr {
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
            && let Some(table) = scanned(scan)
            && !seen.insert(table)
        {
            is_read_again = true;
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_read_again)
}

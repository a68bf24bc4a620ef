//! Parts of a plan that occur several times, computed once.
//!
//! A WITH query that is read twice lies in the plan twice, and so does a subquery that is written twice. `parts.rs` finds out which parts compute
//! the same and `fuse.rs` which totals are of the same rows; `mark.rs` puts scans of a [`SharedTable`] in the place of those that are worth it, and `narrow.rs` takes from the table what no scan
//! asks for, once the optimizer has pushed filters and columns to these scans. `once.rs` has the WITH queries that were asked to be MATERIALIZED, which are tables before anything else happens.

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

/// How often a plan is optimized anew because a part is better computed by each of its readers.
const ROUNDS: usize = 4;

/// How often the rules go over a plan that subqueries are left in.
const PASSES: usize = 3;

/// A plan after the optimizer's rules. Nothing in it changes when it runs: it may run often, and in several places at once.
#[derive(Debug, Clone)]
pub struct Optimized {
    pub(crate) plan: LogicalPlan,
    /// What its scans share; the plan of each reads only those before it.
    pub(crate) shared: Vec<SharedPlan>,
}

/// The plan of a shared table's rows.
#[derive(Debug, Clone)]
pub struct SharedPlan {
    pub table: Arc<SharedTable>,
    pub plan: LogicalPlan,
    /// The columns of the table that the plan gives, ascending.
    pub columns: Vec<usize>,
}

impl SharedPlan {
    /// All rows and columns of a table.
    fn whole(table: Arc<SharedTable>) -> Self {
        Self { plan: table.body.clone(), columns: (0..table.width()).collect(), table }
    }
}

impl Optimized {
    /// The plan of the query's rows.
    #[must_use]
    pub fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// The plans of shared rows; each reads only those before it.
    #[must_use]
    pub fn shared(&self) -> &[SharedPlan] {
        &self.shared
    }

    /// Whether it does more than read tables: joins, groups, sorts.
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
        !self.shared.is_empty() || self.plan.exists(works).expect("nothing fails on the way")
    }

    /// Whether parts of it are computed once for several readers.
    #[must_use]
    pub fn has_shared_rows(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Whether functions have plans in them: correlated subqueries without a join form, which no program runs.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn hides_plans(&self) -> Result<bool> {
        let shared = self.shared.iter().map(|shared| &shared.plan);
        std::iter::once(&self.plan).chain(shared).try_fold(false, |hides, plan| Ok(hides || once::hides_plans(plan)?))
    }
}

/// Applies `lower` and the rules of `state` to `plan`. What WITH queries are asked to compute once is taken out of it before, and what it computes
/// repeatedly is shared if Kiln's own rules are among them.
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

/// As [`optimize`], but every reader computes for itself what it reads: for readers that are not in one process. `None` where a WITH query is
/// asked to be computed once.
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

/// The plan by the rules, with what it computes repeatedly as tables, the first of this number.
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

enum Attempt {
    Done(Optimized),
    /// Nothing is gained by sharing these parts.
    Apart(Vec<PartId>),
}

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
    // Later ones may read earlier ones.
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

/// The plan after the rules of `state`.
///
/// # Errors
/// Whatever constant folding meets, `54001`, and bugs.
pub fn by_rules(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let mut passed = pass(plan, state)?;
    // A subquery may have been in the way of another.
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
    // The oracle is DataFusion's alone, which takes twice as long with every level of subqueries.
    levels::check_subqueries(&plan)?;
    rules.optimize(plan, state, |_, _| {}).map(|plan| Passed { plan, has_subqueries: true })
}

/// Whether a subquery is left that is to be a join.
fn has_dependent_subqueries(plan: &LogicalPlan) -> Result<bool> {
    any_expression(plan, |expr| match expr {
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        _ => false,
    })
}

/// Whether there can be anything to share: most plans read each table once.
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

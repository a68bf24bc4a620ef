//! Estimated rows for EXPLAIN and for the physical planner: the estimates behind the join order, as a tree of the nodes
//! that change the number of rows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Distinct, LogicalPlan};

use crate::estimate::Noted;
use crate::shared::{Optimized, SharedPlan, SharedTable};

/// Estimate for a node of a plan, and for the nodes below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Kind of the node.
    pub of: ExpectedOf,
    /// Estimated number of rows that the node gives.
    pub rows: f64,
    /// Inputs in the operator's order; for the first scan of a shared table, the table's plan.
    pub inputs: Vec<Expected>,
}

/// Kind of a node. Nodes that do not change the number of rows are left out of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedOf {
    Scan,
    Filter,
    Join,
    /// An aggregate or DISTINCT.
    Groups,
    Union,
    /// A node of another kind, below which the tree ends.
    Other,
}

impl Optimized {
    /// Returns the estimated rows of the plan's nodes as a tree.
    #[must_use]
    pub fn expected(&self) -> Expected {
        expected_of(&self.plan, &mut SharedOnce { plans: &self.shared, seen: HashSet::new() })
    }
}

/// Plans of shared tables, each of which occurs once in the tree: at the first scan of its table.
struct SharedOnce<'a> {
    plans: &'a [SharedPlan],
    /// Tables whose plan is in the tree already.
    seen: HashSet<*const SharedTable>,
}

fn expected_of(plan: &LogicalPlan, all: &mut SharedOnce<'_>) -> Expected {
    part(plan, &Noted::of(plan), all)
}

fn part(plan: &LogicalPlan, noted: &Noted, all: &mut SharedOnce<'_>) -> Expected {
    let of = match plan {
        LogicalPlan::TableScan(_) => ExpectedOf::Scan,
        LogicalPlan::Filter(_) => ExpectedOf::Filter,
        LogicalPlan::Join(_) => ExpectedOf::Join,
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_)) => ExpectedOf::Groups,
        LogicalPlan::Union(_) => ExpectedOf::Union,
        // The tree omits these nodes and continues with their inputs.
        LogicalPlan::Projection(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Window(_) => match plan.inputs().as_slice() {
            [input] => return part(input, noted, all),
            _ => ExpectedOf::Other,
        },
        _ => ExpectedOf::Other,
    };
    let inputs = match of {
        ExpectedOf::Other => Vec::new(),
        ExpectedOf::Scan => made(plan, all).into_iter().collect(),
        _ => plan.inputs().into_iter().map(|input| part(input, noted, all)).collect(),
    };
    Expected { of, rows: noted.rows(plan), inputs }
}

/// Returns the tree of a shared table's plan, if `plan` is the first scan of the table.
fn made(plan: &LogicalPlan, all: &mut SharedOnce<'_>) -> Option<Expected> {
    let LogicalPlan::TableScan(scan) = plan else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    let table = provider.downcast_ref::<SharedTable>()?;
    let shared = all.plans.iter().find(|shared| std::ptr::eq(Arc::as_ptr(&shared.table), table))?;
    all.seen.insert(table).then(|| expected_of(&shared.plan, all))
}

//! Estimated rows for EXPLAIN and for the physical planner: the estimates behind the join order, as a tree of the nodes
//! that change the number of rows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Distinct, LogicalPlan};

use crate::common_subplans::{OptimizedPlan, SharedPlan, SharedTable};
use crate::estimate::NodeEstimates;

/// Estimate for a node of a plan, and for the nodes below it.
#[derive(Debug, Clone, PartialEq)]
pub struct RowEstimate {
    /// Kind of the node.
    pub kind: EstimatedNodeKind,
    /// Estimated number of rows that the node gives.
    pub rows: f64,
    /// Inputs in the operator's order; for the first scan of a shared table, the table's plan.
    pub inputs: Vec<RowEstimate>,
}

/// Kind of a node. Nodes that do not change the number of rows are left out of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EstimatedNodeKind {
    Scan,
    Filter,
    Join,
    /// An aggregate or DISTINCT.
    Aggregate,
    Union,
    /// A node of another kind, below which the tree ends.
    Other,
}

impl OptimizedPlan {
    /// Returns the estimated rows of the plan's nodes as a tree.
    #[must_use]
    pub fn estimate_rows(&self) -> RowEstimate {
        estimate_tree(&self.plan, &mut SharedPlans { plans: &self.shared, shown_tables: HashSet::new() })
    }
}

/// Plans of shared tables, each of which occurs once in the tree: at the first scan of its table.
struct SharedPlans<'a> {
    plans: &'a [SharedPlan],
    /// Tables whose plan is in the tree already.
    shown_tables: HashSet<*const SharedTable>,
}

fn estimate_tree(plan: &LogicalPlan, all: &mut SharedPlans<'_>) -> RowEstimate {
    estimate_node(plan, &NodeEstimates::from_plan(plan), all)
}

fn estimate_node(plan: &LogicalPlan, noted: &NodeEstimates, all: &mut SharedPlans<'_>) -> RowEstimate {
    let of = match plan {
        LogicalPlan::TableScan(_) => EstimatedNodeKind::Scan,
        LogicalPlan::Filter(_) => EstimatedNodeKind::Filter,
        LogicalPlan::Join(_) => EstimatedNodeKind::Join,
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_)) => EstimatedNodeKind::Aggregate,
        LogicalPlan::Union(_) => EstimatedNodeKind::Union,
        // The tree omits these nodes and continues with their inputs.
        LogicalPlan::Projection(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Window(_) => match plan.inputs().as_slice() {
            [input] => return estimate_node(input, noted, all),
            _ => EstimatedNodeKind::Other,
        },
        _ => EstimatedNodeKind::Other,
    };
    let inputs = match of {
        EstimatedNodeKind::Other => Vec::new(),
        EstimatedNodeKind::Scan => shared_table_estimate(plan, all).into_iter().collect(),
        _ => plan.inputs().into_iter().map(|input| estimate_node(input, noted, all)).collect(),
    };
    RowEstimate { kind: of, rows: noted.rows(plan), inputs }
}

/// Returns the tree of a shared table's plan, if `plan` is the first scan of the table.
fn shared_table_estimate(plan: &LogicalPlan, all: &mut SharedPlans<'_>) -> Option<RowEstimate> {
    let LogicalPlan::TableScan(scan) = plan else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    let table = provider.downcast_ref::<SharedTable>()?;
    let shared = all.plans.iter().find(|shared| std::ptr::eq(Arc::as_ptr(&shared.table), table))?;
    all.shown_tables.insert(table).then(|| estimate_tree(&shared.plan, all))
}

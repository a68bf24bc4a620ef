//! What EXPLAIN says of rows: the estimates that joins were ordered by, as a tree of what changes how many there are.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Distinct, LogicalPlan};

use crate::estimate::Noted;
use crate::shared::{Optimized, SharedPlan, SharedTable};

/// A part of a plan, for which operators of one kind stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    pub of: ExpectedOf,
    pub rows: f64,
    /// In the order of the operator's; for the first scan of shared rows, what makes them.
    pub inputs: Vec<Expected>,
}

/// What a part does. Parts that give the rows that they take are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedOf {
    Scan,
    Filter,
    Join,
    Groups,
    Union,
    /// Of nothing below it is more known.
    Other,
}

impl Optimized {
    /// The rows that its parts are expected to give.
    #[must_use]
    pub fn expected(&self) -> Expected {
        expected_of(&self.plan, &mut SharedOnce { plans: &self.shared, seen: HashSet::new() })
    }
}

/// The plans of shared rows, each of which is shown once.
struct SharedOnce<'a> {
    plans: &'a [SharedPlan],
    /// Tables whose plan was shown.
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
        // Operators below say themselves how many rows they let pass.
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

/// What makes the rows of a scan that shares them with others, if it is the first of these.
fn made(plan: &LogicalPlan, all: &mut SharedOnce<'_>) -> Option<Expected> {
    let LogicalPlan::TableScan(scan) = plan else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    let table = provider.downcast_ref::<SharedTable>()?;
    let shared = all.plans.iter().find(|shared| std::ptr::eq(Arc::as_ptr(&shared.table), table))?;
    all.seen.insert(table).then(|| expected_of(&shared.plan, all))
}

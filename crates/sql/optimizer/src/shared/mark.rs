//! Replaces repeated parts of a plan by scans of shared tables, where that is expected to be cheaper.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::asked::written;
use super::by_rules;
use super::fuse::Fusion;
use super::parts::{PartId, Parts, Shares};
use super::table::{Read, SharedTable, named};
use crate::relation_of;

/// Size of results, in rows, that are always shared.
const FEW_ROWS: f64 = 1_000.0;
/// Least number of rows read per row of a larger shared result, if it joins and does not aggregate.
const READ_FOR_KEPT: f64 = 2.0;

/// Walk over a plan, in the order of its [`Parts`], that puts in scans of shared tables.
pub(super) struct Marking<'a> {
    parts: &'a Parts,
    shares: &'a Shares,
    state: &'a SessionState,
    /// Index of the next node.
    at: usize,
    /// Number of scans made so far.
    scans: usize,
    /// Number of the first table.
    first: usize,
    /// Tables with the parts that they replace, each after the tables that it reads.
    pub(super) tables: Vec<(Shared, Arc<SharedTable>)>,
    /// Parts that are not worth sharing.
    pub(super) apart: Vec<PartId>,
}

impl<'a> Marking<'a> {
    pub(super) fn new(parts: &'a Parts, shares: &'a Shares, state: &'a SessionState, first: usize) -> Self {
        Self { parts, shares, state, at: 0, scans: 0, first, tables: Vec::new(), apart: Vec::new() }
    }

    /// Replaces the shared parts of a plan by scans; `name` is the node's alias in the query.
    pub(super) fn marked(&mut self, plan: LogicalPlan, name: Option<&str>) -> Result<Transformed<LogicalPlan>> {
        let (start, node) = (self.at, self.parts.node(self.at));
        let shared = match self.shares.fusion_of(node.part) {
            _ if node.is_name || node.is_by_each => None,
            Some(fusion) => Some(Shared::Fusion(fusion)),
            None => self.shares.repeated.contains(&node.part).then_some(Shared::Part(node.part)),
        };
        let Some(shared) = shared else { return self.below(plan) };
        let table = match self.tables.iter().find(|(known, _)| *known == shared) {
            Some((_, table)) => Some(Arc::clone(table)),
            None => self.table(shared, node.part, &plan, name)?,
        };
        self.at = start + node.nodes;
        let Some(table) = table else { return Ok(Transformed::no(plan)) };
        let all: Vec<usize> = (0..table.width()).collect();
        let columns = match shared {
            Shared::Fusion(fusion) => self.shares.fusions[fusion].columns(node.part).unwrap_or(&all),
            Shared::Part(_) => &all,
        };
        if !table.has_columns(columns, plan.schema()) {
            self.apart.push(node.part);
            return Ok(Transformed::no(plan));
        }
        self.scans += 1;
        table.scan(Read::Repeated(self.first, self.scans), columns, plan.schema()).map(Transformed::yes)
    }

    /// Replaces the shared parts below a node.
    fn below(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.at += 1;
        let name = match &plan {
            LogicalPlan::SubqueryAlias(alias) => Some(written(alias.alias.table()).to_owned()),
            _ => None,
        };
        let inside = plan.map_subqueries(|subquery| self.marked(subquery, None))?;
        inside.transform_data(|plan| plan.map_children(|input| self.marked(input, name.as_deref())))
    }

    /// Makes the table for a part at its first occurrence; `None` if sharing it is not worth it.
    fn table(
        &mut self,
        shared: Shared,
        part: PartId,
        plan: &LogicalPlan,
        name: Option<&str>,
    ) -> Result<Option<Arc<SharedTable>>> {
        let body = match shared {
            Shared::Part(_) if self.apart.contains(&part) => return Ok(None),
            Shared::Part(_) => self.below(plan.clone())?.data,
            Shared::Fusion(fusion) => self.fused(&self.shares.fusions[fusion], part, plan)?,
        };
        let body = by_rules(named(body)?, self.state)?;
        let rows = relation_of(&body);
        if !gathers(plan) && FEW_ROWS.max(rows_read(&body)? / READ_FOR_KEPT) < rows.rows {
            self.apart.push(part);
            return Ok(None);
        }
        let table = Arc::new(SharedTable::new(self.first + self.tables.len(), name, body, rows));
        self.tables.push((shared, Arc::clone(&table)));
        Ok(Some(table))
    }

    /// Returns the plan of all aggregates of a fusion, over the input of one of them.
    fn fused(&mut self, fusion: &Fusion, part: PartId, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let nodes = self.parts.total(part).map_or(1, |total| total.nodes);
        let mut rows = plan;
        for _ in 0..nodes {
            rows = rows.inputs().first().copied().unwrap_or(rows);
        }
        self.at += nodes;
        let rows = self.marked(rows.clone(), None)?.data;
        fusion.plan(rows)
    }
}

/// Computation that a shared table replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// A part that occurs several times.
    Part(PartId),
    /// Aggregates that one pass computes: the index of a fusion.
    Fusion(usize),
}

/// Returns whether a part aggregates or is a window, DISTINCT or LIMIT: repeating that costs more than storing the
/// rows.
fn gathers(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => gathers(&projection.input),
        LogicalPlan::Filter(filter) => gathers(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => gathers(&alias.input),
        LogicalPlan::Union(union) => union.inputs.iter().all(|input| gathers(input)),
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_) | LogicalPlan::Limit(_) => true,
        _ => false,
    }
}

/// Returns the estimated rows of all scans together.
fn rows_read(plan: &LogicalPlan) -> Result<f64> {
    let mut rows = 0.0;
    plan.apply_with_subqueries(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) {
            rows += relation_of(node).rows;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows)
}

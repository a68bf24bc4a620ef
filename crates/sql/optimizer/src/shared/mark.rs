//! Scans of shared tables in the place of parts that occur several times.

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

/// Rows that are kept without asking what they save.
const FEW_ROWS: f64 = 1_000.0;
/// Where rows are joined and not grouped, so many must be read for one that is kept.
const READ_FOR_KEPT: f64 = 2.0;

/// Walks over a plan in the order of its [`Parts`].
pub(super) struct Marking<'a> {
    parts: &'a Parts,
    shares: &'a Shares,
    state: &'a SessionState,
    /// The node that comes next.
    at: usize,
    scans: usize,
    /// The number of the first table.
    first: usize,
    /// Each after those that it reads, with what it stands for.
    pub(super) tables: Vec<(Shared, Arc<SharedTable>)>,
    /// Parts that are not worth it.
    pub(super) apart: Vec<PartId>,
}

impl<'a> Marking<'a> {
    pub(super) fn new(parts: &'a Parts, shares: &'a Shares, state: &'a SessionState, first: usize) -> Self {
        Self { parts, shares, state, at: 0, scans: 0, first, tables: Vec::new(), apart: Vec::new() }
    }

    /// The plan with scans in it; `name` is what the node is called.
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

    fn below(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.at += 1;
        let name = match &plan {
            LogicalPlan::SubqueryAlias(alias) => Some(written(alias.alias.table()).to_owned()),
            _ => None,
        };
        let inside = plan.map_subqueries(|subquery| self.marked(subquery, None))?;
        inside.transform_data(|plan| plan.map_children(|input| self.marked(input, name.as_deref())))
    }

    /// The table that stands for a part, which comes first of those that it is to stand for; `None` if it is not worth it.
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

    /// The plan of all totals, made with the rows of one of them.
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

/// What a table stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    Part(PartId),
    /// The number of a fusion.
    Fusion(usize),
}

/// Whether a part gives groups or what must be seen whole: to do that again costs more than to keep its rows.
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

/// Rows of all scans together.
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

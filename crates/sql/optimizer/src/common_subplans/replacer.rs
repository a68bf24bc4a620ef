//! Replaces repeated parts of a plan by scans of shared tables, where that is expected to be cheaper.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::apply_rules;
use super::equal_subplans::{SharedSubplans, SubplanId, Subplans};
use super::fuse_aggregates::Fusion;
use super::shared_table::{SharedTable, collect_relation_names, take_unique_relation, with_unique_names};
use super::with_query_reference::WithQueryAliases;
use crate::estimate_relation;

/// Size of results, in rows, that are always shared.
const ALWAYS_SHARED_ROWS: f64 = 1_000.0;
/// Least number of rows read per row of a larger shared result, if it joins and does not aggregate.
const READ_PER_SHARED_ROW_MIN: f64 = 2.0;

/// Walk over a plan, in the order of its [`Subplans`], that puts in scans of shared tables.
pub(super) struct SubplanReplacer<'a> {
    subplans: &'a Subplans,
    shared_subplans: &'a SharedSubplans,
    state: &'a SessionState,
    /// WITH queries, by the aliases that mark their references.
    with_queries: &'a WithQueryAliases,
    /// Index of the next node.
    next_node: usize,
    /// Names of all relations of the plan, so that those of scans differ.
    relation_names: HashSet<TableReference>,
    /// Number of the first table.
    first_table_number: usize,
    /// Tables with the parts that they replace, each after the tables that it reads.
    pub(super) tables: Vec<(SharedComputation, Arc<SharedTable>)>,
    /// Parts that are not worth sharing.
    pub(super) rejected_subplans: Vec<SubplanId>,
}

impl<'a> SubplanReplacer<'a> {
    pub(super) fn new(
        plan: &LogicalPlan,
        subplans: &'a Subplans,
        shared_subplans: &'a SharedSubplans,
        state: &'a SessionState,
        first: usize,
        with_queries: &'a WithQueryAliases,
    ) -> Result<Self> {
        let mut relation_names = HashSet::new();
        collect_relation_names(plan, &mut relation_names)?;
        Ok(Self {
            subplans,
            shared_subplans,
            state,
            with_queries,
            next_node: 0,
            relation_names,
            first_table_number: first,
            tables: Vec::new(),
            rejected_subplans: Vec::new(),
        })
    }

    /// Replaces the shared parts of a plan by scans; `name` is the node's alias in the query.
    pub(super) fn replace(&mut self, plan: LogicalPlan, name: Option<&str>) -> Result<Transformed<LogicalPlan>> {
        let (start, node) = (self.next_node, self.subplans.node(self.next_node));
        let shared = match self.shared_subplans.fusion_of(node.subplan) {
            _ if node.is_alias || node.is_not_materialized => None,
            Some(fusion) => Some(SharedComputation::Fusion(fusion)),
            None => self
                .shared_subplans
                .repeated
                .contains(&node.subplan)
                .then_some(SharedComputation::Subplan(node.subplan)),
        };
        let Some(shared) = shared else { return self.replace_below(plan) };
        let table = match self.tables.iter().find(|(known, _)| *known == shared) {
            Some((_, table)) => Some(Arc::clone(table)),
            None => self.make_table(shared, node.subplan, &plan, name)?,
        };
        self.next_node = start + node.subtree_size;
        let Some(table) = table else { return Ok(Transformed::no(plan)) };
        let all: Vec<usize> = (0..table.column_count()).collect();
        let columns = match shared {
            SharedComputation::Fusion(fusion) => {
                self.shared_subplans.fusions[fusion].columns_of(node.subplan).unwrap_or(&all)
            }
            SharedComputation::Subplan(_) => &all,
        };
        if !table.has_types_of(columns, plan.schema()) {
            self.rejected_subplans.push(node.subplan);
            return Ok(Transformed::no(plan));
        }
        let name = take_unique_relation(&mut self.relation_names, table.name());
        table.scan(name, columns, plan.schema()).map(Transformed::yes)
    }

    /// Replaces the shared parts below a node.
    fn replace_below(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.next_node += 1;
        let name = match &plan {
            LogicalPlan::SubqueryAlias(alias) => {
                let query = self.with_queries.get(&alias.alias);
                Some(query.map_or_else(|| alias.alias.table(), |query| &query.name).to_owned())
            }
            _ => None,
        };
        let inside = plan.map_subqueries(|subquery| self.replace(subquery, None))?;
        inside.transform_data(|plan| plan.map_children(|input| self.replace(input, name.as_deref())))
    }

    /// Makes the table for a part at its first occurrence; `None` if sharing it is not worth it.
    fn make_table(
        &mut self,
        shared: SharedComputation,
        part: SubplanId,
        plan: &LogicalPlan,
        name: Option<&str>,
    ) -> Result<Option<Arc<SharedTable>>> {
        let body = match shared {
            SharedComputation::Subplan(_) if self.rejected_subplans.contains(&part) => return Ok(None),
            SharedComputation::Subplan(_) => self.replace_below(plan.clone())?.data,
            SharedComputation::Fusion(fusion) => self.fused_plan(&self.shared_subplans.fusions[fusion], part, plan)?,
        };
        let body = apply_rules(with_unique_names(body)?, self.state)?;
        let rows = estimate_relation(&body);
        if !is_costly_to_repeat(plan)
            && ALWAYS_SHARED_ROWS.max(scanned_rows(&body)? / READ_PER_SHARED_ROW_MIN) < rows.rows
        {
            self.rejected_subplans.push(part);
            return Ok(None);
        }
        let table = Arc::new(SharedTable::new(self.first_table_number + self.tables.len(), name, body, rows));
        self.tables.push((shared, Arc::clone(&table)));
        Ok(Some(table))
    }

    /// Returns the plan of all aggregates of a fusion, over the input of one of them.
    fn fused_plan(&mut self, fusion: &Fusion, part: SubplanId, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let nodes = self.subplans.ungrouped_aggregate(part).map_or(1, |total| total.depth);
        let mut rows = plan;
        for _ in 0..nodes {
            rows = rows.inputs().first().copied().unwrap_or(rows);
        }
        self.next_node += nodes;
        let rows = self.replace(rows.clone(), None)?.data;
        fusion.build_plan(rows)
    }
}

/// Computation that a shared table replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SharedComputation {
    /// A part that occurs several times.
    Subplan(SubplanId),
    /// Aggregates that one pass computes: the index of a fusion.
    Fusion(usize),
}

/// Returns whether a part aggregates or is a window, DISTINCT or LIMIT: repeating that costs more than storing the
/// rows.
fn is_costly_to_repeat(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_costly_to_repeat(&projection.input),
        LogicalPlan::Filter(filter) => is_costly_to_repeat(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => is_costly_to_repeat(&alias.input),
        LogicalPlan::Union(union) => union.inputs.iter().all(|input| is_costly_to_repeat(input)),
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_) | LogicalPlan::Limit(_) => true,
        _ => false,
    }
}

/// Returns the estimated rows of all scans together.
fn scanned_rows(plan: &LogicalPlan) -> Result<f64> {
    let mut rows = 0.0;
    plan.apply_with_subqueries(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) {
            rows += estimate_relation(node).rows;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows)
}

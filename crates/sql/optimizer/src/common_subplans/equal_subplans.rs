//! Detection of equal parts of a plan, by hash consing.
//!
//! A part's id is determined by its operation and the ids of its inputs, with columns identified by their indices among
//! the inputs' columns. Names do not matter, so that a subquery that is written twice has one id.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use plan::ShardTable;
use types::ColumnId;

use super::fuse_aggregates::{Fusion, UngroupedAggregate, find_fusions};
use super::node_operation::{Operation, column_index, operation};
use super::shared_table::SharedTable;
use super::with_query_reference::{MaterializeClause, WithQueryAliases, WithQueryReference};
use crate::correlated_subqueries::is_correlated_call;

/// Identifier of a computation: parts with the same id give the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SubplanId(usize);

/// Nodes of a plan, each with the id of its computation.
pub(super) struct Subplans {
    /// Properties of parts, indexed by id.
    properties: Vec<SubplanProperties>,
    /// Nodes in preorder: a node, its subqueries, its inputs.
    nodes: Vec<Node>,
    /// Ungrouped aggregates that may be fused with others.
    ungrouped_aggregates: Vec<UngroupedAggregate>,
}

/// Node of the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// Id of the node's computation.
    pub(super) subplan: SubplanId,
    /// Number of nodes in the subtree, with this one.
    pub(super) subtree_size: usize,
    /// Whether the node only renames its input, and has the input's id.
    pub(super) is_alias: bool,
    /// Whether the node belongs to a NOT MATERIALIZED WITH query.
    pub(super) is_not_materialized: bool,
}

/// Properties of a part.
#[derive(Debug, Default)]
struct SubplanProperties {
    /// Columns of enclosing queries that the part reads.
    outer_columns: HashSet<Column>,
    /// Whether every run gives the same rows.
    is_stable: bool,
    /// Whether the part scans a table.
    scans_table: bool,
    /// Whether the part joins, aggregates or computes window functions.
    has_costly_operator: bool,
    /// Whether the rows come in an order that the query asks for.
    is_ordered: bool,
    /// Whether the part may be the root of a query block. Filters above joins, for example, still merge into the joins.
    is_query_root: bool,
}

impl Subplans {
    /// Finds the parts of `plan`; `with_queries` are those whose references it marks by aliases.
    pub(super) fn from_plan(plan: &LogicalPlan, with_queries: &WithQueryAliases) -> Result<Self> {
        let parts = Subplans { properties: Vec::new(), nodes: Vec::new(), ungrouped_aggregates: Vec::new() };
        let mut finder =
            SubplanFinder { ids_by_key: HashMap::new(), subplans: parts, with_queries, is_not_materialized: false };
        finder.walk(plan)?;
        Ok(finder.subplans)
    }

    /// Returns whether the plan is uncorrelated: it reads no column of enclosing queries.
    pub(super) fn is_uncorrelated(&self) -> bool {
        self.root().outer_columns.is_empty()
    }

    /// Returns whether the plan's rows come in an order that the query asks for.
    pub(super) fn is_ordered(&self) -> bool {
        self.root().is_ordered
    }

    /// Returns the properties of the plan's root.
    fn root(&self) -> &SubplanProperties {
        &self.properties[self.nodes[0].subplan.0]
    }

    pub(super) fn node(&self, at: usize) -> Node {
        self.nodes[at]
    }

    /// Returns the parts to share, except those in `apart`. The inside of a repeated part is counted once.
    pub(super) fn find_shared(&self, apart: &HashSet<SubplanId>) -> SharedSubplans {
        let mut shares =
            SharedSubplans { repeated: HashSet::new(), fusions: find_fusions(&self.ungrouped_aggregates, apart) };
        let (mut seen, mut seen_fusions) = (HashSet::new(), HashSet::new());
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            let is_repetition = if node.is_alias || node.is_not_materialized {
                false
            } else if let Some(fusion) = shares.fusion_of(node.subplan) {
                !seen_fusions.insert(fusion)
            } else {
                let may_be_shared = !apart.contains(&node.subplan) && self.properties[node.subplan.0].may_be_shared();
                let is_again = may_be_shared && !seen.insert(node.subplan);
                if is_again {
                    shares.repeated.insert(node.subplan);
                }
                is_again
            };
            at += if is_repetition { node.subtree_size } else { 1 };
        }
        shares
    }

    /// Returns the ungrouped aggregate with this id.
    pub(super) fn ungrouped_aggregate(&self, part: SubplanId) -> Option<&UngroupedAggregate> {
        self.ungrouped_aggregates.iter().find(|total| total.subplan == part)
    }
}

/// Parts of a plan to compute once.
pub(super) struct SharedSubplans {
    /// Parts that occur several times.
    pub(super) repeated: HashSet<SubplanId>,
    /// Sets of ungrouped aggregates that one pass computes.
    pub(super) fusions: Vec<Fusion>,
}

impl SharedSubplans {
    pub(super) fn is_empty(&self) -> bool {
        self.repeated.is_empty() && self.fusions.is_empty()
    }

    /// Returns the index of the fusion that a part belongs to.
    pub(super) fn fusion_of(&self, part: SubplanId) -> Option<usize> {
        self.fusions.iter().position(|fusion| fusion.columns_of(part).is_some())
    }
}

impl SubplanProperties {
    fn may_be_shared(&self) -> bool {
        // Several threads produce and read shared rows, so their order is lost.
        self.is_query_root
            && self.has_costly_operator
            && self.scans_table
            && self.is_stable
            && !self.is_ordered
            && self.outer_columns.is_empty()
    }
}

/// Identity of a scan's source: scans with equal ones see the same rows in the same columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ScanSource {
    /// Address of the table.
    table_address: usize,
    /// Address of the snapshot's rows; 0 for a shared table.
    rows_address: usize,
    /// Whether the scan gives row locations too.
    has_row_locations: bool,
    /// Columns in schema order. Each reference to a view has table objects of its own, which may differ in them.
    columns: Vec<ColumnId>,
}

/// Returns the identity of a scan's source; `None` for sources other than catalog tables and shared tables.
pub(super) fn scan_source(scan: &TableScan) -> Option<ScanSource> {
    let provider = source_as_provider(&scan.source).ok()?;
    if let Some(kept) = provider.downcast_ref::<SharedTable>() {
        let table = std::ptr::from_ref(kept).addr();
        return Some(ScanSource {
            table_address: table,
            rows_address: 0,
            has_row_locations: false,
            columns: Vec::new(),
        });
    }
    let table = provider.downcast_ref::<ShardTable>()?;
    let (rows, places) = (Arc::as_ptr(&table.rows).addr(), table.has_row_positions);
    let columns = table.table.columns.iter().map(|column| column.id).collect();
    Some(ScanSource {
        table_address: Arc::as_ptr(&table.catalog_table).addr(),
        rows_address: rows,
        has_row_locations: places,
        columns,
    })
}

/// State of the walk that assigns ids.
struct SubplanFinder<'a> {
    ids_by_key: HashMap<SubplanKey, SubplanId>,
    subplans: Subplans,
    with_queries: &'a WithQueryAliases,
    /// Whether the walk is inside a NOT MATERIALIZED WITH query.
    is_not_materialized: bool,
}

/// Key that determines a part's id.
#[derive(PartialEq, Eq, Hash)]
struct SubplanKey {
    operation: Operation,
    inputs: Vec<SubplanId>,
    subqueries: Vec<SubplanId>,
    /// Schemas of the inputs, if the operation refers to them by name (correlated subqueries).
    input_schemas: Vec<DFSchemaRef>,
}

impl SubplanFinder<'_> {
    fn walk(&mut self, plan: &LogicalPlan) -> Result<SubplanId> {
        let at = self.subplans.nodes.len();
        let was_not_materialized = self.is_not_materialized;
        if let LogicalPlan::SubqueryAlias(alias) = plan
            && let Some(query) = self.with_queries.get(&alias.alias)
        {
            self.is_not_materialized = query.clause == MaterializeClause::NotMaterialized;
        }
        let is_by_each = self.is_not_materialized;
        self.subplans.nodes.push(Node {
            subplan: SubplanId(usize::MAX),
            subtree_size: 0,
            is_alias: false,
            is_not_materialized: is_by_each,
        });
        let (mut subqueries, mut inputs) = (Vec::new(), Vec::new());
        plan.apply_subqueries(|subquery| {
            subqueries.push(self.walk(subquery)?);
            Ok(TreeNodeRecursion::Continue)
        })?;
        plan.apply_children(|input| {
            inputs.push(self.walk(input)?);
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.is_not_materialized = was_not_materialized;
        let is_name = inputs.len() == 1
            && (matches!(plan, LogicalPlan::SubqueryAlias(_) | LogicalPlan::Subquery(_))
                || WithQueryReference::from_plan(plan).is_some());
        let part = if is_name { inputs[0] } else { self.intern(at, plan, inputs, subqueries)? };
        let properties = &self.subplans.properties[part.0];
        if !is_name
            && !is_by_each
            && properties.scans_table
            && properties.is_stable
            && properties.outer_columns.is_empty()
        {
            let total = UngroupedAggregate::try_from_plan(plan, part, |nodes| self.subplans.nodes[at + nodes].subplan)?;
            // Over a bare scan each aggregate alone, with its own pruning, is faster than all of them in one pass.
            self.subplans
                .ungrouped_aggregates
                .extend(total.filter(|total| self.subplans.properties[total.input.0].has_costly_operator));
        }
        let nodes = self.subplans.nodes.len() - at;
        self.subplans.nodes[at] =
            Node { subplan: part, subtree_size: nodes, is_alias: is_name, is_not_materialized: is_by_each };
        Ok(part)
    }

    fn intern(
        &mut self,
        at: usize,
        plan: &LogicalPlan,
        inputs: Vec<SubplanId>,
        subqueries: Vec<SubplanId>,
    ) -> Result<SubplanId> {
        let properties = self.compute_properties(plan, &inputs, &subqueries)?;
        let within = || subqueries.iter().map(|part| &self.subplans.properties[part.0]);
        let is_correlated = within().any(|subquery| !subquery.outer_columns.is_empty());
        let operation = operation(plan, !is_correlated)?.unwrap_or(Operation::Incomparable(at));
        let names = if is_correlated {
            plan.inputs().iter().map(|input| Arc::clone(input.schema())).collect()
        } else {
            Vec::new()
        };
        let next = SubplanId(self.subplans.properties.len());
        let part =
            *self.ids_by_key.entry(SubplanKey { operation, inputs, subqueries, input_schemas: names }).or_insert(next);
        if part == next {
            self.subplans.properties.push(properties);
        }
        Ok(part)
    }

    fn compute_properties(
        &self,
        plan: &LogicalPlan,
        inputs: &[SubplanId],
        subqueries: &[SubplanId],
    ) -> Result<SubplanProperties> {
        let of = |parts: &[SubplanId]| parts.iter().map(|part| &self.subplans.properties[part.0]).collect::<Vec<_>>();
        let (inputs, subqueries) = (of(inputs), of(subqueries));
        let below = || inputs.iter().chain(&subqueries);
        let mut outer: HashSet<Column> = inputs.iter().flat_map(|input| input.outer_columns.iter().cloned()).collect();
        let beyond = subqueries
            .iter()
            .flat_map(|subquery| &subquery.outer_columns)
            .filter(|column| column_index(plan, column).is_none());
        outer.extend(beyond.cloned());
        let mut is_stable = below().all(|part| part.is_stable)
            && match plan {
                LogicalPlan::TableScan(scan) => scan_source(scan).is_some(),
                // A recursive query may be endless, and rely on a reader that stops early.
                LogicalPlan::RecursiveQuery(_) => false,
                _ => true,
            };
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr {
                    outer.insert(column.clone());
                }
                is_stable &= !expr.is_volatile_node() && !is_correlated_call(expr);
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        let joins_or_groups = matches!(
            plan,
            LogicalPlan::Join(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_)
        );
        let is_ordered = match plan {
            LogicalPlan::Sort(_) => true,
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Limit(_) | LogicalPlan::Window(_) => {
                inputs.iter().any(|input| input.is_ordered)
            }
            _ => false,
        };
        let is_whole = matches!(
            plan,
            LogicalPlan::Projection(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Union(_)
                | LogicalPlan::Limit(_)
        );
        Ok(SubplanProperties {
            outer_columns: outer,
            is_stable,
            scans_table: matches!(plan, LogicalPlan::TableScan(_)) || below().any(|part| part.scans_table),
            has_costly_operator: joins_or_groups || below().any(|part| part.has_costly_operator),
            is_ordered,
            is_query_root: is_whole,
        })
    }
}

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

use super::asked::Asked;
use super::fuse::{Fusion, Total, fusions};
use super::operation::{Operation, operation, place};
use super::table::SharedTable;
use crate::dependent::is_dependent;

/// Identifier of a computation: parts with the same id give the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PartId(usize);

/// Nodes of a plan, each with the id of its computation.
pub(super) struct Parts {
    /// Properties of parts, indexed by id.
    facts: Vec<Facts>,
    /// Nodes in preorder: a node, its subqueries, its inputs.
    nodes: Vec<Node>,
    /// Ungrouped aggregates that may be fused with others.
    totals: Vec<Total>,
}

/// Node of the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// Id of the node's computation.
    pub(super) part: PartId,
    /// Number of nodes in the subtree, with this one.
    pub(super) nodes: usize,
    /// Whether the node only renames its input, and has the input's id.
    pub(super) is_name: bool,
    /// Whether the node belongs to a NOT MATERIALIZED WITH query.
    pub(super) is_by_each: bool,
}

/// Properties of a part.
#[derive(Debug, Default)]
struct Facts {
    /// Columns of enclosing queries that the part reads.
    outer: HashSet<Column>,
    /// Whether every run gives the same rows.
    is_stable: bool,
    /// Whether the part scans a table.
    reads: bool,
    /// Whether the part joins, aggregates or computes window functions.
    works: bool,
    /// Whether the rows come in an order that the query asks for.
    is_ordered: bool,
    /// Whether the part may be the root of a query block. Filters above joins, for example, still merge into the joins.
    is_whole: bool,
}

impl Parts {
    /// Finds the parts of `plan`.
    pub(super) fn of(plan: &LogicalPlan) -> Result<Self> {
        let parts = Parts { facts: Vec::new(), nodes: Vec::new(), totals: Vec::new() };
        let mut finder = Finder { ids: HashMap::new(), parts, is_by_each: false };
        finder.walk(plan)?;
        Ok(finder.parts)
    }

    /// Returns whether the plan is uncorrelated: it reads no column of enclosing queries.
    pub(super) fn is_closed(&self) -> bool {
        self.whole().outer.is_empty()
    }

    /// Returns whether the plan's rows come in an order that the query asks for.
    pub(super) fn is_ordered(&self) -> bool {
        self.whole().is_ordered
    }

    /// Returns the properties of the plan's root.
    fn whole(&self) -> &Facts {
        &self.facts[self.nodes[0].part.0]
    }

    pub(super) fn node(&self, at: usize) -> Node {
        self.nodes[at]
    }

    /// Returns the parts to share, except those in `apart`. The inside of a repeated part is counted once.
    pub(super) fn shares(&self, apart: &HashSet<PartId>) -> Shares {
        let mut shares = Shares { repeated: HashSet::new(), fusions: fusions(&self.totals, apart) };
        let (mut seen, mut begun) = (HashSet::new(), HashSet::new());
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            let is_again = if node.is_name || node.is_by_each {
                false
            } else if let Some(fusion) = shares.fusion_of(node.part) {
                !begun.insert(fusion)
            } else {
                let may_be_shared = !apart.contains(&node.part) && self.facts[node.part.0].may_be_shared();
                let is_again = may_be_shared && !seen.insert(node.part);
                if is_again {
                    shares.repeated.insert(node.part);
                }
                is_again
            };
            at += if is_again { node.nodes } else { 1 };
        }
        shares
    }

    /// Returns the ungrouped aggregate with this id.
    pub(super) fn total(&self, part: PartId) -> Option<&Total> {
        self.totals.iter().find(|total| total.part == part)
    }
}

/// Parts of a plan to compute once.
pub(super) struct Shares {
    /// Parts that occur several times.
    pub(super) repeated: HashSet<PartId>,
    /// Sets of ungrouped aggregates that one pass computes.
    pub(super) fusions: Vec<Fusion>,
}

impl Shares {
    pub(super) fn is_empty(&self) -> bool {
        self.repeated.is_empty() && self.fusions.is_empty()
    }

    /// Returns the index of the fusion that a part belongs to.
    pub(super) fn fusion_of(&self, part: PartId) -> Option<usize> {
        self.fusions.iter().position(|fusion| fusion.columns(part).is_some())
    }
}

impl Facts {
    fn may_be_shared(&self) -> bool {
        // Several threads produce and read shared rows, so their order is lost.
        self.is_whole && self.works && self.reads && self.is_stable && !self.is_ordered && self.outer.is_empty()
    }
}

/// Identity of a scan's source: scans with equal ones see the same rows in the same columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scanned {
    /// Address of the table.
    table: usize,
    /// Address of the snapshot's rows; 0 for a shared table.
    rows: usize,
    /// Whether the scan gives row locations too.
    places: bool,
    /// Columns in schema order. Each reference to a view has table objects of its own, which may differ in them.
    columns: Vec<ColumnId>,
}

/// Returns the identity of a scan's source; `None` for sources other than catalog tables and shared tables.
pub(super) fn scanned(scan: &TableScan) -> Option<Scanned> {
    let provider = source_as_provider(&scan.source).ok()?;
    if let Some(kept) = provider.downcast_ref::<SharedTable>() {
        let table = std::ptr::from_ref(kept).addr();
        return Some(Scanned { table, rows: 0, places: false, columns: Vec::new() });
    }
    let table = provider.downcast_ref::<ShardTable>()?;
    let (rows, places) = (Arc::as_ptr(&table.rows).addr(), table.places);
    let columns = table.table.columns.iter().map(|column| column.id).collect();
    Some(Scanned { table: Arc::as_ptr(&table.whole).addr(), rows, places, columns })
}

/// State of the walk that assigns ids.
struct Finder {
    ids: HashMap<Key, PartId>,
    parts: Parts,
    /// Whether the walk is inside a NOT MATERIALIZED WITH query.
    is_by_each: bool,
}

/// Key that determines a part's id.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    operation: Operation,
    inputs: Vec<PartId>,
    subqueries: Vec<PartId>,
    /// Schemas of the inputs, if the operation refers to them by name (correlated subqueries).
    names: Vec<DFSchemaRef>,
}

impl Finder {
    fn walk(&mut self, plan: &LogicalPlan) -> Result<PartId> {
        let at = self.parts.nodes.len();
        let around = self.is_by_each;
        if let LogicalPlan::SubqueryAlias(alias) = plan
            && let Some(asked) = Asked::of(alias.alias.table())
        {
            self.is_by_each = asked == Asked::ByEach;
        }
        let is_by_each = self.is_by_each;
        self.parts.nodes.push(Node { part: PartId(usize::MAX), nodes: 0, is_name: false, is_by_each });
        let (mut subqueries, mut inputs) = (Vec::new(), Vec::new());
        plan.apply_subqueries(|subquery| {
            subqueries.push(self.walk(subquery)?);
            Ok(TreeNodeRecursion::Continue)
        })?;
        plan.apply_children(|input| {
            inputs.push(self.walk(input)?);
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.is_by_each = around;
        let is_name = matches!(plan, LogicalPlan::SubqueryAlias(_) | LogicalPlan::Subquery(_)) && inputs.len() == 1;
        let part = if is_name { inputs[0] } else { self.part(at, plan, inputs, subqueries)? };
        let facts = &self.parts.facts[part.0];
        if !is_name && !is_by_each && facts.reads && facts.is_stable && facts.outer.is_empty() {
            let total = Total::of(plan, part, |nodes| self.parts.nodes[at + nodes].part)?;
            // Over a bare scan each aggregate alone, with its own pruning, is faster than all of them in one pass.
            self.parts.totals.extend(total.filter(|total| self.parts.facts[total.rows.0].works));
        }
        let nodes = self.parts.nodes.len() - at;
        self.parts.nodes[at] = Node { part, nodes, is_name, is_by_each };
        Ok(part)
    }

    fn part(&mut self, at: usize, plan: &LogicalPlan, inputs: Vec<PartId>, subqueries: Vec<PartId>) -> Result<PartId> {
        let facts = self.facts(plan, &inputs, &subqueries)?;
        let within = || subqueries.iter().map(|part| &self.parts.facts[part.0]);
        let is_correlated = within().any(|subquery| !subquery.outer.is_empty());
        let operation = operation(plan, !is_correlated)?.unwrap_or(Operation::Single(at));
        let names = if is_correlated {
            plan.inputs().iter().map(|input| Arc::clone(input.schema())).collect()
        } else {
            Vec::new()
        };
        let next = PartId(self.parts.facts.len());
        let part = *self.ids.entry(Key { operation, inputs, subqueries, names }).or_insert(next);
        if part == next {
            self.parts.facts.push(facts);
        }
        Ok(part)
    }

    fn facts(&self, plan: &LogicalPlan, inputs: &[PartId], subqueries: &[PartId]) -> Result<Facts> {
        let of = |parts: &[PartId]| parts.iter().map(|part| &self.parts.facts[part.0]).collect::<Vec<_>>();
        let (inputs, subqueries) = (of(inputs), of(subqueries));
        let below = || inputs.iter().chain(&subqueries);
        let mut outer: HashSet<Column> = inputs.iter().flat_map(|input| input.outer.iter().cloned()).collect();
        let beyond =
            subqueries.iter().flat_map(|subquery| &subquery.outer).filter(|column| place(plan, column).is_none());
        outer.extend(beyond.cloned());
        let mut is_stable = below().all(|part| part.is_stable)
            && match plan {
                LogicalPlan::TableScan(scan) => scanned(scan).is_some(),
                // A recursive query may be endless, and rely on a reader that stops early.
                LogicalPlan::RecursiveQuery(_) => false,
                _ => true,
            };
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr {
                    outer.insert(column.clone());
                }
                is_stable &= !expr.is_volatile_node() && !is_dependent(expr);
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
        Ok(Facts {
            outer,
            is_stable,
            reads: matches!(plan, LogicalPlan::TableScan(_)) || below().any(|part| part.reads),
            works: joins_or_groups || below().any(|part| part.works),
            is_ordered,
            is_whole,
        })
    }
}

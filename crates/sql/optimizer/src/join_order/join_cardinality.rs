//! Cardinality estimates for joins of sets of a graph's leaves. They do not depend on the order of the joins.

use std::cell::RefCell;

use datafusion::common::{HashMap, JoinType};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use plan::estimate::{ColumnEstimate, RelationEstimate};

use super::build_plan;
use super::graph::{Attachment, JoinGraph};
use super::join_narrowed_leaves::{self, JoinNarrowedLeaf};
use super::leaf_set::LeafSet;
use crate::estimate::{
    FILTER_SELECTIVITY, SideKeys, anti_join_selectivity, common_range_share, composite_selectivity, match_selectivity,
    semi_join_selectivity,
};
use crate::estimate_relation;

/// Estimated rows and bytes of joined sets of leaves.
#[derive(Debug)]
pub(super) struct SizeEstimates {
    leaves: Vec<LeafSize>,
    /// Per equivalence class, the leaves and the statistics of their members.
    classes: Vec<Vec<(usize, ColumnEstimate)>>,
    /// Factors on the rows of every set that contains these leaves.
    row_factors: Vec<(LeafSet, f64)>,
    /// Per leaf, its sizes when joined with leaves that restrict it, the fewest rows first.
    join_narrowed_estimates: Vec<Vec<JoinNarrowedLeaf>>,
    /// Cache of sizes.
    cache: RefCell<HashMap<LeafSet, Size>>,
}

/// Estimated rows of a set, and their bytes in memory.
#[derive(Debug, Clone, Copy)]
struct Size {
    rows: f64,
    bytes: f64,
}

/// Estimated size of a leaf.
#[derive(Debug)]
struct LeafSize {
    rows: f64,
    row_bytes: f64,
    /// Factor on the rows of the other side when the leaf is attached; `None` for inner leaves.
    attachment_factor: Option<f64>,
}

impl SizeEstimates {
    /// Estimates the leaves of `graph` and the selectivities of its conditions.
    pub(super) fn new(graph: &JoinGraph) -> SizeEstimates {
        let relations: Vec<RelationEstimate> =
            (0..graph.leaves.len()).map(|leaf| estimate_relation(&build_plan::leaf_plan(graph, leaf))).collect();
        let facts =
            |leaf: usize, expr: &Expr| relations[leaf].expression_estimate(expr, graph.leaves[leaf].plan.schema());
        let classes: Vec<Vec<(usize, ColumnEstimate)>> = graph
            .classes
            .iter()
            .map(|class| class.members.iter().map(|(leaf, expr)| (*leaf, facts(*leaf, expr))).collect())
            .collect();
        let mut row_factors = composite_factors(&relations, &classes);
        for condition in graph.conditions.iter().filter(|condition| 1 < condition.leaves.count()) {
            row_factors.push((condition.leaves, condition_selectivity(graph, &condition.expr, &relations)));
        }
        let leaves = graph
            .leaves
            .iter()
            .zip(&relations)
            .map(|(leaf, relation)| LeafSize {
                rows: relation.rows.max(1.0),
                row_bytes: relation.row_bytes(),
                attachment_factor: leaf
                    .attachment
                    .as_ref()
                    .map(|attachment| attachment_factor(graph, attachment, &relations, relation, leaf.plan.schema())),
            })
            .collect();
        let narrowed = join_narrowed_leaves::find_join_narrowed(graph, &relations, &classes);
        SizeEstimates { leaves, classes, row_factors, join_narrowed_estimates: narrowed, cache: RefCell::default() }
    }

    /// Returns the estimated rows of the joined leaves.
    pub(super) fn rows(&self, set: LeafSet) -> f64 {
        self.size(set).rows
    }

    /// Returns the estimated bytes of these rows in memory.
    pub(super) fn bytes(&self, set: LeafSet) -> f64 {
        self.size(set).bytes
    }

    fn size(&self, set: LeafSet) -> Size {
        if let Some(known) = self.cache.borrow().get(&set) {
            return *known;
        }
        let row_bytes: f64 = set.iter().map(|leaf| self.leaves[leaf].row_bytes).sum();
        let rows = self.compute_rows(set).max(1.0);
        let size = Size { rows, bytes: rows * row_bytes };
        self.cache.borrow_mut().insert(set, size);
        size
    }

    /// Returns the share of a probe-side leaf's rows that pass the build side's min/max runtime filter in the leaf's
    /// scan; 1 for probe sides of several leaves.
    pub(super) fn runtime_filter_selectivity(&self, build: LeafSet, probe: LeafSet) -> f64 {
        let Some(leaf) = probe.single() else { return 1.0 };
        let mut share = 1.0_f64;
        for (number, class) in self.classes.iter().enumerate() {
            let Some((_, own)) = class.iter().find(|(member, _)| *member == leaf) else { continue };
            for (member, facts) in class.iter().filter(|(member, _)| build.contains_leaf(*member)) {
                let other = self.estimate_within(build, *member, number, facts);
                share = share.min(common_range_share(own, &[own, other]));
            }
        }
        share
    }

    /// Returns the statistics of a leaf's member of a class when the leaf is joined with the others of `set`.
    fn estimate_within<'a>(
        &'a self,
        set: LeafSet,
        leaf: usize,
        class: usize,
        facts: &'a ColumnEstimate,
    ) -> &'a ColumnEstimate {
        self.narrowed_within(set, leaf).and_then(|narrowed| narrowed.column_estimates[class].as_ref()).unwrap_or(facts)
    }

    /// Returns the smallest restricted size of a leaf when it is joined with the others of `set`.
    fn narrowed_within(&self, set: LeafSet, leaf: usize) -> Option<&JoinNarrowedLeaf> {
        self.join_narrowed_estimates[leaf].iter().find(|narrowed| set.contains_leaf(narrowed.narrowing_leaf))
    }

    /// Computes the rows of the joined leaves.
    fn compute_rows(&self, set: LeafSet) -> f64 {
        if let Some(leaf) = set.single() {
            return self.leaves[leaf].rows;
        }
        let rows_of = |leaf: usize| match (self.leaves[leaf].attachment_factor, self.narrowed_within(set, leaf)) {
            (Some(factor), _) => factor,
            (None, Some(narrowed)) => narrowed.rows,
            (None, None) => self.leaves[leaf].rows,
        };
        let mut rows: f64 = set.iter().map(rows_of).product();
        for (number, class) in self.classes.iter().enumerate() {
            let met: Vec<&ColumnEstimate> = class
                .iter()
                .filter(|(leaf, _)| set.contains_leaf(*leaf))
                .map(|(leaf, facts)| self.estimate_within(set, *leaf, number, facts))
                .collect();
            if 1 < met.len() {
                rows *= match_selectivity(&met);
            }
        }
        for (leaves, factor) in &self.row_factors {
            if set.contains(*leaves) {
                rows *= factor;
            }
        }
        rows
    }
}

/// Returns correction factors for pairs of leaves that are joined on several columns: multiplying the selectivities of
/// correlated columns estimates too few rows.
fn composite_factors(relations: &[RelationEstimate], classes: &[Vec<(usize, ColumnEstimate)>]) -> Vec<(LeafSet, f64)> {
    let mut row_factors = Vec::new();
    for left in 0..relations.len() {
        for right in left + 1..relations.len() {
            let member = |class: &[(usize, ColumnEstimate)], leaf: usize| {
                class.iter().find(|(of, _)| *of == leaf).map(|(_, facts)| facts.clone())
            };
            let shared: Vec<(ColumnEstimate, ColumnEstimate)> =
                classes.iter().filter_map(|class| Some((member(class, left)?, member(class, right)?))).collect();
            if shared.len() < 2 {
                continue;
            }
            let (left_facts, right_facts): (Vec<_>, Vec<_>) = shared.into_iter().unzip();
            let alone: f64 =
                left_facts.iter().zip(&right_facts).map(|(left, right)| match_selectivity(&[left, right])).product();
            let together = composite_selectivity(
                SideKeys { rows: relations[left].rows, key_estimates: &left_facts },
                SideKeys { rows: relations[right].rows, key_estimates: &right_facts },
            );
            row_factors.push((LeafSet::from_iter([left, right]), together / alone));
        }
    }
    row_factors
}

/// Returns the selectivity of a condition over several leaves.
fn condition_selectivity(graph: &JoinGraph, condition: &Expr, relations: &[RelationEstimate]) -> f64 {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let distinct =
                |expr: &Expr| expression_estimate(graph, expr, relations).map_or(1.0, |facts| facts.distinct);
            1.0 / distinct(left).max(distinct(right)).max(1.0)
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::NotEq, .. }) => 0.9,
        _ => FILTER_SELECTIVITY,
    }
}

/// Returns the statistics of an expression over one leaf.
fn expression_estimate(graph: &JoinGraph, expr: &Expr, relations: &[RelationEstimate]) -> Option<ColumnEstimate> {
    let columns = expr.column_refs();
    let column = columns.iter().next()?;
    let leaf = graph.leaves.iter().position(|leaf| leaf.plan.schema().has_column(column))?;
    Some(relations[leaf].expression_estimate(expr, graph.leaves[leaf].plan.schema()))
}

/// Returns the factor on the rows of the other side when a leaf is attached.
fn attachment_factor(
    graph: &JoinGraph,
    attachment: &Attachment,
    relations: &[RelationEstimate],
    own: &RelationEstimate,
    own_schema: &datafusion::common::DFSchema,
) -> f64 {
    let unknown = || ColumnEstimate::unknown(own.rows);
    let theirs: Vec<ColumnEstimate> = attachment
        .on
        .iter()
        .map(|(key, _)| expression_estimate(graph, key, relations).unwrap_or_else(unknown))
        .collect();
    let keys: Vec<ColumnEstimate> =
        attachment.on.iter().map(|(_, key)| own.expression_estimate(key, own_schema)).collect();
    let filter = if attachment.filter.is_some() { FILTER_SELECTIVITY } else { 1.0 };
    let share = semi_join_selectivity(&theirs, &keys) * filter;
    match attachment.join_type {
        JoinType::LeftSemi => share,
        JoinType::LeftAnti => anti_join_selectivity(share),
        JoinType::LeftMark => 1.0,
        _ => {
            let their_rows = theirs.iter().map(|facts| facts.domain).fold(1.0, f64::max);
            let pairs = composite_selectivity(
                SideKeys { rows: their_rows, key_estimates: &theirs },
                SideKeys { rows: own.rows, key_estimates: &keys },
            );
            (own.rows * pairs * filter).max(1.0)
        }
    }
}

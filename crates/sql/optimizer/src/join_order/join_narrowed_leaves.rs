//! Estimates for leaves that a join restricts to a narrow range of a column.
//!
//! Example: a calendar that is joined with one year of weeks contributes only the days of that year, so that the ranges
//! of its other columns are far narrower than the table's statistics say.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};
use plan::estimate::{ColumnEstimate, RelationEstimate};

use super::graph::JoinGraph;
use crate::estimate_relation;

/// Limit of rows of such leaves. Larger ones are fact tables, whose other keys hardly correlate with the restricted
/// one.
const RESTRICTED_ROWS_MAX: f64 = 200_000.0;
/// Largest remaining share of a leaf's range.
const RANGE_SHARE_MAX: f64 = 0.1;

/// Estimate of a leaf when it is joined with a leaf that restricts its range.
#[derive(Debug)]
pub(super) struct JoinNarrowedLeaf {
    /// Index of the restricting leaf.
    pub(super) narrowing_leaf: usize,
    /// Remaining rows of the restricted leaf.
    pub(super) rows: f64,
    /// Per equivalence class, the statistics of the restricted leaf's member, if it has one.
    pub(super) column_estimates: Vec<Option<ColumnEstimate>>,
}

/// Returns, per leaf, its estimates with each of the leaves that restrict it, the fewest rows first.
pub(super) fn find_join_narrowed(
    graph: &JoinGraph,
    relations: &[RelationEstimate],
    classes: &[Vec<(usize, ColumnEstimate)>],
) -> Vec<Vec<JoinNarrowedLeaf>> {
    let mut narrowed: Vec<Vec<JoinNarrowedLeaf>> = relations.iter().map(|_| Vec::new()).collect();
    for (number, class) in classes.iter().enumerate() {
        for (place, (leaf, own)) in class.iter().enumerate() {
            let is_met_elsewhere = classes
                .iter()
                .enumerate()
                .any(|(other, class)| other != number && class.iter().any(|(member, _)| member == leaf));
            if !is_met_elsewhere || RESTRICTED_ROWS_MAX < relations[*leaf].rows {
                continue;
            }
            let others = class.iter().filter(|(other, _)| other != leaf);
            for (by, low, high) in others.filter_map(|(other, facts)| common_range_if_narrow(*other, facts, own)) {
                let Some((_, member)) = graph.classes[number].members.get(place) else { continue };
                let Some(relation) = estimate_in_range(graph, *leaf, member, (low, high)) else { continue };
                let column_estimates = graph
                    .classes
                    .iter()
                    .map(|class| member_estimate(graph, *leaf, &class.members, &relation))
                    .collect();
                narrowed[*leaf].push(JoinNarrowedLeaf {
                    narrowing_leaf: by,
                    rows: relation.rows.max(1.0),
                    column_estimates,
                });
            }
        }
    }
    narrowed.iter_mut().for_each(|of| of.sort_by(|a, b| a.rows.total_cmp(&b.rows)));
    narrowed
}

fn member_estimate(
    graph: &JoinGraph,
    leaf: usize,
    members: &[(usize, Expr)],
    relation: &RelationEstimate,
) -> Option<ColumnEstimate> {
    let (_, expr) = members.iter().find(|(member, _)| *member == leaf)?;
    Some(relation.expression_estimate(expr, graph.leaves[leaf].plan.schema()))
}

/// Returns the common range of two members of a class, if it is much narrower than the range of `own`.
fn common_range_if_narrow(other: usize, facts: &ColumnEstimate, own: &ColumnEstimate) -> Option<(usize, f64, f64)> {
    let (low, high) = (facts.min?.max(own.min?), facts.max?.min(own.max?));
    let is_narrow = low <= high && high - low < RANGE_SHARE_MAX * (own.max? - own.min?);
    is_narrow.then_some((other, low, high))
}

/// Estimates a leaf that scans a table, with `member` in a range of integers or dates.
fn estimate_in_range(graph: &JoinGraph, leaf: usize, member: &Expr, range: (f64, f64)) -> Option<RelationEstimate> {
    let leaf = &graph.leaves[leaf];
    let mut plan = leaf.plan.as_ref();
    while let LogicalPlan::SubqueryAlias(alias) = plan {
        plan = &alias.input;
    }
    let (Expr::Column(column), None, LogicalPlan::TableScan(_)) = (member, &leaf.attachment, plan) else { return None };
    let place = leaf.plan.schema().maybe_index_of_column(column)?;
    let (relation, field) = plan.schema().qualified_field(place);
    let bound = |value: f64, op| {
        #[expect(clippy::cast_possible_truncation, reason = "bounds of whole numbers are whole numbers")]
        let value = match field.data_type() {
            DataType::Int16 => ScalarValue::Int16(Some(value as i16)),
            DataType::Int32 => ScalarValue::Int32(Some(value as i32)),
            DataType::Int64 => ScalarValue::Int64(Some(value as i64)),
            DataType::Date32 => ScalarValue::Date32(Some(value as i32)),
            _ => return None,
        };
        let column = Column::new(relation.cloned(), field.name());
        let (left, right) = (Box::new(Expr::Column(column)), Box::new(Expr::Literal(value, None)));
        Some(Expr::BinaryExpr(BinaryExpr { left, op, right }))
    };
    let condition = bound(range.0, Operator::GtEq)?.and(bound(range.1, Operator::LtEq)?);
    let filter = Filter::try_new(condition, Arc::new(plan.clone())).ok()?;
    Some(estimate_relation(&LogicalPlan::Filter(filter)))
}

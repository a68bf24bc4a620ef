//! Leaves whose rows another leaf's range leaves few of: of a calendar that is joined by its weeks with those of one year, the days of that
//! year. What the other columns hold then is far less than the table says of them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};
use plan::estimate::{ColumnFacts, Relation};

use super::graph::Graph;
use crate::relation_of;

/// Larger leaves are facts, whose other keys have little to do with the one that is confined.
const ROWS_MAX: f64 = 200_000.0;
/// The part of a leaf's range that is left, at most.
const SHARE_MAX: f64 = 0.1;

/// A leaf as it is beside those that confine it.
#[derive(Debug)]
pub(super) struct Confined {
    /// The leaf whose range it is.
    pub(super) by: usize,
    pub(super) rows: f64,
    /// Per class: what is known of the leaf's member.
    pub(super) facts: Vec<Option<ColumnFacts>>,
}

/// Per leaf: what each of the others that confine it leaves, the fewest rows first.
pub(super) fn confined(
    graph: &Graph,
    relations: &[Relation],
    classes: &[Vec<(usize, ColumnFacts)>],
) -> Vec<Vec<Confined>> {
    let mut confined: Vec<Vec<Confined>> = relations.iter().map(|_| Vec::new()).collect();
    for (number, class) in classes.iter().enumerate() {
        for (place, (leaf, own)) in class.iter().enumerate() {
            let is_met_elsewhere = classes
                .iter()
                .enumerate()
                .any(|(other, class)| other != number && class.iter().any(|(member, _)| member == leaf));
            if !is_met_elsewhere || ROWS_MAX < relations[*leaf].rows {
                continue;
            }
            let others = class.iter().filter(|(other, _)| other != leaf);
            for (by, low, high) in others.filter_map(|(other, facts)| narrower(*other, facts, own)) {
                let Some((_, member)) = graph.classes[number].members.get(place) else { continue };
                let Some(relation) = confine(graph, *leaf, member, (low, high)) else { continue };
                let facts =
                    graph.classes.iter().map(|class| member_facts(graph, *leaf, &class.members, &relation)).collect();
                confined[*leaf].push(Confined { by, rows: relation.rows.max(1.0), facts });
            }
        }
    }
    confined.iter_mut().for_each(|of| of.sort_by(|a, b| a.rows.total_cmp(&b.rows)));
    confined
}

fn member_facts(graph: &Graph, leaf: usize, members: &[(usize, Expr)], relation: &Relation) -> Option<ColumnFacts> {
    let (_, expr) = members.iter().find(|(member, _)| *member == leaf)?;
    Some(relation.facts(expr, graph.leaves[leaf].plan.schema()))
}

/// The range of another leaf's member, if it is by far the narrower.
fn narrower(other: usize, facts: &ColumnFacts, own: &ColumnFacts) -> Option<(usize, f64, f64)> {
    let (low, high) = (facts.min?.max(own.min?), facts.max?.min(own.max?));
    let is_narrow = low <= high && high - low < SHARE_MAX * (own.max? - own.min?);
    is_narrow.then_some((other, low, high))
}

/// What a table's rows are in a range of whole numbers or days.
fn confine(graph: &Graph, leaf: usize, member: &Expr, range: (f64, f64)) -> Option<Relation> {
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
    Some(relation_of(&LogicalPlan::Filter(filter)))
}

//! Transitive filters: conditions that follow from others by join equalities.
//!
//! For example, `a.x = b.y AND a.x < 5` implies `b.y < 5`.
//!
//! They are added where they reach a scan, so that it reads less. Estimates do not count them twice: a condition leaves
//! the same share of a column's distinct values as of its rows, and join estimates are based on distinct values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, ExprSchema, JoinType, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use types::SqlType;

use super::graph::JoinGraph;
use crate::column_origin::{conditions_on, normalize_condition, push_condition};

/// Adds implied conditions to the graph's leaves. Returns whether there were any.
pub(super) fn add_implied_conditions(graph: &mut JoinGraph) -> bool {
    let mut is_changed = false;
    for class in classes(graph) {
        let mut known = Vec::new();
        for member in class.iter().filter(|member| member.propagates_conditions) {
            known.extend(conditions_on_member(graph, member));
        }
        let known = without_implied(known);
        for member in class.iter().filter(|member| member.accepts_conditions) {
            let own = conditions_on_member(graph, member);
            for condition in known.iter().filter(|condition| !own.iter().any(|own| implies(own, condition))) {
                let leaf = &mut graph.leaves[member.leaf];
                if let Some(plan) = push_condition(&leaf.plan, &member.column, condition) {
                    leaf.plan = Arc::new(plan);
                    is_changed = true;
                }
            }
        }
    }
    is_changed
}

/// Column of a leaf in an equivalence class.
#[derive(Debug, Clone)]
struct ClassMember {
    leaf: usize,
    column: Column,
    /// Whether conditions on this column apply to the other members too.
    propagates_conditions: bool,
    /// Whether conditions on the other members may filter this leaf.
    accepts_conditions: bool,
}

/// Returns the equivalence classes of columns, those of semi, anti and outer joins included, divided by type.
fn classes(graph: &JoinGraph) -> Vec<Vec<ClassMember>> {
    let mut classes: Vec<Vec<ClassMember>> = Vec::new();
    for class in &graph.classes {
        let members = class.members.iter().filter_map(|(leaf, expr)| {
            let column = member_column(graph, *leaf, expr)?;
            Some(ClassMember { leaf: *leaf, column, propagates_conditions: true, accepts_conditions: true })
        });
        classes.push(members.collect());
    }
    for (leaf, attached) in graph.leaves.iter().enumerate() {
        let Some(attachment) = &attached.attachment else { continue };
        // The result of NOT IN depends on NULLs that a filter would remove, and so may a mark.
        let (gives, takes) = match attachment.join_type {
            JoinType::LeftSemi => (true, true),
            JoinType::Left | JoinType::LeftAnti if !attachment.null_aware => (false, true),
            _ => continue,
        };
        for (theirs, own) in &attachment.on {
            let Some(column) = member_column(graph, leaf, own) else { continue };
            let member = ClassMember { leaf, column, propagates_conditions: gives, accepts_conditions: takes };
            let Some(partner) = partner_member(graph, leaf, theirs) else { continue };
            let is_partner = |other: &ClassMember| other.leaf == partner.leaf && other.column == partner.column;
            match classes.iter_mut().find(|class| class.iter().any(is_partner)) {
                Some(class) => class.push(member),
                None => classes.push(vec![partner, member]),
            }
        }
    }
    // A condition means the same only for columns of the same type.
    classes.into_iter().flat_map(|class| split_by_type(graph, class)).filter(|class| 1 < class.len()).collect()
}

/// Returns the member for `expr` if it is a column of another leaf.
fn partner_member(graph: &JoinGraph, leaf: usize, expr: &Expr) -> Option<ClassMember> {
    (0..graph.leaves.len()).filter(|other| *other != leaf).find_map(|other| {
        let column = member_column(graph, other, expr)?;
        // Conditions on an attached leaf propagate, but conditions of others must not remove its rows.
        let takes = graph.leaves[other].attachment.is_none();
        Some(ClassMember { leaf: other, column, propagates_conditions: true, accepts_conditions: takes })
    })
}

fn member_column(graph: &JoinGraph, leaf: usize, expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Column(column) if graph.leaves[leaf].plan.schema().has_column(column) => Some(column.clone()),
        _ => None,
    }
}

/// Divides a class by SQL type, without columns of inexact types.
fn split_by_type(graph: &JoinGraph, class: Vec<ClassMember>) -> Vec<Vec<ClassMember>> {
    let mut groups: Vec<(Option<SqlType>, Vec<ClassMember>)> = Vec::new();
    for member in class {
        let schema = graph.leaves[member.leaf].plan.schema();
        let Ok(field) = schema.field_from_column(&member.column) else { continue };
        if !is_exact(field) {
            continue;
        }
        let sql_type = SqlType::from_arrow_field(field);
        match groups.iter_mut().find(|(known, _)| *known == sql_type) {
            Some((_, members)) => members.push(member),
            None => groups.push((sql_type, vec![member])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Returns whether equal values of a type are identical.
fn is_exact(field: &Field) -> bool {
    matches!(
        field.data_type(),
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Decimal128(..)
            | DataType::Utf8View
    )
}

/// Returns the conditions on a member alone, normalized by [`normalize_condition`].
fn conditions_on_member(graph: &JoinGraph, member: &ClassMember) -> Vec<Expr> {
    let leaf = &graph.leaves[member.leaf];
    let mut conditions = conditions_on(&leaf.plan, &member.column);
    if leaf.attachment.is_none() {
        let own = graph.conditions.iter().filter(|condition| condition.leaves.single() == Some(member.leaf));
        conditions.extend(own.filter_map(|condition| normalize_condition(&condition.expr, &member.column)));
    }
    conditions
}

/// Returns the conditions that no other one implies.
fn without_implied(conditions: Vec<Expr>) -> Vec<Expr> {
    let mut kept: Vec<Expr> = Vec::new();
    for condition in conditions {
        if !kept.iter().any(|known| implies(known, &condition)) {
            kept.retain(|known| !implies(&condition, known));
            kept.push(condition);
        }
    }
    kept
}

/// Returns whether `stronger` implies `weaker`; false if that is not recognized.
fn implies(stronger: &Expr, weaker: &Expr) -> bool {
    if stronger == weaker {
        return true;
    }
    let (Some((strong, value)), Some((weak, bound))) = (column_comparison(stronger), column_comparison(weaker)) else {
        // The other conditions are evaluated for the one value that an equality leaves.
        return matches!(column_comparison(stronger), Some((Operator::Eq, _)));
    };
    let Some(order) = value.partial_cmp(bound) else { return false };
    match (strong, weak) {
        (Operator::Eq, _) => true,
        (Operator::Lt, Operator::Lt | Operator::LtEq) | (Operator::LtEq, Operator::LtEq) => order != Ordering::Greater,
        (Operator::LtEq, Operator::Lt) => order == Ordering::Less,
        (Operator::Gt, Operator::Gt | Operator::GtEq) | (Operator::GtEq, Operator::GtEq) => order != Ordering::Less,
        (Operator::GtEq, Operator::Gt) => order == Ordering::Greater,
        _ => false,
    }
}

fn column_comparison(condition: &Expr) -> Option<(Operator, &ScalarValue)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(_), Expr::Literal(value, _)) => Some((*op, value)),
            _ => None,
        },
        _ => None,
    }
}

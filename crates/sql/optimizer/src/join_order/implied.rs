//! Conditions that follow from others by the equalities of joins: who asks `a.x = b.y AND a.x < 5` asks `b.y < 5` too.
//!
//! They are added where they come to a scan, so that it reads less. Estimates do not count them twice: a condition leaves as large a part of
//! a column's values as of its rows, and joins meet on values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, ExprSchema, JoinType, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use types::SqlType;

use super::graph::Graph;
use crate::origin::{asked, conditions_on, renamed};

/// Adds to the graph's leaves what follows for their columns. Whether anything did.
pub(super) fn add(graph: &mut Graph) -> bool {
    let mut is_changed = false;
    for class in classes(graph) {
        let mut known = Vec::new();
        for member in class.iter().filter(|member| member.gives) {
            known.extend(of_member(graph, member));
        }
        let known = tightest(known);
        for member in class.iter().filter(|member| member.takes) {
            let own = of_member(graph, member);
            for condition in known.iter().filter(|condition| !own.iter().any(|own| implies(own, condition))) {
                let leaf = &mut graph.leaves[member.leaf];
                if let Some(plan) = asked(&leaf.plan, &member.column, condition) {
                    leaf.plan = Arc::new(plan);
                    is_changed = true;
                }
            }
        }
    }
    is_changed
}

/// A column of a leaf whose value others have too, wherever rows meet.
#[derive(Debug, Clone)]
struct Member {
    leaf: usize,
    column: Column,
    /// Whether what is true of it is true of the others in all rows that matter to them.
    gives: bool,
    /// Whether its rows may be left out where a condition on the others is not true of it.
    takes: bool,
}

fn classes(graph: &Graph) -> Vec<Vec<Member>> {
    let mut classes: Vec<Vec<Member>> = Vec::new();
    for class in &graph.classes {
        let members = class.members.iter().filter_map(|(leaf, expr)| {
            let column = column(graph, *leaf, expr)?;
            Some(Member { leaf: *leaf, column, gives: true, takes: true })
        });
        classes.push(members.collect());
    }
    for (leaf, attached) in graph.leaves.iter().enumerate() {
        let Some(attachment) = &attached.attachment else { continue };
        // NOT IN asks whether there is a NULL, and a mark may be one.
        let (gives, takes) = match attachment.join_type {
            JoinType::LeftSemi => (true, true),
            JoinType::Left | JoinType::LeftAnti if !attachment.null_aware => (false, true),
            _ => continue,
        };
        for (theirs, own) in &attachment.on {
            let Some(column) = column(graph, leaf, own) else { continue };
            let member = Member { leaf, column, gives, takes };
            let Some(partner) = partner(graph, leaf, theirs) else { continue };
            let is_partner = |other: &Member| other.leaf == partner.leaf && other.column == partner.column;
            match classes.iter_mut().find(|class| class.iter().any(is_partner)) {
                Some(class) => class.push(member),
                None => classes.push(vec![partner, member]),
            }
        }
    }
    // One type has one meaning of every condition.
    classes.into_iter().flat_map(|class| by_type(graph, class)).filter(|class| 1 < class.len()).collect()
}

/// The column of another leaf that is `expr`.
fn partner(graph: &Graph, leaf: usize, expr: &Expr) -> Option<Member> {
    (0..graph.leaves.len()).filter(|other| *other != leaf).find_map(|other| {
        let column = column(graph, other, expr)?;
        // What an outer join adds gives its conditions on, but must not lose rows by those of others.
        let takes = graph.leaves[other].attachment.is_none();
        Some(Member { leaf: other, column, gives: true, takes })
    })
}

fn column(graph: &Graph, leaf: usize, expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Column(column) if graph.leaves[leaf].plan.schema().has_column(column) => Some(column.clone()),
        _ => None,
    }
}

fn by_type(graph: &Graph, class: Vec<Member>) -> Vec<Vec<Member>> {
    let mut groups: Vec<(Option<SqlType>, Vec<Member>)> = Vec::new();
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

/// Whether values that are equal cannot be told apart.
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

/// What is asked of a member by itself, with one name for its column.
fn of_member(graph: &Graph, member: &Member) -> Vec<Expr> {
    let leaf = &graph.leaves[member.leaf];
    let mut conditions = conditions_on(&leaf.plan, &member.column);
    if leaf.attachment.is_none() {
        let own = graph.conditions.iter().filter(|condition| condition.leaves.single() == Some(member.leaf));
        conditions.extend(own.filter_map(|condition| renamed(&condition.expr, &member.column)));
    }
    conditions
}

/// Of the conditions those that no other implies.
fn tightest(conditions: Vec<Expr>) -> Vec<Expr> {
    let mut kept: Vec<Expr> = Vec::new();
    for condition in conditions {
        if !kept.iter().any(|known| implies(known, &condition)) {
            kept.retain(|known| !implies(&condition, known));
            kept.push(condition);
        }
    }
    kept
}

/// Whether what passes `stronger` passes `weaker` too; not all such pairs are known.
fn implies(stronger: &Expr, weaker: &Expr) -> bool {
    if stronger == weaker {
        return true;
    }
    let (Some((strong, value)), Some((weak, bound))) = (comparison(stronger), comparison(weaker)) else {
        // One value is what all else is asked of.
        return matches!(comparison(stronger), Some((Operator::Eq, _)));
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

fn comparison(condition: &Expr) -> Option<(Operator, &ScalarValue)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(_), Expr::Literal(value, _)) => Some((*op, value)),
            _ => None,
        },
        _ => None,
    }
}

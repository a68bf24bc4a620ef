//! Name-free description of what a node computes: columns are identified by their indices among the inputs' columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, Sort as SortExpr};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Subquery};

use super::equal_subplans::{ScanSource, scan_source};

/// Operation of a node without names, for comparison.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Scan(ScanSource, Option<Vec<usize>>, Option<usize>),
    Project(Vec<Expr>),
    Filter(Expr),
    Aggregate(Vec<Expr>, Vec<Expr>),
    Window(Vec<Expr>),
    Sort(Vec<SortExpr>, Option<usize>),
    Limit(Option<Expr>, Option<Expr>),
    Distinct,
    Union,
    Join {
        on: Vec<(Expr, Expr)>,
        filter: Option<Expr>,
        kind: JoinType,
        nulls: NullEquality,
        is_null_aware: bool,
    },
    /// A node that is compared with its names.
    ComparedWithNames(Box<LogicalPlan>),
    /// A node that equals no other, by its index in the plan.
    Incomparable(usize),
}

/// Returns the operation of a node; `None` if it cannot be compared. With `hides_subqueries`, subqueries are left out
/// of expressions, because their ids are compared instead.
pub(super) fn operation(plan: &LogicalPlan, hides_subqueries: bool) -> Result<Option<Operation>> {
    let one = |expr: &Expr| with_column_indices(plan, expr, hides_subqueries);
    let all = |exprs: &[Expr]| exprs.iter().map(one).collect::<Result<Option<Vec<_>>>>();
    Ok(match plan {
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() => {
            scan_source(scan).map(|table| Operation::Scan(table, scan.projection.clone(), scan.fetch))
        }
        LogicalPlan::Projection(projection) => all(&projection.expr)?.map(Operation::Project),
        LogicalPlan::Filter(filter) => one(&filter.predicate)?.map(Operation::Filter),
        LogicalPlan::Aggregate(aggregate) => all(&aggregate.group_expr)?
            .zip(all(&aggregate.aggr_expr)?)
            .map(|(keys, aggregates)| Operation::Aggregate(keys, aggregates)),
        LogicalPlan::Window(window) => all(&window.window_expr)?.map(Operation::Window),
        LogicalPlan::Sort(sort) => {
            let key = |key: &SortExpr| Ok(one(&key.expr)?.map(|expr| SortExpr { expr, ..key.clone() }));
            let keys = sort.expr.iter().map(key).collect::<Result<Option<Vec<_>>>>()?;
            keys.map(|keys| Operation::Sort(keys, sort.fetch))
        }
        LogicalPlan::Limit(limit) => {
            let count = |count: &Option<Box<Expr>>| count.as_ref().map(|count| count.as_ref().clone());
            Some(Operation::Limit(count(&limit.skip), count(&limit.fetch)))
        }
        LogicalPlan::Distinct(Distinct::All(_)) => Some(Operation::Distinct),
        LogicalPlan::Union(_) => Some(Operation::Union),
        LogicalPlan::Join(join) => {
            let pair = |(left, right): &(Expr, Expr)| Ok(one(left)?.zip(one(right)?));
            let on = join.on.iter().map(pair).collect::<Result<Option<Vec<_>>>>()?;
            let filter = join.filter.as_ref().map(one).transpose()?;
            let (kind, nulls, is_null_aware) = (join.join_type, join.null_equality, join.null_aware);
            match (on, filter) {
                (Some(on), None) => Some(Operation::Join { on, filter: None, kind, nulls, is_null_aware }),
                (Some(on), Some(Some(filter))) => {
                    Some(Operation::Join { on, filter: Some(filter), kind, nulls, is_null_aware })
                }
                _ => None,
            }
        }
        LogicalPlan::Distinct(Distinct::On(_))
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::Extension(_) => Some(Operation::ComparedWithNames(Box::new(plan.clone()))),
        _ => None,
    })
}

/// Returns the expression with columns replaced by their indices; `None` if a column is not among the inputs'.
pub(super) fn with_column_indices(plan: &LogicalPlan, expr: &Expr, hides_subqueries: bool) -> Result<Option<Expr>> {
    let mut is_known = true;
    let hidden = |subquery: Subquery| match hides_subqueries {
        true => Subquery { subquery: Arc::default(), ..subquery },
        false => subquery,
    };
    let unnamed = expr.clone().transform_up(|expr| {
        Ok(Transformed::yes(match expr {
            Expr::Column(column) => {
                let place = column_index(plan, &column);
                is_known &= place.is_some();
                Expr::Column(Column::new_unqualified(place.unwrap_or_default().to_string()))
            }
            // Aliases with metadata carry the SQL type.
            Expr::Alias(alias) if alias.metadata.is_none() => *alias.expr,
            Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(hidden(subquery)),
            Expr::Exists(exists) => Expr::Exists(Exists { subquery: hidden(exists.subquery), ..exists }),
            Expr::InSubquery(within) => Expr::InSubquery(InSubquery { subquery: hidden(within.subquery), ..within }),
            Expr::SetComparison(any) => Expr::SetComparison(SetComparison { subquery: hidden(any.subquery), ..any }),
            other => other,
        }))
    });
    Ok(Some(unnamed.data()?).filter(|_| is_known))
}

/// Returns the index of a column among the columns of all of the node's inputs.
pub(super) fn column_index(plan: &LogicalPlan, column: &Column) -> Option<usize> {
    let mut before = 0;
    for input in plan.inputs() {
        if let Some(index) = input.schema().maybe_index_of_column(column) {
            return Some(before + index);
        }
        before += input.schema().fields().len();
    }
    None
}

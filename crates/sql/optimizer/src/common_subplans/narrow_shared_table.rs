//! Narrows a shared table to the rows that some reader may need and to the columns that some reader uses.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction_owned};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, TableScan};
use functions::may_fail_by_row;

use super::shared_table::SharedTable;

/// Least number of readers with different conditions for which the shared table is still worth it.
const MANY_READERS_MIN: usize = 3;

/// Scans of shared tables, by table number.
#[derive(Default)]
pub(super) struct Readers(HashMap<usize, Vec<TableScan>>);

impl Readers {
    /// Adds the scans of `plan`.
    pub(super) fn add(&mut self, plan: &LogicalPlan) -> Result<()> {
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && let Some(table) = provider.downcast_ref::<SharedTable>()
            {
                self.0.entry(table.number).or_default().push(scan.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// Returns the scans of `table`.
    pub(super) fn scans_of(&self, table: &SharedTable) -> &[TableScan] {
        self.0.get(&table.number).map_or(&[], Vec::as_slice)
    }

    /// Returns the indices of the columns of `table` that any scan reads, ascending, at least one; `None` if nothing
    /// reads the table.
    pub(super) fn columns(&self, table: &SharedTable) -> Option<Vec<usize>> {
        let readers = self.scans_of(table);
        let mut columns = HashSet::new();
        for reader in readers {
            match &reader.projection {
                Some(projection) => columns.extend(projection.iter().copied()),
                None => columns.extend(0..table.column_count()),
            }
        }
        let mut columns: Vec<usize> = columns.into_iter().collect();
        if columns.is_empty() {
            // Readers only count the rows.
            columns.push(0);
        }
        columns.sort_unstable();
        (!readers.is_empty()).then_some(columns)
    }
}

/// Result of narrowing a shared table.
pub(super) enum Narrowed {
    /// Nothing reads the table.
    Unread,
    /// The readers' conditions differ so much that it is cheaper if each reader computes its rows itself.
    NotWorthwhile,
    /// The table's plan for its readers.
    Plan {
        plan: LogicalPlan,
        /// Indices of the table's columns that the plan gives, ascending.
        columns: Vec<usize>,
    },
}

/// Narrows `table` to the rows and columns that `readers` need.
pub(super) fn narrow(table: &Arc<SharedTable>, readers: &Readers) -> Result<Narrowed> {
    let Some(columns) = readers.columns(table) else { return Ok(Narrowed::Unread) };
    let mut choices =
        readers.scans_of(table).iter().map(|reader| pushable_conditions(table, reader)).collect::<Result<Vec<_>>>()?;
    let unfiltered = choices.iter().filter(|conditions| conditions.is_empty()).count();
    let differ = choices.iter().any(|conditions| *conditions != choices[0]);
    // The readers would repeat the same work: two of them need all rows, there are many, or an outer join's nullable
    // side is out of reach of their conditions.
    let is_shared_work = unfiltered == 0 && (MANY_READERS_MIN <= choices.len() || has_outer_join(&table.plan)?);
    if differ && unfiltered < 2 && !is_shared_work {
        return Ok(Narrowed::NotWorthwhile);
    }
    let condition = match (differ, unfiltered) {
        (false, _) => choices.pop().and_then(conjunction),
        (true, 0) => disjunction(choices.into_iter().filter_map(conjunction)),
        (true, _) => None,
    };
    let mut plan = LogicalPlanBuilder::from(table.plan.clone());
    if let Some(condition) = condition {
        plan = plan.filter(condition)?;
    }
    if columns.len() < table.column_count() {
        plan = plan.project(columns.iter().map(|column| Expr::Column(table.plan_column(*column))))?;
    }
    Ok(Narrowed::Plan { plan: plan.build()?, columns })
}

/// Returns whether a plan has a left or right join; conditions on the preserved side do not filter the other one.
fn has_outer_join(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(matches!(node, LogicalPlan::Join(join) if matches!(join.join_type, JoinType::Left | JoinType::Right)))
    })
}

/// Returns a reader's filters that can be pushed down to scans in the table's plan, rewritten to columns of that plan.
/// The reader filters again, so any of them may be left out.
fn pushable_conditions(table: &SharedTable, reader: &TableScan) -> Result<Vec<Expr>> {
    let mut conditions = Vec::new();
    for filter in &reader.filters {
        for condition in split_conjunction_owned(filter.clone()) {
            if is_infallible(&condition)? {
                let inner = condition.transform(|expr| {
                    Ok(match expr {
                        Expr::Column(column) => {
                            Transformed::yes(Expr::Column(table.plan_column(table.schema.index_of(&column.name)?)))
                        }
                        other => Transformed::no(other),
                    })
                });
                let inner = inner.data()?;
                let place = |column: &Column| table.plan.schema().maybe_index_of_column(column);
                let is_read = |column: &Column| place(column).is_some_and(|place| is_scanned(&table.plan, place));
                if inner.column_refs().into_iter().all(is_read) {
                    conditions.push(inner);
                }
            }
        }
    }
    Ok(conditions)
}

/// Returns whether a column comes unchanged from a scan, so that conditions on it can be pushed down to the scan.
fn is_scanned(plan: &LogicalPlan, place: usize) -> bool {
    let column = |expr: &Expr, input: &LogicalPlan| match expr {
        Expr::Column(column) => input.schema().maybe_index_of_column(column),
        _ => None,
    };
    let below = |input: &LogicalPlan, place: Option<usize>| place.is_some_and(|place| is_scanned(input, place));
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_scanned(&alias.input, place),
        LogicalPlan::Filter(filter) => is_scanned(&filter.input, place),
        LogicalPlan::Sort(sort) => is_scanned(&sort.input, place),
        LogicalPlan::Distinct(Distinct::All(input)) => is_scanned(input, place),
        LogicalPlan::Union(union) => union.inputs.iter().any(|input| is_scanned(input, place)),
        LogicalPlan::Projection(projection) => {
            let expr = projection.expr[place].clone().unalias();
            below(&projection.input, column(&expr, &projection.input))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let key = aggregate.group_expr.get(place).map(|key| key.clone().unalias());
            key.is_some_and(|key| below(&aggregate.input, column(&key, &aggregate.input)))
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            match place.checked_sub(join.left.schema().fields().len()) {
                Some(place) => is_scanned(&join.right, place),
                None => is_scanned(&join.left, place),
            }
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Left => {
            place < join.left.schema().fields().len() && is_scanned(&join.left, place)
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Right => {
            let place = place.checked_sub(join.left.schema().fields().len());
            place.is_some_and(|place| is_scanned(&join.right, place))
        }
        LogicalPlan::Join(join) if matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) => {
            is_scanned(&join.left, place)
        }
        LogicalPlan::Join(join) if matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti) => {
            is_scanned(&join.right, place)
        }
        _ => false,
    }
}

/// Returns whether a condition can be evaluated for other rows too: it cannot fail, is not volatile and has no
/// subquery.
fn is_infallible(condition: &Expr) -> Result<bool> {
    let reads_more = condition.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        ))
    })?;
    Ok(!reads_more && !condition.is_volatile() && !condition.column_refs().is_empty() && !may_fail_by_row(condition)?)
}

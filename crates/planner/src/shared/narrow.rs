//! What readers of a shared table leave to be computed: the rows that any of them may take, and the columns that any of them reads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan};

use super::table::SharedTable;
use crate::semantics::may_fail;

/// The scans of shared tables, by the tables' numbers.
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

    pub(super) fn of(&self, table: &SharedTable) -> &[TableScan] {
        self.0.get(&table.number).map_or(&[], Vec::as_slice)
    }
}

/// What is left of a shared table.
pub(super) enum Narrowed {
    Unread,
    /// Each reader takes its rows by conditions of its own, which are better asked where it computes them itself.
    Apart,
    To {
        plan: LogicalPlan,
        /// The columns of the table that the plan gives, ascending.
        columns: Vec<usize>,
    },
}

pub(super) fn narrowed(table: &Arc<SharedTable>, readers: &[TableScan]) -> Result<Narrowed> {
    if readers.is_empty() {
        return Ok(Narrowed::Unread);
    }
    let mut columns = HashSet::new();
    let mut choices = Vec::new();
    for reader in readers {
        match &reader.projection {
            Some(projection) => columns.extend(projection.iter().copied()),
            None => columns.extend(0..table.width()),
        }
        choices.push(conditions(table, reader)?);
    }
    let mut plan = LogicalPlanBuilder::from(table.body.clone());
    if choices.iter().all(|conditions| !conditions.is_empty()) {
        let restricted = choices
            .iter()
            .map(|conditions| -> HashSet<Column> { conditions.iter().flat_map(Expr::column_refs).cloned().collect() });
        let everywhere = restricted.reduce(|a, b| a.intersection(&b).cloned().collect());
        if everywhere.is_some_and(|columns| columns.is_empty()) && 1 < readers.len() {
            return Ok(Narrowed::Apart);
        }
        let mut any: Vec<Expr> = Vec::new();
        for choice in choices.into_iter().filter_map(conjunction) {
            if !any.contains(&choice) {
                any.push(choice);
            }
        }
        if let Some(any) = disjunction(any) {
            plan = plan.filter(any)?;
        }
    }
    let mut columns: Vec<usize> = columns.into_iter().collect();
    if columns.is_empty() {
        // Rows that are only counted.
        columns.push(0);
    }
    columns.sort_unstable();
    if columns.len() < table.width() {
        plan = plan.project(columns.iter().map(|column| Expr::Column(table.inner(*column))))?;
    }
    Ok(Narrowed::To { plan: plan.build()?, columns })
}

/// What a reader asks of its rows, over the columns of the table's plan. It asks again, so that any of it may be left out.
fn conditions(table: &SharedTable, reader: &TableScan) -> Result<Vec<Expr>> {
    let mut conditions = Vec::new();
    for filter in &reader.filters {
        for condition in split_conjunction_owned(filter.clone()) {
            if is_plain(&condition)? {
                let inner = condition.transform(|expr| {
                    Ok(match expr {
                        Expr::Column(column) => {
                            Transformed::yes(Expr::Column(table.inner(table.schema.index_of(&column.name)?)))
                        }
                        other => Transformed::no(other),
                    })
                });
                conditions.push(inner.data()?);
            }
        }
    }
    Ok(conditions)
}

/// Whether a condition may be asked of rows that do not come to it otherwise.
fn is_plain(condition: &Expr) -> Result<bool> {
    let reads_more = condition.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Case(_)
        ))
    })?;
    Ok(!reads_more && !condition.is_volatile() && !condition.column_refs().is_empty() && !may_fail(condition)?)
}

//! Fusion of ungrouped aggregates over the same rows with different conditions, so that one pass computes all of them.
//!
//! `SELECT (SELECT count(*) FROM t WHERE x < 5), (SELECT sum(y) FROM t WHERE x > 7)` reads `t` twice. After fusion one
//! aggregate reads the rows that pass any of the conditions; each call has its own condition as a FILTER clause.

use std::collections::{HashMap, HashSet};

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use functions::may_fail_by_row;

use super::equal_subplans::SubplanId;
use super::node_operation::with_column_indices;

/// Ungrouped aggregate over filtered rows. Columns are identified by their indices among the columns of the rows.
#[derive(Debug, Clone)]
pub(super) struct UngroupedAggregate {
    /// Id of the aggregate.
    pub(super) subplan: SubplanId,
    /// Id of the input below the filters.
    pub(super) input: SubplanId,
    /// Number of nodes above that input: the aggregate and its filters.
    pub(super) depth: usize,
    conditions: Vec<Expr>,
    aggregates: Vec<AggregateFunction>,
}

/// Set of ungrouped aggregates that one pass computes.
#[derive(Debug)]
pub(super) struct Fusion {
    /// Conditions that all of them have.
    common_conditions: Vec<Expr>,
    /// The remaining condition of each; a row has to pass one of them.
    alternatives: Vec<Expr>,
    aggregates: Vec<AggregateFunction>,
    /// Indices into `aggregates`, by fused aggregate.
    calls_by_aggregate: HashMap<SubplanId, Vec<usize>>,
}

impl UngroupedAggregate {
    /// Returns `plan` as a fusible aggregate, if it is one; `parts` gives the ids of the nodes after it in preorder.
    pub(super) fn try_from_plan(
        plan: &LogicalPlan,
        part: SubplanId,
        parts: impl Fn(usize) -> SubplanId,
    ) -> Result<Option<Self>> {
        let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(None) };
        if !aggregate.group_expr.is_empty() {
            return Ok(None);
        }
        let mut aggregates = Vec::with_capacity(aggregate.aggr_expr.len());
        for expr in &aggregate.aggr_expr {
            match with_column_indices(plan, expr, true)? {
                Some(Expr::AggregateFunction(call)) if is_infallible_call(&call)? => aggregates.push(call),
                _ => return Ok(None),
            }
        }
        let (mut rows, mut nodes, mut conditions) = (aggregate.input.as_ref(), 1, Vec::new());
        while let LogicalPlan::Filter(filter) = rows {
            for condition in split_conjunction_owned(filter.predicate.clone()) {
                match with_column_indices(rows, &condition, true)? {
                    Some(condition) if is_infallible(&condition)? => conditions.push(condition),
                    _ => return Ok(None),
                }
            }
            rows = filter.input.as_ref();
            nodes += 1;
        }
        // Aggregates over all rows are often answered from statistics.
        Ok((!conditions.is_empty()).then(|| Self {
            subplan: part,
            input: parts(nodes),
            depth: nodes,
            conditions,
            aggregates,
        }))
    }
}

/// Groups `totals` into fusions: aggregates over the same rows whose differing conditions read a common column, so that
/// the disjunction still prunes.
pub(super) fn find_fusions(totals: &[UngroupedAggregate], apart: &HashSet<SubplanId>) -> Vec<Fusion> {
    let mut by_rows: Vec<(SubplanId, Vec<&UngroupedAggregate>)> = Vec::new();
    for total in totals.iter().filter(|total| !apart.contains(&total.subplan)) {
        match by_rows.iter_mut().find(|(rows, _)| *rows == total.input) {
            Some((_, known)) if known.iter().any(|known| known.subplan == total.subplan) => {}
            Some((_, known)) => known.push(total),
            None => by_rows.push((total.input, vec![total])),
        }
    }
    by_rows.iter().filter_map(|(_, totals)| try_fuse(totals)).collect()
}

fn try_fuse(totals: &[&UngroupedAggregate]) -> Option<Fusion> {
    let (first, others) = totals.split_first()?;
    if others.is_empty() {
        return None;
    }
    let is_common = |condition: &&Expr| others.iter().all(|other| other.conditions.contains(condition));
    let common: Vec<Expr> = first.conditions.iter().filter(is_common).cloned().collect();
    let own = |total: &UngroupedAggregate| -> Vec<Expr> {
        total.conditions.iter().filter(|condition| !common.contains(condition)).cloned().collect()
    };
    let columns = |total: &&UngroupedAggregate| -> HashSet<Column> {
        own(total).iter().flat_map(Expr::column_refs).cloned().collect()
    };
    let shared = totals.iter().map(columns).reduce(|a, b| a.intersection(&b).cloned().collect())?;
    let differ = totals.iter().any(|total| !own(total).is_empty());
    if differ && shared.is_empty() {
        return None;
    }
    let mut fusion = Fusion {
        common_conditions: common.clone(),
        alternatives: Vec::new(),
        aggregates: Vec::new(),
        calls_by_aggregate: HashMap::new(),
    };
    for total in totals {
        let own = conjunction(own(total));
        if let Some(own) = &own
            && !fusion.alternatives.contains(own)
        {
            fusion.alternatives.push(own.clone());
        }
        let places =
            total.aggregates.iter().map(|call| fusion.add_call(with_filter(call.clone(), own.clone()))).collect();
        fusion.calls_by_aggregate.insert(total.subplan, places);
    }
    Some(fusion)
}

impl Fusion {
    /// Returns the indices of the plan's columns that hold the results of a fused aggregate.
    pub(super) fn columns_of(&self, total: SubplanId) -> Option<&Vec<usize>> {
        self.calls_by_aggregate.get(&total)
    }

    pub(super) fn subplans(&self) -> impl Iterator<Item = SubplanId> {
        self.calls_by_aggregate.keys().copied()
    }

    /// Returns the plan that computes all aggregates over `rows`.
    pub(super) fn build_plan(&self, rows: LogicalPlan) -> Result<LogicalPlan> {
        let columns = rows.schema().columns();
        let conditions = self.common_conditions.iter().cloned().chain(disjunction(self.alternatives.clone()));
        let condition = conjunction(conditions).map(|condition| with_columns(condition, &columns)).transpose()?;
        let rows = match condition {
            Some(condition) => LogicalPlanBuilder::from(rows).filter(condition)?.build()?,
            None => rows,
        };
        let total = |(number, call): (usize, &AggregateFunction)| {
            Ok(with_columns(Expr::AggregateFunction(call.clone()), &columns)?.alias(format!("total_{number}")))
        };
        let totals = self.aggregates.iter().enumerate().map(total).collect::<Result<Vec<_>>>()?;
        Aggregate::try_new(rows.into(), Vec::new(), totals).map(LogicalPlan::Aggregate)
    }

    /// Returns the index of an aggregate call, which is added if it is new.
    fn add_call(&mut self, call: AggregateFunction) -> usize {
        self.aggregates.iter().position(|known| *known == call).unwrap_or_else(|| {
            self.aggregates.push(call);
            self.aggregates.len() - 1
        })
    }
}

/// Adds a condition to the FILTER clause of an aggregate call.
fn with_filter(mut call: AggregateFunction, condition: Option<Expr>) -> AggregateFunction {
    let filters = call.params.filter.take().map(|filter| *filter).into_iter().chain(condition);
    call.params.filter = conjunction(filters).map(Box::new);
    call
}

/// Replaces column indices in an expression by the columns at these indices.
fn with_columns(expr: Expr, columns: &[Column]) -> Result<Expr> {
    let named = expr.transform(|expr| {
        let place = match &expr {
            Expr::Column(column) => column.name.parse::<usize>().ok(),
            _ => None,
        };
        Ok(match place.and_then(|place| columns.get(place)) {
            Some(column) => Transformed::yes(Expr::Column(column.clone())),
            None => Transformed::no(expr),
        })
    });
    named.data()
}

fn is_infallible_call(call: &AggregateFunction) -> Result<bool> {
    let params = &call.params;
    for expr in params.args.iter().chain(params.filter.as_deref()) {
        if !is_infallible(expr)? {
            return Ok(false);
        }
    }
    Ok(params.order_by.is_empty())
}

/// Returns whether an expression can be evaluated without errors for rows that other conditions would exclude.
fn is_infallible(expr: &Expr) -> Result<bool> {
    let reads_more = expr.exists(|expr| {
        Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)))
    })?;
    Ok(!reads_more && !expr.is_volatile() && !may_fail_by_row(expr)?)
}

//! Moves calls of correlated subqueries out of operators' expressions into [`SubPlan`]s below these operators.
//!
//! Expressions are evaluated synchronously, but a subquery runs operators, which are asynchronous. So the operator of a
//! [`SubPlan`] computes the expressions that call subqueries, and the operator above reads them as columns.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result as DfResult, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, Join, JoinType, LogicalPlan, Operator, Projection};
use plan::{plan_has_expression, take_unique_name};

use super::is_correlated_call;
use super::outer_parameter::values_to_union;
use super::sub_plan::SubPlan;

/// Returns `plan` with all calls of correlated subqueries in [`SubPlan`] nodes. The result is for the physical planner;
/// it is not to be optimized again.
///
/// # Errors
/// None that well-formed plans meet.
pub fn lift(plan: &LogicalPlan) -> DfResult<Cow<'_, LogicalPlan>> {
    if !plan_has_expression(plan, is_correlated_call)? {
        return Ok(Cow::Borrowed(plan));
    }
    let mut names = ColumnNames::of_plan(plan)?;
    let lifted = plan.clone().transform_up_with_subqueries(|node| lift_node(node, &mut names))?;
    Ok(Cow::Owned(lifted.data))
}

/// Returns whether any part of the expression calls a correlated subquery.
pub(super) fn calls_subquery(expr: &Expr) -> bool {
    expr.exists(|part| Ok(is_correlated_call(part))).expect("the visitor returns no error")
}

/// Generator of column names that a plan does not have.
struct ColumnNames {
    taken: HashSet<String>,
    next_number: usize,
}

impl ColumnNames {
    fn of_plan(plan: &LogicalPlan) -> DfResult<Self> {
        let mut taken = HashSet::new();
        plan.apply_with_subqueries(|node| {
            taken.extend(node.schema().fields().iter().map(|field| field.name().clone()));
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Self { taken, next_number: 1 })
    }

    /// Returns a name that the plan does not have yet.
    fn next(&mut self) -> String {
        let name = format!("subplan_{}", self.next_number);
        self.next_number += 1;
        take_unique_name(&mut self.taken, &name)
    }
}

/// Expressions to compute below an operator, each with the name of its column.
#[derive(Default)]
struct LiftedExprs(Vec<(String, Expr)>);

impl LiftedExprs {
    /// Adds an expression; returns the column that holds its values.
    fn add(&mut self, expr: Expr, names: &mut ColumnNames) -> Expr {
        let name = names.next();
        let column = Expr::Column(Column::new_unqualified(&name));
        self.0.push((name, expr));
        column
    }

    /// Returns `input` with a [`SubPlan`] above it that computes the expressions, if there are any.
    fn into_sub_plan(self, input: Arc<LogicalPlan>) -> DfResult<Arc<LogicalPlan>> {
        if self.0.is_empty() { Ok(input) } else { SubPlan::into_plan(input, self.0).map(Arc::new) }
    }
}

fn lift_node(node: LogicalPlan, names: &mut ColumnNames) -> DfResult<Transformed<LogicalPlan>> {
    let mut calls = false;
    node.apply_expressions(|expr| {
        calls = calls || calls_subquery(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !calls {
        return Ok(Transformed::no(node));
    }
    let lifted = match node {
        // A scan's filters only help pruning; a filter above the scan repeats them.
        LogicalPlan::TableScan(_) => return Ok(Transformed::no(node)),
        LogicalPlan::Filter(filter) => lift_filter(filter, names)?,
        LogicalPlan::Projection(projection) => lift_projection(projection, names)?,
        LogicalPlan::Join(join) => lift_join(join, names)?,
        LogicalPlan::Values(values) => {
            let schema = Arc::clone(&values.schema);
            let rows = values_to_union(values)?.transform_up(|node| lift_node(node, names))?.data;
            project_prefix(rows, &schema)?
        }
        node if node.inputs().len() == 1 => lift_arguments(node, names)?,
        node => return internal_err!("cannot lift a correlated subquery out of {}", node.display()),
    };
    Ok(Transformed::yes(lifted))
}

/// Projects the first columns of `plan` as `schema`, which is a prefix of the plan's schema.
fn project_prefix(plan: LogicalPlan, schema: &DFSchemaRef) -> DfResult<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().take(schema.fields().len()).map(Expr::Column).collect();
    Projection::try_new_with_schema(columns, Arc::new(plan), Arc::clone(schema)).map(LogicalPlan::Projection)
}

/// Splits a filter into one filter per condition with a subquery, above one for all others. As in PostgreSQL, cheap
/// conditions come first: a subquery runs only for rows that pass all conditions before it.
fn lift_filter(filter: Filter, names: &mut ColumnNames) -> DfResult<LogicalPlan> {
    let schema = Arc::clone(filter.input.schema());
    let (calling, plain): (Vec<Expr>, Vec<Expr>) =
        split_conjunction_owned(filter.predicate).into_iter().partition(calls_subquery);
    let mut plan = filter.input;
    if let Some(plain) = conjunction(plain) {
        plan = Arc::new(LogicalPlan::Filter(Filter::try_new(plain, plan)?));
    }
    for condition in calling {
        let mut lifted = LiftedExprs::default();
        let holds = lifted.add(condition, names);
        plan = Arc::new(LogicalPlan::Filter(Filter::try_new(holds, lifted.into_sub_plan(plan)?)?));
    }
    project_prefix(Arc::unwrap_or_clone(plan), &schema)
}

fn lift_projection(projection: Projection, names: &mut ColumnNames) -> DfResult<LogicalPlan> {
    let preserver = NamePreserver::new_for_projection();
    let mut lifted = LiftedExprs::default();
    let exprs = projection.expr.into_iter().map(|expr| {
        if !calls_subquery(&expr) {
            return expr;
        }
        let name = preserver.save(&expr);
        name.restore(lifted.add(expr.unalias(), names))
    });
    let exprs = exprs.collect();
    let input = lifted.into_sub_plan(projection.input)?;
    Projection::try_new_with_schema(exprs, input, projection.schema).map(LogicalPlan::Projection)
}

/// Lifts calls out of an operator with one input: out of arguments of aggregates and window functions, and out of keys
/// of groups, sorts and windows.
fn lift_arguments(node: LogicalPlan, names: &mut ColumnNames) -> DfResult<LogicalPlan> {
    let schema = Arc::clone(node.schema());
    let preserver = NamePreserver::new(&node);
    let mut lifted = LiftedExprs::default();
    let node = node.map_expressions(|expr| {
        if !calls_subquery(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = preserver.save(&expr);
        let expr = expr.transform_down(|part| {
            Ok(match part {
                Expr::AggregateFunction(_) | Expr::WindowFunction(_) | Expr::Alias(_) | Expr::GroupingSet(_) => {
                    Transformed::no(part)
                }
                part if calls_subquery(&part) => {
                    Transformed::new(lifted.add(part, names), true, TreeNodeRecursion::Jump)
                }
                part => Transformed::new(part, false, TreeNodeRecursion::Jump),
            })
        })?;
        Ok(expr.update_data(|expr| name.restore(expr)))
    })?;
    let mut lifted = Some(lifted);
    let node = node.data.map_children(|input| match lifted.take() {
        Some(lifted) => Ok(Transformed::yes(Arc::unwrap_or_clone(lifted.into_sub_plan(Arc::new(input))?))),
        None => internal_err!("an operator with lifted subqueries has more than one input"),
    })?;
    let node = node.data.recompute_schema()?;
    if node.schema().fields().len() == schema.fields().len() { Ok(node) } else { project_named(node, &schema) }
}

/// Projects the columns of `schema`, found by name.
fn project_named(plan: LogicalPlan, schema: &DFSchemaRef) -> DfResult<LogicalPlan> {
    let columns = schema.columns().into_iter().map(Expr::Column).collect();
    Projection::try_new_with_schema(columns, Arc::new(plan), Arc::clone(schema)).map(LogicalPlan::Projection)
}

/// Lifts calls out of a join: join keys and an outer join's conditions on one side are computed below the join, an
/// inner join's conditions become filters above it.
fn lift_join(join: Join, names: &mut ColumnNames) -> DfResult<LogicalPlan> {
    let schema = Arc::clone(&join.schema);
    let (mut on_left, mut on_right, mut above) = (LiftedExprs::default(), LiftedExprs::default(), Vec::new());
    let on = join.on.into_iter().map(|(left, right)| {
        let left = if calls_subquery(&left) { on_left.add(left, names) } else { left };
        let right = if calls_subquery(&right) { on_right.add(right, names) } else { right };
        (left, right)
    });
    let on = on.collect();
    let mut conditions = Vec::new();
    for condition in join.filter.map(split_conjunction_owned).unwrap_or_default() {
        if !calls_subquery(&condition) {
            conditions.push(condition);
        } else if join.join_type == JoinType::Inner {
            above.push(condition);
        } else {
            let condition = condition.transform_down(|part| {
                if !calls_subquery(&part) {
                    return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
                }
                let side = match side(&part, join.left.schema(), join.right.schema()) {
                    Some(JoinSide::Left) => &mut on_left,
                    Some(JoinSide::Right) => &mut on_right,
                    None if is_lazy(&part) || is_correlated_call(&part) => {
                        return internal_err!("an outer join's correlated subquery reads both sides");
                    }
                    None => return Ok(Transformed::no(part)),
                };
                Ok(Transformed::new(side.add(part, names), true, TreeNodeRecursion::Jump))
            })?;
            conditions.push(condition.data);
        }
    }
    let (left, right) = (on_left.into_sub_plan(join.left)?, on_right.into_sub_plan(join.right)?);
    let joined = Join { left, right, on, filter: conjunction(conditions), ..join };
    let mut plan = LogicalPlan::Join(joined).recompute_schema()?;
    if let Some(condition) = conjunction(above) {
        plan = lift_filter(Filter::try_new(condition, Arc::new(plan))?, names)?;
    }
    if plan.schema().fields().len() == schema.fields().len() { Ok(plan) } else { project_named(plan, &schema) }
}

/// One side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JoinSide {
    Left,
    Right,
}

/// Returns the side that has all columns of the expression; `None` if it reads both.
fn side(expr: &Expr, left: &DFSchema, right: &DFSchema) -> Option<JoinSide> {
    let columns = expr.column_refs();
    let has_all = |schema: &DFSchema| columns.iter().all(|column| schema.has_column(column));
    if has_all(left) { Some(JoinSide::Left) } else { has_all(right).then_some(JoinSide::Right) }
}

/// Returns whether some operands of the expression are evaluated only depending on others.
fn is_lazy(expr: &Expr) -> bool {
    matches!(expr, Expr::Case(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }))
}

/// Returns whether a condition of an outer join has a subquery that needs values of both sides, so that it can be
/// evaluated only for pairs of rows.
pub(super) fn needs_row_pairs(condition: &Expr, left: &DFSchema, right: &DFSchema) -> bool {
    if !calls_subquery(condition) || side(condition, left, right).is_some() {
        return false;
    }
    if is_lazy(condition) || is_correlated_call(condition) {
        return true;
    }
    let mut found = false;
    let walked = condition.apply_children(|part| {
        found = found || needs_row_pairs(part, left, right);
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("the visitor returns no error");
    found
}

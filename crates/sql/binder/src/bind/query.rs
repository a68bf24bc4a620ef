//! Binding of a query, from syntax to an analyzed plan.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{Limit, LogicalPlan};
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::{Query, Statement};
use functions::error::{from_datafusion, from_datafusion_with_position};
use plan::plan_limits;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::context_provider::Provider;
use super::modification::StatementRows;
use super::resolve::LockedTable;
use super::{
    Binder, as_of, group_keys, limit_expressions, many_window_calls, output_name, parameter_types, resolve,
    type_inference_limit, with_expansion_limit, with_materialization,
};
use crate::query_plan::{OptimizedPlanCache, OuterLimit, OutputColumn, QueryPlan, RowLocks};
use crate::{PlanningPhase, rewrite, semantics};

/// Plans `query`, with its output columns and parameters.
pub(super) fn plan(binder: &Binder<'_>, query: &Query, declared: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
    let planned = plan_part(binder, query, declared)?;
    let parameters = parameter_types::resolved_types(planned.parameters.into_iter().map(Some).collect())?;
    Ok(QueryPlan { parameters, ..planned })
}

/// Plans a query that may lock the rows it reads.
pub(super) fn plan_locking(binder: &Binder<'_>, query: &Query, declared: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
    if query.locks.is_empty() {
        return plan(binder, query, declared);
    }
    let (bound, locked) =
        resolve::resolve_locking_query(binder.context, &binder.relation_sources, binder.text, prepare(binder, query)?)?;
    let has_limit = bound.query.limit_clause.is_some();
    let mut planned = plan_resolved(binder, bound, declared)?;
    planned.parameters = parameter_types::resolved_types(planned.parameters.into_iter().map(Some).collect())?;
    planned.locks = locked
        .into_iter()
        .map(|LockedTable { table, mode, wait, column }| RowLocks { table, mode, wait, column })
        .collect();
    if let LogicalPlan::Limit(Limit { skip, fetch, input }) = planned.plan {
        planned.locked_limit = OuterLimit { offset: skip.map(|skip| *skip), limit: fetch.map(|fetch| *fetch) };
        planned.plan = Arc::unwrap_or_clone(input);
    } else if has_limit {
        return Err(SqlError::internal("plan of a locking query does not end in its limit"));
    }
    Ok(planned)
}

/// Plans a query that is part of a statement: parameters that it does not contain may keep an unknown type.
pub(super) fn plan_part(binder: &Binder<'_>, query: &Query, declared: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
    plan_resolved(binder, resolve_names(binder, query)?, declared)
}

fn plan_resolved(
    binder: &Binder<'_>,
    bound: resolve::ResolvedQuery,
    declared: &[Option<SqlType>],
) -> SqlResult<QueryPlan> {
    let resolve::ResolvedQuery { query, columns, groups_by_primary_key: groups_by_key, .. } = bound;
    let planned = if parameter_types::has_any(&query) {
        parameter_types::infer_types(binder, declared, |types| {
            analyze(binder, build_logical_plan(binder, query.clone(), types)?)
        })
    } else {
        // Without parameters it is planned only once, so a long query need not be copied.
        let mut query = Some(query);
        parameter_types::infer_types(binder, declared, |types| {
            let query = query
                .take()
                .ok_or_else(|| SqlError::internal("type inference planned a query without parameters a second time"))?;
            analyze(binder, build_logical_plan(binder, query, types)?)
        })
    };
    let (plan, parameters) = planned.map_err(|error| if groups_by_key { with_key_hint(error) } else { error })?;
    let columns = columns
        .into_iter()
        .zip(plan.schema().fields())
        .map(|(column, field)| OutputColumn {
            sql_type: output_type(SqlType::from_arrow_field(field)),
            name: column.name,
            table: column.origin.map(|(table, _)| table),
            column: column.origin.map(|(_, column)| column),
        })
        .collect();
    Ok(QueryPlan {
        plan,
        columns,
        parameters,
        state: binder.state(),
        locks: Vec::new(),
        locked_limit: OuterLimit::default(),
        depends_on_time: binder.has_read_now(),
        optimized: OptimizedPlanCache::default(),
        planning_timings: binder.planning_timings().clone(),
    })
}

/// Adds the hint that declared primary keys are no functional dependencies.
fn with_key_hint(error: SqlError) -> SqlError {
    match error.condition {
        Condition::GroupingError => error.with_hint(
            "Primary keys are declared and not enforced, so a column does not depend on one: add it to the GROUP BY clause.",
        ),
        _ => error,
    }
}

/// Returns the type that a client sees: an untyped literal is text.
pub(super) fn output_type(sql_type: Option<SqlType>) -> SqlType {
    match sql_type {
        None | Some(SqlType::Unknown) => SqlType::Text,
        Some(known) => known,
    }
}

/// Rewrites a query to a form that DataFusion plans with PostgreSQL's semantics, and resolves its names and output
/// columns.
pub(super) fn resolve_names(binder: &Binder<'_>, query: &Query) -> SqlResult<resolve::ResolvedQuery> {
    let begun = binder.planning_timings().start();
    let bound = resolve::resolve_query(binder.context, &binder.relation_sources, binder.text, prepare(binder, query)?);
    binder.planning_timings().end(PlanningPhase::NameResolution, begun);
    bound
}

/// Prepares a query for name resolution: evaluates AS OF, names the output columns and rewrites its syntax.
pub(super) fn prepare(binder: &Binder<'_>, query: &Query) -> SqlResult<Query> {
    let mut query = query.clone();
    as_of::evaluate_as_of_clauses(binder, &mut query)?;
    output_name::name_items(&mut query)?;
    rewrite::rewrite_query(&mut query)?;
    semantics::rewrite_query(&mut query)?;
    Ok(query)
}

/// Resolves every name of a query without translating it to DataFusion's syntax.
pub(super) fn resolve_query_names(binder: &Binder<'_>, query: &Query) -> SqlResult<Query> {
    let mut query = query.clone();
    output_name::name_items(&mut query)?;
    rewrite::rewrite_query(&mut query)?;
    Ok(resolve::resolve_query(binder.context, &binder.relation_sources, binder.text, query)?.query)
}

/// Builds DataFusion's plan of a query with resolved names, not analyzed yet.
pub(super) fn build_logical_plan(
    binder: &Binder<'_>,
    query: Query,
    types: &[Option<SqlType>],
) -> SqlResult<LogicalPlan> {
    build_logical_plan_over(binder, query, types, &StatementRows::default())
}

/// Builds a plan like [`build_logical_plan`], for a query that may read the statement's own rows.
pub(super) fn build_logical_plan_over(
    binder: &Binder<'_>,
    mut query: Query,
    types: &[Option<SqlType>],
    rows: &StatementRows,
) -> SqlResult<LogicalPlan> {
    let begun = binder.planning_timings().start();
    with_expansion_limit::check_expansion(&query)?;
    type_inference_limit::check_inference_cost(&query)?;
    group_keys::disambiguate(&mut query);
    many_window_calls::add_filters(&mut query);
    with_materialization::refer_to_clauses(&mut query, &binder.relation_sources);
    let provider = Provider::for_query(binder, &query, rows)?;
    let mut context = PlannerContext::new().with_prepare_param_data_types(parameter_types::fields(types));
    let plan = SqlToRel::new(&provider)
        .sql_statement_to_plan_with_context(Statement::Query(Box::new(query)), &mut context)
        .map_err(|error| {
            let (error, place) = from_datafusion_with_position(error);
            binder.text.with_position(error, place)
        })?;
    let plan = plan_limits::check_and_return(plan).map_err(from_datafusion)?;
    let plan = parameter_types::substitute_numeric_values(binder, plan)?;
    let settled = limit_expressions::evaluate_counts(binder, plan);
    binder.planning_timings().end(PlanningPhase::NameResolution, begun);
    settled
}

/// Runs the analyzer, which resolves the type of every expression.
pub(super) fn analyze(binder: &Binder<'_>, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
    let begun = binder.planning_timings().start();
    let state = binder.state();
    let options: &Arc<ConfigOptions> = state.config_options();
    let analyzed = state.analyzer().rules.iter().try_fold(plan, |plan, rule| rule.analyze(plan, options));
    binder.planning_timings().end(PlanningPhase::TypeResolution, begun);
    analyzed.and_then(plan_limits::check_and_return).map_err(from_datafusion)
}

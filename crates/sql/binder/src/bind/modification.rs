//! Binding of UPDATE, DELETE, MERGE and ON CONFLICT DO UPDATE, and of RETURNING.
//!
//! There are two queries: one over the target and the relations joined to it, from whose rows the statement computes
//! new rows (`write/`), and one over those, which is RETURNING. The names of both are resolved together
//! (`resolve/modification.rs`).

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableSource};
use datafusion::sql::sqlparser::ast::{
    self, Ident, ObjectName, Query, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, With,
};
use functions::error::from_datafusion;
use plan::StreamTable;
use syntax::statement::Returning;
use types::{SqlError, SqlResult, SqlType};

use super::query::{analyze, build_logical_plan_over, output_type, prepare};
pub(crate) use super::resolve::{Clause, MergeComposition, ReturningRow, RowColumn, RowPresence, ValueKind};
use super::view::PlanSource;
use super::{Binder, parameter_types, resolve};
use crate::bind::target_table::TargetTable;
use crate::query_plan::{OptimizedPlanCache, OuterLimit, OutputColumn, QueryPlan};

/// Rows of the statement itself that its queries read.
#[derive(Clone, Default)]
pub(super) struct StatementRows {
    pub(super) new: Option<Arc<dyn TableSource>>,
    pub(super) conflicting: Option<Arc<dyn TableSource>>,
}

/// Statement that changes rows of a table, reduced to what name resolution needs.
pub(crate) struct Modification<'a> {
    pub(crate) with: Option<&'a With>,
    pub(crate) target: TargetTable<'a>,
    pub(crate) source: ModificationSource<'a>,
    pub(crate) condition: Option<&'a ast::Expr>,
    pub(crate) values: Vec<WrittenValue>,
    pub(crate) merge: Option<MergeComposition<'a>>,
    pub(crate) returning: Option<&'a Returning>,
    pub(crate) returning_row: ReturningRow,
}

/// Expression to compute for each row.
pub(crate) struct WrittenValue {
    pub(crate) expr: ast::Expr,
    pub(crate) kind: ValueKind,
}

/// Source of the rows that a statement reads.
pub(crate) enum ModificationSource<'a> {
    /// Relations in FROM, the first of which is the target.
    From(Vec<TableWithJoins>),
    /// ON CONFLICT: existing rows of the target, each with the row proposed for insertion.
    Conflicting(&'a Arc<StreamTable>),
}

/// Statement with resolved names.
pub(crate) struct BoundModification {
    rows: Query,
    /// Number of columns of other relations than the target.
    pub(crate) other_column_count: usize,
    statement_rows: StatementRows,
    returning: Option<resolve::ResolvedReturning>,
}

/// Returns the target as the first relation of FROM.
pub(crate) fn target_as_from_item(changed: &TargetTable<'_>) -> TableWithJoins {
    let parts = [changed.schema, changed.table.name.as_str()].map(|part| Ident::with_quote('"', part));
    let alias =
        changed.alias.map(|alias| TableAlias { explicit: true, name: alias.clone(), columns: Vec::new(), at: None });
    let mut relation = resolve::table_factor(ObjectName::from(parts.to_vec()));
    if let TableFactor::Table { alias: place, .. } = &mut relation {
        *place = alias;
    }
    TableWithJoins { relation, joins: Vec::new() }
}

/// Resolves the names of a statement.
pub(super) fn resolve_names(binder: &Binder<'_>, written: Modification<'_>) -> SqlResult<BoundModification> {
    let Modification { with, target: changed, source, condition, values, merge, returning, returning_row: kept } =
        written;
    let (values, kinds): (Vec<ast::Expr>, Vec<ValueKind>) =
        values.into_iter().map(|value| (value.expr, value.kind)).unzip();
    let mut statement_rows = StatementRows::default();
    let from = match source {
        ModificationSource::From(from) => Some(from),
        ModificationSource::Conflicting(leaf) => {
            let leaf = Arc::clone(leaf);
            statement_rows.conflicting = Some(provider_as_source(leaf));
            None
        }
    };
    let is_met = from.is_none();
    let items = values.into_iter().map(SelectItem::UnnamedExpr).collect();
    let mut rows = select(items)?;
    rows.with = with.cloned();
    if let SetExpr::Select(select) = rows.body.as_mut() {
        select.from = from.unwrap_or_default();
        select.selection = condition.cloned();
    }
    let rows = prepare(binder, &rows)?;
    let returning = returning.map(|returning| written_returning(binder, returning)).transpose()?;
    let written = resolve::WrittenModification {
        rows,
        kinds,
        target: &changed,
        has_conflicting_rows: is_met,
        merge,
        returning,
        returning_row: kept,
    };
    let bound = resolve::resolve_modification(binder.context, &binder.relation_sources, binder.text, written)?;
    Ok(BoundModification {
        rows: bound.rows,
        other_column_count: bound.other_column_count,
        statement_rows,
        returning: bound.returning,
    })
}

/// Resolves the names of an INSERT's RETURNING.
pub(super) fn resolve_returning(
    binder: &Binder<'_>,
    with: Option<&With>,
    changed: &TargetTable<'_>,
    returning: &Returning,
) -> SqlResult<resolve::ResolvedReturning> {
    let mut written = written_returning(binder, returning)?;
    if let Some(with) = with {
        let mut query = select(Vec::new())?;
        query.with = Some(with.clone());
        written.query.with = prepare(binder, &query)?.with;
    }
    resolve::resolve_returning(binder.context, &binder.relation_sources, binder.text, written, changed)
}

/// Plans the columns `columns` of the rows that `complete` computes from those that are read, then the columns of
/// RETURNING.
pub(super) fn plan(
    binder: &Binder<'_>,
    bound: &BoundModification,
    declared: &[Option<SqlType>],
    columns: &[String],
    complete: impl Fn(LogicalPlan) -> SqlResult<LogicalPlan>,
) -> SqlResult<(QueryPlan, Option<Vec<OutputColumn>>)> {
    let (plan, parameters) = parameter_types::infer_types(binder, declared, |types| {
        let rows = analyze(binder, build_logical_plan_over(binder, bound.rows.clone(), types, &bound.statement_rows)?)?;
        let made = complete(rows)?;
        match &bound.returning {
            Some(returned) => plan_returning_items(binder, returned, made, types, columns),
            None => project_columns(made, columns),
        }
    })?;
    Ok(build_query_plan(binder, plan, parameters, columns.len(), bound.returning.as_ref()))
}

/// Plans RETURNING over rows that are computed already. See [`plan`].
pub(super) fn plan_returning(
    binder: &Binder<'_>,
    returned: &resolve::ResolvedReturning,
    made: &LogicalPlan,
    declared: &[Option<SqlType>],
    columns: &[String],
) -> SqlResult<(QueryPlan, Option<Vec<OutputColumn>>)> {
    let (plan, parameters) = parameter_types::infer_types(binder, declared, |types| {
        plan_returning_items(binder, returned, made.clone(), types, columns)
    })?;
    Ok(build_query_plan(binder, plan, parameters, columns.len(), Some(returned)))
}

fn plan_returning_items(
    binder: &Binder<'_>,
    returned: &resolve::ResolvedReturning,
    made: LogicalPlan,
    types: &[Option<SqlType>],
    columns: &[String],
) -> SqlResult<LogicalPlan> {
    let rows = StatementRows { new: Some(PlanSource::table_source(made)), conflicting: None };
    analyze(binder, build_logical_plan_over(binder, returned.query(columns), types, &rows)?)
}

fn project_columns(made: LogicalPlan, columns: &[String]) -> SqlResult<LogicalPlan> {
    let columns = columns.iter().map(|name| Expr::Column(Column::new_unqualified(name)));
    Projection::try_new(columns.collect(), Arc::new(made)).map(LogicalPlan::Projection).map_err(from_datafusion)
}

fn build_query_plan(
    binder: &Binder<'_>,
    plan: LogicalPlan,
    parameters: Vec<SqlType>,
    width: usize,
    returned: Option<&resolve::ResolvedReturning>,
) -> (QueryPlan, Option<Vec<OutputColumn>>) {
    let fields = plan.schema().fields().iter();
    let mut columns: Vec<OutputColumn> = fields
        .map(|field| OutputColumn {
            name: field.name().clone(),
            sql_type: output_type(SqlType::from_arrow_field(field)),
            table: None,
            column: None,
        })
        .collect();
    let returning = returned.map(|returned| {
        for (column, bound) in columns[width..].iter_mut().zip(&returned.columns) {
            column.name.clone_from(&bound.name);
            column.table = bound.origin.map(|(table, _)| table);
            column.column = bound.origin.map(|(_, column)| column);
        }
        columns[width..].to_vec()
    });
    let query = QueryPlan {
        plan,
        columns,
        parameters,
        state: binder.state(),
        locks: Vec::new(),
        locked_limit: OuterLimit::default(),
        depends_on_time: binder.has_read_now(),
        optimized: OptimizedPlanCache::default(),
        planning_timings: binder.planning_timings().clone(),
    };
    (query, returning)
}

/// Returns the items of RETURNING as a SELECT without FROM, and its names for old and new rows.
fn written_returning(binder: &Binder<'_>, returning: &Returning) -> SqlResult<resolve::WrittenReturning> {
    let name = |name: &Option<Ident>| name.as_ref().map(|name| name.value.clone());
    Ok(resolve::WrittenReturning {
        query: prepare(binder, &select(returning.items.clone())?)?,
        old: name(&returning.old),
        new: name(&returning.new),
    })
}

/// Builds `SELECT items`.
pub(crate) fn select(items: Vec<SelectItem>) -> SqlResult<Query> {
    let parsed = syntax::parse("SELECT 1")?.into_iter().next().map(|parsed| parsed.statement);
    let Some(syntax::Statement::Query(mut query)) = parsed else {
        return Err(SqlError::internal("SELECT 1 does not parse as a query"));
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
    }
    Ok(*query)
}

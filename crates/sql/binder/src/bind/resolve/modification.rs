//! Name resolution of statements that change rows: first the target and the relations joined to it, then RETURNING,
//! in which the target's columns refer to the new rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins, With,
};
use plan::{ROW_ID, ROW_POSITION};
use session_context::StatementContext;
use syntax::Walk;
use syntax::statement::column_count_mismatch;
use types::{SqlError, SqlResult};

use super::aggregate_placement::{self, Clause};
use super::scope::{Column, Relation, Scope, column_expr, quoted};
use super::{ResolvedColumn, Resolver, column_names, from, select, table_factor};
use crate::bind::error_position::StatementText;
use crate::bind::modification_columns::ModificationColumns;
use crate::bind::relation_source::{RelationSource, RelationSources};
use crate::bind::target_table::TargetTable;

/// Statement with unresolved names.
pub(in crate::bind) struct WrittenModification<'a> {
    /// `[WITH …] SELECT values FROM target, … WHERE …`, rewritten; without FROM for the conflicting rows of an
    /// INSERT.
    pub(in crate::bind) rows: Query,
    /// Kind of each value.
    pub(in crate::bind) kinds: Vec<ValueKind>,
    pub(in crate::bind) target: &'a TargetTable<'a>,
    pub(in crate::bind) has_conflicting_rows: bool,
    pub(in crate::bind) merge: Option<MergeComposition<'a>>,
    pub(in crate::bind) returning: Option<WrittenReturning>,
    pub(in crate::bind) returning_row: ReturningRow,
}

/// Scope and form of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueKind {
    pub(crate) clause: Clause,
    /// Whether the value cannot refer to the target.
    pub(crate) hides_target: bool,
    /// Column of a query's only row that is the value, as in `SET (a, b) = (SELECT …)`; `None` for other values.
    pub(crate) row_column: Option<RowColumn>,
}

/// Column of the row of a query that is assigned to several columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowColumn {
    pub(crate) position: usize,
    /// Number of columns that the query must have.
    pub(crate) width: usize,
}

/// Composition of MERGE's values, depending on which sides of its join a row has.
pub(crate) struct MergeComposition<'a> {
    /// Builds the values to compute from resolved expressions.
    pub(crate) compose: &'a dyn Fn(Vec<Expr>, &RowPresence) -> Vec<Expr>,
    /// Whether [`RowPresence::source`] is needed.
    pub(crate) needs_source_presence: bool,
}

/// Expressions that are NULL in joined rows without a row of one side.
pub(crate) struct RowPresence {
    pub(crate) target: Expr,
    /// `None` unless [`MergeComposition::needs_source_presence`].
    pub(crate) source: Option<Expr>,
}

/// RETURNING as `SELECT items`, with its aliases for `old` and `new`.
pub(in crate::bind) struct WrittenReturning {
    pub(in crate::bind) query: Query,
    pub(in crate::bind) old: Option<String>,
    pub(in crate::bind) new: Option<String>,
}

/// Row that RETURNING refers to without `old` or `new`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReturningRow {
    Old,
    New,
    /// Old row for deletes and new row otherwise, in the columns [`ModificationColumns::returning_row`].
    OldIfDeleted,
}

/// Statement with resolved names.
pub(in crate::bind) struct ResolvedModification {
    pub(in crate::bind) rows: Query,
    pub(in crate::bind) other_column_count: usize,
    pub(in crate::bind) returning: Option<ResolvedReturning>,
}

/// RETURNING with resolved names: items over the relation of new rows.
pub(crate) struct ResolvedReturning {
    query: Query,
    relation: String,
    pub(in crate::bind) columns: Vec<ResolvedColumn>,
}

impl ResolvedReturning {
    /// Builds the query of the columns `columns` of the rows, followed by the items.
    pub(in crate::bind) fn query(&self, columns: &[String]) -> Query {
        let mut query = self.query.clone();
        if let SetExpr::Select(select) = query.body.as_mut() {
            let column = |name: &String| SelectItem::ExprWithAlias {
                expr: column_expr(&self.relation, name),
                alias: quoted(name),
            };
            let items = std::mem::take(&mut select.projection);
            select.projection = columns.iter().map(column).chain(items).collect();
        }
        query
    }
}

/// Resolves the names of a statement that changes rows.
pub(in crate::bind) fn resolve_modification(
    context: &Arc<StatementContext>,
    sources: &RelationSources,
    text: StatementText<'_>,
    written: WrittenModification<'_>,
) -> SqlResult<ResolvedModification> {
    let WrittenModification {
        rows: mut query,
        kinds,
        target: changed,
        has_conflicting_rows: is_met,
        merge,
        returning,
        returning_row: kept,
    } = written;
    let names = changed.added_columns();
    let mut resolver = Resolver::new(context, sources, text);
    resolver.reserve_names(changed, [Some(&query), returning.as_ref().map(|returning| &returning.query)]);
    if let Some(with) = &mut query.with {
        resolver.resolve_with(with)?;
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::internal("the query for the rows of a modification is not a SELECT"));
    };
    let (relation, scope, presence) = if is_met {
        let (relation, scope) = resolver.resolve_conflicting_rows(changed, select)?;
        let target = column_expr(&relation, ROW_ID);
        (relation, scope, RowPresence { target, source: None })
    } else {
        resolver.resolve_target_and_joins(select, merge.as_ref().is_some_and(|merge| merge.needs_source_presence))?
    };
    let values = resolver.resolve_values(select, &kinds, scope.clone())?;
    let values = match &merge {
        Some(merge) => (merge.compose)(values, &presence),
        None => values,
    };
    let (projection, others) = columns_to_read(&relation, &scope, values, &names);
    select.projection = projection;
    let returning = returning
        .map(|returning| {
            // RETURNING cannot refer to the rows proposed for insertion.
            let scope = if is_met { first_relation_only(scope) } else { scope };
            let scope = new_row_scope(scope, &others, kept, &names);
            resolver.resolve_returning(
                returning,
                query.with.as_ref(),
                changed,
                scope,
                kept == ReturningRow::OldIfDeleted,
            )
        })
        .transpose()?;
    Ok(ResolvedModification { rows: query, other_column_count: others.len(), returning })
}

/// Resolves the names of an INSERT's RETURNING.
pub(in crate::bind) fn resolve_returning(
    context: &Arc<StatementContext>,
    sources: &RelationSources,
    text: StatementText<'_>,
    mut written: WrittenReturning,
    changed: &TargetTable<'_>,
) -> SqlResult<ResolvedReturning> {
    let mut resolver = Resolver::new(context, sources, text);
    resolver.reserve_names(changed, [Some(&written.query), None]);
    let mut with = written.query.with.take();
    if let Some(with) = &mut with {
        resolver.resolve_with(with)?;
    }
    // The inserted rows may come from these WITH queries.
    resolver.ctes.iter_mut().for_each(|cte| cte.is_referenced = true);
    let scope = Scope::from_relation(changed.relation(|_, name| column_expr("", name)));
    let scope = new_row_scope(scope, &[], ReturningRow::New, &changed.added_columns());
    resolver.resolve_returning(written, with.as_ref(), changed, scope, false)
}

impl TargetTable<'_> {
    fn name(&self) -> &str {
        self.alias.map_or(self.table.name.as_str(), |alias| alias.value.as_str())
    }

    /// Builds the target as a relation; `expr` returns a column's expression from its index and name.
    fn relation(&self, expr: impl Fn(usize, &str) -> Expr) -> Relation {
        let columns = self.table.columns.iter().enumerate().map(|(at, column)| Column {
            name: column.name.clone(),
            expr: expr(at, &column.name),
            origin: Some((self.table.oid, column.id)),
        });
        Relation {
            name: self.name().to_owned(),
            schema: self.alias.is_none().then(|| self.schema.to_owned()),
            columns: columns.collect(),
            hidden: Vec::new(),
        }
    }
}

impl Resolver<'_> {
    /// Reserves the names of columns, so that no relation gets them.
    fn reserve_names(&mut self, changed: &TargetTable<'_>, queries: [Option<&Query>; 2]) {
        for query in queries.into_iter().flatten() {
            self.column_names.extend(column_names::collect_column_names(query, self.context, self.sources));
        }
        self.column_names.extend(changed.table.columns.iter().map(|column| column.name.clone()));
    }

    /// Resolves FROM, whose first relation is the target; returns the target's name in the plan, the scope, and what
    /// tells whether a joined row has a row of each side.
    fn resolve_target_and_joins(
        &mut self,
        select: &mut Select,
        needs_source_presence: bool,
    ) -> SqlResult<(String, Scope, RowPresence)> {
        let scope = self.resolve_from(&mut select.from)?;
        let Some(first) = select.from.first_mut() else {
            return Err(SqlError::internal("the query for the rows of a modification has no target table in FROM"));
        };
        let TableFactor::Table { alias: Some(alias), version, .. } = &mut first.relation else {
            return Err(SqlError::internal("first relation of a modification is not a table"));
        };
        *version = Some(self.sources.refer_to(RelationSource::RowIdentity));
        let relation = alias.name.value.clone();
        let source = if needs_source_presence { Some(self.mark_source(&mut first.joins)?) } else { None };
        let presence = RowPresence { target: column_expr(&relation, ROW_ID), source };
        Ok((relation, scope, presence))
    }

    /// Adds a column that is true to the relation that the target is joined to; returns the column.
    fn mark_source(&mut self, joins: &mut [Join]) -> SqlResult<Expr> {
        let [Join { relation, .. }] = joins else {
            return Err(SqlError::internal("the query of a MERGE does not join exactly one source to the target"));
        };
        let column = self.unique_column("source_is_present", &[]);
        let subquery = Box::new(from::parse_query(&format!("SELECT true AS {}", quoted(&column)))?);
        let name = self.unique_relation("source_mark");
        let alias = TableAlias { explicit: true, name: quoted(&name), columns: Vec::new(), at: None };
        let mark = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
        let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
        let source = std::mem::replace(relation, from::no_table());
        let joins = vec![Join { relation: mark, global: false, join_operator }];
        let marked = TableWithJoins { relation: source, joins };
        *relation = TableFactor::NestedJoin { table_with_joins: Box::new(marked), alias: None };
        Ok(column_expr(&name, &column))
    }

    /// Returns the scope of existing rows and of those proposed for insertion (`excluded`), which are one relation of
    /// the plan.
    fn resolve_conflicting_rows(
        &mut self,
        changed: &TargetTable<'_>,
        select: &mut Select,
    ) -> SqlResult<(String, Scope)> {
        let internal = self.unique_relation(changed.name());
        select.from = vec![self.statement_rows_relation(RelationSource::ConflictingRows, &internal)];
        let names = changed.added_columns();
        let mut scope = Scope::from_relation(changed.relation(|_, name| column_expr(&internal, name)));
        let excluded = changed.relation(|at, _| column_expr(&internal, &names.other(at)));
        scope.extend(Scope::from_relation(Relation { name: "excluded".to_owned(), schema: None, ..excluded }))?;
        Ok((internal, scope))
    }

    /// Builds FROM of a query over rows of the statement, under the alias `alias`.
    fn statement_rows_relation(&self, source: RelationSource, alias: &str) -> TableWithJoins {
        let mut table = table_factor(ObjectName::from(vec![quoted("statement"), quoted(alias)]));
        if let TableFactor::Table { alias: place, version, .. } = &mut table {
            *place = Some(TableAlias { explicit: true, name: quoted(alias), columns: Vec::new(), at: None });
            *version = Some(self.sources.refer_to(source));
        }
        TableWithJoins { relation: table, joins: Vec::new() }
    }

    /// Resolves the condition and the values in `scope`.
    fn resolve_values(&mut self, select: &mut Select, kinds: &[ValueKind], scope: Scope) -> SqlResult<Vec<Expr>> {
        self.scopes.push(scope);
        if let Some(condition) = &mut select.selection {
            aggregate_placement::check_calls(condition, Clause::Where)?;
            self.resolve_expr(condition)?;
            select::as_boolean(condition);
        }
        let mut values = Vec::with_capacity(kinds.len());
        for (item, kind) in std::mem::take(&mut select.projection).into_iter().zip(kinds) {
            let (SelectItem::ExprWithAlias { expr: value, .. } | SelectItem::UnnamedExpr(value)) = item else {
                return Err(SqlError::internal("a new value of a modification is not an expression"));
            };
            aggregate_placement::check_calls(&value, kind.clause)?;
            let volatile_ctes_read = self.volatile_ctes_read();
            if kind.hides_target {
                let all = self.scopes.pop().unwrap_or_default();
                self.scopes.push(without_first(&all));
                let resolved = self.resolve_value(value, kind.row_column);
                self.scopes.pop();
                self.scopes.push(all);
                values.push(resolved?);
            } else {
                values.push(self.resolve_value(value, kind.row_column)?);
            }
            // A condition of MERGE is evaluated for the number of its clause and for the values that it guards.
            if kind.clause == Clause::MergeWhen && volatile_ctes_read < self.volatile_ctes_read() {
                return Err(from::volatile_reread_error());
            }
        }
        self.scopes.pop();
        Ok(values)
    }

    fn resolve_value(&mut self, mut value: Expr, column: Option<RowColumn>) -> SqlResult<Expr> {
        let Some(RowColumn { position, width }) = column else {
            self.resolve_expr(&mut value)?;
            return Ok(value);
        };
        let Expr::Subquery(mut query) = value else {
            return Err(SqlError::internal("a row is assigned from something other than a subquery"));
        };
        let outputs = self.query(&mut query)?;
        if outputs.len() != width {
            return Err(column_count_mismatch());
        }
        let relation = self.unique_relation("assigned");
        let column = &outputs[position].plan_name;
        let text = format!("{0}.{1} AS {1}", quoted(&relation), quoted(column));
        Ok(Expr::Subquery(Box::new(from::select_from(&text, *query, &relation)?)))
    }

    /// Resolves RETURNING in `scope`, whose columns have no relation in the plan yet.
    fn resolve_returning(
        &mut self,
        written: WrittenReturning,
        with: Option<&With>,
        changed: &TargetTable<'_>,
        mut scope: Scope,
        tells_action: bool,
    ) -> SqlResult<ResolvedReturning> {
        let relation = self.unique_relation("new_rows");
        for column in scope.columns.iter_mut().chain(scope.relations.iter_mut().flat_map(|it| &mut it.columns)) {
            if let Expr::CompoundIdentifier(parts) = &mut column.expr
                && let Some(first) = parts.first_mut()
            {
                *first = quoted(&relation);
            }
        }
        let names = changed.added_columns();
        let old = changed.relation(|at, _| column_expr(&relation, &names.old(at)));
        let new = changed.relation(|_, name| column_expr(&relation, name));
        for (version, other_name, usual) in [(old, &written.old, "old"), (new, &written.new, "new")] {
            let name = other_name.clone().unwrap_or_else(|| usual.to_owned());
            let is_taken = scope.relation(None, &name).is_some();
            if is_taken && other_name.is_none() {
                continue;
            }
            let columns = version.columns.into_iter().map(|column| Column { origin: None, ..column }).collect();
            let version = Relation { name, schema: None, columns, hidden: Vec::new() };
            scope.extend(Scope { relations: vec![version], columns: Vec::new() })?;
        }
        let mut query = written.query;
        let SetExpr::Select(select) = query.body.as_mut() else {
            return Err(SqlError::internal("the query for RETURNING is not a SELECT"));
        };
        self.merge_action = tells_action.then(|| column_expr(&relation, &names.merge_action()));
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                aggregate_placement::check_calls(expr, Clause::Returning)?;
            }
        }
        self.scopes.push(scope);
        let items = self.resolve_items(std::mem::take(&mut select.projection), false)?;
        self.scopes.pop();
        self.merge_action = None;
        let (mut projection, mut columns) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for (at, item) in items.into_iter().enumerate() {
            projection.push(SelectItem::ExprWithAlias { expr: item.expr, alias: quoted(&names.returning(at)) });
            columns.push(ResolvedColumn { name: item.output.name, origin: item.output.origin });
        }
        select.from = vec![self.statement_rows_relation(RelationSource::NewRows, &relation)];
        select.projection = projection;
        query.with = with.filter(|_| has_subquery(select)).cloned();
        Ok(ResolvedReturning { query, relation, columns })
    }
}

/// Returns the columns to read: row identity, the target's columns, the columns of other relations, and the values.
/// The second result is the columns of other relations.
fn columns_to_read(
    relation: &str,
    scope: &Scope,
    values: Vec<Expr>,
    names: &ModificationColumns,
) -> (Vec<SelectItem>, Vec<Expr>) {
    let target = scope.relations.first().map_or(&[][..], |target| &target.columns);
    let mut others: Vec<Expr> = Vec::new();
    let columns = scope.relations.iter().skip(1).flat_map(|it| &it.columns).chain(&scope.columns);
    for column in columns {
        if !others.contains(&column.expr) && !target.iter().any(|it| it.expr == column.expr) {
            others.push(column.expr.clone());
        }
    }
    let item = |expr: Expr, name: String| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
    let mut items: Vec<SelectItem> =
        [ROW_ID, ROW_POSITION].into_iter().map(|name| item(column_expr(relation, name), name.to_owned())).collect();
    items.extend(target.iter().enumerate().map(|(at, column)| item(column.expr.clone(), names.old(at))));
    items.extend(others.iter().enumerate().map(|(at, other)| item(other.clone(), names.other(at))));
    items.extend(values.into_iter().enumerate().map(|(at, value)| item(value, names.value(at))));
    (items, others)
}

/// Returns `scope` with its columns renamed to those of new rows; their relation is left open.
fn new_row_scope(scope: Scope, others: &[Expr], kept: ReturningRow, added: &ModificationColumns) -> Scope {
    let target: Vec<Expr> = scope
        .relations
        .first()
        .map_or_else(Vec::new, |target| target.columns.iter().map(|column| column.expr.clone()).collect());
    let names: Vec<String> = scope.relations.first().map_or_else(Vec::new, |target| {
        let name = |(at, column): (usize, &Column)| match kept {
            ReturningRow::Old => added.old(at),
            ReturningRow::New => column.name.clone(),
            ReturningRow::OldIfDeleted => added.returning_row(at),
        };
        target.columns.iter().enumerate().map(name).collect()
    });
    let renamed = |column: Column| {
        let of_target = target.iter().position(|expr| *expr == column.expr).map(|at| names[at].clone());
        let of_other = || others.iter().position(|expr| *expr == column.expr).map(|number| added.other(number));
        let name = of_target.or_else(of_other).unwrap_or_default();
        Column { expr: column_expr("", &name), ..column }
    };
    let relations = scope.relations.into_iter().map(|relation| Relation {
        columns: relation.columns.into_iter().map(renamed).collect(),
        hidden: Vec::new(),
        ..relation
    });
    Scope { relations: relations.collect(), columns: scope.columns.into_iter().map(renamed).collect() }
}

/// Returns the scope without its first relation.
fn without_first(scope: &Scope) -> Scope {
    let Some((first, others)) = scope.relations.split_first() else { return Scope::default() };
    let is_first = |column: &&Column| first.columns.iter().any(|it| it.expr == column.expr);
    let columns = scope.columns.iter().filter(|column| !is_first(column)).cloned().collect();
    Scope { relations: others.to_vec(), columns }
}

/// Returns the scope of the first relation.
fn first_relation_only(mut scope: Scope) -> Scope {
    let others: Vec<Expr> =
        scope.relations.iter().skip(1).flat_map(|it| &it.columns).map(|column| column.expr.clone()).collect();
    scope.columns.retain(|column| !others.contains(&column.expr));
    scope.relations.truncate(1);
    scope
}

/// Returns whether the items contain a subquery.
fn has_subquery(select: &Select) -> bool {
    let flow = select.projection.walk_expressions(|expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    flow.is_break()
}

//! Name resolution of statements that change rows: first the target and the relations joined to it, then RETURNING,
//! in which the target's columns refer to the new rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins, With,
};
use plan::{ROW_ID, ROW_POSITION};
use session_context::StatementContext;
use syntax::Walk;
use types::{SqlError, SqlResult};

use super::placement::{self, Clause};
use super::scope::{Column, Relation, Scope, column_expr, quoted};
use super::{ResolvedColumn, Resolver, column_names, select, table_factor};
use crate::bind::error_position::StatementText;
use crate::bind::plan_names::{
    CONFLICTING_ROWS, NEW_ROWS, PROVIDED_SCHEMA, ROW_IDENTITY_CATALOG, TARGET_PRESENT, reading,
};
use crate::bind::target_table::TargetTable;

/// Statement with unresolved names.
pub(in crate::bind) struct WrittenModification<'a> {
    /// `[WITH …] SELECT values FROM target, … WHERE …`, rewritten; without FROM for the conflicting rows of an
    /// INSERT.
    pub(in crate::bind) rows: Query,
    /// Clause of each value.
    pub(in crate::bind) clauses: Vec<Clause>,
    pub(in crate::bind) target: &'a TargetTable<'a>,
    pub(in crate::bind) has_conflicting_rows: bool,
    pub(in crate::bind) returning: Option<WrittenReturning>,
    pub(in crate::bind) returning_row: ReturningRow,
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
    /// Old row for deletes and new row otherwise, in the columns `reading::returning_row`.
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
    text: StatementText<'_>,
    written: WrittenModification<'_>,
) -> SqlResult<ResolvedModification> {
    let WrittenModification {
        rows: mut query,
        clauses,
        target: changed,
        has_conflicting_rows: is_met,
        returning,
        returning_row: kept,
    } = written;
    let mut resolver = Resolver::new(context, text);
    resolver.reserve_names(changed, [Some(&query), returning.as_ref().map(|returning| &returning.query)]);
    if let Some(with) = &mut query.with {
        resolver.with(with)?;
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(SqlError::internal("rows are selected")) };
    let (relation, scope) = if is_met {
        resolver.resolve_conflicting_rows(changed, select)?
    } else {
        resolver.resolve_target_and_joins(select)?
    };
    let items = resolver.resolve_values(select, &clauses, scope.clone())?;
    let (projection, others) = columns_to_read(&relation, &scope, items);
    select.projection = projection;
    let returning = returning
        .map(|returning| {
            // RETURNING cannot refer to the rows proposed for insertion.
            let beside = if is_met { 0 } else { scope.relations.len() - 1 };
            let scope = new_row_scope(visible_scope(scope, beside), &others, kept);
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
    text: StatementText<'_>,
    mut written: WrittenReturning,
    changed: &TargetTable<'_>,
) -> SqlResult<ResolvedReturning> {
    let mut resolver = Resolver::new(context, text);
    resolver.reserve_names(changed, [Some(&written.query), None]);
    let mut with = written.query.with.take();
    if let Some(with) = &mut with {
        resolver.with(with)?;
    }
    // The inserted rows may come from these WITH queries.
    resolver.ctes.iter_mut().for_each(|cte| cte.is_referenced = true);
    let scope = Scope::from_relation(changed.relation(|_, name| column_expr("", name)));
    let scope = new_row_scope(scope, &[], ReturningRow::New);
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
            self.column_names.extend(column_names::collect_column_names(query, self.context));
        }
        self.column_names.extend(changed.table.columns.iter().map(|column| column.name.clone()));
    }

    /// Resolves FROM, whose first relation is the target; returns the target's name in the plan, and the scope.
    fn resolve_target_and_joins(&mut self, select: &mut Select) -> SqlResult<(String, Scope)> {
        let mut scope = self.resolve_from(&mut select.from)?;
        match select.from.first_mut().map(|first| &mut first.relation) {
            Some(TableFactor::Table { name, alias: Some(alias), .. }) => {
                name.0.insert(0, ObjectName::from(vec![quoted(ROW_IDENTITY_CATALOG)]).0.remove(0));
                let relation = alias.name.value.clone();
                let row =
                    Column { name: TARGET_PRESENT.to_owned(), expr: column_expr(&relation, ROW_ID), origin: None };
                let row =
                    Relation { name: TARGET_PRESENT.to_owned(), schema: None, columns: Vec::new(), hidden: vec![row] };
                scope.relations.push(row);
                Ok((relation, scope))
            }
            _ => Err(SqlError::internal("first relation of a modification is not a table")),
        }
    }

    /// Returns the scope of existing rows and of those proposed for insertion (`excluded`), which are one relation of
    /// the plan.
    fn resolve_conflicting_rows(
        &mut self,
        changed: &TargetTable<'_>,
        select: &mut Select,
    ) -> SqlResult<(String, Scope)> {
        let internal = self.unique_relation(changed.name());
        let mut table = table_factor(ObjectName::from(vec![quoted(PROVIDED_SCHEMA), quoted(CONFLICTING_ROWS)]));
        if let TableFactor::Table { alias, .. } = &mut table {
            *alias = Some(TableAlias { explicit: true, name: quoted(&internal), columns: Vec::new(), at: None });
        }
        select.from = vec![TableWithJoins { relation: table, joins: Vec::new() }];
        let mut scope = Scope::from_relation(changed.relation(|_, name| column_expr(&internal, name)));
        let excluded = changed.relation(|at, _| column_expr(&internal, &reading::other(at)));
        scope.extend(Scope::from_relation(Relation { name: "excluded".to_owned(), schema: None, ..excluded }))?;
        Ok((internal, scope))
    }

    /// Resolves the condition and the values in `scope`.
    fn resolve_values(&mut self, select: &mut Select, clauses: &[Clause], scope: Scope) -> SqlResult<Vec<Expr>> {
        self.levels.push(scope);
        if let Some(condition) = &mut select.selection {
            placement::check_calls(condition, Clause::Where)?;
            self.resolve_expr(condition)?;
            select::as_boolean(condition);
        }
        let mut values = Vec::with_capacity(clauses.len());
        for (item, clause) in std::mem::take(&mut select.projection).into_iter().zip(clauses) {
            let (SelectItem::ExprWithAlias { expr: mut value, .. } | SelectItem::UnnamedExpr(mut value)) = item else {
                return Err(SqlError::internal("values are expressions"));
            };
            placement::check_calls(&value, *clause)?;
            if *clause == Clause::MergeInsert {
                let all = self.levels.pop().unwrap_or_default();
                self.levels.push(without_first(&all));
                let resolved = self.resolve_expr(&mut value);
                self.levels.pop();
                self.levels.push(all);
                resolved?;
            } else {
                self.resolve_expr(&mut value)?;
            }
            values.push(value);
        }
        self.levels.pop();
        Ok(values)
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
        let relation = self.unique_relation("made");
        for column in scope.columns.iter_mut().chain(scope.relations.iter_mut().flat_map(|it| &mut it.columns)) {
            if let Expr::CompoundIdentifier(parts) = &mut column.expr
                && let Some(first) = parts.first_mut()
            {
                *first = quoted(&relation);
            }
        }
        let old = changed.relation(|at, _| column_expr(&relation, &reading::old(at)));
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
        let SetExpr::Select(select) = query.body.as_mut() else { return Err(SqlError::internal("items are selected")) };
        if tells_action {
            let action = Column {
                name: reading::ACTION.to_owned(),
                expr: column_expr(&relation, reading::ACTION),
                origin: None,
            };
            let action =
                Relation { name: reading::ACTION.to_owned(), schema: None, columns: Vec::new(), hidden: vec![action] };
            scope.relations.push(action);
            replace_merge_action(select);
        }
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                placement::check_calls(expr, Clause::Returning)?;
            }
        }
        self.levels.push(scope);
        let items = self.resolve_items(std::mem::take(&mut select.projection), false)?;
        self.levels.pop();
        let (mut projection, mut columns) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for (at, item) in items.into_iter().enumerate() {
            projection
                .push(SelectItem::ExprWithAlias { expr: item.expr, alias: quoted(&format!("returning\u{1}{at}")) });
            columns.push(ResolvedColumn { name: item.output.name, origin: item.output.origin });
        }
        let mut table = table_factor(ObjectName::from(vec![quoted(PROVIDED_SCHEMA), quoted(NEW_ROWS)]));
        if let TableFactor::Table { alias, .. } = &mut table {
            *alias = Some(TableAlias { explicit: true, name: quoted(&relation), columns: Vec::new(), at: None });
        }
        select.from = vec![TableWithJoins { relation: table, joins: Vec::new() }];
        select.projection = projection;
        query.with = with.filter(|_| has_subquery(select)).cloned();
        Ok(ResolvedReturning { query, relation, columns })
    }
}

/// Returns the columns to read: row identity, the target's columns, the columns of other relations, and the values.
/// The second result is the columns of other relations.
fn columns_to_read(relation: &str, scope: &Scope, values: Vec<Expr>) -> (Vec<SelectItem>, Vec<Expr>) {
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
    items.extend(target.iter().enumerate().map(|(at, column)| item(column.expr.clone(), reading::old(at))));
    items.extend(others.iter().enumerate().map(|(at, other)| item(other.clone(), reading::other(at))));
    items.extend(values.into_iter().enumerate().map(|(at, value)| item(value, reading::value(at))));
    (items, others)
}

/// Returns `scope` with its columns renamed to those of new rows; their relation is left open.
fn new_row_scope(scope: Scope, others: &[Expr], kept: ReturningRow) -> Scope {
    let target: Vec<Expr> = scope
        .relations
        .first()
        .map_or_else(Vec::new, |target| target.columns.iter().map(|column| column.expr.clone()).collect());
    let names: Vec<String> = scope.relations.first().map_or_else(Vec::new, |target| {
        let name = |(at, column): (usize, &Column)| match kept {
            ReturningRow::Old => reading::old(at),
            ReturningRow::New => column.name.clone(),
            ReturningRow::OldIfDeleted => reading::returning_row(at),
        };
        target.columns.iter().enumerate().map(name).collect()
    });
    let renamed = |column: Column| {
        let of_target = target.iter().position(|expr| *expr == column.expr).map(|at| names[at].clone());
        let of_other = || others.iter().position(|expr| *expr == column.expr).map(reading::other);
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

/// Returns the scope of the first relation and `beside` others, without internal relations.
fn visible_scope(mut scope: Scope, beside: usize) -> Scope {
    let is_seen = |relation: &Relation| !relation.name.contains('\u{1}');
    let (seen, unseen): (Vec<_>, Vec<_>) =
        scope.relations.into_iter().enumerate().partition(|(at, relation)| *at <= beside && is_seen(relation));
    let unseen: Vec<Expr> = unseen.into_iter().flat_map(|(_, it)| it.columns).map(|column| column.expr).collect();
    scope.columns.retain(|column| !unseen.contains(&column.expr));
    Scope { relations: seen.into_iter().map(|(_, relation)| relation).collect(), columns: scope.columns }
}

/// Replaces calls of `merge_action()` by its column.
fn replace_merge_action(select: &mut Select) {
    // The visitor never breaks.
    let _: ControlFlow<()> = select.projection.walk_expressions_mut(|expr| {
        if let Expr::Function(function) = expr
            && let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice()
            && name.value == "merge_action"
            && matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty())
        {
            *expr = Expr::Identifier(quoted(reading::ACTION));
        }
        ControlFlow::Continue(())
    });
}

/// Returns whether the items contain a subquery.
fn has_subquery(select: &Select) -> bool {
    let flow = select.projection.walk_expressions(|expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    flow.is_break()
}

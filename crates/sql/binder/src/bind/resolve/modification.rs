//! Names in statements that change rows: those of the target and of what is joined to it, then those of RETURNING, for which the
//! target's columns are those of rows that were made.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins, With,
};
use plan::{PLACE, ROW_ID};
use session_context::StatementContext;
use syntax::Walk;
use types::{SqlError, SqlResult};

use super::placement::{self, Clause};
use super::scope::{Column, Relation, Scope, column_expr, quoted};
use super::{BoundColumn, Resolver, column_names, named, select};
use crate::bind::changed::Changed;
use crate::bind::place::Text;
use crate::bind::plan_names::{GIVEN, MADE, MET, ROW, WITH_PLACES, reading};

/// A statement whose names are not settled yet.
pub(in crate::bind) struct WrittenModification<'a> {
    /// `[WITH …] SELECT values FROM target, … WHERE …`, rewritten; without FROM where the rows are those that an INSERT met.
    pub(in crate::bind) rows: Query,
    /// Where each of the values stands.
    pub(in crate::bind) clauses: Vec<Clause>,
    pub(in crate::bind) changed: &'a Changed<'a>,
    pub(in crate::bind) is_met: bool,
    pub(in crate::bind) returning: Option<WrittenReturning>,
    pub(in crate::bind) kept: Kept,
}

/// RETURNING as `SELECT items`, and other names than `old` and `new` for the rows before and after.
pub(in crate::bind) struct WrittenReturning {
    pub(in crate::bind) query: Query,
    pub(in crate::bind) old: Option<String>,
    pub(in crate::bind) new: Option<String>,
}

/// Which row RETURNING gives where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Old,
    New,
    /// That of the columns `reading::kept`.
    Either,
}

/// A statement whose names are settled.
pub(in crate::bind) struct Modification {
    pub(in crate::bind) rows: Query,
    pub(in crate::bind) others: usize,
    pub(in crate::bind) returning: Option<Returned>,
}

/// RETURNING whose names are settled: items over a relation of rows that were made.
pub(crate) struct Returned {
    query: Query,
    relation: String,
    pub(in crate::bind) columns: Vec<BoundColumn>,
}

impl Returned {
    /// The query that gives the columns called `columns` of the rows, then the items.
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

/// Settles the names of a statement that changes rows.
pub(in crate::bind) fn modification(
    context: &Arc<StatementContext>,
    text: Text<'_>,
    written: WrittenModification<'_>,
) -> SqlResult<Modification> {
    let WrittenModification { rows: mut query, clauses, changed, is_met, returning, kept } = written;
    let mut resolver = Resolver::new(context, text);
    resolver.avoid(changed, [Some(&query), returning.as_ref().map(|returning| &returning.query)]);
    if let Some(with) = &mut query.with {
        resolver.with(with)?;
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(SqlError::internal("rows are selected")) };
    let (relation, scope) =
        if is_met { resolver.met(changed, select)? } else { resolver.changed_and_joined(select)? };
    let items = resolver.computed(select, &clauses, scope.clone())?;
    let (projection, others) = read(&relation, &scope, items);
    select.projection = projection;
    let returning = returning
        .map(|returning| {
            // What was to be inserted is no longer known.
            let beside = if is_met { 0 } else { scope.relations.len() - 1 };
            let scope = made(seen(scope, beside), &others, kept);
            resolver.returning(returning, query.with.as_ref(), changed, scope, kept == Kept::Either)
        })
        .transpose()?;
    Ok(Modification { rows: query, others: others.len(), returning })
}

/// Settles the names of an INSERT's RETURNING.
pub(in crate::bind) fn returning(
    context: &Arc<StatementContext>,
    text: Text<'_>,
    mut written: WrittenReturning,
    changed: &Changed<'_>,
) -> SqlResult<Returned> {
    let mut resolver = Resolver::new(context, text);
    resolver.avoid(changed, [Some(&written.query), None]);
    let mut with = written.query.with.take();
    if let Some(with) = &mut with {
        resolver.with(with)?;
    }
    // The rows that are inserted may come of them.
    resolver.ctes.iter_mut().for_each(|cte| cte.is_read = true);
    let scope = Scope::of(changed.relation(|_, name| column_expr("", name)));
    let scope = made(scope, &[], Kept::New);
    resolver.returning(written, with.as_ref(), changed, scope, false)
}

impl Changed<'_> {
    fn name(&self) -> &str {
        self.alias.map_or(self.table.name.as_str(), |alias| alias.value.as_str())
    }

    /// The target as a relation whose columns are `expr` of their number and name.
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
    /// Keeps the names of columns from being given to relations.
    fn avoid(&mut self, changed: &Changed<'_>, queries: [Option<&Query>; 2]) {
        for query in queries.into_iter().flatten() {
            self.column_names.extend(column_names::of(query, self.context));
        }
        self.column_names.extend(changed.table.columns.iter().map(|column| column.name.clone()));
    }

    /// The target, which stands first in FROM, and the relations beside it; the name of the target in the plan.
    fn changed_and_joined(&mut self, select: &mut Select) -> SqlResult<(String, Scope)> {
        let mut scope = self.from(&mut select.from)?;
        match select.from.first_mut().map(|first| &mut first.relation) {
            Some(TableFactor::Table { name, alias: Some(alias), .. }) => {
                name.0.insert(0, ObjectName::from(vec![quoted(WITH_PLACES)]).0.remove(0));
                let relation = alias.name.value.clone();
                let row = Column { name: ROW.to_owned(), expr: column_expr(&relation, ROW_ID), origin: None };
                let row = Relation { name: ROW.to_owned(), schema: None, columns: Vec::new(), hidden: vec![row] };
                scope.relations.push(row);
                Ok((relation, scope))
            }
            _ => Err(SqlError::internal("the target of a statement is a table")),
        }
    }

    /// Rows that are there and those that were to be inserted, in one relation of the plan.
    fn met(&mut self, changed: &Changed<'_>, select: &mut Select) -> SqlResult<(String, Scope)> {
        let internal = self.unique_relation(changed.name());
        let mut table = named(ObjectName::from(vec![quoted(GIVEN), quoted(MET)]));
        if let TableFactor::Table { alias, .. } = &mut table {
            *alias = Some(TableAlias { explicit: true, name: quoted(&internal), columns: Vec::new(), at: None });
        }
        select.from = vec![TableWithJoins { relation: table, joins: Vec::new() }];
        let mut scope = Scope::of(changed.relation(|_, name| column_expr(&internal, name)));
        let excluded = changed.relation(|at, _| column_expr(&internal, &reading::other(at)));
        scope.extend(Scope::of(Relation { name: "excluded".to_owned(), schema: None, ..excluded }))?;
        Ok((internal, scope))
    }

    /// Resolves the condition and the values over `scope`.
    fn computed(&mut self, select: &mut Select, clauses: &[Clause], scope: Scope) -> SqlResult<Vec<Expr>> {
        self.levels.push(scope);
        if let Some(condition) = &mut select.selection {
            placement::check(condition, Clause::Where)?;
            self.expr(condition)?;
            select::as_boolean(condition);
        }
        let mut values = Vec::with_capacity(clauses.len());
        for (item, clause) in std::mem::take(&mut select.projection).into_iter().zip(clauses) {
            let (SelectItem::ExprWithAlias { expr: mut value, .. } | SelectItem::UnnamedExpr(mut value)) = item else {
                return Err(SqlError::internal("values are expressions"));
            };
            placement::check(&value, *clause)?;
            if *clause == Clause::MergeInsert {
                let all = self.levels.pop().unwrap_or_default();
                self.levels.push(without_first(&all));
                let resolved = self.expr(&mut value);
                self.levels.pop();
                self.levels.push(all);
                resolved?;
            } else {
                self.expr(&mut value)?;
            }
            values.push(value);
        }
        self.levels.pop();
        Ok(values)
    }

    /// Resolves RETURNING over `scope`, whose names have no relation yet.
    fn returning(
        &mut self,
        written: WrittenReturning,
        with: Option<&With>,
        changed: &Changed<'_>,
        mut scope: Scope,
        tells_action: bool,
    ) -> SqlResult<Returned> {
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
            name_action(select);
        }
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                placement::check(expr, Clause::Returning)?;
            }
        }
        self.levels.push(scope);
        let items = self.items(std::mem::take(&mut select.projection), false)?;
        self.levels.pop();
        let (mut projection, mut columns) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for (at, item) in items.into_iter().enumerate() {
            projection
                .push(SelectItem::ExprWithAlias { expr: item.expr, alias: quoted(&format!("returning\u{1}{at}")) });
            columns.push(BoundColumn { name: item.output.name, origin: item.output.origin });
        }
        let mut table = named(ObjectName::from(vec![quoted(GIVEN), quoted(MADE)]));
        if let TableFactor::Table { alias, .. } = &mut table {
            *alias = Some(TableAlias { explicit: true, name: quoted(&relation), columns: Vec::new(), at: None });
        }
        select.from = vec![TableWithJoins { relation: table, joins: Vec::new() }];
        select.projection = projection;
        query.with = with.filter(|_| asks(select)).cloned();
        Ok(Returned { query, relation, columns })
    }
}

/// What is read of the rows: which they are, the target's columns, what the names of other relations mean, and the values. The
/// second are given back too.
fn read(relation: &str, scope: &Scope, values: Vec<Expr>) -> (Vec<SelectItem>, Vec<Expr>) {
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
        [ROW_ID, PLACE].into_iter().map(|name| item(column_expr(relation, name), name.to_owned())).collect();
    items.extend(target.iter().enumerate().map(|(at, column)| item(column.expr.clone(), reading::old(at))));
    items.extend(others.iter().enumerate().map(|(at, other)| item(other.clone(), reading::other(at))));
    items.extend(values.into_iter().enumerate().map(|(at, value)| item(value, reading::value(at))));
    (items, others)
}

/// The names of `scope` as they are for rows that were made; the relation of the columns is left open.
fn made(scope: Scope, others: &[Expr], kept: Kept) -> Scope {
    let target: Vec<Expr> = scope
        .relations
        .first()
        .map_or_else(Vec::new, |target| target.columns.iter().map(|column| column.expr.clone()).collect());
    let names: Vec<String> = scope.relations.first().map_or_else(Vec::new, |target| {
        let name = |(at, column): (usize, &Column)| match kept {
            Kept::Old => reading::old(at),
            Kept::New => column.name.clone(),
            Kept::Either => reading::kept(at),
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

/// The names of all relations but the first.
fn without_first(scope: &Scope) -> Scope {
    let Some((first, others)) = scope.relations.split_first() else { return Scope::default() };
    let is_first = |column: &&Column| first.columns.iter().any(|it| it.expr == column.expr);
    let columns = scope.columns.iter().filter(|column| !is_first(column)).cloned().collect();
    Scope { relations: others.to_vec(), columns }
}

/// The names of the first relation and as many others, those aside that statements make for themselves.
fn seen(mut scope: Scope, beside: usize) -> Scope {
    let is_seen = |relation: &Relation| !relation.name.contains('\u{1}');
    let (seen, unseen): (Vec<_>, Vec<_>) =
        scope.relations.into_iter().enumerate().partition(|(at, relation)| *at <= beside && is_seen(relation));
    let unseen: Vec<Expr> = unseen.into_iter().flat_map(|(_, it)| it.columns).map(|column| column.expr).collect();
    scope.columns.retain(|column| !unseen.contains(&column.expr));
    Scope { relations: seen.into_iter().map(|(_, relation)| relation).collect(), columns: scope.columns }
}

/// Calls of `merge_action()` become the column that it stands for.
fn name_action(select: &mut Select) {
    // Nothing breaks off.
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

/// Whether there is a subquery among the items.
fn asks(select: &Select) -> bool {
    let flow = select.projection.walk_expressions(|expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    flow.is_break()
}

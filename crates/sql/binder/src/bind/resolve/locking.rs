//! Resolution of FOR UPDATE and the like: the relations they lock, and the columns that identify the rows.

use std::sync::Arc;

use catalog::{Relation as Stored, Table};
use datafusion::sql::sqlparser::ast::{
    GroupByExpr, JoinOperator, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
};
use plan::{ROW_ID, ROW_POSITION};
use session_context::StatementContext;
use syntax::statement::{LockedRelation, lock_mode_keywords};
use types::{Condition, LockMode, LockWait, SqlError, SqlResult};

use super::aggregate_placement::{self, Clause};
use super::scope::{column_expr, quoted};
use super::{ResolvedColumn, ResolvedQuery, Resolver, column_names};
use crate::bind::error_position::StatementText;
use crate::bind::relation_lookup::{self, RelationName, ResolvedRelation};
use crate::bind::relation_source::{RelationSource, RelationSources};

/// Table whose rows a query locks; `column` is the index of `__row_id` in the query's output, and `__place` follows.
pub(in crate::bind) struct LockedTable {
    pub(in crate::bind) table: Arc<Table>,
    pub(in crate::bind) mode: LockMode,
    pub(in crate::bind) wait: LockWait,
    pub(in crate::bind) column: usize,
}

/// Resolves the names of a query that locks rows.
pub(in crate::bind) fn resolve_locking_query(
    context: &Arc<StatementContext>,
    sources: &RelationSources,
    text: StatementText<'_>,
    mut query: Query,
) -> SqlResult<(ResolvedQuery, Vec<LockedTable>)> {
    let clauses = std::mem::take(&mut query.locks);
    let clauses = clauses.iter().map(LockedRelation::from_lock_clause);
    let clauses = clauses.collect::<SqlResult<Vec<_>>>()?;
    let clause = lock_mode_keywords(clauses.first().map_or(LockMode::Update, |clause| clause.mode));
    refuse(&query, &clause)?;
    let SetExpr::Select(written) = query.body.as_ref() else {
        return Err(SqlError::internal("the body of a query that locks rows is not a SELECT"));
    };
    let mut names = Vec::new();
    written.from.iter().for_each(|table| collect_written_names(table, &mut names));
    let mut nullable = Vec::new();
    written.from.iter().for_each(|table| collect_nullable(table, &mut nullable));
    let mut resolver = Resolver::new(context, sources, text);
    resolver.column_names = column_names::collect_column_names(&query, context, sources);
    let outputs = resolver.query(&mut query)?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::internal("the body of a query that locks rows is not a SELECT"));
    };
    let mut factors = Vec::new();
    select.from.iter_mut().for_each(|table| collect_resolved_factors(table, &mut factors));
    if factors.len() != names.len() {
        return Err(SqlError::internal(
            "name resolution changed the number of relations in FROM of a query that locks rows",
        ));
    }
    let mut locked = Vec::new();
    let mut items = Vec::new();
    for ((factor, name), is_nullable) in factors.into_iter().zip(&names).zip(nullable) {
        let wanted: Vec<&LockedRelation> = clauses.iter().filter(|it| it.name.is_none() || it.name == *name).collect();
        let Some(mode) = wanted.iter().map(|it| it.mode).max() else { continue };
        // As in PostgreSQL, NOWAIT in one clause prevails over SKIP LOCKED, and this over waiting.
        let has = |wait| wanted.iter().any(|it| it.wait == wait);
        let wait = [LockWait::NoWait, LockWait::SkipLocked].into_iter().find(|it| has(*it)).unwrap_or_default();
        let is_named = wanted.iter().any(|it| it.name.is_some());
        let Some((table, alias)) = lock_target(context, sources, factor, is_named, &lock_mode_keywords(mode))? else {
            continue;
        };
        if is_nullable {
            let message =
                format!("{} cannot be applied to the nullable side of an outer join", lock_mode_keywords(mode));
            return Err(SqlError::new(Condition::FeatureNotSupported, message));
        }
        locked.push(LockedTable { table, mode, wait, column: outputs.len() + items.len() });
        for column in [ROW_ID, ROW_POSITION] {
            let name = quoted(&resolver.unique_column(column, &[&outputs]));
            items.push(SelectItem::ExprWithAlias { expr: column_expr(&alias, column), alias: name });
        }
    }
    for clause in &clauses {
        if let Some(name) = &clause.name
            && !names.contains(&clause.name)
        {
            let message =
                format!("relation \"{name}\" in {} clause not found in FROM clause", lock_mode_keywords(clause.mode));
            return Err(SqlError::new(Condition::UndefinedTable, message));
        }
    }
    select.projection.extend(items);
    let columns =
        outputs.into_iter().map(|output| ResolvedColumn { name: output.name, origin: output.origin }).collect();
    Ok((ResolvedQuery { query, columns, groups_by_primary_key: false }, locked))
}

/// Rejects queries whose results are not rows of tables.
fn refuse(query: &Query, clause: &str) -> SqlResult<()> {
    let refused = |what: &str| Err(SqlError::new(Condition::FeatureNotSupported, format!("{clause} {what}")));
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::Values(_) => return refused("cannot be applied to VALUES"),
        SetExpr::SetOperation { .. } => return refused("is not allowed with UNION/INTERSECT/EXCEPT"),
        _ => return Err(SqlError::unsupported(format_args!("{clause} of a query in parentheses"))),
    };
    if query.fetch.is_some() {
        return Err(SqlError::unsupported(format_args!("{clause} with WITH TIES")));
    }
    let Select { distinct, group_by, having, projection, .. } = select.as_ref();
    if distinct.is_some() {
        return refused("is not allowed with DISTINCT clause");
    }
    if !matches!(group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty()) {
        return refused("is not allowed with GROUP BY clause");
    }
    if having.is_some() {
        return refused("is not allowed with HAVING clause");
    }
    for item in projection {
        let (SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr)) = item else { continue };
        let Err(error) = aggregate_placement::check_calls(expr, Clause::Returning) else { continue };
        match error.condition {
            Condition::GroupingError => return refused("is not allowed with aggregate functions"),
            Condition::WindowingError => return refused("is not allowed with window functions"),
            Condition::FeatureNotSupported => {
                return refused("is not allowed with set-returning functions in the target list");
            }
            // Other errors are reported by name resolution.
            _ => {}
        }
    }
    Ok(())
}

/// Collects the names of the relations in FROM, in order; `None` for those without a name.
fn collect_written_names(table: &TableWithJoins, names: &mut Vec<Option<String>>) {
    for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => collect_written_names(table_with_joins, names),
            TableFactor::Table { name, alias, .. } => {
                let last = name.0.last().and_then(|part| part.as_ident()).map(|last| last.value.clone());
                names.push(alias.as_ref().map(|alias| alias.name.value.clone()).or(last));
            }
            TableFactor::Derived { alias, .. } | TableFactor::NestedJoin { alias, .. } => {
                names.push(alias.as_ref().map(|alias| alias.name.value.clone()));
            }
            _ => names.push(None),
        }
    }
}

/// Collects, for the relations of [`collect_written_names`], whether an outer join can null-extend them.
fn collect_nullable(table: &TableWithJoins, found: &mut Vec<bool>) {
    let begin = found.len();
    let side = |factor: &TableFactor, found: &mut Vec<bool>| match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => collect_nullable(table_with_joins, found),
        _ => found.push(false),
    };
    side(&table.relation, found);
    for join in &table.joins {
        let right = found.len();
        side(&join.relation, found);
        match &join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => found[right..].fill(true),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => found[begin..right].fill(true),
            JoinOperator::FullOuter(_) => found[begin..].fill(true),
            _ => {}
        }
    }
}

/// Collects the resolved relations of FROM, in the same order.
fn collect_resolved_factors<'a>(table: &'a mut TableWithJoins, factors: &mut Vec<&'a mut TableFactor>) {
    let TableWithJoins { relation, joins } = table;
    for factor in std::iter::once(relation).chain(joins.iter_mut().map(|join| &mut join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                collect_resolved_factors(table_with_joins, factors)
            }
            other => factors.push(other),
        }
    }
}

/// Changes a relation to also have the columns that identify its rows; returns its table and its name in the plan, or
/// `None` for a relation without rows to lock.
fn lock_target(
    context: &Arc<StatementContext>,
    sources: &RelationSources,
    factor: &mut TableFactor,
    is_named: bool,
    clause: &str,
) -> SqlResult<Option<(Arc<Table>, String)>> {
    let TableFactor::Table { name, alias: Some(alias), version, .. } = factor else {
        return Err(SqlError::unsupported(format_args!("{clause} of a subquery or a function")));
    };
    if name.0.len() == 1 {
        if is_named {
            let message = format!("{clause} cannot be applied to a WITH query");
            return Err(SqlError::new(Condition::FeatureNotSupported, message));
        }
        return Ok(None);
    }
    if version.is_some() {
        return Err(SqlError::unsupported(format_args!("{clause} with AS OF")));
    }
    match relation_lookup::find_relation(context, &RelationName::parse(name, context)?)? {
        ResolvedRelation::Catalog(Stored::Table(table)) if table.external.is_some() => {
            let message = format!("cannot lock rows in external table \"{}\"", table.name);
            Err(SqlError::new(Condition::WrongObjectType, message))
        }
        ResolvedRelation::Catalog(Stored::Table(table)) => {
            *version = Some(sources.refer_to(RelationSource::RowIdentity));
            Ok(Some((table, alias.name.value.clone())))
        }
        ResolvedRelation::Catalog(Stored::Sequence(sequence)) => {
            let message = format!("cannot lock rows in sequence \"{}\"", sequence.name);
            Err(SqlError::new(Condition::WrongObjectType, message))
        }
        ResolvedRelation::Catalog(Stored::View(_)) => Err(SqlError::unsupported(format_args!("{clause} of a view"))),
        ResolvedRelation::System(..) => Err(SqlError::unsupported(format_args!("{clause} of a system table"))),
    }
}

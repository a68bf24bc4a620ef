//! Name resolution: gives every relation, column and output of a query a name that is unique in the statement.
//!
//! PostgreSQL and DataFusion differ in how they resolve names (outputs in GROUP BY and ORDER BY, common columns of
//! USING, duplicate names, aliases that hide others). So names are resolved here, on the syntax tree, such that
//! DataFusion finds exactly one match for each. Relations get unique aliases, output columns get names unique in
//! their SELECT; `*` is expanded.
//!
//! - `scope.rs`: the meaning of a name at one query level; `from.rs`: scopes of FROM clauses,
//! - `select.rs`: the clauses of a SELECT in PostgreSQL's order; `expr.rs`: names within expressions,
//! - `row_in_subquery.rs`: `(a, b) IN (SELECT …)`,
//! - `aggregate_placement.rs`: checks where aggregates and window functions are allowed,
//! - `intersect_except_all.rs` (INTERSECT ALL and EXCEPT ALL), `fetch_with_ties.rs` (WITH TIES), `locking.rs` (FOR
//!   UPDATE), `modification.rs` (UPDATE and the like),
//! - `column_names.rs`: names that relations must not get.

mod aggregate_placement;
mod column_names;
mod expr;
mod fetch_with_ties;
mod from;
mod intersect_except_all;
mod locking;
mod modification;
mod row_in_subquery;
mod scope;
mod select;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    Cte as WrittenCte, CteAsMaterialized, Expr, Fetch, LimitClause, ObjectName, OrderBy, OrderByKind, Query, SetExpr,
    SetOperator, SetQuantifier, TableFactor, TableWithJoins, UnaryOperator, Value, Values, With,
};
use plan::{take_unique_name, unique_name};
use session_context::StatementContext;
use syntax::statement::{LockedRelation, lock_mode_keywords};
use types::stack_limit::{PLAN_DEPTH_MAX, too_complex_error};
use types::{ColumnId, Condition, Oid, SqlError, SqlResult};

pub(crate) use self::aggregate_placement::Clause;
pub(in crate::bind) use self::locking::{LockedTable, resolve_locking_query};
pub(crate) use self::modification::{MergeComposition, ReturningRow, RowColumn, RowPresence, ValueKind};
pub(in crate::bind) use self::modification::{
    ResolvedReturning, WrittenModification, WrittenReturning, resolve_modification, resolve_returning,
};
pub(in crate::bind) use self::scope::quoted;
use self::scope::{Origin, Scope};
use crate::bind::error_position::StatementText;
use crate::bind::relation_source::RelationSources;

/// Query with resolved names.
#[derive(Debug, Clone)]
pub(super) struct ResolvedQuery {
    pub(super) query: Query,
    pub(super) columns: Vec<ResolvedColumn>,
    /// True if a GROUP BY has all columns of a table's primary key, on which the other columns depend in PostgreSQL.
    pub(super) groups_by_primary_key: bool,
}

/// Output column as a client sees it.
#[derive(Debug, Clone)]
pub(super) struct ResolvedColumn {
    pub(super) name: String,
    /// Table and column of which it is an unchanged copy.
    pub(super) origin: Option<(Oid, ColumnId)>,
}

/// Resolves the names of a query.
pub(super) fn resolve_query(
    context: &Arc<StatementContext>,
    sources: &RelationSources,
    text: StatementText<'_>,
    mut query: Query,
) -> SqlResult<ResolvedQuery> {
    let mut resolver = Resolver::new(context, sources, text);
    resolver.column_names = column_names::collect_column_names(&query, context, sources);
    let outputs = resolver.query(&mut query)?;
    let columns =
        outputs.into_iter().map(|output| ResolvedColumn { name: output.name, origin: output.origin }).collect();
    Ok(ResolvedQuery { query, columns, groups_by_primary_key: resolver.groups_by_key })
}

/// Resolves the names of an expression over unqualified columns.
pub(super) fn resolve_expression(
    context: &Arc<StatementContext>,
    sources: &RelationSources,
    expr: &mut Expr,
    columns: &[String],
) -> SqlResult<()> {
    let mut resolver = Resolver::new(context, sources, StatementText::default());
    let columns = columns
        .iter()
        .map(|name| scope::Column { name: name.clone(), expr: Expr::Identifier(quoted(name)), origin: None })
        .collect();
    resolver.scopes.push(Scope { relations: Vec::new(), columns });
    resolver.resolve_expr(expr)
}

/// Limit on a chain of WITH queries of which each reads the one before: a query has up to eight levels of a plan.
const CTE_LEVELS_MAX: usize = PLAN_DEPTH_MAX / 8;

struct Resolver<'a> {
    context: &'a Arc<StatementContext>,
    /// Sources that relations refer to.
    sources: &'a RelationSources,
    text: StatementText<'a>,
    /// Scopes of the enclosing FROM clauses, outermost first.
    scopes: Vec<Scope>,
    /// Visible WITH queries, innermost last.
    ctes: Vec<Cte>,
    relation_names: HashSet<String>,
    /// Names that relations must not get, see `column_names.rs`.
    column_names: HashSet<String>,
    cte_names: HashSet<String>,
    /// Greatest [`Cte::depth`] of the WITH queries read so far.
    cte_levels: usize,
    groups_by_key: bool,
    /// Column with the result of `merge_action()`, where MERGE's RETURNING is resolved.
    merge_action: Option<Expr>,
}

/// Output column of a query.
#[derive(Debug, Clone)]
struct Output {
    name: String,
    /// Name in the plan.
    plan_name: String,
    origin: Origin,
}

/// WITH query.
struct Cte {
    name: String,
    plan_name: String,
    columns: Vec<Output>,
    /// True if its rows differ between evaluations.
    is_volatile: bool,
    is_referenced: bool,
    /// True if it is declared MATERIALIZED.
    is_materialized: bool,
    /// Length of the longest chain of WITH queries that ends in it, itself included.
    depth: usize,
}

impl<'a> Resolver<'a> {
    fn new(context: &'a Arc<StatementContext>, sources: &'a RelationSources, text: StatementText<'a>) -> Self {
        Self {
            context,
            sources,
            text,
            scopes: Vec::new(),
            ctes: Vec::new(),
            relation_names: HashSet::new(),
            column_names: HashSet::new(),
            cte_names: HashSet::new(),
            cte_levels: 0,
            groups_by_key: false,
            merge_action: None,
        }
    }

    /// Returns a name for a relation that is unique in the plan.
    fn unique_relation(&mut self, name: &str) -> String {
        let is_taken = |name: &str| self.relation_names.contains(name) || self.column_names.contains(name);
        let found = unique_name(name, is_taken);
        self.relation_names.insert(found.clone());
        found
    }

    /// Returns a name for a column that no relation and no other column has; `outputs` are queries beside it.
    fn unique_column(&mut self, name: &str, outputs: &[&[Output]]) -> String {
        let is_output = |name: &str| outputs.iter().copied().flatten().any(|output| output.plan_name == name);
        let is_taken = |name: &str| self.relation_names.contains(name) || self.column_names.contains(name);
        let found = unique_name(name, |name| is_taken(name) || is_output(name));
        self.column_names.insert(found.clone());
        found
    }

    /// Resolves a query at the current levels.
    fn query(&mut self, query: &mut Query) -> SqlResult<Vec<Output>> {
        reject_clauses(query)?;
        let known_ctes = self.ctes.len();
        if let Some(with) = &mut query.with {
            self.resolve_with(with)?;
        }
        if let SetExpr::Table(table) = query.body.as_ref() {
            let parts = [&table.schema_name, &table.table_name].into_iter().flatten().map(|part| quoted(part));
            let name = ObjectName::from(parts.collect::<Vec<_>>());
            query.body = from::select_all(TableWithJoins { relation: table_factor(name), joins: Vec::new() })?.body;
        }
        let outputs = match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, query.order_by.as_mut())?,
            body => {
                let outputs = self.set_expr(body)?;
                if let Some(order_by) = &mut query.order_by {
                    order_by_outputs(order_by, &outputs)?;
                }
                outputs
            }
        };
        if let Some(clause) = &mut query.limit_clause {
            self.resolve_limit(clause)?;
        }
        if let Some(Fetch { quantity, .. }) = query.fetch.take() {
            self.with_ties(query, quantity, &outputs)?;
        }
        self.ctes.truncate(known_ctes);
        Ok(outputs)
    }

    fn set_expr(&mut self, body: &mut SetExpr) -> SqlResult<Vec<Output>> {
        match body {
            SetExpr::Select(select) => self.select(select, None),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => self.resolve_values_clause(values),
            SetExpr::SetOperation { left, right, op, set_quantifier } => {
                let is_all = match set_quantifier {
                    SetQuantifier::All => true,
                    SetQuantifier::Distinct | SetQuantifier::None => false,
                    other => return Err(SqlError::unsupported(format_args!("{op} {other}"))),
                };
                let outputs = self.set_expr(left)?;
                let others = self.set_expr(right)?;
                if outputs.len() != others.len() {
                    let message = format!("each {op} query must have the same number of columns");
                    return Err(SqlError::new(Condition::SyntaxError, message));
                }
                if is_all && *op != SetOperator::Union {
                    let take = |side: &mut SetExpr| std::mem::replace(side, *expr::empty_query().body);
                    let (op, left, right) = (*op, take(left), take(right));
                    *body = self.build_multiset_operation(op, (left, &outputs), (right, &others))?;
                }
                Ok(outputs.into_iter().map(|output| Output { origin: None, ..output }).collect())
            }
            SetExpr::Table(table) => {
                let parts = [&table.schema_name, &table.table_name].into_iter().flatten().map(|part| quoted(part));
                let name = ObjectName::from(parts.collect::<Vec<_>>());
                *body = *from::select_all(TableWithJoins { relation: table_factor(name), joins: Vec::new() })?.body;
                self.set_expr(body)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(SqlError::unsupported("a data-modifying statement in WITH"))
            }
        }
    }

    fn resolve_values_clause(&mut self, values: &mut Values) -> SqlResult<Vec<Output>> {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        if values.rows.iter().any(|row| row.content.len() != width) {
            return Err(SqlError::new(Condition::SyntaxError, "VALUES lists must all be the same length"));
        }
        for row in &mut values.rows {
            for expr in &mut row.content {
                aggregate_placement::check_calls(expr, Clause::Values)?;
                self.resolve_expr(expr)?;
            }
        }
        let name = |number| format!("column{number}");
        Ok((1..=width).map(|number| Output { name: name(number), plan_name: name(number), origin: None }).collect())
    }

    fn resolve_with(&mut self, with: &mut With) -> SqlResult<()> {
        let first = self.ctes.len();
        for cte in &mut with.cte_tables {
            let name = cte.alias.name.value.clone();
            if self.ctes[first..].iter().any(|known| known.name == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(SqlError::new(Condition::DuplicateAlias, message));
            }
            // DataFusion looks relations up among WITH queries by their whole name as text, schema and dot included.
            let internal = take_unique_name(&mut self.cte_names, &name.replace('.', "_"));
            let renamed: Vec<String> =
                std::mem::take(&mut cte.alias.columns).into_iter().map(|column| column.name.value).collect();
            cte.alias.name = quoted(&internal);
            let read = self.volatile_ctes_read();
            let levels_before = std::mem::take(&mut self.cte_levels);
            let columns = if with.recursive {
                self.recursive_query(cte, &name, &internal, &renamed)?
            } else {
                rename(self.query(&mut cte.query)?, &renamed, &name)?
            };
            let is_volatile = aggregate_placement::is_volatile(&cte.query) || read < self.volatile_ctes_read();
            let is_materialized = cte.materialized == Some(CteAsMaterialized::Materialized);
            let levels = self.cte_levels + 1;
            if levels > CTE_LEVELS_MAX {
                return Err(too_complex_error());
            }
            self.cte_levels = levels_before;
            self.ctes.push(Cte {
                name,
                plan_name: internal,
                columns,
                is_volatile,
                is_referenced: false,
                is_materialized,
                depth: levels,
            });
        }
        Ok(())
    }

    fn volatile_ctes_read(&self) -> usize {
        self.ctes.iter().filter(|cte| cte.is_volatile && cte.is_referenced && !cte.is_materialized).count()
    }

    /// Resolves a query of WITH RECURSIVE: its recursive term may read the query itself.
    fn recursive_query(
        &mut self,
        cte: &mut WrittenCte,
        name: &str,
        internal: &str,
        renamed: &[String],
    ) -> SqlResult<Vec<Output>> {
        let query = cte.query.as_mut();
        let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = query.body.as_mut() else {
            return rename(self.query(query)?, renamed, name);
        };
        refuse_with_union(query.with.as_ref(), query.order_by.as_ref(), query.limit_clause.as_ref())?;
        let columns = rename(self.set_expr(left)?, renamed, name)?;
        self.ctes.push(Cte {
            name: name.to_owned(),
            plan_name: internal.to_owned(),
            columns: columns.clone(),
            is_volatile: false,
            is_referenced: false,
            is_materialized: false,
            depth: 0,
        });
        let others = self.set_expr(right)?;
        self.ctes.pop();
        if columns.len() != others.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(SqlError::new(Condition::SyntaxError, message));
        }
        Ok(columns.into_iter().map(|column| Output { origin: None, ..column }).collect())
    }

    fn resolve_limit(&mut self, clause: &mut LimitClause) -> SqlResult<()> {
        let LimitClause::LimitOffset { limit, offset, limit_by } = clause else {
            return Err(SqlError::new(Condition::SyntaxError, "LIMIT #,# syntax is not supported")
                .with_hint("Use separate LIMIT and OFFSET clauses."));
        };
        if !limit_by.is_empty() {
            return Err(SqlError::unsupported("LIMIT BY"));
        }
        let levels = std::mem::take(&mut self.scopes);
        if let Some(limit) = limit {
            aggregate_placement::check_calls(limit, Clause::Limit)?;
            self.row_count(limit, "LIMIT", Condition::InvalidRowCountInLimit)?;
        }
        if let Some(offset) = offset {
            aggregate_placement::check_calls(&offset.value, Clause::Offset)?;
            self.row_count(&mut offset.value, "OFFSET", Condition::InvalidRowCountInOffset)?;
        }
        self.scopes = levels;
        if limit.as_ref().is_some_and(is_null) {
            *limit = None;
        }
        if offset.as_ref().is_some_and(|offset| is_null(&offset.value)) {
            *offset = None;
        }
        Ok(())
    }

    fn row_count(&mut self, expr: &mut Expr, clause: &str, negative: Condition) -> SqlResult<()> {
        // Casts are dropped, because a count has a fixed type anyway.
        while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
        }
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
            && matches!(inner.as_ref(), Expr::Value(_))
        {
            return Err(SqlError::new(negative, format!("{clause} must not be negative")));
        }
        self.resolve_expr(expr).map_err(|error| match error.condition {
            Condition::UndefinedColumn | Condition::UndefinedTable => SqlError::new(
                Condition::InvalidColumnReference,
                format!("argument of {clause} must not contain variables"),
            ),
            _ => error,
        })
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}

/// Rejects clauses that no query may have.
fn reject_clauses(query: &Query) -> SqlResult<()> {
    if let Some(lock) = query.locks.first() {
        let words = lock_mode_keywords(LockedRelation::from_lock_clause(lock)?.mode);
        return Err(SqlError::unsupported(format_args!("{words} in a query other than a top-level SELECT")));
    }
    if query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty()
    {
        return Err(SqlError::unsupported("a FOR XML, FOR JSON, SETTINGS, FORMAT or pipe clause"));
    }
    Ok(())
}

fn refuse_with_union(with: Option<&With>, order_by: Option<&OrderBy>, limit: Option<&LimitClause>) -> SqlResult<()> {
    let clause = match (with, order_by, limit) {
        (Some(_), _, _) => "WITH",
        (None, Some(_), _) => "ORDER BY",
        (None, None, Some(_)) => "LIMIT",
        (None, None, None) => return Ok(()),
    };
    let message = format!("{clause} in a recursive query is not implemented");
    Err(SqlError::new(Condition::FeatureNotSupported, message))
}

fn rename(outputs: Vec<Output>, names: &[String], relation: &str) -> SqlResult<Vec<Output>> {
    if names.len() > outputs.len() {
        let message = format!(
            "WITH query \"{relation}\" has {} columns available but {} columns specified",
            outputs.len(),
            names.len()
        );
        return Err(SqlError::new(Condition::InvalidColumnReference, message));
    }
    let mut names = names.iter();
    Ok(outputs
        .into_iter()
        .map(|output| match names.next() {
            Some(name) => Output { name: name.clone(), ..output },
            None => output,
        })
        .collect())
}

/// Resolves ORDER BY of a set operation or VALUES, which can refer to the output only.
fn order_by_outputs(order_by: &mut OrderBy, outputs: &[Output]) -> SqlResult<()> {
    let OrderByKind::Expressions(keys) = &mut order_by.kind else {
        return Err(SqlError::unsupported("ORDER BY ALL"));
    };
    for key in keys {
        let output = match select::output_position(&key.expr, outputs.len(), "ORDER BY")? {
            Some(at) => Some(&outputs[at]),
            None => match &key.expr {
                Expr::Identifier(name) => outputs.iter().find(|output| output.name == name.value),
                _ => None,
            },
        };
        let Some(output) = output else {
            if let Expr::Identifier(name) = &key.expr {
                let message = format!("column \"{}\" does not exist", name.value);
                return Err(SqlError::new(Condition::UndefinedColumn, message));
            }
            return Err(SqlError::new(
                Condition::FeatureNotSupported,
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            )
            .with_detail("Only result column names can be used, not expressions or functions.")
            .with_hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause."));
        };
        key.expr = Expr::Identifier(quoted(&output.plan_name));
    }
    Ok(())
}

pub(in crate::bind) fn table_factor(name: ObjectName) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

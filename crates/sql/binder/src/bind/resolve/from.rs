//! Resolution of FROM clauses: their relations, and the scope of column names they define.

use catalog::Relation as Stored;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    JoinConstraint, JoinOperator, ObjectName, Query, SetExpr, TableAlias, TableFactor, TableWithJoins, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Span;
use session_context::StatementContext;
use system_catalog::SEQUENCE_COLUMNS;
use types::{ColumnId, Condition, Oid, SqlError, SqlResult, TimeTravelTarget};

use super::Resolver;
use super::aggregate_placement::{self, Clause};
use super::scope::{Column, Origin, Relation, Scope, column_expr, quoted};
use crate::bind::relation_lookup::{self, RelationName, ResolvedRelation};
use crate::bind::relation_source::RelationSource;
use crate::bind::time_travel;

impl Resolver<'_> {
    /// Resolves a FROM clause and returns its scope.
    pub(super) fn resolve_from(&mut self, from: &mut [TableWithJoins]) -> SqlResult<Scope> {
        let mut scope = Scope::default();
        for table in from {
            let item = self.table_with_joins(table, &scope)?;
            scope.extend(item)?;
        }
        Ok(scope)
    }

    /// Resolves an item; `earlier` is the scope that LATERAL items may refer to.
    fn table_with_joins(&mut self, table: &mut TableWithJoins, earlier: &Scope) -> SqlResult<Scope> {
        let mut left = self.resolve_table_factor(&mut table.relation, earlier)?;
        for join in &mut table.joins {
            let mut lateral = earlier.clone();
            lateral.extend(left.clone())?;
            let right = self.resolve_table_factor(&mut join.relation, &lateral)?;
            left = self.resolve_join(left, right, &mut join.join_operator)?;
        }
        Ok(left)
    }

    fn resolve_table_factor(&mut self, factor: &mut TableFactor, earlier: &Scope) -> SqlResult<Scope> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                if sample.is_some() {
                    return Err(SqlError::unsupported("TABLESAMPLE"));
                }
                let moment = match version.as_ref().map(|version| self.sources.get(version)) {
                    None => None,
                    Some(Some(RelationSource::Snapshot(moment))) => Some(moment),
                    Some(_) => {
                        return Err(SqlError::internal("an AS OF clause was not evaluated before name resolution"));
                    }
                };
                self.resolve_table(name, alias, moment)
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                let outputs = if *lateral {
                    self.scopes.push(earlier.clone());
                    let outputs = self.query(subquery);
                    self.scopes.pop();
                    outputs?
                } else {
                    self.query(subquery)?
                };
                let columns =
                    outputs.into_iter().map(|output| (output.name, output.plan_name, output.origin)).collect();
                self.scope_of_alias(None, "unnamed_subquery", alias, columns)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.table_with_joins(table_with_joins, earlier)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                // An aliased join is like a subquery: its relations are not visible outside.
                let table = std::mem::replace(
                    table_with_joins.as_mut(),
                    TableWithJoins { relation: no_table(), joins: Vec::new() },
                );
                let subquery = Box::new(select_all(table)?);
                *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
                self.resolve_table_factor(factor, earlier)
            }
            other => Err(SqlError::unsupported(format_args!("{other} in FROM"))),
        }
    }

    /// Resolves a relation by name, as of `moment` if there is one.
    fn resolve_table(
        &mut self,
        name: &mut ObjectName,
        alias: &mut Option<TableAlias>,
        moment: Option<TimeTravelTarget>,
    ) -> SqlResult<Scope> {
        let wanted = RelationName::parse(name, self.context)?;
        if moment.is_none()
            && wanted.schema.is_none()
            && let Some(cte) = self.ctes.iter_mut().rev().find(|cte| cte.name == wanted.name)
        {
            // Each reference evaluates the query again.
            if cte.is_volatile && cte.is_referenced && !cte.is_materialized {
                return Err(volatile_reread_error());
            }
            cte.is_referenced = true;
            self.cte_levels = self.cte_levels.max(cte.depth);
            *name = ObjectName::from(vec![quoted(&cte.plan_name)]);
            let columns = cte
                .columns
                .iter()
                .map(|column| (column.name.clone(), column.plan_name.clone(), column.origin))
                .collect();
            return self.scope_of_alias(None, &wanted.name, alias, columns);
        }
        let past = moment.map(|moment| time_travel::context_at_snapshot(self.context, moment)).transpose()?;
        let context = past.as_ref().map_or(self.context, |(context, _)| context);
        let found = relation_lookup::find_relation(context, &wanted).map_err(|error| {
            let first = name.0.first().and_then(|part| part.as_ident());
            self.text.with_span(error, first.map_or_else(Span::empty, |first| first.span))
        })?;
        if moment.is_some()
            && matches!(found, ResolvedRelation::Catalog(Stored::Sequence(_)) | ResolvedRelation::System(..))
        {
            return Err(SqlError::unsupported("AS OF of a relation that is neither a table nor a view"));
        }
        if moment.is_some()
            && matches!(&found, ResolvedRelation::Catalog(Stored::Table(table)) if table.external.is_some())
        {
            return Err(SqlError::unsupported("AS OF of an external table"));
        }
        let mut hidden = None;
        let (schema, columns) = match &found {
            ResolvedRelation::Catalog(Stored::Table(table)) => {
                let columns = table
                    .columns
                    .iter()
                    .map(|column| {
                        let origin = moment.is_none().then_some((table.oid, column.id));
                        (column.name.clone(), column.name.clone(), origin)
                    })
                    .collect();
                (schema_name(context, table.schema), columns)
            }
            ResolvedRelation::Catalog(Stored::View(view)) => {
                let columns = view
                    .columns
                    .iter()
                    .zip(1..)
                    .map(|((name, _), number)| {
                        let origin = moment.is_none().then_some((view.oid, ColumnId(number)));
                        (name.clone(), name.clone(), origin)
                    })
                    .collect();
                (schema_name(context, view.schema), columns)
            }
            ResolvedRelation::Catalog(Stored::Sequence(sequence)) => {
                let columns = SEQUENCE_COLUMNS
                    .iter()
                    .zip(1..)
                    .map(|((name, _), number)| {
                        ((*name).to_owned(), (*name).to_owned(), Some((sequence.oid, ColumnId(number))))
                    })
                    .collect();
                (schema_name(context, sequence.schema), columns)
            }
            ResolvedRelation::System(schema, name) => {
                let table = system_catalog::table(schema, name, self.context).ok_or_else(|| {
                    SqlError::internal(format!(
                        "system table {schema}.{name} was resolved, but does not exist in the system catalog"
                    ))
                })?;
                let fields = table.schema();
                let shown = fields.fields().len() - system_catalog::hidden_column_count(schema, name);
                let (given, others) = fields.fields().split_at(shown);
                hidden = others.first().map(|field| field.name().clone());
                let columns = given.iter().map(|field| (field.name().clone(), field.name().clone(), None)).collect();
                ((*schema).to_owned(), columns)
            }
        };
        *name = ObjectName::from(vec![quoted(&schema), quoted(&wanted.name)]);
        let mut scope = self.scope_of_alias(Some(schema), &wanted.name, alias, columns)?;
        if let (Some(hidden), Some(alias)) = (hidden, alias)
            && let Some(relation) = scope.relations.first_mut()
        {
            let expr = column_expr(&alias.name.value, &hidden);
            relation.hidden.push(Column { name: hidden, expr, origin: None });
        }
        Ok(scope)
    }

    /// Returns the scope of a relation under its alias, which is made unique within the statement. `columns` are
    /// names, names in the plan, and origins.
    fn scope_of_alias(
        &mut self,
        schema: Option<String>,
        own_name: &str,
        alias: &mut Option<TableAlias>,
        columns: Vec<(String, String, Origin)>,
    ) -> SqlResult<Scope> {
        let (name, schema, renamed) = match alias {
            Some(alias) => (alias.name.value.clone(), None, std::mem::take(&mut alias.columns)),
            None => (own_name.to_owned(), schema, Vec::new()),
        };
        if renamed.len() > columns.len() {
            let message = format!(
                "table \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                renamed.len()
            );
            return Err(SqlError::new(Condition::InvalidColumnReference, message));
        }
        let internal = self.unique_relation(&name);
        *alias = Some(TableAlias { explicit: true, name: quoted(&internal), columns: Vec::new(), at: None });
        let mut new_names = renamed.into_iter().map(|column| column.name.value);
        let columns = columns
            .into_iter()
            .map(|(name, in_plan, origin)| Column {
                name: new_names.next().unwrap_or(name),
                expr: column_expr(&internal, &in_plan),
                origin,
            })
            .collect();
        Ok(Scope::from_relation(Relation { name, schema, columns, hidden: Vec::new() }))
    }

    fn resolve_join(&mut self, left: Scope, right: Scope, operator: &mut JoinOperator) -> SqlResult<Scope> {
        use JoinOperator as J;
        let (constraint, side) = match operator {
            J::Join(constraint) | J::Inner(constraint) => (constraint, PreservedSide::Left),
            J::Left(constraint) | J::LeftOuter(constraint) => (constraint, PreservedSide::Left),
            J::Right(constraint) | J::RightOuter(constraint) => (constraint, PreservedSide::Right),
            J::FullOuter(constraint) => (constraint, PreservedSide::Both),
            J::CrossJoin(JoinConstraint::None) => {
                let mut both = left;
                both.extend(right)?;
                return Ok(both);
            }
            other => return Err(SqlError::unsupported(format_args!("the join type {other:?}"))),
        };
        match constraint {
            JoinConstraint::On(condition) => {
                aggregate_placement::check_calls(condition, Clause::Join)?;
                let mut both = left;
                both.extend(right)?;
                self.scopes.push(both);
                let resolved = self.resolve_expr(condition);
                let both = self.scopes.pop().unwrap_or_default();
                resolved?;
                Ok(both)
            }
            JoinConstraint::Using(names) => {
                let names: Vec<String> =
                    names.iter().filter_map(|name| name.0.last()?.as_ident()).map(|name| name.value.clone()).collect();
                let (condition, scope) = merge_common_columns(left, right, &names, side)?;
                *constraint = JoinConstraint::On(condition);
                Ok(scope)
            }
            JoinConstraint::Natural => {
                let names: Vec<String> = left
                    .columns
                    .iter()
                    .map(|column| column.name.clone())
                    .filter(|name| right.columns.iter().any(|column| column.name == *name))
                    .collect();
                let (condition, scope) = merge_common_columns(left, right, &names, side)?;
                *constraint = JoinConstraint::On(condition);
                Ok(scope)
            }
            JoinConstraint::None => {
                Err(SqlError::new(Condition::SyntaxError, "syntax error: a join needs ON or USING"))
            }
        }
    }
}

fn schema_name(context: &StatementContext, schema: Oid) -> String {
    context.snapshot.schema(schema).map(|schema| schema.name.clone()).unwrap_or_default()
}

/// Source of a USING column's value: the side whose rows are all preserved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PreservedSide {
    Left,
    Right,
    Both,
}

/// Returns the condition of a join on common columns, and its scope: the common columns first, and only once.
fn merge_common_columns(left: Scope, right: Scope, names: &[String], side: PreservedSide) -> SqlResult<(Expr, Scope)> {
    let mut condition: Option<Expr> = None;
    let mut merged = Vec::with_capacity(names.len());
    for name in names {
        let a = common(&left, name, "left")?;
        let b = common(&right, name, "right")?;
        let equal =
            Expr::BinaryOp { left: Box::new(a.expr.clone()), op: BinaryOperator::Eq, right: Box::new(b.expr.clone()) };
        condition = Some(match condition {
            None => equal,
            Some(before) => Expr::BinaryOp { left: Box::new(before), op: BinaryOperator::And, right: Box::new(equal) },
        });
        merged.push(match side {
            PreservedSide::Left => a.clone(),
            PreservedSide::Right => b.clone(),
            PreservedSide::Both => Column { name: name.clone(), expr: coalesce(&a.expr, &b.expr), origin: None },
        });
    }
    let rest = |scope: &Scope| -> Vec<Column> {
        scope.columns.iter().filter(|column| !names.contains(&column.name)).cloned().collect()
    };
    merged.extend(rest(&left));
    merged.extend(rest(&right));
    let mut both = left;
    both.extend(right)?;
    both.columns = merged;
    Ok((condition.unwrap_or_else(|| Expr::Value(Value::Boolean(true).into())), both))
}

fn common<'a>(scope: &'a Scope, name: &str, side: &str) -> SqlResult<&'a Column> {
    match scope.column(name) {
        Ok(Some(column)) => Ok(column),
        Ok(None) => Err(SqlError::new(
            Condition::UndefinedColumn,
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
        )),
        Err(_) => Err(SqlError::new(
            Condition::AmbiguousColumn,
            format!("common column name \"{name}\" appears more than once in {side} table"),
        )),
    }
}

fn coalesce(a: &Expr, b: &Expr) -> Expr {
    let argument = |expr: &Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr.clone()));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![argument(a), argument(b)],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Returns the refusal of a plan that would evaluate a volatile WITH query twice, with different rows.
pub(super) fn volatile_reread_error() -> SqlError {
    SqlError::unsupported("reading a WITH query with a volatile function more than once")
        .with_hint("Its rows are computed once if it is written AS MATERIALIZED.")
}

pub(super) fn no_table() -> TableFactor {
    TableFactor::Derived { lateral: false, subquery: Box::new(super::expr::empty_query()), alias: None, sample: None }
}

/// Builds `SELECT * FROM table`.
pub(super) fn select_all(table: TableWithJoins) -> SqlResult<Query> {
    let mut query = parse_query("SELECT *")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![table];
    }
    Ok(query)
}

/// Builds `SELECT items FROM (rows) AS relation`.
pub(super) fn select_from(items: &str, rows: Query, relation: &str) -> SqlResult<Query> {
    let mut query = parse_query(&format!("SELECT {items} FROM (SELECT 1) AS {}", quoted(relation)))?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(table) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut table.relation
    {
        **subquery = rows;
    }
    Ok(query)
}

/// Parses a query that name resolution builds.
pub(super) fn parse_query(sql: &str) -> SqlResult<Query> {
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(sql).and_then(|mut parser| parser.parse_query());
    parsed.map(|query| *query).map_err(|error| SqlError::internal(error.to_string()))
}

//! Resolution of a SELECT's clauses: FROM defines the scope, and the meaning of an unqualified name depends on the
//! clause.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Distinct, Expr, GroupByExpr, NamedWindowExpr, ObjectName, OrderBy, OrderByKind, Select,
    SelectItem, SelectItemQualifiedWildcardKind, UnaryOperator, Value, WildcardAdditionalOptions,
};
use types::{ColumnId, Condition, Oid, SqlError, SqlResult};

use super::aggregate_placement::{self, Clause};
use super::scope::{self, Column, Scope, quoted};
use super::{Output, Resolver};

/// Item of a SELECT list: its output and the resolved expression.
pub(super) struct Item {
    pub(super) output: Output,
    pub(super) expr: Expr,
}

impl Resolver<'_> {
    /// Resolves a SELECT and the ORDER BY of its query.
    pub(super) fn select(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> SqlResult<Vec<Output>> {
        reject_clauses(select)?;
        let scope = self.resolve_from(&mut select.from)?;
        self.scopes.push(scope);
        if let Some(condition) = &mut select.selection {
            aggregate_placement::check_calls(condition, Clause::Where)?;
            self.resolve_expr(condition)?;
            as_boolean(condition);
        }
        let items = self.resolve_items(std::mem::take(&mut select.projection), select.from.is_empty())?;
        self.group_by(&mut select.group_by, &items)?;
        if let Some(condition) = &mut select.having {
            aggregate_placement::check_calls(condition, Clause::Having)?;
            self.resolve_expr(condition)?;
            as_boolean(condition);
        }
        for window in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(spec) = &mut window.1 {
                self.resolve_within(spec)?;
            }
        }
        if let Some(Distinct::On(keys)) = &mut select.distinct {
            for key in keys {
                self.resolve_output_key(key, &items, "DISTINCT ON")?;
            }
        }
        if let Some(order_by) = order_by {
            let OrderByKind::Expressions(keys) = &mut order_by.kind else {
                return Err(SqlError::unsupported("ORDER BY ALL"));
            };
            for key in keys {
                let is_output = self.resolve_output_key(&mut key.expr, &items, "ORDER BY")?;
                if !is_output && matches!(select.distinct, Some(Distinct::Distinct)) {
                    let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                    return Err(SqlError::new(Condition::InvalidColumnReference, message));
                }
            }
        }
        self.scopes.pop();
        let (projection, outputs) = items
            .into_iter()
            .map(|item| {
                let alias = quoted(&item.output.plan_name);
                (SelectItem::ExprWithAlias { expr: item.expr, alias }, item.output)
            })
            .unzip();
        select.projection = projection;
        Ok(outputs)
    }

    fn current_scope(&self) -> &Scope {
        self.scopes.last().expect("a SELECT has pushed its scope")
    }

    /// Resolves a SELECT list: expands `*` and gives every output a unique name.
    pub(super) fn resolve_items(&mut self, written: Vec<SelectItem>, is_from_empty: bool) -> SqlResult<Vec<Item>> {
        let mut items: Vec<(String, Expr, scope::Origin)> = Vec::with_capacity(written.len());
        let of_column = |column: &Column| (column.name.clone(), column.expr.clone(), column.origin);
        for item in written {
            match item {
                SelectItem::ExprWithAlias { mut expr, alias } => {
                    aggregate_placement::check_calls(&expr, Clause::Select)?;
                    self.resolve_expr(&mut expr)?;
                    let origin = self.origin(&expr);
                    items.push((alias.value, expr, origin));
                }
                SelectItem::Wildcard(options) => {
                    reject_wildcard_options(&options)?;
                    if is_from_empty {
                        let message = "SELECT * with no tables specified is not valid";
                        return Err(SqlError::new(Condition::SyntaxError, message));
                    }
                    items.extend(self.current_scope().columns.iter().map(of_column));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    reject_wildcard_options(&options)?;
                    let relation = self.qualifier(&name)?;
                    items.extend(relation.columns.iter().map(of_column));
                }
                other => return Err(SqlError::unsupported(format_args!("{other} in a SELECT list"))),
            }
        }
        let mut taken = self.plan_names();
        let items = items.into_iter().map(|(name, expr, origin)| {
            let internal = self.internal_name(&name, &expr, &mut taken);
            Item { output: Output { name, plan_name: internal, origin }, expr }
        });
        Ok(items.collect())
    }

    fn qualifier(&self, name: &ObjectName) -> SqlResult<&scope::Relation> {
        let parts: Vec<&str> =
            name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
        match parts.as_slice() {
            [relation] => scope::find_relation(&self.scopes, None, relation),
            [schema, relation] | [_, schema, relation] => scope::find_relation(&self.scopes, Some(schema), relation),
            _ => Err(SqlError::new(Condition::SyntaxError, "improper qualified name (too many dotted names)")),
        }
    }

    /// Returns the table and column that the expression refers to, if it is a column reference.
    fn origin(&self, expr: &Expr) -> scope::Origin {
        if !matches!(expr, Expr::CompoundIdentifier(_)) {
            return None;
        }
        let mut columns = self.scopes.iter().rev().flat_map(|level| &level.relations).flat_map(|it| &it.columns);
        columns.find(|column| column.expr == *expr)?.origin
    }

    /// Collects the column names of this level's FROM in the plan, and those that occur more than once.
    fn plan_names(&self) -> OutputNames {
        let mut names = OutputNames::default();
        for column in self.current_scope().relations.iter().flat_map(|relation| &relation.columns) {
            if let Some(name) = plan_name(&column.expr)
                && !names.from_columns.insert(name.to_owned())
            {
                names.duplicates.insert(name.to_owned());
            }
        }
        names
    }

    /// Returns a name for an output that no other output and no other column of FROM has.
    fn internal_name(&self, name: &str, expr: &Expr, names: &mut OutputNames) -> String {
        let is_itself = plan_name(expr) == Some(name)
            && !names.duplicates.contains(name)
            && self.current_scope().relations.iter().flat_map(|it| &it.columns).any(|column| column.expr == *expr);
        if is_itself && names.outputs.insert(name.to_owned()) {
            return name.to_owned();
        }
        names.reserve_unique(name)
    }

    fn group_by(&mut self, group_by: &mut GroupByExpr, items: &[Item]) -> SqlResult<()> {
        let GroupByExpr::Expressions(keys, modifiers) = group_by else {
            return Err(SqlError::unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported("GROUP BY WITH"));
        }
        // The empty grouping set groups all rows, like an aggregate without GROUP BY.
        keys.retain(|key| !matches!(key, Expr::Tuple(columns) if columns.is_empty()));
        keys.iter_mut().try_for_each(|key| self.group_key(key, items, true))?;
        self.groups_by_key |= self.has_primary_key(keys);
        Ok(())
    }

    /// Returns whether the keys contain all columns of a table's primary key.
    fn has_primary_key(&self, keys: &[Expr]) -> bool {
        self.current_scope().relations.iter().any(|relation| {
            let origins: Vec<(Oid, ColumnId)> =
                relation.columns.iter().filter(|it| keys.contains(&it.expr)).filter_map(|it| it.origin).collect();
            let table = origins.first().and_then(|(table, _)| self.context.snapshot.table(*table));
            let key = table.and_then(|table| table.primary_key());
            key.is_some_and(|key| key.iter().all(|column| origins.iter().any(|(_, id)| id == column)))
        })
    }

    /// Resolves a GROUP BY key: an unqualified name is first looked up in FROM, then among the outputs; a number is
    /// an output position.
    fn group_key(&mut self, key: &mut Expr, items: &[Item], is_outermost: bool) -> SqlResult<()> {
        let at = match key {
            Expr::Nested(inner) => {
                *key = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
                return self.group_key(key, items, is_outermost);
            }
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                return sets.iter_mut().flatten().try_for_each(|key| self.group_key(key, items, false));
            }
            Expr::Tuple(keys) => {
                return keys.iter_mut().try_for_each(|key| self.group_key(key, items, false));
            }
            Expr::Identifier(name) if self.current_scope().column(&name.value)?.is_none() => {
                output_named(items, &name.value, "GROUP BY")?
            }
            Expr::Value(_) => output_position(key, items.len(), "GROUP BY")?,
            _ => None,
        };
        let Some(at) = at else {
            aggregate_placement::check_calls(key, Clause::GroupBy)?;
            return self.resolve_expr(key);
        };
        aggregate_placement::check_calls(&items[at].expr, Clause::GroupBy)?;
        // DataFusion interprets a number as a position.
        *key = match &items[at].expr {
            expr if is_outermost && is_constant(expr) => Expr::Value(Value::Number((at + 1).to_string(), false).into()),
            expr => expr.clone(),
        };
        Ok(())
    }

    /// Resolves a key of ORDER BY or DISTINCT ON: an unqualified name is first looked up among the outputs, then in
    /// FROM; a number is an output position. Returns whether the key is an output.
    fn resolve_output_key(&mut self, key: &mut Expr, items: &[Item], clause: &str) -> SqlResult<bool> {
        let at = match key {
            Expr::Identifier(name) => output_named(items, &name.value, clause)?,
            _ => output_position(key, items.len(), clause)?,
        };
        let at = match at {
            Some(at) => Some(at),
            None => {
                aggregate_placement::check_calls(key, Clause::Select)?;
                self.resolve_expr(key)?;
                items.iter().position(|item| item.expr == *key)
            }
        };
        if let Some(at) = at {
            *key = Expr::Identifier(quoted(&items[at].output.plan_name));
        }
        Ok(at.is_some())
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_constant(inner),
        _ => false,
    }
}

/// Casts a condition that is just a quoted literal or a parameter to boolean.
pub(super) fn as_boolean(condition: &mut Expr) {
    if let Expr::Value(value) = condition
        && matches!(value.value, Value::SingleQuotedString(_) | Value::Placeholder(_) | Value::Null)
    {
        let expr = Box::new(Expr::Value(value.clone()));
        *condition =
            Expr::Cast { kind: CastKind::Cast, expr, data_type: DataType::Boolean, array: false, format: None };
    }
}

/// Names in use while outputs are named.
#[derive(Default)]
struct OutputNames {
    from_columns: HashSet<String>,
    /// Names that several relations have.
    duplicates: HashSet<String>,
    outputs: HashSet<String>,
    /// Suffix to try for the next output of a name: lists may have thousands of unnamed outputs.
    next_suffixes: HashMap<String, u64>,
}

impl OutputNames {
    /// Reserves and returns `name`, or `name_1`, `name_2`, … if it is taken.
    fn reserve_unique(&mut self, name: &str) -> String {
        let number = self.next_suffixes.entry(name.to_owned()).or_default();
        loop {
            let candidate = if *number == 0 { name.to_owned() } else { format!("{name}_{number}") };
            *number += 1;
            if !self.from_columns.contains(&candidate) && self.outputs.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// Returns the name of a column in the plan.
fn plan_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.as_str()),
        _ => None,
    }
}

/// Returns the output of that name; several are accepted if they are the same expression.
fn output_named(items: &[Item], name: &str, clause: &str) -> SqlResult<Option<usize>> {
    let mut found = items.iter().enumerate().filter(|(_, item)| item.output.name == name);
    let Some((at, first)) = found.next() else { return Ok(None) };
    if found.any(|(_, other)| other.expr != first.expr) {
        return Err(SqlError::new(Condition::AmbiguousColumn, format!("{clause} \"{name}\" is ambiguous")));
    }
    Ok(Some(at))
}

/// Returns the index of the output that a number refers to, from 0; `None` if the key is not a constant.
pub(super) fn output_position(key: &Expr, count: usize, clause: &str) -> SqlResult<Option<usize>> {
    let value = match key {
        Expr::Value(value) => &value.value,
        Expr::Nested(inner) => return output_position(inner, count, clause),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => {
                    return Err(position_error(&format!("-{number}"), clause));
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    match value {
        Value::Number(number, _) => match number.parse::<usize>() {
            Ok(at) if (1..=count).contains(&at) => Ok(Some(at - 1)),
            Ok(_) => Err(position_error(number, clause)),
            Err(_) => Err(not_an_integer(clause)),
        },
        Value::Placeholder(_) => Ok(None),
        Value::Null | Value::Boolean(_) => Ok(None),
        _ => Err(not_an_integer(clause)),
    }
}

fn position_error(number: &str, clause: &str) -> SqlError {
    let message = format!("{clause} position {number} is not in select list");
    SqlError::new(Condition::InvalidColumnReference, message)
}

fn not_an_integer(clause: &str) -> SqlError {
    SqlError::new(Condition::SyntaxError, format!("non-integer constant in {clause}"))
}

/// Rejects options of `*`.
fn reject_wildcard_options(options: &WildcardAdditionalOptions) -> SqlResult<()> {
    let is_plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_alias.is_none();
    if is_plain { Ok(()) } else { Err(SqlError::new(Condition::SyntaxError, "syntax error after \"*\"")) }
}

/// Rejects clauses of other databases.
fn reject_clauses(select: &Select) -> SqlResult<()> {
    let clause = if select.into.is_some() {
        "SELECT INTO here"
    } else if select.qualify.is_some() {
        "QUALIFY"
    } else if select.top.is_some() {
        "TOP"
    } else if select.prewhere.is_some()
        || !select.lateral_views.is_empty()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.exclude.is_some()
        || select.value_table_mode.is_some()
        || select.select_modifiers.is_some()
    {
        "this clause of SELECT"
    } else {
        return Ok(());
    };
    Err(SqlError::unsupported(clause))
}

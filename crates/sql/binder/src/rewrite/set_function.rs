//! Set-returning functions: each is implemented as a function that returns the set as a list, of which UNNEST makes
//! rows.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, Select, SelectItem, SetExpr,
    Subscript, TableAlias, TableFactor, TableWithJoins, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;
use syntax::Walk;
use types::{SqlError, SqlResult};

use super::{any_all_arrays, unnest_names};

/// Functions that return sets, except `unnest`, which is not rewritten.
const SET_RETURNING_FUNCTIONS: [&str; 4] =
    ["generate_series", "generate_subscripts", "pg_partition_ancestors", "_pg_expandarray"];
/// Functions that return rows of several columns: in FROM, each column becomes a list, returned by a function named
/// after both.
const MULTI_COLUMN_FUNCTIONS: [(&str, &[&str]); 2] = [
    ("pg_options_to_table", &["option_name", "option_value"]),
    ("pg_partition_tree", &["relid", "parentrelid", "isleaf", "level"]),
];
/// Suffix of the function that returns a set-returning function's list.
const LIST_SUFFIX: &str = "_list";
/// Functions in FROM that are implemented as system tables.
const TABLE_FUNCTIONS: [&str; 1] = ["pg_get_keywords"];
/// Fields of `_pg_expandarray`'s rows, which are arrays of two here: element and subscript.
const PG_EXPANDARRAY_FIELDS: [&str; 2] = ["x", "n"];

/// Rewrites `f(a)` of a set-returning `f` in an expression to `unnest(f_list(a))`.
pub(super) fn rewrite_call(expr: &mut Expr) {
    if let Expr::Function(function) = expr
        && function.over.is_none()
        && is_one_of(&function.name, &SET_RETURNING_FUNCTIONS)
    {
        function.name = list_name(&last_name(&function.name));
        let inner = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        *expr = any_all_arrays::function_call("unnest", vec![inner]);
    }
}

/// Rewrites `(row).x` of `_pg_expandarray`, the only function that returns rows, to an array element.
pub(super) fn rewrite_field_access(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    if !matches!(root.as_ref(), Expr::Nested(_)) {
        return;
    }
    if let [AccessExpr::Dot(Expr::Identifier(name))] = access_chain.as_slice()
        && let Some(at) = PG_EXPANDARRAY_FIELDS.iter().position(|field| *field == name.value)
    {
        let index = Expr::Value(Value::Number((at + 1).to_string(), false).into());
        access_chain[0] = AccessExpr::Subscript(Subscript::Index { index });
    }
}

/// Rewrites functions in FROM to derived tables that select from them.
pub(super) fn rewrite_from(select: &mut Select) -> SqlResult<()> {
    let mut earlier = Vec::new();
    for table in &mut select.from {
        rewrite_from_item(table, &mut earlier)?;
    }
    unnest_names::disambiguate(&mut select.projection);
    Ok(())
}

/// Rewrites the functions of an item; `earlier` are the names that arguments may refer to laterally.
fn rewrite_from_item(table: &mut TableWithJoins, earlier: &mut Vec<String>) -> SqlResult<()> {
    rewrite_factor(&mut table.relation, earlier)?;
    for join in &mut table.joins {
        rewrite_factor(&mut join.relation, earlier)?;
    }
    Ok(())
}

fn rewrite_factor(factor: &mut TableFactor, earlier: &mut Vec<String>) -> SqlResult<()> {
    match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => rewrite_from_item(table_with_joins, earlier)?,
        TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. }
            if !is_one_of(name, &TABLE_FUNCTIONS) =>
        {
            *factor = derive_table(name, args.args.clone(), alias.take(), *with_ordinality, earlier)?;
        }
        TableFactor::Table { args, .. } => *args = None,
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            *factor = derive_table(name, args.clone(), alias.take(), *with_ordinality, earlier)?;
        }
        TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
            let name = ObjectName::from(vec![Ident::new("unnest")]);
            let args = array_exprs.drain(..).map(|array| FunctionArg::Unnamed(FunctionArgExpr::Expr(array))).collect();
            *factor = derive_table(&name, args, alias.take(), *with_ordinality, earlier)?;
        }
        _ => {}
    }
    if let Some(name) = name_of(factor) {
        earlier.push(name);
    }
    Ok(())
}

fn derive_table(
    name: &ObjectName,
    args: Vec<FunctionArg>,
    alias: Option<TableAlias>,
    with_ordinality: bool,
    earlier: &[String],
) -> SqlResult<TableFactor> {
    let function = last_name(name);
    let arguments = args
        .into_iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
            _ => Err(SqlError::unsupported(format!("a named or wildcard argument of {function} in FROM"))),
        })
        .collect::<SqlResult<Vec<_>>>()?;
    let lateral = arguments.iter().any(|argument| mentions(argument, earlier));
    let column = alias.as_ref().map_or_else(|| Ident::new(&function), |alias| alias.name.clone());
    if let Some((function, columns)) = MULTI_COLUMN_FUNCTIONS.iter().find(|(name, _)| *name == function) {
        let items = columns.iter().map(|column| {
            let list = any_all_arrays::function_call(&format!("{function}_{column}"), arguments.clone());
            SelectItem::ExprWithAlias {
                expr: any_all_arrays::function_call("unnest", vec![list]),
                alias: Ident::new(*column),
            }
        });
        return Ok(derived_table(items.collect(), alias, column, lateral));
    }
    // UNNEST of several arrays has a column for each.
    let lists: Vec<Expr> = if function == "unnest" {
        arguments
    } else if SET_RETURNING_FUNCTIONS.contains(&function.as_str()) {
        vec![any_all_arrays::function_call(&format!("{function}{LIST_SUFFIX}"), arguments)]
    } else {
        let value = SelectItem::ExprWithAlias { expr: call_of(name, arguments), alias: column.clone() };
        return Ok(derived_table(vec![value], alias, column, lateral));
    };
    let mut items: Vec<SelectItem> = lists
        .iter()
        .enumerate()
        .map(|(at, array)| {
            let alias = if at == 0 { column.clone() } else { Ident::new(format!("{}_{}", column.value, at + 1)) };
            SelectItem::ExprWithAlias { expr: any_all_arrays::function_call("unnest", vec![array.clone()]), alias }
        })
        .collect();
    if with_ordinality {
        let Some(array) = lists.first().filter(|_| lists.len() == 1) else {
            return Err(SqlError::unsupported("WITH ORDINALITY over several arrays"));
        };
        let one = Expr::Value(Value::Number("1".to_owned(), false).into());
        let subscripts = any_all_arrays::function_call("generate_subscripts_list", vec![array.clone(), one]);
        items.push(SelectItem::ExprWithAlias {
            expr: any_all_arrays::function_call("unnest", vec![subscripts]),
            alias: Ident::new("ordinality"),
        });
    }
    Ok(derived_table(items, alias, column, lateral))
}

fn derived_table(mut items: Vec<SelectItem>, alias: Option<TableAlias>, name: Ident, lateral: bool) -> TableFactor {
    unnest_names::disambiguate(&mut items);
    let alias = alias.unwrap_or(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    TableFactor::Derived { lateral, subquery: Box::new(select(items)), alias: Some(alias), sample: None }
}

fn call_of(name: &ObjectName, arguments: Vec<Expr>) -> Expr {
    match any_all_arrays::function_call("", arguments) {
        Expr::Function(Function {
            uses_odbc_syntax,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
            ..
        }) => Expr::Function(Function {
            name: name.clone(),
            uses_odbc_syntax,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        }),
        other => other,
    }
}

/// Builds `SELECT items`.
fn select(items: Vec<SelectItem>) -> Query {
    let parsed =
        Parser::new(&PostgreSqlDialect {}).try_with_sql("SELECT 1").and_then(|mut parser| parser.parse_query());
    let mut query = *parsed.expect("a constant query parses");
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
    }
    query
}

/// Returns whether an expression refers to a column that may belong to the tables `earlier` in the same FROM.
fn mentions(expr: &Expr, earlier: &[String]) -> bool {
    let flow = expr.walk_expressions(|expr| {
        let found = match expr {
            Expr::Identifier(_) => !earlier.is_empty(),
            Expr::CompoundIdentifier(parts) => {
                let at = parts.len().saturating_sub(2);
                parts.get(at).is_some_and(|part| earlier.contains(&folded(part)))
            }
            _ => false,
        };
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    flow.is_break()
}

fn name_of(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(folded(&alias.name))
        }
        TableFactor::Table { name, .. } => Some(last_name(name)),
        _ => None,
    }
}

fn list_name(function: &str) -> ObjectName {
    ObjectName::from(vec![Ident::new(format!("{function}{LIST_SUFFIX}"))])
}

fn is_one_of(name: &ObjectName, names: &[&str]) -> bool {
    let schema = match name.0.as_slice() {
        [_] => true,
        [schema, _] => schema
            .as_ident()
            .is_some_and(|schema| ["pg_catalog", "information_schema"].contains(&folded(schema).as_str())),
        _ => false,
    };
    schema && names.contains(&last_name(name).as_str())
}

fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(folded).unwrap_or_default()
}

fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

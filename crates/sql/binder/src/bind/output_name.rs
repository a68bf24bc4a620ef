//! Names that PostgreSQL gives to output columns without an alias; they are determined before rewrites change the
//! expressions.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, DataType, Expr, Ident, Query, Select, SelectItem, SetExpr, TrimWhereField, Value, VisitorMut,
};
use syntax::{Walk, sql_type};
use types::{SqlError, SqlResult, SqlType};

/// Name of an expression without a better one.
const UNNAMED_COLUMN: &str = "?column?";

/// Adds its name as an alias to every item of every SELECT list.
pub(super) fn name_items(query: &mut Query) -> SqlResult<()> {
    match query.walk_mut(&mut OutputNamer) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct OutputNamer;

impl VisitorMut for OutputNamer {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item {
                let alias = Ident::with_quote('"', name(expr));
                let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the name of an output column.
fn name(expr: &Expr) -> String {
    suggestion(expr).map_or_else(|| UNNAMED_COLUMN.to_owned(), |suggested| suggested.name)
}

/// Name, with its precedence over the name of an enclosing cast or CASE.
struct Suggestion {
    name: String,
    is_strong: bool,
}

fn strong(name: impl Into<String>) -> Option<Suggestion> {
    Some(Suggestion { name: name.into(), is_strong: true })
}

fn weak(name: impl Into<String>) -> Option<Suggestion> {
    Some(Suggestion { name: name.into(), is_strong: false })
}

fn suggestion(expr: &Expr) -> Option<Suggestion> {
    match expr {
        Expr::Identifier(name) => strong(folded(name)),
        Expr::CompoundIdentifier(parts) => parts.last().and_then(|name| strong(folded(name))),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(folded(name)),
                _ => None,
            });
            field.map_or_else(|| suggestion(root), strong)
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => suggestion(inner),
        Expr::Function(function) => function.name.0.last()?.as_ident().and_then(|name| strong(folded(name))),
        Expr::Cast { expr: inner, data_type, .. } => match suggestion(inner) {
            Some(found) if found.is_strong => Some(found),
            _ => weak(type_name(data_type)),
        },
        Expr::TypedString(typed) => weak(type_name(&typed.data_type)),
        Expr::Interval(_) => weak("interval"),
        Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => weak("bool"),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(suggestion) {
            Some(found) if found.is_strong => Some(found),
            _ => weak("case"),
        },
        Expr::Exists { .. } => strong("exists"),
        Expr::Subquery(query) => query_suggestion(query),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            None | Some(TrimWhereField::Both) => "btrim",
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
        }),
        _ => None,
    }
}

/// Returns the name of a scalar subquery, which is that of its only column.
fn query_suggestion(query: &Query) -> Option<Suggestion> {
    let mut body = query.body.as_ref();
    loop {
        match body {
            SetExpr::SetOperation { left, .. } => body = left,
            SetExpr::Query(inner) => body = inner.body.as_ref(),
            SetExpr::Select(select) => {
                return match select.projection.first()? {
                    SelectItem::UnnamedExpr(expr) => suggestion(expr),
                    SelectItem::ExprWithAlias { alias, .. } => strong(folded(alias)),
                    _ => None,
                };
            }
            SetExpr::Values(_) => return strong("column1"),
            _ => return None,
        }
    }
}

/// Returns the name in `pg_type`, for an array that of its elements.
fn type_name(data_type: &DataType) -> String {
    match sql_type(data_type) {
        Ok(SqlType::Array(element)) => element.typname(),
        Ok(other) => other.typname(),
        // The cast is rejected later with a better message.
        Err(_) => data_type.to_string().to_lowercase(),
    }
}

fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

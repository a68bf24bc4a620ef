//! VALUES in which only some rows spell out a type: untyped literals get the type of the other rows in their column.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Query, SetExpr, TimezoneInfo, Value};

/// Casts the untyped literals of each column to the type named by a cast in the column. DataFusion unifies numbers
/// and text by itself, but not dates and the like.
pub(super) fn type_literals(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        let cells = values.rows.iter().filter_map(|row| row.content.get(column));
        let Some(data_type) = cells.filter_map(named_type).max_by_key(|data_type| width_of(data_type)).cloned() else {
            continue;
        };
        for row in &mut values.rows {
            let Some(cell) = row.content.get_mut(column) else { continue };
            if is_untyped(cell) {
                let literal = std::mem::replace(cell, Expr::Value(Value::Null.into()));
                *cell = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(literal),
                    data_type: data_type.clone(),
                    array: false,
                    format: None,
                };
            }
        }
    }
}

/// Returns the type that a value is cast to, if the type has no length that could truncate a literal.
fn named_type(expr: &Expr) -> Option<&DataType> {
    let data_type = match expr {
        Expr::Cast { data_type, .. } => data_type,
        Expr::TypedString(typed) => &typed.data_type,
        _ => return None,
    };
    let is_plain = matches!(
        data_type,
        DataType::Date
            | DataType::Time(..)
            | DataType::Timestamp(..)
            | DataType::Interval { .. }
            | DataType::Uuid
            | DataType::Boolean
            | DataType::Bytea
            | DataType::Array(_)
            | DataType::JSON
            | DataType::JSONB
    );
    is_plain.then_some(data_type)
}

/// Returns the precedence of a type: dates are widened to timestamps, and timestamps to timestamps with time zone.
fn width_of(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => 2,
        DataType::Timestamp(..) => 1,
        _ => 0,
    }
}

fn is_untyped(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::Null))
}

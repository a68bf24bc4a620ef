//! VALUES whose rows spell a type out only sometimes: the untyped literals of a column are of the type that its other rows have.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Query, SetExpr, Value};

/// Casts the untyped literals of each column to the type that a cast in the column names. DataFusion brings numbers and text to one
/// type by itself, dates and their like it does not.
pub(super) fn type_literals(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        let named = values.rows.iter().find_map(|row| row.content.get(column).and_then(named_type).cloned());
        let Some(data_type) = named else { continue };
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

/// The type a value is cast to, of those without a length that a literal could be cut to.
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
            | DataType::JSON
            | DataType::JSONB
    );
    is_plain.then_some(data_type)
}

fn is_untyped(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

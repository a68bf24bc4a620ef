//! The SQL type of an expression: what its field says, untyped literals and small integer literals set apart.

use arrow::datatypes::Field;
use datafusion::common::{ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable};
use types::SqlType;

/// The SQL type of `expr`. Quoted literals and NULL are [`SqlType::Unknown`], whole literals `integer` where they fit.
pub(crate) fn type_of(expr: &Expr, schema: &dyn ExprSchema) -> Result<SqlType> {
    match expr {
        Expr::Literal(value, metadata) => {
            let field = Field::new("literal", value.data_type(), true);
            let field = match metadata {
                Some(metadata) => metadata.add_to_field(field),
                None => field,
            };
            Ok(if field.metadata().is_empty() { field_type(&field, Some(value)) } else { field_type(&field, None) })
        }
        Expr::Alias(alias) => type_of(&alias.expr, schema),
        Expr::Placeholder(placeholder) if placeholder.field.is_none() => Ok(SqlType::Unknown),
        _ => Ok(field_type(&expr.to_field(schema)?.1, None)),
    }
}

/// The SQL type of a field; `literal` is the expression's value if it is a bare literal.
pub(crate) fn field_type(field: &Field, literal: Option<&ScalarValue>) -> SqlType {
    match literal {
        Some(ScalarValue::Utf8(_) | ScalarValue::Utf8View(_) | ScalarValue::LargeUtf8(_) | ScalarValue::Null)
            if field.metadata().is_empty() =>
        {
            SqlType::Unknown
        }
        Some(ScalarValue::Int64(Some(value))) if i32::try_from(*value).is_ok() => SqlType::Int4,
        _ => SqlType::from_arrow_field(field).unwrap_or(SqlType::Text),
    }
}

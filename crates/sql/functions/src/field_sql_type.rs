//! SQL types of the fields of a plan.

use arrow::datatypes::Field;
use datafusion::common::ScalarValue;
use types::SqlType;

/// Returns the SQL type of a field; `literal` is the expression's value if it is a bare literal.
#[must_use]
pub fn field_type(field: &Field, literal: Option<&ScalarValue>) -> SqlType {
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

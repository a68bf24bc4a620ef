//! Lowers a cast to an expression: a literal if the value is constant, Arrow's cast if it has PostgreSQL's semantics,
//! else a [`CastFunction`].

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{Cast, Placeholder, ScalarFunction};
use session_context::EvaluationContext;
use types::numeric::NumericPrecision;
use types::{SqlResult, SqlType};

use super::{CastFunction, CastKind, cast_array, cast_exists, missing_cast};
use crate::external;
use crate::type_rules::same_base_type;

/// Returns `expr` of type `from` cast to `to`.
///
/// # Errors
/// SQLSTATE 42846 if PostgreSQL has no such cast; for literals, the errors of the value.
pub fn lower_cast(
    expr: Expr,
    from: &SqlType,
    to: &SqlType,
    kind: CastKind,
    session: &Arc<EvaluationContext>,
) -> Result<Expr> {
    // A vector is an array with another text format.
    if let (SqlType::Int2Vector | SqlType::OidVector, SqlType::Array(_), Some(element)) = (from, to, from.element()) {
        return lower_cast(expr, &SqlType::Array(Box::new(element)), to, kind, session);
    }
    if from == to {
        return match &expr {
            // Integer literals are 64 bits wide while SQL is planned.
            Expr::Literal(value, None) if value.data_type() != to.arrow_type() => {
                fold_cast(value, from, to, kind, session).map_err(external)
            }
            _ => Ok(expr),
        };
    }
    if let (Some(number), SqlType::Numeric { .. }) = (oversized_numeric_text(&expr), to) {
        return fold_cast(&ScalarValue::Utf8View(Some(number.to_owned())), &SqlType::Unknown, to, kind, session)
            .map_err(external);
    }
    if !cast_exists(from, to) {
        return Err(external(missing_cast(from, to)));
    }
    if let Expr::Literal(value, _) = &expr {
        return match fold_cast(value, from, to, kind, session) {
            // PostgreSQL rejects an untyped literal at once. A typed one may be in a branch that never runs.
            Err(error) if *from == SqlType::Unknown || kind != CastKind::Explicit => Err(external(error)),
            Err(_) => {
                let literal = marked_literal(value.cast_to(&from.arrow_type())?, from);
                let function = CastFunction::udf(from, to, kind, session);
                Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![literal])))
            }
            Ok(literal) => Ok(literal),
        };
    }
    if *from == SqlType::Unknown
        && let Expr::Placeholder(placeholder) = expr
    {
        // The context gives a parameter its type without a modifier; the cast adds the modifier.
        let bare = to.without_modifier();
        let field = Arc::new(bare.arrow_field(&placeholder.id, true));
        let parameter = Expr::Placeholder(Placeholder::new_with_field(placeholder.id, Some(field)));
        return lower_cast(parameter, &bare, to, kind, session);
    }
    if is_arrow_cast(from, to) {
        // The field's name keeps DataFusion from copying the source's metadata to the result.
        let field = Arc::new(to.arrow_field("cast", true));
        return Ok(Expr::Cast(Cast::new_from_field(Box::new(expr), field)));
    }
    let function = CastFunction::udf(from, to, kind, session);
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![expr])))
}

/// Returns the value of a numeric parameter that has more digits than Kiln's numeric can hold. It is kept as text, so
/// it can be compared, or rounded by a cast to fewer digits; evaluated by itself it fails with SQLSTATE 22003.
pub fn oversized_numeric(text: &str, session: &Arc<EvaluationContext>) -> Expr {
    let function = CastFunction::udf(&SqlType::Text, &SqlType::BARE_NUMERIC, CastKind::Explicit, session);
    let text = marked_literal(ScalarValue::Utf8View(Some(text.to_owned())), &SqlType::Text);
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![text]))
}

/// Returns the text of an expression built by [`oversized_numeric`].
pub fn oversized_numeric_text(expr: &Expr) -> Option<&str> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let cast = call.func.inner().downcast_ref::<CastFunction>()?;
    match call.args.as_slice() {
        [Expr::Literal(value, _)] if cast.is_text_to_bare_numeric() => value.try_as_str().flatten(),
        _ => None,
    }
}

/// Builds a literal of a type, marked with the type if the value alone is ambiguous: a small `bigint` would be taken
/// for an `integer`.
pub fn typed_literal(value: ScalarValue, sql_type: &SqlType) -> Expr {
    if *sql_type == SqlType::Int8 {
        return marked_literal(value, sql_type);
    }
    let metadata = sql_type.arrow_metadata();
    let field = Field::new("literal", sql_type.arrow_type(), true).with_metadata(metadata.clone());
    Expr::Literal(value, (!metadata.is_empty()).then(|| FieldMetadata::new_from_field(&field)))
}

fn fold_cast(
    value: &ScalarValue,
    from: &SqlType,
    to: &SqlType,
    kind: CastKind,
    session: &EvaluationContext,
) -> SqlResult<Expr> {
    let internal = |error: datafusion::error::DataFusionError| types::SqlError::internal(error.to_string());
    let wanted = to.arrow_type();
    if value.is_null() {
        return ScalarValue::try_from(&wanted).map(|null| typed_literal(null, to)).map_err(internal);
    }
    let value = if *from == SqlType::Unknown || value.data_type() != from.arrow_type() {
        value.cast_to(&from.arrow_type()).map_err(internal)?
    } else {
        value.clone()
    };
    let values: ArrayRef = value.to_array().map_err(internal)?;
    let converted = cast_array(&values, from, to, kind, session)?;
    ScalarValue::try_from_array(&converted, 0).map(|value| typed_literal(value, to)).map_err(internal)
}

/// Returns whether Arrow's cast has PostgreSQL's semantics for every value.
pub fn is_arrow_cast(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    match (from, to) {
        (T::Int2, T::Int4 | T::Int8 | T::Float4 | T::Float8)
        | (T::Int4, T::Int8 | T::Float4 | T::Float8)
        | (T::Int8, T::Float4 | T::Float8)
        | (T::Float4, T::Float8)
        | (T::Date, T::Timestamp)
        | (T::Oid, T::Int8)
        | (T::Text | T::Varchar(_) | T::Name | T::Unknown, T::Text | T::Varchar(None) | T::Char(None))
        // Trailing blanks are kept.
        | (T::Char(_), T::Char(None))
        | (T::Json | T::Jsonb, T::Text | T::Varchar(None))
        | (T::Jsonb, T::Json) => true,
        (T::Varchar(Some(short)), T::Varchar(Some(long))) => short <= long,
        (T::Int2 | T::Int4 | T::Int8 | T::Numeric { .. }, T::Numeric { precision, scale }) => {
            // Every value fits: no check is needed, and Arrow's multiplication is exact.
            let from = NumericPrecision::from_sql_type(from).expect("an exact number");
            from.scale <= *scale && from.precision - from.scale <= precision - scale
        }
        (T::Array(from), T::Array(to)) => same_base_type(from, to) && is_arrow_cast(from, to),
        _ => same_base_type(from, to) && from.is_oid(),
    }
}

/// Builds a literal that is always marked with its type, so that text is no longer an untyped literal.
pub fn marked_literal(value: ScalarValue, sql_type: &SqlType) -> Expr {
    let mark = format!("{}:{}", sql_type.oid(), sql_type.typmod());
    let metadata = std::collections::HashMap::from([(types::arrow_field::SQL_TYPE_METADATA_KEY.to_owned(), mark)]);
    let field = Field::new("literal", sql_type.arrow_type(), true).with_metadata(metadata);
    Expr::Literal(value, Some(FieldMetadata::new_from_field(&field)))
}

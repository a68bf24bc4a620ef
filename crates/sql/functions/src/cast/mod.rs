//! Casts with PostgreSQL's semantics: rounding, ranges, text formats, time zones, lengths.
//!
//! - `fallibility.rs`: whether a cast can fail,
//! - `lower_cast.rs`: lowers a cast to a literal, Arrow's cast or a [`CastFunction`],
//! - `number.rs`, `datetime.rs`, `from_text.rs`, `to_text.rs`: casts of arrays, by kind of value,
//! - `single_value.rs`: casts of single values.

mod datetime;
mod fallibility;
mod from_text;
mod lower_cast;
mod number;
mod single_value;
#[cfg(test)]
mod tests;
mod to_text;

use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serde::{Deserialize, Serialize};
use session_context::EvaluationContext;
use types::{Condition, SqlError, SqlResult, SqlType};

pub use self::lower_cast::{
    is_arrow_cast, lower_cast, marked_literal, oversized_numeric, oversized_numeric_text, typed_literal,
};
pub(crate) use self::number::float_to_numeric;
pub(super) use self::number::rescale_numeric;
pub(super) use self::single_value::ValueCast;
pub(crate) use self::to_text::TextWriter;
use super::ValueLifetime;
use super::column_name::column_name;
use super::fallibility::Fallibility;
use super::scalar_udf::invoke;
use crate::type_rules::{plain_type_name, same_base_type};

/// Context of a cast: an explicit cast truncates text that is too long, an assignment rejects it, a comparison leaves
/// it unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CastKind {
    Explicit,
    Assignment,
    Comparison,
}

/// Cast between two types as a function of one argument.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CastFunction {
    from: SqlType,
    to: SqlType,
    kind: CastKind,
    session: Arc<EvaluationContext>,
    signature: Signature,
}

impl CastFunction {
    /// Creates the cast function bound to a session.
    #[must_use]
    pub fn udf(from: &SqlType, to: &SqlType, kind: CastKind, session: &Arc<EvaluationContext>) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self {
            from: from.clone(),
            to: to.clone(),
            kind,
            session: Arc::clone(session),
            signature,
        }))
    }

    /// Returns the lifetime of the cast's value; `None` for casts that read or write catalog names.
    pub fn value_lifetime(&self) -> Option<ValueLifetime> {
        let names = self.from.needs_catalog() || self.to.needs_catalog();
        let is_time = matches!(
            self.to,
            SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Array(_)
        );
        // Text may contain `now` or `today`.
        let settled = if is_time && self.parses_text() { ValueLifetime::Statement } else { ValueLifetime::Plan };
        (!names).then_some(settled)
    }

    /// Returns whether both compute the same, provided that neither reads more of its session than its facts.
    pub(super) fn is_equivalent_to(&self, other: &Self) -> bool {
        let is_cast_of = self.from == other.from && self.to == other.to && self.kind == other.kind;
        is_cast_of && self.session.has_same_facts(&other.session)
    }

    /// Returns the same cast bound to another session.
    pub fn with_session(&self, session: &Arc<EvaluationContext>) -> Arc<ScalarUDF> {
        Self::udf(&self.from, &self.to, self.kind, session)
    }

    pub(super) fn from(&self) -> &SqlType {
        &self.from
    }

    pub(super) fn to(&self) -> &SqlType {
        &self.to
    }

    pub(super) fn kind(&self) -> CastKind {
        self.kind
    }

    pub(super) fn session(&self) -> &Arc<EvaluationContext> {
        &self.session
    }

    /// Returns whether it casts text to a numeric without a modifier.
    pub(crate) fn is_text_to_bare_numeric(&self) -> bool {
        self.from == SqlType::Text && self.to == SqlType::BARE_NUMERIC
    }

    /// Returns the degree to which the cast can fail.
    pub(crate) fn fallibility(&self) -> Fallibility {
        fallibility::cast_fallibility(&self.from, &self.to, self.kind)
    }

    /// Returns whether it parses text.
    fn parses_text(&self) -> bool {
        is_text(&self.from) && !is_text(&self.to)
    }
}

impl ScalarUDFImpl for CastFunction {
    fn name(&self) -> &str {
        "cast"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        column_name("cast", args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.to.arrow_type())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.first().is_none_or(|field| field.is_nullable());
        Ok(Arc::new(self.to.arrow_field("cast", nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let from =
            args.args.first().map_or_else(|| self.from.clone(), |value| actual_type(&value.data_type(), &self.from));
        invoke(&args, std::slice::from_ref(&from), Volatility::Immutable, |arguments, rows| {
            let values = &arguments[0].values;
            let converted = cast_array(values, &from, &self.to, self.kind, &self.session)?;
            if arguments[0].is_constant && rows != 1 {
                return Err(SqlError::internal("cast of a constant was invoked for more than one row"));
            }
            Ok(converted)
        })
    }
}

/// Returns the actual type of values of the Arrow type `form` that are declared as `declared`: a numeric parameter
/// has the digits it was sent with, and is text if they do not fit into a numeric.
pub(crate) fn actual_type(form: &DataType, declared: &SqlType) -> SqlType {
    match (declared, form) {
        (SqlType::Numeric { .. }, DataType::Decimal128(precision, scale)) if 0 <= *scale => {
            SqlType::Numeric { precision: *precision, scale: scale.unsigned_abs() }
        }
        (SqlType::Numeric { .. }, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => SqlType::Text,
        (SqlType::Array(element), DataType::List(item)) => {
            SqlType::Array(Box::new(actual_type(item.data_type(), element)))
        }
        (declared, _) => declared.clone(),
    }
}

/// Returns whether PostgreSQL has the cast.
pub(crate) fn cast_exists(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    let is_integer = |sql_type: &T| matches!(sql_type, T::Int2 | T::Int4 | T::Int8);
    let is_number =
        |sql_type: &T| is_integer(sql_type) || matches!(sql_type, T::Numeric { .. } | T::Float4 | T::Float8);
    let is_json = |sql_type: &T| matches!(sql_type, T::Json | T::Jsonb);
    if same_base_type(from, to) || is_text(from) || is_text(to) {
        return true;
    }
    match (from, to) {
        (T::Unknown, _) | (T::Bool, T::Int4) | (T::Int4, T::Bool) => true,
        (T::Date, T::Timestamp | T::TimestampTz)
        | (T::Timestamp, T::Date | T::Time | T::TimestampTz)
        | (T::TimestampTz, T::Date | T::Time | T::Timestamp)
        | (T::Time, T::Interval)
        | (T::Interval, T::Time) => true,
        (T::Array(from), T::Array(to)) => cast_exists(from, to),
        (T::Jsonb, T::Bool) => true,
        (T::Jsonb, to) if is_number(to) => true,
        _ => {
            (is_number(from) && is_number(to))
                || (is_integer(from) && to.is_oid())
                || (from.is_oid() && (to.is_oid() || matches!(to, T::Int4 | T::Int8)))
                || (is_json(from) && is_json(to))
        }
    }
}

/// Returns whether the type's values are character strings.
pub fn is_text(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::Text
            | SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Name
            | SqlType::InternalChar
            | SqlType::Unknown
    )
}

/// Casts `values` of type `from` to type `to`.
pub(crate) fn cast_array(
    values: &ArrayRef,
    from: &SqlType,
    to: &SqlType,
    kind: CastKind,
    session: &EvaluationContext,
) -> SqlResult<ArrayRef> {
    use SqlType as T;
    match (from, to) {
        (_, T::Text | T::Varchar(_) | T::Char(_) | T::Name | T::InternalChar) => {
            to_text::convert(values, from, to, kind, session)
        }
        (from, to) if is_text(from) => from_text::convert(values, to, kind, session),
        (T::Json, T::Jsonb) => from_text::convert(values, to, kind, session),
        (T::Jsonb, T::Json) => Ok(Arc::clone(values)),
        (T::Jsonb, to) => from_text::from_jsonb(values, to, kind, session),
        (T::Array(from_element), T::Array(to_element)) => {
            let list = values.as_list::<i32>();
            let elements = cast_array(list.values(), from_element, to_element, kind, session)?;
            let DataType::List(item) = to.arrow_type() else {
                return Err(SqlError::internal("cast of an array: the Arrow type of the target array is not a list"));
            };
            Ok(Arc::new(ListArray::new(item, list.offsets().clone(), elements, list.nulls().cloned())))
        }
        (T::Date | T::Time | T::Timestamp | T::TimestampTz | T::Interval, _) => {
            datetime::convert(values, from, to, session)
        }
        _ => number::convert(values, from, to),
    }
}

/// Builds the error 42846 for a cast that does not exist.
pub(crate) fn missing_cast(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        Condition::CannotCoerce,
        format!("cannot cast type {} to {}", plain_type_name(from), plain_type_name(to)),
    )
}

/// Runs Arrow's cast, for types for which it has PostgreSQL's semantics.
fn arrow_cast(values: &ArrayRef, to: &SqlType) -> SqlResult<ArrayRef> {
    cast_with_options(values, &to.arrow_type(), &CastOptions { safe: false, ..CastOptions::default() })
        .map_err(|error| SqlError::internal(error.to_string()))
}

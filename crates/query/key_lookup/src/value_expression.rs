//! Expressions evaluated value by value on stored rows, where building one-row arrays would cost more than the
//! computation.

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use functions::{SingleValueCall, single_value_call};
use rowstore::Value;
use types::SqlResult;

use super::vectorized_expression::Expression;

/// Expression that can be computed value by value.
#[derive(Debug, Clone)]
pub(super) enum ValueExpression {
    /// Value at this position of the row.
    Column(usize),
    Constant(ScalarValue),
    Call(SingleValueCall, Vec<ValueExpression>),
}

impl ValueExpression {
    /// Converts a compiled expression over rows of `schema`; `None` if it needs arrays.
    pub(super) fn try_compile(expression: &Expression, schema: &Schema) -> Option<Self> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            return Some(Self::Column(column.index()));
        }
        if let Some(literal) = expression.downcast_ref::<Literal>() {
            return scalar_to_value(literal.value()).map(|_| Self::Constant(literal.value().clone()));
        }
        // The cast changes the SQL type, not the value.
        if let Some(cast) = expression.downcast_ref::<CastExpr>() {
            let is_same = cast.expr().data_type(schema).ok()? == *cast.cast_type();
            return is_same.then(|| Self::try_compile(cast.expr(), schema)).flatten();
        }
        let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
        let forms =
            call.args().iter().map(|argument| argument.data_type(schema)).collect::<Result<Vec<_>, _>>().ok()?;
        let arguments =
            call.args().iter().map(|argument| Self::try_compile(argument, schema)).collect::<Option<Vec<_>>>()?;
        Some(Self::Call(single_value_call(call.fun(), &forms)?, arguments))
    }

    /// Converts all of the expressions; `None` if one of them needs arrays.
    pub(super) fn try_compile_all<'a>(
        expressions: impl IntoIterator<Item = &'a Expression>,
        schema: &Schema,
    ) -> Option<Vec<Self>> {
        expressions.into_iter().map(|expression| Self::try_compile(expression, schema)).collect()
    }

    /// Computes the value for a row; `None` if arrays are needed.
    ///
    /// # Errors
    /// Errors of the expression.
    pub(super) fn evaluate<'a>(&'a self, row: &[Value<'a>]) -> SqlResult<Option<Value<'a>>> {
        match self {
            Self::Column(at) => Ok(row.get(*at).copied()),
            Self::Constant(constant) => Ok(scalar_to_value(constant)),
            Self::Call(call, arguments) => match arguments.as_slice() {
                [argument] => match argument.evaluate(row)? {
                    Some(value) => call.evaluate(&[value]),
                    None => Ok(None),
                },
                [left, right] => match (left.evaluate(row)?, right.evaluate(row)?) {
                    (Some(left), Some(right)) => call.evaluate(&[left, right]),
                    _ => Ok(None),
                },
                arguments => match evaluate_all(arguments, row)? {
                    Some(values) => call.evaluate(&values),
                    None => Ok(None),
                },
            },
        }
    }
}

/// Computes the values of the expressions for a row; `None` if one needs arrays.
pub(super) fn evaluate_all<'a>(cells: &'a [ValueExpression], row: &[Value<'a>]) -> SqlResult<Option<Vec<Value<'a>>>> {
    let mut made = Vec::with_capacity(cells.len());
    for cell in cells {
        let Some(value) = cell.evaluate(row)? else { return Ok(None) };
        made.push(value);
    }
    Ok(Some(made))
}

/// Converts a scalar to a stored value; `None` for types that have another stored form.
pub(super) fn scalar_to_value(scalar: &ScalarValue) -> Option<Value<'_>> {
    Some(match scalar {
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => Value::Int(i64::from(*value)),
        ScalarValue::Int64(Some(value))
        | ScalarValue::Time64Microsecond(Some(value))
        | ScalarValue::TimestampMicrosecond(Some(value), _) => Value::Int(*value),
        ScalarValue::Utf8View(Some(text)) => Value::Text(text),
        ScalarValue::Boolean(Some(value)) => Value::Bool(*value),
        ScalarValue::Int16(Some(value)) => Value::Int(i64::from(*value)),
        ScalarValue::UInt32(Some(value)) => Value::Int(i64::from(*value)),
        ScalarValue::Decimal128(Some(value), _, _) => Value::Decimal(*value),
        ScalarValue::Float32(Some(value)) => Value::Float4(*value),
        ScalarValue::Float64(Some(value)) => Value::Float8(*value),
        ScalarValue::FixedSizeBinary(_, Some(bytes)) | ScalarValue::Binary(Some(bytes)) => Value::Bytes(bytes),
        scalar if scalar.is_null() => Value::Null,
        _ => return None,
    })
}

/// Converts all scalars to stored values; `None` if one has another stored form.
pub(super) fn scalars_to_values(scalars: &[ScalarValue]) -> Option<Vec<Value<'_>>> {
    scalars.iter().map(scalar_to_value).collect()
}

#[cfg(test)]
mod tests {
    use rowstore::sample_values::{all_samples, sample_value};
    use types::sample_values::{all_types, samples};

    use super::super::row_projection::stored_type;
    use super::*;

    /// Conformance of parameters and computed values: a sample has the stored form that its column has, or none; and
    /// the type in which a projection stores a value has the value's Arrow type.
    #[test]
    fn all_samples_have_their_stored_form_or_none() {
        for sql_type in all_types() {
            let column = all_samples(&sql_type);
            for (row, sample) in samples(&sql_type).iter().enumerate() {
                let scalar = ScalarValue::try_from_array(&column, row).expect("every type has scalars");
                if let Some(value) = scalar_to_value(&scalar) {
                    assert_eq!(value, sample_value(sample), "{sql_type}");
                } else {
                    let has_none = sql_type.element().is_some() || sql_type == types::SqlType::Interval;
                    assert!(has_none, "values of {sql_type} are not computed by row");
                }
            }
            if let Some(stored) = stored_type(column.data_type()) {
                assert_eq!(stored.arrow_type(), sql_type.arrow_type(), "{sql_type}");
            } else {
                assert!(sql_type.element().is_some() || sql_type.is_oid(), "{sql_type} is not computed by row");
            }
        }
    }
}

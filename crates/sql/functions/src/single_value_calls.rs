//! Evaluates calls on single values instead of arrays, for statements that touch one row or a few.

use arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;
use rowstore::Value;
use types::numeric::{self, NumericPrecision};
use types::{SqlResult, SqlType};

use super::arithmetic::Arithmetic;
use super::cast::{CastFunction, ValueCast, actual_type};
use super::datetime::micros_from_epoch_seconds;
use super::row_constraints::ConstraintCheck;
use super::scalar_udf::ResolvedFunction;

/// Call that can be evaluated on single values.
#[derive(Debug, Clone)]
pub struct SingleValueCall {
    body: SingleValueBody,
    conversions: Vec<ArgumentConversion>,
}

#[derive(Debug, Clone)]
enum SingleValueBody {
    Arithmetic(Arithmetic),
    Cast(ValueCast),
    /// `to_timestamp(float8)`: a `timestamptz` from seconds since 1970.
    FromEpoch,
    /// NOT NULL check: returns the first argument if the arguments at these positions are not NULL.
    NotNull(Vec<usize>),
}

/// Conversion of an argument from the type it arrives in to the type the function takes.
#[derive(Debug, Clone, Copy)]
enum ArgumentConversion {
    Unchanged,
    /// Numeric of another scale, because parameters keep the digits they were sent with.
    Rescaled {
        from: u8,
        to: NumericPrecision,
    },
}

/// Returns the single-value form of `function` for arguments of the Arrow types `forms`; `None` if the function works
/// on arrays only.
#[must_use]
pub fn single_value_call(function: &ScalarUDF, forms: &[DataType]) -> Option<SingleValueCall> {
    let inner = function.inner();
    if let Some(call) = inner.downcast_ref::<ResolvedFunction>() {
        let body = if call.is_from_epoch() {
            SingleValueBody::FromEpoch
        } else {
            SingleValueBody::Arithmetic(call.single_value_arithmetic()?)
        };
        Some(SingleValueCall { body, conversions: argument_conversions(forms, call.argument_types())? })
    } else if let Some(cast) = inner.downcast_ref::<CastFunction>() {
        let [form] = forms else { return None };
        let from = actual_type(form, cast.from());
        let body = SingleValueBody::Cast(ValueCast::try_new(&from, cast.to())?);
        Some(SingleValueCall { body, conversions: argument_conversions(forms, &[from])? })
    } else {
        let body = SingleValueBody::NotNull(inner.downcast_ref::<ConstraintCheck>()?.not_null_columns()?);
        Some(SingleValueCall { body, conversions: Vec::new() })
    }
}

impl SingleValueCall {
    /// Evaluates the call; `None` if only the array form of the function can compute this value.
    ///
    /// # Errors
    /// Those of the function.
    #[inline]
    pub fn evaluate<'a>(&self, arguments: &[Value<'a>]) -> SqlResult<Option<Value<'a>>> {
        match (&self.body, arguments) {
            (SingleValueBody::NotNull(positions), arguments) => {
                let is_whole = positions.iter().all(|at| arguments.get(*at).is_some_and(|value| !value.is_null()));
                Ok(arguments.first().filter(|_| is_whole).copied())
            }
            (_, arguments) if arguments.iter().any(Value::is_null) => Ok(Some(Value::Null)),
            (SingleValueBody::Arithmetic(arithmetic), [left, right]) => {
                match (self.convert_argument(0, *left), self.convert_argument(1, *right)) {
                    (Some(left), Some(right)) => arithmetic.apply(left, right),
                    _ => Ok(None),
                }
            }
            (SingleValueBody::Cast(cast), [value]) => match self.convert_argument(0, *value) {
                Some(value) => cast.apply(value),
                None => Ok(None),
            },
            (SingleValueBody::FromEpoch, [Value::Float8(seconds)]) => {
                micros_from_epoch_seconds(*seconds).map(|us| Some(Value::Int(us)))
            }
            _ => Ok(None),
        }
    }

    /// Converts the argument at position `at` to the type that the function takes.
    fn convert_argument<'a>(&self, at: usize, value: Value<'a>) -> Option<Value<'a>> {
        match (self.conversions.get(at)?, value) {
            (ArgumentConversion::Unchanged, value) => Some(value),
            (ArgumentConversion::Rescaled { from, to }, Value::Decimal(value)) => {
                let scaled = numeric::rescale(value, *from, to.scale)?;
                numeric::check_fits(scaled, *to).ok().map(Value::Decimal)
            }
            (ArgumentConversion::Rescaled { .. }, _) => None,
        }
    }
}

fn argument_conversions(forms: &[DataType], takes: &[SqlType]) -> Option<Vec<ArgumentConversion>> {
    let forms = (forms.len() == takes.len()).then_some(forms)?;
    forms.iter().zip(takes).map(|(form, taken)| ArgumentConversion::try_new(form, taken)).collect()
}

impl ArgumentConversion {
    fn try_new(form: &DataType, taken: &SqlType) -> Option<Self> {
        let is_text = |form: &DataType| matches!(form, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let wanted = taken.arrow_type();
        match (form, taken) {
            (form, _) if *form == wanted || *form == DataType::Null => Some(Self::Unchanged),
            (DataType::Decimal128(_, scale), SqlType::Numeric { precision, scale: to }) => {
                Some(Self::Rescaled { from: u8::try_from(*scale).ok()?, to: NumericPrecision::new(*precision, *to) })
            }
            (form, _) => (is_text(form) && is_text(&wanted)).then_some(Self::Unchanged),
        }
    }
}

//! Evaluates calls on single values instead of arrays, for statements that touch one row or a few.

use arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;
use rowstore::Value;
use types::numeric::{self, Digits};
use types::{SqlResult, SqlType};

use super::arithmetic::Arithmetic;
use super::cast::{CastFunction, ValueCast, sent_type};
use super::datetime::at_epoch_seconds;
use super::function::ResolvedFunction;
use super::row_constraints::Constrained;

/// Call that can be evaluated on single values.
#[derive(Debug, Clone)]
pub struct ByValue {
    body: Body,
    forms: Vec<Form>,
}

#[derive(Debug, Clone)]
enum Body {
    Arithmetic(Arithmetic),
    Cast(ValueCast),
    /// `to_timestamp(float8)`: a `timestamptz` from seconds since 1970.
    FromEpoch,
    /// NOT NULL check: returns the first argument if the arguments at these positions are not NULL.
    Required(Vec<usize>),
}

/// Conversion of an argument from the type it arrives in to the type the function takes.
#[derive(Debug, Clone, Copy)]
enum Form {
    AsTaken,
    /// Numeric of another scale, because parameters keep the digits they were sent with.
    Scaled {
        from: u8,
        to: Digits,
    },
}

/// Returns the single-value form of `function` for arguments of the Arrow types `forms`; `None` if the function works
/// on arrays only.
#[must_use]
pub fn by_value(function: &ScalarUDF, forms: &[DataType]) -> Option<ByValue> {
    let inner = function.inner();
    if let Some(call) = inner.downcast_ref::<ResolvedFunction>() {
        let body = if call.is_from_epoch() { Body::FromEpoch } else { Body::Arithmetic(call.by_value()?) };
        Some(ByValue { body, forms: forms_of(forms, call.takes())? })
    } else if let Some(cast) = inner.downcast_ref::<CastFunction>() {
        let [form] = forms else { return None };
        let from = sent_type(form, cast.from());
        let body = Body::Cast(ValueCast::of(&from, cast.to())?);
        Some(ByValue { body, forms: forms_of(forms, &[from])? })
    } else {
        let body = Body::Required(inner.downcast_ref::<Constrained>()?.required()?);
        Some(ByValue { body, forms: Vec::new() })
    }
}

impl ByValue {
    /// Evaluates the call; `None` if only the array form of the function can compute this value.
    ///
    /// # Errors
    /// Those of the function.
    #[inline]
    pub fn call<'a>(&self, arguments: &[Value<'a>]) -> SqlResult<Option<Value<'a>>> {
        match (&self.body, arguments) {
            (Body::Required(positions), arguments) => {
                let is_whole = positions.iter().all(|at| arguments.get(*at).is_some_and(|value| !value.is_null()));
                Ok(arguments.first().filter(|_| is_whole).copied())
            }
            (_, arguments) if arguments.iter().any(Value::is_null) => Ok(Some(Value::Null)),
            (Body::Arithmetic(arithmetic), [left, right]) => match (self.taken(0, *left), self.taken(1, *right)) {
                (Some(left), Some(right)) => arithmetic.apply(left, right),
                _ => Ok(None),
            },
            (Body::Cast(cast), [value]) => match self.taken(0, *value) {
                Some(value) => cast.apply(value),
                None => Ok(None),
            },
            (Body::FromEpoch, [Value::Float8(seconds)]) => at_epoch_seconds(*seconds).map(|us| Some(Value::Int(us))),
            _ => Ok(None),
        }
    }

    /// Converts the argument at position `at` to the type that the function takes.
    fn taken<'a>(&self, at: usize, value: Value<'a>) -> Option<Value<'a>> {
        match (self.forms.get(at)?, value) {
            (Form::AsTaken, value) => Some(value),
            (Form::Scaled { from, to }, Value::Decimal(value)) => {
                let scaled = numeric::rescale(value, *from, to.scale)?;
                numeric::check(scaled, *to).ok().map(Value::Decimal)
            }
            (Form::Scaled { .. }, _) => None,
        }
    }
}

fn forms_of(forms: &[DataType], takes: &[SqlType]) -> Option<Vec<Form>> {
    let forms = (forms.len() == takes.len()).then_some(forms)?;
    forms.iter().zip(takes).map(|(form, taken)| Form::of(form, taken)).collect()
}

impl Form {
    fn of(form: &DataType, taken: &SqlType) -> Option<Self> {
        let is_text = |form: &DataType| matches!(form, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let wanted = taken.arrow_type();
        match (form, taken) {
            (form, _) if *form == wanted || *form == DataType::Null => Some(Self::AsTaken),
            (DataType::Decimal128(_, scale), SqlType::Numeric { precision, scale: to }) => {
                Some(Self::Scaled { from: u8::try_from(*scale).ok()?, to: Digits::new(*precision, *to) })
            }
            (form, _) => (is_text(form) && is_text(&wanted)).then_some(Self::AsTaken),
        }
    }
}

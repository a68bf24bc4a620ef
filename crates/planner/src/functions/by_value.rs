//! Calls over single values: what a function gives for arrays, for statements over a row or a few.

use arrow::datatypes::DataType;
use datafusion::logical_expr::ScalarUDF;
use rowstore::Value;
use types::{SqlResult, SqlType};

use super::arithmetic::Arithmetic;
use super::cast::{CastFunction, ValueCast};
use super::function::ResolvedFunction;
use crate::write::Constrained;

/// A call that can be made value by value.
#[derive(Debug, Clone)]
pub enum ByValue {
    Arithmetic(Arithmetic),
    Cast(ValueCast),
    /// The first argument, where those at these positions are values: NOT NULL, asked of a row.
    Required(Vec<usize>),
}

/// The function over values that come as `forms`; `None` where it is one of arrays only.
#[must_use]
pub fn by_value(function: &ScalarUDF, forms: &[DataType]) -> Option<ByValue> {
    let inner = function.inner();
    if let Some(call) = inner.downcast_ref::<ResolvedFunction>() {
        call.by_value(forms).map(ByValue::Arithmetic)
    } else if let Some(cast) = inner.downcast_ref::<CastFunction>() {
        cast.by_value(forms.first()?).map(ByValue::Cast)
    } else {
        inner.downcast_ref::<Constrained>()?.required().map(ByValue::Required)
    }
}

impl ByValue {
    /// What the call gives; `None` where the function itself has to say.
    ///
    /// # Errors
    /// Those of the function.
    #[inline]
    pub fn call<'a>(&self, arguments: &[Value<'a>]) -> SqlResult<Option<Value<'a>>> {
        match (self, arguments) {
            (Self::Required(positions), arguments) => {
                let is_whole = positions.iter().all(|at| arguments.get(*at).is_some_and(|value| !value.is_null()));
                Ok(arguments.first().filter(|_| is_whole).copied())
            }
            (_, arguments) if arguments.iter().any(Value::is_null) => Ok(Some(Value::Null)),
            (Self::Arithmetic(arithmetic), [left, right]) => arithmetic.apply(*left, *right),
            (Self::Cast(cast), [value]) => cast.apply(*value),
            _ => Ok(None),
        }
    }
}

/// Whether values of the type come so: else they are converted before the function sees them.
pub(super) fn has_form(form: &DataType, sql_type: &SqlType) -> bool {
    let is_text = |form: &DataType| matches!(form, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let wanted = sql_type.arrow_type();
    *form == wanted || *form == DataType::Null || (is_text(form) && is_text(&wanted))
}

//! COALESCE, GREATEST, LEAST and NULLIF, whose arguments the analyzer casts to one type, and eager forms of COALESCE
//! and CASE.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::interleave;
use datafusion::logical_expr::ScalarUDF;
use types::{SqlResult, SqlType};

use super::call::Call;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType, ResultType};
use super::scalar_udf::ResolvedFunction;
use crate::error::from_datafusion;
use crate::type_rules::common_type_of;

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "coalesce",
        "first argument that is not null",
        &[Overload::builtin(&[ParameterType::Any], ResultType::Computed(common), F::Nothing, coalesce).variadic()],
    ),
    Definition::new(
        "greatest",
        "greatest of the arguments",
        &[Overload::builtin(&[ParameterType::Any], ResultType::Computed(common), F::Nothing, greatest).variadic()],
    ),
    Definition::new(
        "least",
        "least of the arguments",
        &[Overload::builtin(&[ParameterType::Any], ResultType::Computed(common), F::Nothing, least).variadic()],
    ),
    Definition::new(
        "nullif",
        "null if the arguments are equal, else the first one",
        &[Overload::builtin(&[ParameterType::Any, ParameterType::Any], ResultType::SameAs(0), F::Nothing, coalesce)],
    ),
];

/// COALESCE that evaluates all arguments.
pub(super) static FIRST_NOT_NULL: Definition = Definition::new(
    "first_not_null",
    "first argument that is not null, with all of them evaluated",
    &[Overload::rows(&[ParameterType::Any], ResultType::Computed(common), F::Nothing, first_not_null).variadic()],
);

/// Returns whether a function is the COALESCE that evaluates all arguments.
#[must_use]
pub fn is_first_not_null(function: &ScalarUDF) -> bool {
    is_call_of(function, &FIRST_NOT_NULL)
}

/// Returns whether a function is the boolean CASE that evaluates all arguments.
#[must_use]
pub fn is_first_true(function: &ScalarUDF) -> bool {
    is_call_of(function, &FIRST_TRUE)
}

fn is_call_of(function: &ScalarUDF, definition: &'static Definition) -> bool {
    let resolved = function.inner().downcast_ref::<ResolvedFunction>();
    resolved.is_some_and(|resolved| std::ptr::eq(resolved.parts().0, definition))
}

fn first_not_null(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let arguments: Vec<&dyn Array> = call.arguments.iter().map(|argument| argument.values.as_ref()).collect();
    let place = |argument: usize, row: usize| if call.arguments[argument].is_constant { 0 } else { row };
    let first = |row: usize| {
        let found = (0..arguments.len()).find(|argument| arguments[*argument].is_valid(place(*argument, row)));
        let argument = found.unwrap_or(0);
        (argument, place(argument, row))
    };
    let places: Vec<(usize, usize)> = (0..call.rows).map(first).collect();
    interleave(&arguments, &places).map_err(|error| from_datafusion(error.into()))
}

/// Boolean CASE that evaluates all arguments: pairs of a condition and its result, then the ELSE result.
pub(super) static FIRST_TRUE: Definition = Definition::new(
    "first_true",
    "result of the first true condition, with all of them evaluated",
    &[Overload::rows(&[ParameterType::Any], ResultType::fixed(SqlType::Bool), F::Nothing, first_true).variadic()],
);

fn first_true(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let arguments: Vec<&BooleanArray> = call.arguments.iter().map(|argument| argument.values.as_boolean()).collect();
    let value = |argument: usize, row: usize| {
        let row = if call.arguments[argument].is_constant { 0 } else { row };
        arguments[argument].is_valid(row).then(|| arguments[argument].value(row))
    };
    let conditions = arguments.len() / 2;
    let chosen = |row: usize| {
        let first = (0..conditions).find(|condition| value(condition * 2, row) == Some(true));
        value(first.map_or(conditions * 2, |condition| condition * 2 + 1), row)
    };
    Ok(Arc::new((0..call.rows).map(chosen).collect::<BooleanArray>()))
}

fn common(arguments: &[SqlType]) -> SqlResult<SqlType> {
    common_type_of(arguments, "COALESCE")
}

fn coalesce() -> Arc<ScalarUDF> {
    datafusion::functions::core::coalesce()
}

fn greatest() -> Arc<ScalarUDF> {
    datafusion::functions::core::greatest()
}

fn least() -> Arc<ScalarUDF> {
    datafusion::functions::core::least()
}

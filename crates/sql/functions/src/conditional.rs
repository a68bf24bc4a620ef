//! COALESCE, GREATEST, LEAST and NULLIF, whose arguments the analyzer casts to one type, and eager forms of COALESCE
//! and CASE.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::interleave;
use datafusion::logical_expr::ScalarUDF;
use types::{SqlResult, SqlType};

use super::call::Call;
use super::definition::{Definition, Overload, ParameterType, ResultType};
use crate::error::from_datafusion;
use crate::type_rules::common_type_of;

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "coalesce",
        &[Overload::builtin(&[ParameterType::Any], ResultType::Computed(common), coalesce).variadic()],
    ),
    Definition::new(
        "greatest",
        &[Overload::builtin(&[ParameterType::Any], ResultType::Computed(common), greatest).variadic()],
    ),
    Definition::new(
        "least",
        &[Overload::builtin(&[ParameterType::Any], ResultType::Computed(common), least).variadic()],
    ),
    Definition::new(
        "nullif",
        &[Overload::builtin(&[ParameterType::Any, ParameterType::Any], ResultType::SameAs(0), coalesce)],
    ),
];

/// Internal name of [`FIRST_NOT_NULL`]; not callable from SQL.
pub const FIRST_NOT_NULL_NAME: &str = "first_not_null";

/// COALESCE that evaluates all arguments.
pub(super) static FIRST_NOT_NULL: Definition = Definition::new(
    FIRST_NOT_NULL_NAME,
    &[Overload::rows(&[ParameterType::Any], ResultType::Computed(common), first_not_null).variadic()],
);

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

/// Internal name of [`FIRST_TRUE`]; not callable from SQL.
pub const FIRST_TRUE_NAME: &str = "first_true";

/// Boolean CASE that evaluates all arguments: pairs of a condition and its result, then the ELSE result.
pub(super) static FIRST_TRUE: Definition = Definition::new(
    FIRST_TRUE_NAME,
    &[Overload::rows(&[ParameterType::Any], ResultType::fixed(SqlType::Bool), first_true).variadic()],
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

//! COALESCE, GREATEST, LEAST and NULLIF: the analyzer gives their arguments one type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::interleave;
use datafusion::logical_expr::ScalarUDF;
use types::{SqlResult, SqlType};

use super::call::Call;
use super::definition::{Definition, Gives, Overload, Takes};
use crate::error::from_datafusion;
use crate::semantics::type_rules::common_type_of;

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("coalesce", &[Overload::builtin(&[Takes::Any], Gives::Computed(common), coalesce).variadic()]),
    Definition::new("greatest", &[Overload::builtin(&[Takes::Any], Gives::Computed(common), greatest).variadic()]),
    Definition::new("least", &[Overload::builtin(&[Takes::Any], Gives::Computed(common), least).variadic()]),
    Definition::new("nullif", &[Overload::builtin(&[Takes::Any, Takes::Any], Gives::Same(0), coalesce)]),
];

/// Internal name of [`FIRST_NOT_NULL`]; not callable from SQL.
pub(crate) const FIRST_NOT_NULL_NAME: &str = "first_not_null";

/// COALESCE with eager evaluation of all arguments.
pub(super) static FIRST_NOT_NULL: Definition = Definition::new(
    FIRST_NOT_NULL_NAME,
    &[Overload::rows(&[Takes::Any], Gives::Computed(common), first_not_null).variadic()],
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

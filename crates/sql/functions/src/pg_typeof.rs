//! The function `pg_typeof`.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use types::{SqlResult, SqlType};

use super::call::Call;
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType, ResultType};

pub(super) const DEFINITIONS: &[Definition] = &[Definition::new(
    "pg_typeof",
    "type of the argument",
    &[Overload::rows(&[ParameterType::Any], ResultType::fixed(SqlType::Regtype), F::Nothing, pg_typeof)],
)
.in_catalog(&[catalog_entry(1619, "any", "regtype").stable().called_on_null()])];

/// Returns the OID of the argument's type, for every row.
fn pg_typeof(call: &Call<'_>) -> SqlResult<ArrayRef> {
    Ok(Arc::new(UInt32Array::from(vec![call.argument_types[0].oid(); call.rows])))
}

//! `ARRAY(subquery)`: represented as a call around the subquery until `replace_by_calls.rs` replaces both.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use types::SqlType;

/// Name of the function that marks `ARRAY(subquery)`.
pub const ARRAY_SUBQUERY: &str = "array_subquery";

/// Returns the marker function, for lookups by name.
#[must_use]
pub fn array_subquery() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(ArraySubquery { signature: Signature::any(1, Volatility::Stable) }))
}

/// Returns whether a function is the marker of `ARRAY(subquery)`.
pub(super) fn is_array_subquery(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<ArraySubquery>().is_some()
}

/// Returns the field of a list of `element`s, with the array's SQL type in its metadata.
pub(super) fn list_field(element: &Field) -> Field {
    let item = Field::new("item", element.data_type().clone(), true);
    let list = Field::new("array", DataType::List(Arc::new(item)), true);
    match SqlType::from_arrow_field(element) {
        Some(sql_type) => list.with_metadata(SqlType::Array(Box::new(sql_type)).arrow_metadata()),
        None => list,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArraySubquery {
    signature: Signature,
}

impl ScalarUDFImpl for ArraySubquery {
    fn name(&self) -> &str {
        ARRAY_SUBQUERY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> DfResult<DataType> {
        Ok(list_field(&Field::new("item", arguments[0].clone(), true)).data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        Ok(Arc::new(list_field(&args.arg_fields[0])))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Err(DataFusionError::Internal("array_subquery was executed: ARRAY(subquery) was not lowered".to_owned()))
    }
}

//! ARRAY(subquery): written as a call around the subquery until the subquery is evaluated.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use types::SqlType;

/// The name of the call.
pub const ARRAY_SUBQUERY: &str = "array_subquery";

/// The function called, for whoever looks functions up by name.
#[must_use]
pub fn array_subquery() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(ArraySubquery { signature: Signature::any(1, Volatility::Stable) }))
}

/// A list of `element`s, carrying the SQL type of the array.
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
        Err(DataFusionError::Internal("ARRAY(subquery) is replaced before it runs".to_owned()))
    }
}

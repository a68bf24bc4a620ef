//! The functions that hide keys of grouping sets from the optimizer. No name in SQL stands for them.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Gives its first argument as it is; the optimizer knows nothing of its value.
pub static GROUPING_KEY: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(GroupingKey { signature: Signature::any(2, Volatility::Volatile) }));

/// An argument of [`GROUPING_KEY`] that is not taken for constant: a call of constants alone would be.
pub static VARIES: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(Varies { signature: Signature::nullary(Volatility::Volatile) }));

/// Both functions: plans have them by their names.
pub(crate) fn hiding_functions() -> [&'static LazyLock<ScalarUDF>; 2] {
    [&GROUPING_KEY, &VARIES]
}

/// Whether a function hides a key from the optimizer: it gives its first argument as it is.
#[must_use]
pub fn hides_key(function: &ScalarUDF) -> bool {
    *function == *GROUPING_KEY
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupingKey {
    signature: Signature,
}

impl ScalarUDFImpl for GroupingKey {
    fn name(&self) -> &str {
        "grouping_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Varies {
    signature: Signature,
}

impl ScalarUDFImpl for Varies {
    fn name(&self) -> &str {
        "varies"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Null)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Null))
    }
}

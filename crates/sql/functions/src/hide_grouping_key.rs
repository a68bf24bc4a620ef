//! Internal functions that hide keys of grouping sets from the optimizer. They have no SQL name.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Function that returns its first argument, and is opaque to the optimizer.
pub static GROUPING_KEY: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(GroupingKey { signature: Signature::any(2, Volatility::Volatile) }));

/// Second argument of [`GROUPING_KEY`], which keeps a call with a constant key from being folded.
pub static VOLATILE_NULL: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::new_from_impl(VolatileNull { signature: Signature::nullary(Volatility::Volatile) }));

/// Returns both functions, for decoding plans that refer to them by name.
pub(crate) fn hiding_functions() -> [&'static LazyLock<ScalarUDF>; 2] {
    [&GROUPING_KEY, &VOLATILE_NULL]
}

/// Returns whether a function is one of these.
pub(crate) fn is_hiding_function(function: &ScalarUDF) -> bool {
    hiding_functions().iter().any(|hiding| ***hiding == *function)
}

/// Returns whether a function hides a grouping key from the optimizer and just returns its first argument.
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
struct VolatileNull {
    signature: Signature,
}

impl ScalarUDFImpl for VolatileNull {
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

//! Calls of functions that do not exist: the error is raised once the argument types, which the message contains, are
//! resolved.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use functions::error::to_datafusion;
use functions::field_type;
use functions::type_rules::plain_type_name;
use types::{Condition, SqlError, SqlType};

/// Function that does not exist.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct UndefinedFunction {
    name: String,
    signature: Signature,
}

impl UndefinedFunction {
    pub(super) fn udf(name: &str) -> Arc<ScalarUDF> {
        let accepted = TypeSignature::OneOf(vec![TypeSignature::Nullary, TypeSignature::UserDefined]);
        let signature = Signature::new(accepted, Volatility::Volatile);
        Arc::new(ScalarUDF::new_from_impl(Self { name: name.to_owned(), signature }))
    }

    fn error(&self, types: &[SqlType]) -> SqlError {
        let types: Vec<String> = types.iter().map(plain_type_name).collect();
        let message = format!("function {}({}) does not exist", self.name, types.join(", "));
        SqlError::new(Condition::UndefinedFunction, message).with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        )
    }
}

impl ScalarUDFImpl for UndefinedFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(to_datafusion(self.error(&[])))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<SqlType> = args
            .arg_fields
            .iter()
            .zip(args.scalar_arguments)
            .map(|(field, literal)| field_type(field, *literal))
            .collect();
        Err(to_datafusion(self.error(&types)))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(to_datafusion(self.error(&[])))
    }
}

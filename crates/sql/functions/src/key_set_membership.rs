//! Internal function that tests whether a column's value is in a set of keys. It has no SQL name.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::semi_join_key_set::KeySet;

/// Membership test of a [`KeySet`]; false for NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct HasKey {
    keys: Arc<KeySet>,
    signature: Signature,
}

impl HasKey {
    /// Creates the function that tests whether its argument is in `keys`.
    #[must_use]
    pub fn udf(keys: KeySet) -> ScalarUDF {
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { keys: Arc::new(keys), signature })
    }

    /// Returns the set of keys.
    #[must_use]
    pub fn keys(&self) -> &KeySet {
        &self.keys
    }
}

/// Returns the key set of a membership test; `None` for other functions.
#[must_use]
pub fn tested_keys(function: &ScalarUDF) -> Option<&Arc<KeySet>> {
    function.inner().downcast_ref::<HasKey>().map(|has_key| &has_key.keys)
}

impl ScalarUDFImpl for HasKey {
    fn name(&self) -> &'static str {
        "has_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = args.args.as_slice() else { return internal_err!("has_key takes one argument") };
        let array = argument.to_array(args.number_rows)?;
        match self.keys.test_array(&array) {
            Some(has) => Ok(ColumnarValue::Array(Arc::new(has))),
            None => internal_err!("has_key called with {}, which is not a key type", array.data_type()),
        }
    }
}

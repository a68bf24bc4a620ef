//! The condition that a column has one of some keys. No name in SQL stands for it.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::key_set::KeySet;

/// Whether its argument is among the keys; not so for NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct HasKey {
    keys: Arc<KeySet>,
    signature: Signature,
}

impl HasKey {
    /// The condition that a value is among `keys`.
    #[must_use]
    pub fn of(keys: KeySet) -> ScalarUDF {
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { keys: Arc::new(keys), signature })
    }

    /// The keys that are looked for.
    #[must_use]
    pub fn keys(&self) -> &KeySet {
        &self.keys
    }
}

/// The keys of a condition that its argument is among them; `None` of other functions.
#[must_use]
pub fn keys_asked(function: &ScalarUDF) -> Option<&Arc<KeySet>> {
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
        let [argument] = args.args.as_slice() else { return internal_err!("one value is looked for") };
        let array = argument.to_array(args.number_rows)?;
        match self.keys.test(&array) {
            Some(has) => Ok(ColumnarValue::Array(Arc::new(has))),
            None => internal_err!("{} is no type of keys", array.data_type()),
        }
    }
}

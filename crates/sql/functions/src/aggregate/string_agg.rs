//! `string_agg` whose separator is not a constant: each text has the separator that precedes it.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature};
use types::ValueMemoryCounter;
use types::value_memory::check_growth;

use crate::external;

/// `string_agg` with a separator per row; it takes the same arguments as DataFusion's `string_agg`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct StringAggVarying {
    constant: Arc<AggregateUDF>,
}

impl StringAggVarying {
    pub(super) fn new(constant: Arc<AggregateUDF>) -> Self {
        Self { constant }
    }
}

impl AggregateUDFImpl for StringAggVarying {
    fn name(&self) -> &str {
        self.constant.name()
    }

    fn signature(&self) -> &Signature {
        self.constant.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.constant.return_type(arguments)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |what: &str| {
            let item = Field::new_list_field(DataType::Utf8View, true);
            Arc::new(Field::new_list(format!("{}[{what}]", args.name), item, true))
        };
        Ok(vec![list("texts"), list("separators")])
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(StringAggAccumulator::default()))
    }
}

/// Texts so far, each with the separator before it.
#[derive(Debug, Default)]
struct StringAggAccumulator {
    parts: Vec<(String, Option<Arc<str>>)>,
    bytes: usize,
}

impl StringAggAccumulator {
    /// Returns a shared copy of a separator, which is usually equal to the previous one.
    fn separator(&mut self, separator: Option<&str>) -> Option<Arc<str>> {
        let separator = separator?;
        if let Some((_, Some(last))) = self.parts.last()
            && **last == *separator
        {
            return Some(Arc::clone(last));
        }
        self.bytes += separator.len();
        Some(separator.into())
    }
}

impl Accumulator for StringAggAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (texts, separators) = (cast(&values[0], &DataType::Utf8View)?, cast(&values[1], &DataType::Utf8View)?);
        let mut guard = ValueMemoryCounter::default();
        for (text, separator) in texts.as_string_view().iter().zip(separators.as_string_view()) {
            if let Some(text) = text {
                let before = self.bytes;
                let separator = self.separator(separator);
                self.bytes += text.len() + size_of::<(String, Option<Arc<str>>)>();
                guard.add(self.bytes - before).map_err(external)?;
                self.parts.push((text.to_owned(), separator));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (texts, separators) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for (texts, separators) in texts.iter().zip(separators.iter()) {
            if let (Some(texts), Some(separators)) = (texts, separators) {
                self.update_batch(&[texts, separators])?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(self.parts.iter().map(|(text, _)| text)));
        let separators: StringViewArray = self.parts.iter().map(|(_, separator)| separator.as_deref()).collect();
        let list = |array: ArrayRef| SingleRowListArrayBuilder::new(array).build_list_scalar();
        Ok(vec![list(texts), list(Arc::new(separators))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut joined: Option<String> = None;
        for (text, separator) in &self.parts {
            match &mut joined {
                None => joined = Some(text.clone()),
                Some(joined) => {
                    let separator = separator.as_deref().unwrap_or_default();
                    check_growth(joined, separator.len() + text.len()).map_err(external)?;
                    joined.push_str(separator);
                    joined.push_str(text);
                }
            }
        }
        Ok(ScalarValue::LargeUtf8(joined))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}

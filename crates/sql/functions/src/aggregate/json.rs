//! The aggregates `json_agg`, `json_object_agg` and their `jsonb` forms.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use types::text::{format_json_string, normalize_jsonb};
use types::value_memory::check_length;
use types::{Condition, SessionZone, SqlError, SqlType, ValueMemoryCounter};

use crate::cast::TextWriter;
use crate::external;
use crate::json::JsonWriter;

/// One of the four JSON aggregates.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct JsonAggregate {
    name: &'static str,
    form: JsonForm,
    signature: Signature,
}

/// Result of a JSON aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct JsonForm {
    /// True for an object of keys and values, false for an array.
    pub(super) is_object: bool,
    /// True for jsonb, false for json.
    pub(super) is_jsonb: bool,
}

impl JsonAggregate {
    pub(super) fn new(name: &'static str, form: JsonForm) -> Self {
        let count = if form.is_object { 2 } else { 1 };
        Self { name, form, signature: Signature::any(count, Volatility::Immutable) }
    }

    fn result(&self) -> SqlType {
        if self.form.is_jsonb { SqlType::Jsonb } else { SqlType::Json }
    }
}

impl AggregateUDFImpl for JsonAggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.result().arrow_type())
    }

    fn return_field(&self, _arguments: &[FieldRef]) -> Result<FieldRef> {
        Ok(Arc::new(self.result().arrow_field(self.name, true)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
        Ok(vec![Arc::new(Field::new(format!("{}[parts]", args.name), DataType::List(item), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let types =
            args.expr_fields.iter().map(|field| SqlType::from_arrow_field(field).unwrap_or(SqlType::Text)).collect();
        Ok(Box::new(JsonAccumulator { form: self.form, types, parts: Vec::new() }))
    }
}

/// JSON texts of the elements or members, in arrival order.
#[derive(Debug)]
struct JsonAccumulator {
    form: JsonForm,
    types: Vec<SqlType>,
    parts: Vec<String>,
}

impl Accumulator for JsonAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // Values to order by may follow the arguments.
        let last = self.types.len() - 1;
        let writer = JsonWriter::new(&values[last], &self.types[last], SessionZone::UTC);
        let mut guard = ValueMemoryCounter::default();
        for row in 0..values[0].len() {
            let mut part = String::new();
            if last == 1 {
                let mut key = String::new();
                TextWriter::new(&values[0], &self.types[0], SessionZone::UTC).write(row, &mut key).ok_or_else(
                    || external(SqlError::new(Condition::InvalidParameterValue, "field name must not be null")),
                )?;
                format_json_string(&key, &mut part);
                part.push_str(" : ");
            }
            writer.write(row, &mut part);
            guard.add_text(part.len()).map_err(external)?;
            self.parts.push(part);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.parts.extend(list.as_string_view().iter().flatten().map(str::to_owned));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts: ArrayRef = Arc::new(arrow::array::StringViewArray::from_iter_values(&self.parts));
        Ok(vec![SingleRowListArrayBuilder::new(parts).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.parts.is_empty() {
            return Ok(ScalarValue::Utf8View(None));
        }
        check_length(self.parts.iter().map(|part| part.len() + 2).sum()).map_err(external)?;
        let joined = self.parts.join(", ");
        let text = if self.form.is_object { format!("{{ {joined} }}") } else { format!("[{joined}]") };
        let text = if self.form.is_jsonb { normalize_jsonb(&text).map_err(external)? } else { text };
        Ok(ScalarValue::Utf8View(Some(text)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.parts.iter().map(String::capacity).sum::<usize>()
    }
}

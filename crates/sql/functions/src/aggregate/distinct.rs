//! DISTINCT for any accumulator: collects distinct values and passes them on at the end.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use super::interval::comparison_key;

/// Accumulator that passes only distinct values to another one.
#[derive(Debug)]
pub(super) struct DistinctAccumulator {
    inner: Box<dyn Accumulator>,
    input: DataType,
    /// Distinct values by their comparison key.
    seen: HashMap<ScalarValue, ScalarValue>,
    bytes: usize,
}

impl DistinctAccumulator {
    pub(super) fn new(inner: Box<dyn Accumulator>, input: DataType) -> Self {
        Self { inner, input, seen: HashMap::new(), bytes: 0 }
    }

    pub(super) fn state_fields(name: &str, input: &DataType) -> Vec<FieldRef> {
        let item = Arc::new(Field::new_list_field(input.clone(), true));
        vec![Arc::new(Field::new(format!("{name}[distinct]"), DataType::List(item), true))]
    }

    fn values(&self) -> Result<ArrayRef> {
        if self.seen.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.input));
        }
        ScalarValue::iter_to_array(self.seen.values().cloned())
    }
}

impl Accumulator for DistinctAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        for row in 0..values.len() {
            if values.is_valid(row) {
                let value = ScalarValue::try_from_array(values, row)?;
                if let Entry::Vacant(place) = self.seen.entry(comparison_key(&value)) {
                    self.bytes += 2 * value.size();
                    place.insert(value);
                }
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![SingleRowListArrayBuilder::new(self.values()?).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = self.values()?;
        self.inner.update_batch(&[values])?;
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes + self.inner.size()
    }
}

//! Memory limit for aggregates whose value is as long as all of their rows together. A window function has one such
//! value per row of a batch.

use arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use types::ValueMemoryCounter;

use crate::array_value_bytes::value_bytes;
use crate::external;

/// Accumulator that checks the memory limit before it returns a value as long as its input.
#[derive(Debug)]
pub(super) struct SizeCheckedAccumulator {
    inner: Box<dyn Accumulator>,
    /// Bytes of the first argument so far, which is the approximate size of the value.
    input_bytes: usize,
    guard: ValueMemoryCounter,
}

impl SizeCheckedAccumulator {
    pub(super) fn new(inner: Box<dyn Accumulator>) -> Self {
        Self { inner, input_bytes: 0, guard: ValueMemoryCounter::default() }
    }
}

fn bytes_of(columns: &[ArrayRef]) -> usize {
    columns.first().map_or(0, |column| value_bytes(column.as_ref()))
}

impl Accumulator for SizeCheckedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.guard.add(0).map_err(external)?;
        self.input_bytes += bytes_of(values);
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.guard.add(self.input_bytes).map_err(external)?;
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.input_bytes += bytes_of(states);
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.input_bytes = self.input_bytes.saturating_sub(bytes_of(values));
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

//! Aggregates whose value is as long as all of their rows together: a window function has one such value for each row of a batch, so each is asked for.

use arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use types::ValueGuard;

use crate::external;
use crate::value_bytes::value_bytes;

/// Asks before it gives a value that is as long as the rows that it has taken.
#[derive(Debug)]
pub(super) struct Guarded {
    inner: Box<dyn Accumulator>,
    /// The aggregate has taken this many bytes of its first argument, of which its value is made.
    taken_bytes: usize,
    guard: ValueGuard,
}

impl Guarded {
    pub(super) fn new(inner: Box<dyn Accumulator>) -> Self {
        Self { inner, taken_bytes: 0, guard: ValueGuard::default() }
    }
}

fn bytes_of(columns: &[ArrayRef]) -> usize {
    columns.first().map_or(0, |column| value_bytes(column.as_ref()))
}

impl Accumulator for Guarded {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.guard.add(0).map_err(external)?;
        self.taken_bytes += bytes_of(values);
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.guard.add(self.taken_bytes).map_err(external)?;
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.taken_bytes += bytes_of(states);
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.taken_bytes = self.taken_bytes.saturating_sub(bytes_of(values));
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

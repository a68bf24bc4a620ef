//! Totals of floats over moving window frames. Floats cannot be subtracted exactly, so each frame is summed anew.

use std::collections::VecDeque;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use super::interval::no_partial_state;
use super::running_total::TotalValue;
use super::sum_avg::{FinishTotal, TotalRule};

/// Values of the current frame, in row order.
#[derive(Debug)]
pub(super) struct SlidingTotal {
    shape: TotalRule,
    output: DataType,
    values: VecDeque<f64>,
}

impl SlidingTotal {
    pub(super) fn new(shape: TotalRule, output: DataType) -> Self {
        Self { shape, output, values: VecDeque::new() }
    }
}

impl Accumulator for SlidingTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        f64::read(&values[0], |_, value| {
            self.values.push_back(value);
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        f64::read(&values[0], |_, _| {
            self.values.pop_front();
            Ok(())
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.values.iter().try_fold(0.0, |total: f64, value| total.add(*value))?;
        let count = i64::try_from(self.values.len()).expect("rows of a frame exceed 64 bits");
        let finished = f64::finish(vec![total], &[count], self.shape, &self.output)?;
        ScalarValue::try_from_array(&finished, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(no_partial_state())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(no_partial_state())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.values.capacity() * size_of::<f64>()
    }
}

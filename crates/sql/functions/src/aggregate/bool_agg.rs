//! `bool_and` and `bool_or`: DataFusion's, with an accumulator for moving window frames that counts values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};

use super::interval::no_partial_state;

/// The aggregate `bool_and` or `bool_or`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BoolAggregate {
    inner: Arc<AggregateUDF>,
    is_or: bool,
}

impl BoolAggregate {
    pub(super) fn new(inner: Arc<AggregateUDF>, is_or: bool) -> Self {
        Self { inner, is_or }
    }
}

impl AggregateUDFImpl for BoolAggregate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(BoolCounts { is_or: self.is_or, values: [0; 2] }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Numbers of false and true values of a window frame.
#[derive(Debug)]
struct BoolCounts {
    is_or: bool,
    values: [i64; 2],
}

impl BoolCounts {
    fn count(&mut self, values: &ArrayRef, change: i64) {
        values.as_boolean().iter().flatten().for_each(|value| self.values[usize::from(value)] += change);
    }
}

impl Accumulator for BoolCounts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count(&values[0], 1);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count(&values[0], -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Boolean(match self.values {
            [0, 0] => None,
            [_, yes] if self.is_or => Some(yes != 0),
            [no, _] => Some(no == 0),
        }))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(no_partial_state())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(no_partial_state())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

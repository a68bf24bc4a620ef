//! `min` and `max`: DataFusion's, with the argument's SQL type preserved, and with PostgreSQL's order of intervals.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};
use types::SqlType;

use super::interval::{IntervalExtreme, SlidingIntervalExtreme};

/// DataFusion aggregate whose result has the SQL type of its argument.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MinMax {
    inner: Arc<AggregateUDF>,
    is_max: bool,
}

impl MinMax {
    pub(super) fn new(inner: Arc<AggregateUDF>, is_max: bool) -> Self {
        Self { inner, is_max }
    }
}

/// Returns whether the argument is an interval: DataFusion orders intervals by months first, PostgreSQL by length.
fn is_of_intervals(args: &AccumulatorArgs) -> bool {
    matches!(args.expr_fields[0].data_type(), DataType::Interval(_))
}

impl AggregateUDFImpl for MinMax {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let field = self.inner.inner().return_field(arguments)?;
        let Some(sql_type) = SqlType::from_arrow_field(&arguments[0]) else { return Ok(field) };
        Ok(Arc::new(field.as_ref().clone().with_metadata(sql_type.arrow_metadata())))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_of_intervals(&args) {
            return Ok(Box::new(IntervalExtreme::new(self.is_max)));
        }
        self.inner.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_of_intervals(&args) && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_of_intervals(&args) {
            return Ok(Box::new(SlidingIntervalExtreme::new(self.is_max)));
        }
        self.inner.create_sliding_accumulator(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        if matches!(args.return_type, DataType::Interval(_)) {
            return None;
        }
        self.inner.inner().value_from_stats(args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

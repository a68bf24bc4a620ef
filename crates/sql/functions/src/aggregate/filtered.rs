//! Aggregate with a FILTER condition as its last argument, for window functions: DataFusion's window operators store
//! FILTER outside of the function, invisible to the engine and to the plan codec.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::filter;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature, Volatility};
use types::SqlError;

use crate::external;

/// Aggregate over the rows for which its last argument is true.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Filtered {
    name: String,
    unfiltered: Arc<AggregateUDF>,
    signature: Signature,
}

impl Filtered {
    pub(crate) fn udaf(unfiltered: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
        let name = format!("{} filter", unfiltered.name());
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { name, unfiltered, signature }))
    }

    /// Returns the aggregate without the FILTER.
    pub(crate) fn unfiltered(&self) -> &Arc<AggregateUDF> {
        &self.unfiltered
    }

    fn arguments_without_condition<'a>(args: AccumulatorArgs<'a>) -> Result<AccumulatorArgs<'a>> {
        let AccumulatorArgs { exprs, expr_fields, .. } = args;
        Ok(AccumulatorArgs { exprs: without_condition(exprs)?, expr_fields: without_condition(expr_fields)?, ..args })
    }
}

/// Returns the arguments without the condition, which is the last one.
fn without_condition<T>(arguments: &[T]) -> Result<&[T]> {
    let condition =
        || external(SqlError::internal("an aggregate with a FILTER clause was called without its FILTER condition"));
    Ok(arguments.split_last().ok_or_else(condition)?.1)
}

impl AggregateUDFImpl for Filtered {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let field = |data_type: &DataType| Arc::new(Field::new("argument", data_type.clone(), true));
        let fields: Vec<FieldRef> = without_condition(arguments)?.iter().map(field).collect();
        let coerced = fields_with_udf(&fields, self.unfiltered.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).chain([DataType::Boolean]).collect())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.unfiltered.return_type(without_condition(arguments)?)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        self.unfiltered.inner().return_field(without_condition(arguments)?)
    }

    fn is_nullable(&self) -> bool {
        self.unfiltered.is_nullable()
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.unfiltered.state_fields(StateFieldsArgs { input_fields: without_condition(args.input_fields)?, ..args })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(FilteringAccumulator(self.unfiltered.accumulator(Self::arguments_without_condition(args)?)?)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(FilteringAccumulator(
            self.unfiltered.create_sliding_accumulator(Self::arguments_without_condition(args)?)?,
        )))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.unfiltered.order_sensitivity()
    }

    fn with_beneficial_ordering(self: Arc<Self>, _is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.unfiltered.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            _ => ReversedUDAF::NotSupported,
        }
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.unfiltered.default_value(data_type)
    }
}

/// Accumulator that passes on the rows for which the last argument is true.
#[derive(Debug)]
struct FilteringAccumulator(Box<dyn Accumulator>);

/// Returns the arguments of the rows that pass the filter.
fn filter_rows(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let arguments = without_condition(values)?;
    let condition = values[arguments.len()].as_boolean();
    arguments.iter().map(|argument| Ok(filter(argument, condition)?)).collect()
}

impl Accumulator for FilteringAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(&filter_rows(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(&filter_rows(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

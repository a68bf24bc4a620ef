//! `array_agg`: DataFusion's, with the SQL type of the elements preserved, so that OIDs give `oid[]`, not `bigint[]`.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature};
use types::SqlType;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ArrayAgg {
    inner: Arc<AggregateUDF>,
}

impl ArrayAgg {
    pub(super) fn new(inner: Arc<AggregateUDF>) -> Self {
        Self { inner }
    }
}

impl AggregateUDFImpl for ArrayAgg {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let field = self.inner.inner().return_field(arguments)?;
        let Some(element) = SqlType::from_arrow_field(&arguments[0]) else { return Ok(field) };
        let array = SqlType::Array(Box::new(element));
        Ok(Arc::new(field.as_ref().clone().with_metadata(array.arrow_metadata())))
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
}

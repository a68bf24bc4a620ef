//! Pushes the bound of a top-k sort into scans, which then skip pages and rows beyond it.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, DynamicFilterPhysicalExpr, IsNullExpr, lit};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use engine::arrow_convert;
use engine::pipeline::Worker;
use parking_lot::Mutex;

use crate::run_error::RunError;

/// Dynamic filter of a top-k sort in the scans below.
#[derive(Debug)]
pub(super) struct TopKFilter {
    filter: Arc<dyn PhysicalExpr>,
    first_key: PhysicalSortExpr,
    data_type: DataType,
    is_only_key: bool,
}

impl TopKFilter {
    /// Returns the filter; `None` for types whose equal values operators distinguish, and for other filters.
    pub(super) fn new(
        filter: Arc<dyn PhysicalExpr>,
        first_key: &PhysicalSortExpr,
        data_type: DataType,
        is_only_key: bool,
    ) -> Option<Self> {
        let first_key = first_key.clone();
        let is_fit = filter.is::<DynamicFilterPhysicalExpr>() && !data_type.is_floating();
        is_fit.then_some(Self { filter, first_key, data_type, is_only_key })
    }

    /// Removes the bound of an earlier run.
    pub(super) fn reset(&self) -> Result<(), RunError> {
        self.update_filter(lit(true))
    }

    /// Updates the dynamic filter.
    fn update_filter(&self, wanted: Arc<dyn PhysicalExpr>) -> Result<(), RunError> {
        match self.filter.downcast_ref::<DynamicFilterPhysicalExpr>() {
            Some(filter) => Ok(filter.update(wanted)?),
            None => Ok(()),
        }
    }

    /// Publishes the k-th row of a worker if it is a better bound than `best`. `told` is the number of the worker's
    /// last published bound.
    pub(super) fn publish_bound(
        &self,
        worker: &Worker,
        told: &mut usize,
        best: &Mutex<Option<ScalarValue>>,
    ) -> Result<(), RunError> {
        let Some((number, bound)) = worker.sorting().and_then(engine::sort::SortCollector::bound) else {
            return Ok(());
        };
        if number == std::mem::replace(told, number) {
            return Ok(());
        }
        let value = ScalarValue::try_from_array(&arrow_convert::to_array(bound, &self.data_type)?, 0)?;
        if value.is_null() {
            return Ok(());
        }
        let options = self.first_key.options;
        let mut best = best.lock();
        let is_better = best.as_ref().is_none_or(|best| {
            let order = value.partial_cmp(best);
            if options.descending {
                order.is_some_and(|order| order.is_gt())
            } else {
                order.is_some_and(|order| order.is_lt())
            }
        });
        if !is_better {
            return Ok(());
        }
        let operator = match (options.descending, self.is_only_key) {
            (false, true) => Operator::Lt,
            (false, false) => Operator::LtEq,
            (true, true) => Operator::Gt,
            (true, false) => Operator::GtEq,
        };
        let key = || Arc::clone(&self.first_key.expr);
        let mut wanted: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(key(), operator, lit(value.clone())));
        if options.nulls_first {
            wanted = Arc::new(BinaryExpr::new(Arc::new(IsNullExpr::new(key())), Operator::Or, wanted));
        }
        self.update_filter(wanted)?;
        *best = Some(value);
        Ok(())
    }
}

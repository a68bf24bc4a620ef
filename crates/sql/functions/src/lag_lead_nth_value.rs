//! Window functions that count rows in a direction: `lag`, `lead`, `nth_value`.
//!
//! If the input has the opposite order, the optimizer lets such a function count from the other end. DataFusion
//! stores this flag beside the function, invisible to the engine and to the plan codec; here it is part of the
//! function.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_plan::PhysicalExpr;

/// Window function that counts rows forwards or backwards.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DirectionalFunction {
    inner: Arc<WindowUDF>,
    is_reversed: bool,
}

impl DirectionalFunction {
    pub(super) fn udwf(inner: Arc<WindowUDF>) -> Arc<WindowUDF> {
        Arc::new(WindowUDF::new_from_impl(Self { inner, is_reversed: false }))
    }

    /// Returns the same function counting from the opposite end.
    fn reversed(&self) -> Arc<WindowUDF> {
        let (inner, is_reversed) = (Arc::clone(&self.inner), !self.is_reversed);
        Arc::new(WindowUDF::new_from_impl(Self { inner, is_reversed }))
    }
}

/// Returns whether `function` counts rows from the end opposite to the one its name implies.
#[must_use]
pub fn is_reversed(function: &WindowUDF) -> bool {
    function.inner().downcast_ref::<DirectionalFunction>().is_some_and(|directed| directed.is_reversed)
}

/// Returns `function` counting from the opposite end; `None` if it has no direction.
pub(super) fn reverse(function: &WindowUDF) -> Option<Arc<WindowUDF>> {
    function.inner().downcast_ref::<DirectionalFunction>().map(DirectionalFunction::reversed)
}

impl WindowUDFImpl for DirectionalFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.inner().expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let (exprs, fields) = (args.input_exprs(), args.input_fields());
        let args = PartitionEvaluatorArgs::new(exprs, fields, self.is_reversed, args.ignore_nulls());
        self.inner.inner().partition_evaluator(args)
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.inner.inner().field(args)
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.inner.inner().sort_options()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(arguments)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::Reversed(self.reversed())
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        if self.is_reversed { LimitEffect::Unknown } else { self.inner.inner().limit_effect(args) }
    }
}

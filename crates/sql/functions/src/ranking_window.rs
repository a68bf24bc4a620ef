//! Ranking window functions: DataFusion's, with PostgreSQL's `bigint` and `integer` results instead of unsigned ones.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, SortOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_plan::PhysicalExpr;
use types::SqlType;

/// Window function with its result cast to another integer type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct RankingFunction {
    inner: Arc<WindowUDF>,
    result_type: SqlType,
}

impl RankingFunction {
    pub(super) fn udwf(inner: Arc<WindowUDF>, gives: SqlType) -> Arc<WindowUDF> {
        Arc::new(WindowUDF::new_from_impl(Self { inner, result_type: gives }))
    }
}

impl WindowUDFImpl for RankingFunction {
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
        let inner = self.inner.inner().partition_evaluator(args)?;
        Ok(Box::new(RankingEvaluator { inner, result_type: self.result_type.arrow_type() }))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.inner.inner().field(args)?;
        Ok(Arc::new(Field::clone(&field).with_data_type(self.result_type.arrow_type())))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.inner.inner().sort_options()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(arguments)
    }

    /// Not reversible: counting from the opposite end would return other numbers.
    fn reverse_expr(&self) -> ReversedUDWF {
        match self.inner.inner().reverse_expr() {
            ReversedUDWF::Identical => ReversedUDWF::Identical,
            _ => ReversedUDWF::NotSupported,
        }
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}

/// Evaluator of one partition that casts the results.
#[derive(Debug)]
struct RankingEvaluator {
    inner: Box<dyn PartitionEvaluator>,
    result_type: DataType,
}

impl RankingEvaluator {
    fn cast_result(&self, counts: &ArrayRef) -> Result<ArrayRef> {
        Ok(cast_with_options(counts, &self.result_type, &CastOptions { safe: false, ..CastOptions::default() })?)
    }
}

impl PartitionEvaluator for RankingEvaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.inner.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let counts = self.inner.evaluate_all(values, rows)?;
        self.cast_result(&counts)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.inner.evaluate(values, range)?.cast_to(&self.result_type)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        let counts = self.inner.evaluate_all_with_rank(rows, ranks)?;
        self.cast_result(&counts)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.inner.include_rank()
    }
}

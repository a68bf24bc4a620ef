//! Wraps DataFusion's functions to keep column names short when calls are nested.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::functions::core::coalesce::CoalesceFunc;
use datafusion::functions::core::nullif::NullIfFunc;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};
use types::interrupt;
use types::stack_limit::too_complex_error;
use types::{SqlResult, ValueMemoryCounter, value_memory};

use super::array_value_bytes::value_bytes;
use super::column_name::column_name;
use super::fallibility::Fallibility;
use super::scalar_udf::external;

/// Limit on the expression nodes that one rewrite duplicates, where the statement's total is not limited.
const DUPLICATED_NODES_MAX: usize = 1 << 16;

/// DataFusion function with another rule for its column name; all else is delegated.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct DataFusionFunction {
    function: Arc<ScalarUDF>,
    fallibility: Fallibility,
}

impl DataFusionFunction {
    /// Wraps `function`, which fails as `fallibility` says.
    #[must_use]
    pub fn udf(function: Arc<ScalarUDF>, fallibility: Fallibility) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(Self { function, fallibility }))
    }

    /// Returns the degree to which a call can fail.
    pub(crate) fn fallibility(&self) -> Fallibility {
        self.fallibility
    }

    /// Returns whether it is COALESCE.
    fn is_coalesce(&self) -> bool {
        self.function.inner().downcast_ref::<CoalesceFunc>().is_some()
    }

    /// Returns whether it is NULLIF.
    pub(crate) fn is_nullif(&self) -> bool {
        self.function.inner().downcast_ref::<NullIfFunc>().is_some()
    }

    /// Returns the wrapped function.
    pub(crate) fn wrapped(&self) -> &ScalarUDF {
        &self.function
    }

    fn inner(&self) -> &dyn ScalarUDFImpl {
        self.function.inner().as_ref()
    }
}

/// Returns whether a function is COALESCE, as the binder resolves it.
#[must_use]
pub fn is_coalesce(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<DataFusionFunction>().is_some_and(DataFusionFunction::is_coalesce)
}

/// Checks the memory limit before a call that returns texts or arrays: its result is about as long as all arguments
/// together, and DataFusion does not check.
fn check_result(args: &ScalarFunctionArgs) -> SqlResult<()> {
    let is_long = |data_type: &DataType| data_type.is_nested() || data_type.is_string() || data_type.is_binary();
    if !is_long(args.return_field.data_type()) {
        return value_memory::check(0);
    }
    let is_constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let bytes = args.args.iter().map(|argument| match argument {
        ColumnarValue::Array(values) => value_bytes(values.as_ref()),
        ColumnarValue::Scalar(value) if is_long(&value.data_type()) => value.size().saturating_mul(rows),
        ColumnarValue::Scalar(_) => 0,
    });
    ValueMemoryCounter::default().add(bytes.fold(0, usize::saturating_add))
}

/// Checks that the expressions which a DataFusion rule duplicates are small enough; constants do not count.
///
/// # Errors
/// SQLSTATE 54001.
fn check_duplicated(copied: &[Expr]) -> Result<()> {
    let mut nodes = 0;
    for expr in copied {
        expr.apply(|expr| {
            nodes += usize::from(!matches!(expr, Expr::Literal(..)));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if nodes > DUPLICATED_NODES_MAX { Err(external(too_complex_error())) } else { Ok(()) }
}

impl ScalarUDFImpl for DataFusionFunction {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn aliases(&self) -> &[String] {
        self.inner().aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        column_name(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        self.inner().signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner().return_type(arguments)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        interrupt::check().map_err(external)?;
        self.inner().return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        check_result(&args).map_err(external)?;
        self.inner().invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        // DataFusion rewrites COALESCE to a CASE that has all arguments but the last one twice.
        if self.is_coalesce()
            && let Some((_, copied)) = args.split_last()
        {
            check_duplicated(copied)?;
        }
        self.inner().simplify(args, info)
    }

    fn preimage(&self, args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        self.inner().preimage(args, literal, info)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner().short_circuits()
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner().evaluate_bounds(inputs)
    }

    fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>> {
        self.inner().propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner().output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner().preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner().strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(arguments)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner().documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner().placement(args)
    }
}

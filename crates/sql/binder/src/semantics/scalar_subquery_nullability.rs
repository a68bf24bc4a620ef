//! Nullability of scalar subqueries.
//!
//! A scalar subquery without a row is NULL, even if its column is not nullable. DataFusion relies on the column: it
//! would fold `IS NULL` to false and let NOT IN keep its rows. So the column is wrapped in an identity function with
//! a nullable result.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Sort, SubqueryAlias, Volatility,
};
use functions::error::to_datafusion;

/// Makes the column of a scalar subquery nullable if the subquery may have no row.
pub(super) fn make_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (qualifier, field) = plan.schema().qualified_field(0);
    if field.is_nullable() || always_has_row(&plan) {
        return Ok(plan);
    }
    let name = field.name().clone();
    let column = Expr::Column(Column::from((qualifier, field)));
    let qualifier = qualifier.cloned();
    let value = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&MAY_BE_NULL), vec![column]));
    let value = value.alias_qualified(qualifier, name);
    Ok(LogicalPlan::Projection(Projection::try_new(vec![value], Arc::new(plan))?))
}

/// Returns whether the plan certainly has a row: an aggregate without GROUP BY, or a SELECT without FROM.
fn always_has_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Sort(Sort { input, .. }) => always_has_row(input),
        _ => false,
    }
}

static MAY_BE_NULL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(MayBeNull { signature: Signature::any(1, Volatility::Immutable) }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct MayBeNull {
    signature: Signature,
}

impl ScalarUDFImpl for MayBeNull {
    fn name(&self) -> &str {
        "may_be_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut args = args.args;
        args.pop().ok_or_else(|| to_datafusion(types::SqlError::internal("function may_be_null takes one argument")))
    }
}

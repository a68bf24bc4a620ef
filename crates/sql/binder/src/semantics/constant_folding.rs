//! Constant folding during type resolution, so that comparisons see the values of calls over literals.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{ExprSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, Volatility};
use functions::cast::typed_literal;
use functions::with_folding_limit;
use types::SqlType;

/// Evaluates a call of an immutable function with only literals; returns any other expression unchanged.
pub(crate) fn fold_call(expr: Expr, schema: &dyn ExprSchema) -> Result<Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = &expr else { return Ok(expr) };
    if func.signature().volatility != Volatility::Immutable || args.is_empty() {
        return Ok(expr);
    }
    let mut values = Vec::with_capacity(args.len());
    let mut fields = Vec::with_capacity(args.len());
    for arg in args {
        let Expr::Literal(value, _) = arg else { return Ok(expr) };
        fields.push(Arc::new(Field::new("argument", value.data_type(), true)));
        values.push(ColumnarValue::Scalar(value.clone()));
    }
    let return_field = expr.to_field(schema)?.1;
    let sql_type = SqlType::from_arrow_field(&return_field);
    let call = ScalarFunctionArgs {
        args: values,
        arg_fields: fields,
        number_rows: 1,
        return_field,
        config_options: Arc::new(ConfigOptions::default()),
    };
    // A failing call is kept: it may be in a branch that never runs.
    match (with_folding_limit(|| func.invoke_with_args(call)), sql_type) {
        (Ok(ColumnarValue::Scalar(value)), Some(sql_type)) => Ok(typed_literal(value, &sql_type)),
        _ => Ok(expr),
    }
}

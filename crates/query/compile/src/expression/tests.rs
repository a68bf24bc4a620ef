//! The table of the engine's own kernels: `kernels.txt` has a line for each overload of a function.
//!
//! `KILN_WRITE_GOLDEN=1` writes the file anew.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ScalarUDF, col, lit};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::expression::Expression;
use functions::Fallibility;
use types::SqlType;

use super::lower_native;

#[test]
fn every_overload_has_a_kernel_or_an_arrow_body() {
    let lines: Vec<String> = functions::sample_functions()
        .into_iter()
        .map(|(call, function, takes)| format!("{call}: {}\n", form(&function, &takes)))
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/expression/kernels.txt");
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, lines.concat()).expect("the file can be written");
    }
    let known = std::fs::read_to_string(&path).expect("the file exists");
    assert!(known == lines.concat(), "kernels.txt differs; write it anew with KILN_WRITE_GOLDEN=1 and compare");
}

/// A kernel that never fails would give a value where the function has an error.
#[test]
fn no_kernel_ignores_an_error() {
    for (call, function, takes) in functions::sample_functions() {
        let all = std::iter::once(None).chain((0..takes.len()).map(Some));
        for only_column in all {
            let is_column = |at: usize| only_column.is_none_or(|column| column == at);
            if !lower_call(&function, &takes, &is_column).is_some_and(|lowered| lowered.never_fails()) {
                continue;
            }
            let argument = |(at, sql_type): (usize, &SqlType)| match literal(sql_type) {
                Some(value) if !is_column(at) => lit(value),
                _ => col(format!("c{at}")),
            };
            let arguments = takes.iter().enumerate().map(argument).collect();
            let expr = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&function), arguments));
            let declared = functions::fallibility(&expr).expect("the call is well formed");
            assert_eq!(declared, Fallibility::Never, "{call} of {only_column:?}");
        }
    }
}

/// Returns how the engine computes a call of columns, or of one column and literals.
fn form(function: &Arc<ScalarUDF>, takes: &[SqlType]) -> &'static str {
    let has_kernel = |is_column: &dyn Fn(usize) -> bool| {
        let Some(lowered) = lower_call(function, takes, is_column) else { return false };
        let mut over_arrays = Vec::new();
        lowered.collect_arrow_functions(&mut over_arrays);
        over_arrays.is_empty()
    };
    if has_kernel(&|_| true) {
        return "kernel";
    }
    let with_literals = (0..takes.len()).any(|column| has_kernel(&|at| at == column));
    if with_literals { "kernel with literals" } else { "Arrow body" }
}

/// Compiles a call whose arguments are columns or literals.
fn lower_call(function: &Arc<ScalarUDF>, takes: &[SqlType], is_column: &dyn Fn(usize) -> bool) -> Option<Expression> {
    let fields: Vec<Field> =
        takes.iter().enumerate().map(|(at, of)| Field::new(format!("c{at}"), of.arrow_type(), true)).collect();
    let argument = |(at, of): (usize, &SqlType)| -> Option<Arc<dyn PhysicalExpr>> {
        if is_column(at) {
            return Some(Arc::new(Column::new(&format!("c{at}"), at)));
        }
        literal(of).map(|value| Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>)
    };
    let arguments = takes.iter().enumerate().map(argument).collect::<Option<Vec<_>>>()?;
    let schema = Schema::new(fields);
    let options = Arc::new(ConfigOptions::default());
    let call = ScalarFunctionExpr::try_new(Arc::clone(function), arguments, &schema, options).ok()?;
    let call: Arc<dyn PhysicalExpr> = Arc::new(call);
    lower_native(&call, &schema)
}

/// Returns a literal of a type that calls take beside a column: a number of places, a field of a date.
fn literal(sql_type: &SqlType) -> Option<ScalarValue> {
    match sql_type.arrow_type() {
        DataType::Utf8View => Some(ScalarValue::Utf8View(Some("year".to_owned()))),
        DataType::Int32 => Some(ScalarValue::Int32(Some(1))),
        other => ScalarValue::new_default(&other).ok(),
    }
}

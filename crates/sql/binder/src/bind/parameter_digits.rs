//! Tests whether a plan can be cached for numeric parameters of any digits.
//!
//! A numeric parameter has the digits of its value, which differ from run to run. A plan made without values is valid
//! for all of them if it only passes the parameters on and casts them: the digits of any other expression follow from
//! those of the parameters.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use functions::cast::CastFunction;
use types::SqlType;

/// Returns whether the plan's expressions depend on the digits of a numeric parameter.
pub(crate) fn depends_on_digits(plan: &LogicalPlan) -> bool {
    parameter_columns(plan).is_none()
}

/// Returns whether a plan made for certain digits of numeric parameters is valid for all values with these digits. It
/// is not if a parameter has more digits than the other side of its comparison: with more decimals, the other side is
/// cast, and no index applies; with more integer digits, the parameter may be out of the other side's range. In both
/// cases the plan depends on the value.
pub(crate) fn is_valid_for_digits(plan: &LogicalPlan) -> bool {
    let mut holds = true;
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                holds &= match expr {
                    Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                        !compares(*op) || holds_for_operands(left, right) && holds_for_operands(right, left)
                    }
                    Expr::InList(list) => list.list.iter().all(|item| holds_for_operands(&list.expr, item)),
                    Expr::Between(between) => {
                        holds_for_operands(&between.expr, &between.low)
                            && holds_for_operands(&between.expr, &between.high)
                    }
                    _ => true,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    holds && walked.is_ok()
}

/// Returns whether an operand can be compared with the other one whatever its value; true for all but parameters.
fn holds_for_operands(other: &Expr, operand: &Expr) -> bool {
    !is_parameter(operand) || !is_cast(other) && !loses_whole_digits(operand)
}

/// Returns whether a parameter is cast to a numeric type with fewer integer digits.
fn loses_whole_digits(parameter: &Expr) -> bool {
    let inner = match parameter {
        Expr::Cast(cast) => cast.expr.as_ref(),
        Expr::ScalarFunction(call) => match call.args.first() {
            Some(value) => value,
            None => return false,
        },
        _ => return false,
    };
    let whole = |expr: &Expr| match expr.get_type(&DFSchema::empty()) {
        Ok(DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) => {
            Some(i32::from(precision) - i32::from(scale))
        }
        _ => None,
    };
    whole(inner).zip(whole(parameter)).is_some_and(|(sent, taken)| taken < sent) || loses_whole_digits(inner)
}

fn compares(operator: Operator) -> bool {
    use Operator as O;
    matches!(operator, O::Eq | O::NotEq | O::Lt | O::LtEq | O::Gt | O::GtEq | O::IsDistinctFrom | O::IsNotDistinctFrom)
}

/// Returns whether the expression is a numeric parameter, cast or not.
fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_parameter(&cast.expr),
        Expr::ScalarFunction(call) => is_cast(expr) && call.args.iter().all(is_parameter),
        expr => is_unchanged_parameter(expr, &DFSchema::empty(), &[]) == Some(true),
    }
}

fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(_) => true,
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<CastFunction>().is_some(),
        _ => false,
    }
}

/// Returns, for each column of the plan, whether it is a numeric parameter with its original digits; `None` if an
/// expression depends on one.
fn parameter_columns(plan: &LogicalPlan) -> Option<Vec<bool>> {
    let inputs = plan.inputs();
    let given = inputs.iter().map(|input| parameter_columns(input)).collect::<Option<Vec<_>>>()?;
    match (plan, given.as_slice()) {
        (LogicalPlan::Projection(projection), [given]) => {
            projection.expr.iter().map(|expr| is_unchanged_parameter(expr, projection.input.schema(), given)).collect()
        }
        (LogicalPlan::Values(values), []) => {
            let mut columns = vec![false; values.schema.fields().len()];
            for row in &values.values {
                for (column, value) in columns.iter_mut().zip(row) {
                    *column |= is_unchanged_parameter(value, &values.schema, &[])?;
                }
            }
            Some(columns)
        }
        (
            LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) | LogicalPlan::Limit(_) | LogicalPlan::Sort(_),
            [given],
        ) => {
            let schema = inputs[0].schema();
            let mut is_free = true;
            plan.apply_expressions(|expr| {
                is_free &= is_unchanged_parameter(expr, schema, given) == Some(false);
                Ok(TreeNodeRecursion::Continue)
            })
            .ok()?;
            is_free.then(|| given.clone())
        }
        _ => {
            let mut is_free = !given.iter().flatten().any(|sent| *sent);
            plan.apply_expressions(|expr| {
                is_free &= is_unchanged_parameter(expr, &DFSchema::empty(), &[]) == Some(false);
                Ok(TreeNodeRecursion::Continue)
            })
            .ok()?;
            is_free.then(|| vec![false; plan.schema().fields().len()])
        }
    }
}

/// Returns whether the expression is a numeric parameter with its original digits; `None` if it is computed from one.
fn is_unchanged_parameter(expr: &Expr, schema: &DFSchema, given: &[bool]) -> Option<bool> {
    match expr {
        Expr::Alias(alias) => is_unchanged_parameter(&alias.expr, schema, given),
        Expr::Placeholder(placeholder) => {
            let sql_type = placeholder.field.as_ref().and_then(|field| SqlType::from_arrow_field(field));
            Some(sql_type.is_some_and(|sql_type| is_numeric(&sql_type)))
        }
        Expr::Column(column) => {
            let at = schema.maybe_index_of_column(column);
            Some(at.and_then(|at| given.get(at)).copied().unwrap_or(false))
        }
        // A cast accepts values with any digits.
        Expr::ScalarFunction(ScalarFunction { func, args })
            if func.inner().downcast_ref::<CastFunction>().is_some() =>
        {
            args.iter().map(|arg| is_unchanged_parameter(arg, schema, given)).collect::<Option<Vec<_>>>().map(|_| false)
        }
        other => {
            let mut is_free = true;
            other
                .apply_children(|child| {
                    is_free &= is_unchanged_parameter(child, schema, given) == Some(false);
                    Ok(TreeNodeRecursion::Continue)
                })
                .ok()?;
            is_free.then_some(false)
        }
    }
}

/// Returns whether the type is numeric or an array of numerics.
pub fn is_numeric(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Array(element) => is_numeric(element),
        sql_type => matches!(sql_type, SqlType::Numeric { .. }),
    }
}

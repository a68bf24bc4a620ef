//! Whether a plan can be kept for numeric parameters of any digits.
//!
//! A numeric parameter comes with the digits of its value, which differ from run to run. A plan whose parameters have no values yet holds
//! for all of them where it does no more than give them on and cast them: anything else has digits of its own that follow from theirs.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use functions::cast::CastFunction;
use types::SqlType;

/// Whether the digits of a numeric parameter change what the plan's expressions are.
pub(crate) fn depends_on_digits(plan: &LogicalPlan) -> bool {
    sent_columns(plan).is_none()
}

/// Whether a plan that was made for numeric parameters of certain digits holds for all values of these digits. It does not where a
/// parameter has more digits than what it is compared with: behind the point the other side is cast and no index knows it, before the point
/// the parameter may be no value of the other side's type. There the value decides.
pub(crate) fn holds_for_digits(plan: &LogicalPlan) -> bool {
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

/// Whether a parameter can be compared with the other operand whatever its value; so can what is no parameter.
fn holds_for_operands(other: &Expr, operand: &Expr) -> bool {
    !is_parameter(operand) || !is_cast(other) && !loses_whole_digits(operand)
}

/// Whether a parameter is cast to a numeric type with less room before the point.
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

/// Whether the expression is a numeric parameter, cast or not.
fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_parameter(&cast.expr),
        Expr::ScalarFunction(call) => is_cast(expr) && call.args.iter().all(is_parameter),
        expr => is_sent(expr, &DFSchema::empty(), &[]) == Some(true),
    }
}

fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(_) => true,
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<CastFunction>().is_some(),
        _ => false,
    }
}

/// Which columns of the plan are numeric parameters as they are sent; `None` where an expression depends on one.
fn sent_columns(plan: &LogicalPlan) -> Option<Vec<bool>> {
    let inputs = plan.inputs();
    let given = inputs.iter().map(|input| sent_columns(input)).collect::<Option<Vec<_>>>()?;
    match (plan, given.as_slice()) {
        (LogicalPlan::Projection(projection), [given]) => {
            projection.expr.iter().map(|expr| is_sent(expr, projection.input.schema(), given)).collect()
        }
        (LogicalPlan::Values(values), []) => {
            let mut columns = vec![false; values.schema.fields().len()];
            for row in &values.values {
                for (column, value) in columns.iter_mut().zip(row) {
                    *column |= is_sent(value, &values.schema, &[])?;
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
                is_free &= is_sent(expr, schema, given) == Some(false);
                Ok(TreeNodeRecursion::Continue)
            })
            .ok()?;
            is_free.then(|| given.clone())
        }
        _ => {
            let mut is_free = !given.iter().flatten().any(|sent| *sent);
            plan.apply_expressions(|expr| {
                is_free &= is_sent(expr, &DFSchema::empty(), &[]) == Some(false);
                Ok(TreeNodeRecursion::Continue)
            })
            .ok()?;
            is_free.then(|| vec![false; plan.schema().fields().len()])
        }
    }
}

/// Whether the expression is a numeric parameter as it is sent; `None` where it is made of one.
fn is_sent(expr: &Expr, schema: &DFSchema, given: &[bool]) -> Option<bool> {
    match expr {
        Expr::Alias(alias) => is_sent(&alias.expr, schema, given),
        Expr::Placeholder(placeholder) => {
            let sql_type = placeholder.field.as_ref().and_then(|field| SqlType::from_arrow_field(field));
            Some(sql_type.is_some_and(|sql_type| is_numeric(&sql_type)))
        }
        Expr::Column(column) => {
            let at = schema.maybe_index_of_column(column);
            Some(at.and_then(|at| given.get(at)).copied().unwrap_or(false))
        }
        // It takes values as they are sent.
        Expr::ScalarFunction(ScalarFunction { func, args })
            if func.inner().downcast_ref::<CastFunction>().is_some() =>
        {
            args.iter().map(|arg| is_sent(arg, schema, given)).collect::<Option<Vec<_>>>().map(|_| false)
        }
        other => {
            let mut is_free = true;
            other
                .apply_children(|child| {
                    is_free &= is_sent(child, schema, given) == Some(false);
                    Ok(TreeNodeRecursion::Continue)
                })
                .ok()?;
            is_free.then_some(false)
        }
    }
}

/// Whether values are numerics, or arrays of them.
pub fn is_numeric(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Array(element) => is_numeric(element),
        sql_type => matches!(sql_type, SqlType::Numeric { .. }),
    }
}

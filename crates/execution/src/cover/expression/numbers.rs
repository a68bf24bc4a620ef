//! Calls of functions of numbers.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::Bounds;
use engine::expression::{Division, Expression, Operation};
use planner::functions::{NumberCall, NumberDivision, NumberOperation, number_call};

use super::{constant, lower};

pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let (number, takes) = number_call(call.fun())?;
    let fits = |(argument, taken): (&Arc<dyn PhysicalExpr>, &types::SqlType)| {
        argument.data_type(schema).is_ok_and(|found| found == taken.arrow_type())
    };
    if call.args().len() != takes.len() || !call.args().iter().zip(&takes).all(fits) {
        return None;
    }
    let mut arguments = call.args().iter().map(|argument| lower(argument, schema).map(Box::new));
    let operation = |operation| match operation {
        NumberOperation::Add => Operation::Add,
        NumberOperation::Subtract => Operation::Subtract,
        NumberOperation::Multiply => Operation::Multiply,
    };
    match number {
        NumberCall::Exact { operation: done, factors: (x, y), limits: (min, max) } => {
            let factors = (i64::try_from(x).ok()?, i64::try_from(y).ok()?);
            let (left, right) = (arguments.next()??, arguments.next()??);
            let limits = Bounds { min, max };
            Some(Expression::Arithmetic { operation: operation(done), left, right, factors, limits })
        }
        NumberCall::Divided { division, limits: (min, max) } => {
            let division = match division {
                NumberDivision::Rounded { factor } => Division::Rounded { factor },
                NumberDivision::Truncated => Division::Truncated,
                NumberDivision::Remainder => Division::Remainder,
            };
            let (left, right) = (arguments.next()??, arguments.next()??);
            Some(Expression::Divide { division, left, right, limits: Bounds { min, max } })
        }
        NumberCall::Floating(done) => {
            let (left, right) = (arguments.next()??, arguments.next()??);
            Some(Expression::FloatArithmetic { operation: operation(done), left, right })
        }
        NumberCall::AsFloat => Some(Expression::Float(arguments.next()??)),
        NumberCall::Scaled { factor, limits } => scaled(*arguments.next()??, i64::try_from(factor).ok()?, limits),
    }
}

/// A value times a factor.
pub(super) fn scaled(value: Expression, factor: i64, (min, max): (i128, i128)) -> Option<Expression> {
    let zero = constant(&ScalarValue::Int64(Some(0)))?;
    Some(Expression::Arithmetic {
        operation: Operation::Add,
        left: Box::new(value),
        right: Box::new(zero),
        factors: (factor, 1),
        limits: Bounds { min, max },
    })
}

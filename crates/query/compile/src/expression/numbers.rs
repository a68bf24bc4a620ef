//! Compiles numeric functions.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::Bounds;
use engine::expression::{Division, Expression, Operation, Rounding, Sign};
use functions::{NumberCall, NumberDivision, NumberOperation, NumberRounding, NumberSign, number_call};
use types::numeric::checked_power_of_ten;

use super::{constant, lower_part};

/// Compiles a call of a numeric function.
pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let (number, takes) = number_call(call.fun())?;
    let fits = |(argument, taken): (&Arc<dyn PhysicalExpr>, &types::SqlType)| {
        argument.data_type(schema).is_ok_and(|found| found == taken.arrow_type())
    };
    if call.args().len() != takes.len() || !call.args().iter().zip(&takes).all(fits) {
        return None;
    }
    let mut arguments = call.args().iter().map(|argument| lower_part(argument, schema).map(Box::new));
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
        NumberCall::FloatQuotient => {
            let (left, right) = (arguments.next()??, arguments.next()??);
            Some(Expression::FloatQuotient { left, right, is_checked: true })
        }
        NumberCall::AsFloat { scale } => Some(Expression::Float { value: arguments.next()??, scale }),
        NumberCall::FromFloat { limits: (min, max) } => {
            Some(Expression::Whole { value: arguments.next()??, limits: Bounds { min, max } })
        }
        NumberCall::FloatRounded(how) => {
            Some(Expression::FloatRounded { rounding: rounding(how), value: arguments.next()?? })
        }
        NumberCall::Cut { rounding: how, divisor, limits: (min, max) } => {
            let (rounding, limits) = (rounding(how), Bounds { min, max });
            Some(Expression::Rounded { rounding, value: arguments.next()??, divisor, factor: 1, limits })
        }
        NumberCall::ToPlaces { rounding: how, scale, limits: (min, max) } => {
            let ScalarValue::Int32(Some(places)) = call.args()[1].downcast_ref::<Literal>()?.value() else {
                return None;
            };
            let value = arguments.next()??;
            let dropped = u8::try_from(i32::from(scale).saturating_sub(*places).max(0)).ok()?;
            if dropped == 0 {
                return Some(*value);
            }
            // The result retains its scale; the dropped digits are zero.
            let (unit, limits) = (checked_power_of_ten(dropped)?, Bounds { min, max });
            Some(Expression::Rounded { rounding: rounding(how), value, divisor: unit, factor: unit, limits })
        }
        NumberCall::Signed { sign: becomes, limits: (min, max) } => {
            Some(Expression::Signed { sign: sign(becomes), value: arguments.next()??, limits: Bounds { min, max } })
        }
        NumberCall::FloatSigned(becomes) => {
            Some(Expression::FloatSigned { sign: sign(becomes), value: arguments.next()?? })
        }
        NumberCall::Scaled { factor, limits } => scaled(*arguments.next()??, i64::try_from(factor).ok()?, limits),
    }
}

fn rounding(how: NumberRounding) -> Rounding {
    match how {
        NumberRounding::Nearest => Rounding::Nearest,
        NumberRounding::Down => Rounding::Down,
        NumberRounding::Up => Rounding::Up,
        NumberRounding::TowardZero => Rounding::TowardZero,
    }
}

fn sign(becomes: NumberSign) -> Sign {
    match becomes {
        NumberSign::Turned => Sign::Turned,
        NumberSign::Dropped => Sign::Dropped,
    }
}

/// Returns a value multiplied by a factor.
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

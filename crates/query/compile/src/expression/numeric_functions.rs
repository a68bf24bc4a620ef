//! Compiles numeric functions.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::Bounds;
use engine::expression::{ArithmeticOperation, Division, Expression, Rounding, SignOperation};
use functions::{NumberDivision, NumberOperation, NumberRounding, NumericKernel, SignChange, numeric_kernel};
use types::numeric::checked_power_of_ten;

use super::{constant, lower_part};

/// Compiles a call of a numeric function.
pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let (number, takes) = numeric_kernel(call.fun())?;
    let fits = |(argument, taken): (&Arc<dyn PhysicalExpr>, &types::SqlType)| {
        argument.data_type(schema).is_ok_and(|found| found == taken.arrow_type())
    };
    if call.args().len() != takes.len() || !call.args().iter().zip(&takes).all(fits) {
        return None;
    }
    let mut arguments = call.args().iter().map(|argument| lower_part(argument, schema).map(Box::new));
    let operation = |operation| match operation {
        NumberOperation::Add => ArithmeticOperation::Add,
        NumberOperation::Subtract => ArithmeticOperation::Subtract,
        NumberOperation::Multiply => ArithmeticOperation::Multiply,
    };
    match number {
        NumericKernel::Exact { operation: done, factors: (x, y), limits: (min, max) } => {
            let factors = (i64::try_from(x).ok()?, i64::try_from(y).ok()?);
            let (left, right) = (arguments.next()??, arguments.next()??);
            let limits = Bounds { min, max };
            Some(Expression::Arithmetic { operation: operation(done), left, right, factors, result_range: limits })
        }
        NumericKernel::Division { division, limits: (min, max) } => {
            let division = match division {
                NumberDivision::Rounded { factor } => Division::Rounded { factor },
                NumberDivision::Truncated => Division::Truncated,
                NumberDivision::Remainder => Division::Remainder,
            };
            let (left, right) = (arguments.next()??, arguments.next()??);
            Some(Expression::Divide { division, left, right, limits: Bounds { min, max } })
        }
        NumericKernel::FloatOperation(done) => {
            let (left, right) = (arguments.next()??, arguments.next()??);
            Some(Expression::FloatArithmetic { operation: operation(done), left, right })
        }
        NumericKernel::FloatQuotient => {
            let (left, right) = (arguments.next()??, arguments.next()??);
            Some(Expression::FloatDivide { left, right, is_checked: true })
        }
        NumericKernel::ToFloat { scale } => Some(Expression::ToFloat { value: arguments.next()??, scale }),
        NumericKernel::FromFloat { limits: (min, max) } => {
            Some(Expression::FloatToInt { value: arguments.next()??, limits: Bounds { min, max } })
        }
        NumericKernel::FloatRounding(how) => {
            Some(Expression::FloatRound { rounding: rounding(how), value: arguments.next()?? })
        }
        NumericKernel::DivideAndRound { rounding: how, divisor, limits: (min, max) } => {
            let (rounding, limits) = (rounding(how), Bounds { min, max });
            Some(Expression::Round { rounding, value: arguments.next()??, divisor, factor: 1, limits })
        }
        NumericKernel::RoundToDecimals { rounding: how, scale, limits: (min, max) } => {
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
            Some(Expression::Round { rounding: rounding(how), value, divisor: unit, factor: unit, limits })
        }
        NumericKernel::SignChange { sign: becomes, limits: (min, max) } => {
            Some(Expression::Sign { sign: sign(becomes), value: arguments.next()??, limits: Bounds { min, max } })
        }
        NumericKernel::FloatSignChange(becomes) => {
            Some(Expression::FloatSign { sign: sign(becomes), value: arguments.next()?? })
        }
        NumericKernel::ScaleUp { factor, limits } => scaled(*arguments.next()??, i64::try_from(factor).ok()?, limits),
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

fn sign(becomes: SignChange) -> SignOperation {
    match becomes {
        SignChange::Negated => SignOperation::Negate,
        SignChange::Absolute => SignOperation::Absolute,
    }
}

/// Returns a value multiplied by a factor.
pub(super) fn scaled(value: Expression, factor: i64, (min, max): (i128, i128)) -> Option<Expression> {
    let zero = constant(&ScalarValue::Int64(Some(0)))?;
    Some(Expression::Arithmetic {
        operation: ArithmeticOperation::Add,
        left: Box::new(value),
        right: Box::new(zero),
        factors: (factor, 1),
        result_range: Bounds { min, max },
    })
}

//! Arithmetic of single values, for statements that touch few rows.

use rowstore::Value;
use types::numeric::{NumericPrecision, checked_power_of_ten, power_of_ten};
use types::{SqlResult, SqlType};

use super::{decimal, float, integer};
use crate::numeric_kernel::{NumberDivision, NumberOperation, NumericKernel};

/// Binary operator on two single numbers of one type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arithmetic {
    operation: Operation,
    numbers: NumberType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Debug, Clone, Copy)]
enum NumberType {
    Integer {
        least: i64,
        greatest: i64,
        name: &'static str,
    },
    Float8,
    /// Unscaled decimals; each side is multiplied by its factor first, to align the scales.
    Decimal {
        left: i128,
        right: i128,
    },
    /// Quotient of unscaled decimals; the dividend is multiplied by ten to the power of `shift` first.
    DecimalQuotient {
        shift: u8,
    },
}

impl Arithmetic {
    /// Returns the operator called `name`; `None` for other operators and types.
    pub(crate) fn try_new(name: &str, takes: &[SqlType], gives: &SqlType) -> Option<Self> {
        let operation = match name {
            "+" => Operation::Add,
            "-" => Operation::Subtract,
            "*" => Operation::Multiply,
            "/" => Operation::Divide,
            _ => return None,
        };
        let numbers = match takes {
            [SqlType::Int2, SqlType::Int2] => {
                NumberType::Integer { least: i16::MIN.into(), greatest: i16::MAX.into(), name: "smallint" }
            }
            [SqlType::Int4, SqlType::Int4] => {
                NumberType::Integer { least: i32::MIN.into(), greatest: i32::MAX.into(), name: "integer" }
            }
            [SqlType::Int8, SqlType::Int8] => {
                NumberType::Integer { least: i64::MIN, greatest: i64::MAX, name: "bigint" }
            }
            [SqlType::Float8, SqlType::Float8] => NumberType::Float8,
            [left @ SqlType::Numeric { .. }, right @ SqlType::Numeric { .. }] => {
                let (left, right, gives) = (
                    NumericPrecision::from_sql_type(left)?,
                    NumericPrecision::from_sql_type(right)?,
                    NumericPrecision::from_sql_type(gives)?,
                );
                match operation {
                    // A product whose scale is reduced needs rounding, which is not supported here.
                    Operation::Multiply => (left.scale + right.scale == gives.scale)
                        .then_some(NumberType::Decimal { left: 1, right: 1 })?,
                    Operation::Divide => {
                        NumberType::DecimalQuotient { shift: (gives.scale + right.scale).checked_sub(left.scale)? }
                    }
                    Operation::Add | Operation::Subtract => {
                        let factor = |digits: NumericPrecision| gives.scale.checked_sub(digits.scale).map(power_of_ten);
                        NumberType::Decimal { left: factor(left)?, right: factor(right)? }
                    }
                }
            }
            _ => return None,
        };
        Some(Self { operation, numbers })
    }

    /// Returns the kernel of the vectorized engine for this operator; `None` if a factor exceeds 128 bits.
    pub(crate) fn numeric_kernel(&self) -> Option<NumericKernel> {
        let operation = match self.operation {
            Operation::Add => NumberOperation::Add,
            Operation::Subtract => NumberOperation::Subtract,
            Operation::Multiply => NumberOperation::Multiply,
            Operation::Divide => return self.division(),
        };
        Some(match self.numbers {
            NumberType::Integer { least, greatest, .. } => {
                NumericKernel::Exact { operation, factors: (1, 1), limits: (least.into(), greatest.into()) }
            }
            NumberType::Float8 => NumericKernel::FloatOperation(operation),
            NumberType::Decimal { left, right } => {
                let beyond = power_of_ten(38);
                NumericKernel::Exact { operation, factors: (left, right), limits: (1 - beyond, beyond - 1) }
            }
            NumberType::DecimalQuotient { .. } => return None,
        })
    }

    fn division(&self) -> Option<NumericKernel> {
        let (division, limits) = match self.numbers {
            NumberType::Float8 => return Some(NumericKernel::FloatQuotient),
            NumberType::Integer { least, greatest, .. } => (NumberDivision::Truncated, (least.into(), greatest.into())),
            NumberType::DecimalQuotient { shift } => {
                let beyond = power_of_ten(38);
                (NumberDivision::Rounded { factor: checked_power_of_ten(shift)? }, (1 - beyond, beyond - 1))
            }
            NumberType::Decimal { .. } => return None,
        };
        Some(NumericKernel::Division { division, limits })
    }

    /// Evaluates the operator; `None` if only the array form can.
    #[inline]
    pub(crate) fn apply<'a>(&self, left: Value<'a>, right: Value<'a>) -> SqlResult<Option<Value<'a>>> {
        Ok(Some(match (self.numbers, left, right) {
            (NumberType::Integer { least, greatest, name }, Value::Int(left), Value::Int(right)) => {
                let value = match self.operation {
                    Operation::Add => left.checked_add(right),
                    Operation::Subtract => left.checked_sub(right),
                    Operation::Multiply => left.checked_mul(right),
                    Operation::Divide if right == 0 => return Err(integer::division_by_zero()),
                    Operation::Divide => left.checked_div(right),
                };
                let value = value.filter(|value| (least..=greatest).contains(value));
                Value::Int(value.ok_or_else(|| integer::out_of_range(name))?)
            }
            (NumberType::Float8, Value::Float8(left), Value::Float8(right)) => Value::Float8(match self.operation {
                Operation::Add => float::sum(left, right),
                Operation::Subtract => float::sum(left, -right),
                Operation::Multiply => float::product(left, right),
                Operation::Divide => float::quotient(left, right),
            }?),
            (NumberType::Decimal { left: x, right: y }, Value::Decimal(left), Value::Decimal(right)) => {
                let (left, right) = (left.checked_mul(x), right.checked_mul(y));
                let value = left.zip(right).and_then(|(left, right)| match self.operation {
                    Operation::Add => left.checked_add(right),
                    Operation::Subtract => left.checked_sub(right),
                    Operation::Multiply => left.checked_mul(right),
                    Operation::Divide => unreachable!("division of numerics uses Numbers::DecimalQuotient"),
                });
                Value::Decimal(decimal::checked(value)?)
            }
            (NumberType::DecimalQuotient { shift }, Value::Decimal(left), Value::Decimal(right)) => {
                Value::Decimal(decimal::quotient(left, right, shift)?)
            }
            _ => return Ok(None),
        }))
    }
}

//! Arithmetic of single values, for statements that touch few rows.

use rowstore::Value;
use types::numeric::{Digits, checked_power_of_ten, power_of_ten};
use types::{SqlResult, SqlType};

use super::{decimal, float, integer};
use crate::on_numbers::{NumberCall, NumberDivision, NumberOperation};

/// Binary operator on two single numbers of one type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arithmetic {
    operation: Operation,
    numbers: Numbers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Debug, Clone, Copy)]
enum Numbers {
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
    pub(crate) fn of(name: &str, takes: &[SqlType], gives: &SqlType) -> Option<Self> {
        let operation = match name {
            "+" => Operation::Add,
            "-" => Operation::Subtract,
            "*" => Operation::Multiply,
            "/" => Operation::Divide,
            _ => return None,
        };
        let numbers = match takes {
            [SqlType::Int2, SqlType::Int2] => {
                Numbers::Integer { least: i16::MIN.into(), greatest: i16::MAX.into(), name: "smallint" }
            }
            [SqlType::Int4, SqlType::Int4] => {
                Numbers::Integer { least: i32::MIN.into(), greatest: i32::MAX.into(), name: "integer" }
            }
            [SqlType::Int8, SqlType::Int8] => Numbers::Integer { least: i64::MIN, greatest: i64::MAX, name: "bigint" },
            [SqlType::Float8, SqlType::Float8] => Numbers::Float8,
            [left @ SqlType::Numeric { .. }, right @ SqlType::Numeric { .. }] => {
                let (left, right, gives) = (Digits::of(left)?, Digits::of(right)?, Digits::of(gives)?);
                match operation {
                    // A product whose scale is reduced needs rounding, which is not supported here.
                    Operation::Multiply => {
                        (left.scale + right.scale == gives.scale).then_some(Numbers::Decimal { left: 1, right: 1 })?
                    }
                    Operation::Divide => {
                        Numbers::DecimalQuotient { shift: (gives.scale + right.scale).checked_sub(left.scale)? }
                    }
                    Operation::Add | Operation::Subtract => {
                        let factor = |digits: Digits| gives.scale.checked_sub(digits.scale).map(power_of_ten);
                        Numbers::Decimal { left: factor(left)?, right: factor(right)? }
                    }
                }
            }
            _ => return None,
        };
        Some(Self { operation, numbers })
    }

    /// Returns the kernel of the vectorized engine for this operator; `None` if a factor exceeds 128 bits.
    pub(crate) fn on_numbers(&self) -> Option<NumberCall> {
        let operation = match self.operation {
            Operation::Add => NumberOperation::Add,
            Operation::Subtract => NumberOperation::Subtract,
            Operation::Multiply => NumberOperation::Multiply,
            Operation::Divide => return self.division(),
        };
        Some(match self.numbers {
            Numbers::Integer { least, greatest, .. } => {
                NumberCall::Exact { operation, factors: (1, 1), limits: (least.into(), greatest.into()) }
            }
            Numbers::Float8 => NumberCall::Floating(operation),
            Numbers::Decimal { left, right } => {
                let beyond = power_of_ten(38);
                NumberCall::Exact { operation, factors: (left, right), limits: (1 - beyond, beyond - 1) }
            }
            Numbers::DecimalQuotient { .. } => return None,
        })
    }

    fn division(&self) -> Option<NumberCall> {
        let (division, limits) = match self.numbers {
            Numbers::Float8 => return Some(NumberCall::FloatQuotient),
            Numbers::Integer { least, greatest, .. } => (NumberDivision::Truncated, (least.into(), greatest.into())),
            Numbers::DecimalQuotient { shift } => {
                let beyond = power_of_ten(38);
                (NumberDivision::Rounded { factor: checked_power_of_ten(shift)? }, (1 - beyond, beyond - 1))
            }
            Numbers::Decimal { .. } => return None,
        };
        Some(NumberCall::Divided { division, limits })
    }

    /// Evaluates the operator; `None` if only the array form can.
    #[inline]
    pub(crate) fn apply<'a>(&self, left: Value<'a>, right: Value<'a>) -> SqlResult<Option<Value<'a>>> {
        Ok(Some(match (self.numbers, left, right) {
            (Numbers::Integer { least, greatest, name }, Value::Int(left), Value::Int(right)) => {
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
            (Numbers::Float8, Value::Float8(left), Value::Float8(right)) => Value::Float8(match self.operation {
                Operation::Add => float::sum(left, right),
                Operation::Subtract => float::sum(left, -right),
                Operation::Multiply => float::product(left, right),
                Operation::Divide => float::quotient(left, right),
            }?),
            (Numbers::Decimal { left: x, right: y }, Value::Decimal(left), Value::Decimal(right)) => {
                let (left, right) = (left.checked_mul(x), right.checked_mul(y));
                let value = left.zip(right).and_then(|(left, right)| match self.operation {
                    Operation::Add => left.checked_add(right),
                    Operation::Subtract => left.checked_sub(right),
                    Operation::Multiply => left.checked_mul(right),
                    Operation::Divide => unreachable!("division of numerics uses Numbers::DecimalQuotient"),
                });
                Value::Decimal(decimal::checked(value)?)
            }
            (Numbers::DecimalQuotient { shift }, Value::Decimal(left), Value::Decimal(right)) => {
                Value::Decimal(decimal::quotient(left, right, shift)?)
            }
            _ => return Ok(None),
        }))
    }
}

//! Precision and scale of numeric results, and arithmetic on scaled 128-bit integers.
//!
//! PostgreSQL's numeric has no fixed scale; Kiln's has at most 38 digits, so each expression has a fixed result type.
//! Addition, subtraction, multiplication and remainder are exact or fail; division and averages have at least 16 digits
//! after the point.

use crate::sql_type::NUMERIC_PRECISION_MAX;
use crate::text::format_numeric;
use crate::{Condition, SqlError, SqlResult, SqlType};

#[cfg(test)]
mod tests;

/// Minimum scale of a quotient or an average.
pub const DIVISION_SCALE_MIN: u8 = 16;

/// Precision and scale of a numeric type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumericPrecision {
    pub precision: u8,
    pub scale: u8,
}

impl NumericPrecision {
    /// Creates the precision and scale of `numeric(precision, scale)`.
    #[must_use]
    pub const fn new(precision: u8, scale: u8) -> Self {
        Self { precision, scale }
    }

    /// Returns the precision and scale that fit all values of an exact number type; `None` for other types.
    #[must_use]
    pub fn from_sql_type(sql_type: &SqlType) -> Option<NumericPrecision> {
        Some(match sql_type {
            SqlType::Int2 => NumericPrecision::new(5, 0),
            SqlType::Int4 => NumericPrecision::new(10, 0),
            SqlType::Int8 => NumericPrecision::new(19, 0),
            SqlType::Numeric { precision, scale } => NumericPrecision::new(*precision, *scale),
            _ => return None,
        })
    }

    /// Returns the numeric type with this precision and scale.
    #[must_use]
    pub const fn sql_type(self) -> SqlType {
        SqlType::Numeric { precision: self.precision, scale: self.scale }
    }

    const fn integer_digits(self) -> u8 {
        self.precision.saturating_sub(self.scale)
    }

    fn with_capped_precision(whole: u8, scale: u8) -> NumericPrecision {
        let scale = scale.min(NUMERIC_PRECISION_MAX);
        NumericPrecision { precision: whole.saturating_add(scale).clamp(1, NUMERIC_PRECISION_MAX), scale }
    }

    /// Returns the result type of `a + b` and `a - b`.
    #[must_use]
    pub fn addition_result(self, other: NumericPrecision) -> NumericPrecision {
        NumericPrecision::with_capped_precision(
            self.integer_digits().max(other.integer_digits()) + 1,
            self.scale.max(other.scale),
        )
    }

    /// Returns the result type of `a * b`, which fits the exact product.
    #[must_use]
    pub fn multiplication_result(self, other: NumericPrecision) -> NumericPrecision {
        NumericPrecision::with_capped_precision(
            self.integer_digits() + other.integer_digits(),
            self.scale + other.scale,
        )
    }

    /// Returns the result type of `a / b`.
    #[must_use]
    pub fn division_result(self, other: NumericPrecision) -> NumericPrecision {
        NumericPrecision::with_capped_precision(
            NUMERIC_PRECISION_MAX,
            self.scale.max(other.scale).max(DIVISION_SCALE_MIN),
        )
    }

    /// Returns the result type of `a % b`.
    #[must_use]
    pub fn remainder_result(self, other: NumericPrecision) -> NumericPrecision {
        NumericPrecision::with_capped_precision(
            self.integer_digits().max(other.integer_digits()),
            self.scale.max(other.scale),
        )
    }

    /// Returns the common type of both, for CASE, UNION and comparisons.
    #[must_use]
    pub fn common_type(self, other: NumericPrecision) -> NumericPrecision {
        NumericPrecision::with_capped_precision(
            self.integer_digits().max(other.integer_digits()),
            self.scale.max(other.scale),
        )
    }

    /// Returns the result type of `sum(a)`.
    #[must_use]
    pub fn sum_result(self) -> NumericPrecision {
        NumericPrecision::new(NUMERIC_PRECISION_MAX, self.scale)
    }

    /// Returns the result type of `avg(a)`.
    #[must_use]
    pub fn average_result(self) -> NumericPrecision {
        NumericPrecision::new(NUMERIC_PRECISION_MAX, self.scale.max(DIVISION_SCALE_MIN))
    }
}

/// Table of the powers of ten.
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1; 39];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Returns 10^`exponent`; panics for exponents above 38.
#[must_use]
pub const fn power_of_ten(exponent: u8) -> i128 {
    POWERS_OF_TEN[exponent as usize]
}

/// Returns 10^`exponent`; `None` for exponents above 38.
#[must_use]
pub fn checked_power_of_ten(exponent: u8) -> Option<i128> {
    POWERS_OF_TEN.get(usize::from(exponent)).copied()
}

/// Returns the number of decimal digits of a value; 0 for 0.
#[must_use]
pub fn digit_count(value: i128) -> u8 {
    value.unsigned_abs().checked_ilog10().map_or(0, |log| u8::try_from(log + 1).expect("128 bits have 39 digits"))
}

/// Converts `value` from scale `from` to scale `to`, rounding half away from zero; `None` on overflow of 128 bits.
#[must_use]
pub fn rescale(value: i128, from: u8, to: u8) -> Option<i128> {
    if from <= to {
        return value.checked_mul(checked_power_of_ten(to - from)?);
    }
    Some(divide_rounding(value, power_of_ten((from - to).min(38))))
}

/// Computes `value / divisor`, rounding half away from zero. The divisor must not be 0.
#[must_use]
pub fn divide_rounding(value: i128, divisor: i128) -> i128 {
    let quotient = value / divisor;
    let remainder = (value % divisor).unsigned_abs();
    if remainder < divisor.unsigned_abs() - remainder {
        quotient
    } else if (value < 0) == (divisor < 0) {
        quotient + 1
    } else {
        quotient - 1
    }
}

/// Returns the double nearest to `value * 10^-scale`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "the fast path requires that both parts are exact")]
pub fn to_float(value: i128, scale: u8) -> f64 {
    // Both parts are exact doubles, so their quotient is rounded once.
    if value.unsigned_abs() < 1 << 53 && scale <= 22 {
        return value as f64 / 10_f64.powi(i32::from(scale));
    }
    let mut text = String::with_capacity(44);
    format_numeric(value, scale, &mut text);
    text.parse().expect("format_numeric prints a valid float literal")
}

/// Returns `value` if it fits `digits`; else fails with PostgreSQL's `22003`.
pub fn check_fits(value: i128, digits: NumericPrecision) -> SqlResult<i128> {
    if value.unsigned_abs() < power_of_ten(digits.precision).unsigned_abs() {
        Ok(value)
    } else {
        Err(field_overflow_error(digits.precision, digits.scale))
    }
}

/// Returns the error `22003` for a value too large for `numeric(precision, scale)`.
#[must_use]
pub fn field_overflow_error(precision: u8, scale: u8) -> SqlError {
    let whole = precision.saturating_sub(scale);
    let bound = if whole == 0 { "1".to_owned() } else { format!("10^{whole}") };
    SqlError::new(Condition::NumericValueOutOfRange, "numeric field overflow").with_detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
    ))
}

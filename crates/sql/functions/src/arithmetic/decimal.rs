//! Arithmetic of numerics, which are scaled 128-bit integers. Overflow is not checked where the types rule it out.

use arrow::array::ArrayRef;
use arrow::datatypes::{Decimal128Type, i256};
use types::numeric::{self, NumericPrecision};
use types::{Condition, SqlError, SqlResult};

use super::elementwise::{try_map, try_zip, zip};
use super::integer::division_by_zero;
use crate::call::Call;

/// Builds the error 22003 for a result of more than 38 digits.
pub(crate) fn overflow() -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, "numeric field overflow")
        .with_detail("The result has more than 38 digits.")
}

fn digits(call: &Call<'_>, index: usize) -> NumericPrecision {
    NumericPrecision::from_sql_type(&call.argument_types[index]).expect("an overload of numerics takes exact numbers")
}

fn result_digits(call: &Call<'_>) -> NumericPrecision {
    NumericPrecision::from_sql_type(call.result_type).expect("an overload of numerics gives a numeric")
}

pub(super) fn checked(value: Option<i128>) -> SqlResult<i128> {
    value.filter(|value| value.unsigned_abs() < numeric::power_of_ten(38).unsigned_abs()).ok_or_else(overflow)
}

/// Returns the factors that scale both arguments to the result's scale, and whether every sum fits the result's
/// precision.
fn alignment(call: &Call<'_>) -> (i128, i128, bool) {
    let (a, b, result) = (digits(call, 0), digits(call, 1), result_digits(call));
    let whole = (a.precision - a.scale).max(b.precision - b.scale);
    let is_safe = whole + 1 + result.scale <= 38;
    (numeric::power_of_ten(result.scale - a.scale), numeric::power_of_ten(result.scale - b.scale), is_safe)
}

pub(super) fn add(call: &Call<'_>) -> SqlResult<ArrayRef> {
    match alignment(call) {
        (1, 1, true) => zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, i128::wrapping_add),
        (x, y, true) => zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |a, b| {
            a.wrapping_mul(x).wrapping_add(b.wrapping_mul(y))
        }),
        (x, y, false) => try_zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |a, b| {
            checked(a.checked_mul(x).and_then(|a| b.checked_mul(y).and_then(|b| a.checked_add(b))))
        }),
    }
}

pub(super) fn subtract(call: &Call<'_>) -> SqlResult<ArrayRef> {
    match alignment(call) {
        (1, 1, true) => zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, i128::wrapping_sub),
        (x, y, true) => zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |a, b| {
            a.wrapping_mul(x).wrapping_sub(b.wrapping_mul(y))
        }),
        (x, y, false) => try_zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |a, b| {
            checked(a.checked_mul(x).and_then(|a| b.checked_mul(y).and_then(|b| a.checked_sub(b))))
        }),
    }
}

pub(super) fn multiply(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b, result) = (digits(call, 0), digits(call, 1), result_digits(call));
    // The result type reduces the scale of a product that would exceed 38 digits.
    let excess = (a.scale + b.scale).saturating_sub(result.scale);
    if excess != 0 {
        return try_zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |a, b| {
            let product = i256::from_i128(a).wrapping_mul(i256::from_i128(b));
            let divisor = i256::from_i128(numeric::power_of_ten(excess));
            checked(round_wide(product, divisor).to_i128())
        });
    }
    if a.precision <= 18 && b.precision <= 18 {
        // Both fit into 64 bits, and a 64-bit product is one instruction.
        #[expect(clippy::cast_possible_truncation, reason = "18 digits fit 63 bits; NULL rows may hold anything")]
        return zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, |a, b| {
            i128::from(a as i64) * i128::from(b as i64)
        });
    }
    if a.precision + b.precision <= 38 {
        return zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, i128::wrapping_mul);
    }
    try_zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, |a, b| checked(a.checked_mul(b)))
}

pub(super) fn divide(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b, result) = (digits(call, 0), digits(call, 1), result_digits(call));
    let shift = result.scale + b.scale - a.scale;
    try_zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |a, b| quotient(a, b, shift))
}

/// Returns `value * 10^shift / divisor`, rounded half away from zero.
///
/// # Errors
/// SQLSTATE 22012 for a zero divisor, 22003 beyond 38 digits.
pub(super) fn quotient(value: i128, divisor: i128, shift: u8) -> SqlResult<i128> {
    if divisor == 0 {
        return Err(division_by_zero());
    }
    divide_scaled(value, divisor, shift).ok_or_else(overflow)
}

/// Returns `value * 10^shift / divisor`, rounded half away from zero; `None` beyond 38 digits. The divisor must not
/// be 0.
pub(crate) fn divide_scaled(value: i128, divisor: i128, shift: u8) -> Option<i128> {
    let quotient = match numeric::checked_power_of_ten(shift).and_then(|factor| value.checked_mul(factor)) {
        Some(scaled) => numeric::divide_rounding(scaled, divisor),
        None => {
            let factor = i256::from_i128(10).checked_pow(u32::from(shift))?;
            round_wide(i256::from_i128(value).checked_mul(factor)?, i256::from_i128(divisor)).to_i128()?
        }
    };
    (quotient.unsigned_abs() < numeric::power_of_ten(38).unsigned_abs()).then_some(quotient)
}

fn round_wide(value: i256, divisor: i256) -> i256 {
    let quotient = value.wrapping_div(divisor);
    let remainder = value.wrapping_rem(divisor).wrapping_abs();
    let divisor_size = divisor.wrapping_abs();
    if remainder < divisor_size.wrapping_sub(remainder) {
        quotient
    } else if (value < i256::ZERO) == (divisor < i256::ZERO) {
        quotient.wrapping_add(i256::ONE)
    } else {
        quotient.wrapping_sub(i256::ONE)
    }
}

pub(super) fn remainder(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b, result) = (digits(call, 0), digits(call, 1), result_digits(call));
    let (x, y) = (numeric::power_of_ten(result.scale - a.scale), numeric::power_of_ten(result.scale - b.scale));
    try_zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |a, b| {
        if b == 0 {
            return Err(division_by_zero());
        }
        let (a, b) =
            (i256::from_i128(a).wrapping_mul(i256::from_i128(x)), i256::from_i128(b).wrapping_mul(i256::from_i128(y)));
        a.wrapping_rem(b).to_i128().ok_or_else(overflow)
    })
}

pub(super) fn negate(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_map::<Decimal128Type, Decimal128Type>(call, |a| Ok(a.wrapping_neg()))
}

/// Raises to a power. Integer exponents are exact to 16 decimals; others are computed in double precision.
pub(super) fn power(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (base_scale, exponent_scale, result) = (call.scale(0), call.scale(1), result_digits(call));
    try_zip::<Decimal128Type, Decimal128Type, Decimal128Type>(call, move |base, exponent| {
        let error = |message: &str| Err(SqlError::new(Condition::InvalidArgumentForPower, message));
        if base == 0 && exponent < 0 {
            return error("zero raised to a negative power is undefined");
        }
        let unit = numeric::power_of_ten(exponent_scale);
        let is_whole = exponent % unit == 0;
        if base < 0 && !is_whole {
            return error("a negative number raised to a non-integer power yields a complex result");
        }
        if is_whole && let Some(value) = whole_power(base, base_scale, exponent / unit, result.scale) {
            return Ok(value);
        }
        let value = numeric::to_float(base, base_scale).powf(numeric::to_float(exponent, exponent_scale));
        if !value.is_finite() {
            return Err(overflow());
        }
        crate::cast::float_to_numeric(value, 16, result)
    })
}

/// Raises to an integer power by repeated exact multiplication; `None` if it does not fit.
fn whole_power(base: i128, scale: u8, exponent: i128, result_scale: u8) -> Option<i128> {
    let count = u32::try_from(exponent.unsigned_abs()).ok().filter(|count| *count <= 1_000)?;
    let mut value = 1_i128;
    let mut value_scale = 0_u8;
    for _ in 0..count {
        value = value.checked_mul(base)?;
        value_scale = value_scale.checked_add(scale)?;
        while value_scale != 0 && value % 10 == 0 {
            value /= 10;
            value_scale -= 1;
        }
    }
    let value = if exponent < 0 {
        divide_scaled(1, value, result_scale.checked_add(value_scale)?)?
    } else {
        numeric::rescale(value, value_scale, result_scale)?
    };
    numeric::check_fits(value, NumericPrecision::new(38, result_scale)).ok()
}

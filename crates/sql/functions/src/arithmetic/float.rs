//! Arithmetic of floats: overflow and underflow are errors 22003, and division by zero is error 22012.

use arrow::array::ArrayRef;
use arrow::datatypes::{Float32Type, Float64Type};
use types::{Condition, SqlError, SqlResult};

use super::elementwise::try_zip;
use super::integer::division_by_zero;
use crate::call::Call;

/// Builds the error 22003 in PostgreSQL's words for floats.
pub(crate) fn overflow() -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, "value out of range: overflow")
}

fn underflow() -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, "value out of range: underflow")
}

pub(super) fn power(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float64Type, Float64Type, Float64Type>(call, |a, b| {
        let error = |message: &str| Err(SqlError::new(Condition::InvalidArgumentForPower, message));
        if a == 0.0 && b < 0.0 {
            return error("zero raised to a negative power is undefined");
        }
        if a < 0.0 && b.fract() != 0.0 && b.is_finite() {
            return error("a negative number raised to a non-integer power yields a complex result");
        }
        let value = a.powf(b);
        if value.is_infinite() && a.is_finite() && b.is_finite() { Err(overflow()) } else { Ok(value) }
    })
}

pub(super) fn add8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float64Type, Float64Type, Float64Type>(call, sum)
}

pub(crate) fn sum(a: f64, b: f64) -> SqlResult<f64> {
    let value = a + b;
    if value.is_infinite() && a.is_finite() && b.is_finite() { Err(overflow()) } else { Ok(value) }
}

pub(super) fn subtract8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float64Type, Float64Type, Float64Type>(call, |a, b| sum(a, -b))
}

pub(super) fn multiply8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float64Type, Float64Type, Float64Type>(call, product)
}

pub(super) fn product(a: f64, b: f64) -> SqlResult<f64> {
    let value = a * b;
    if value.is_infinite() && a.is_finite() && b.is_finite() {
        Err(overflow())
    } else if value == 0.0 && a != 0.0 && b != 0.0 {
        Err(underflow())
    } else {
        Ok(value)
    }
}

pub(super) fn divide8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float64Type, Float64Type, Float64Type>(call, quotient)
}

pub(super) fn quotient(a: f64, b: f64) -> SqlResult<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(division_by_zero());
    }
    let value = a / b;
    if value.is_infinite() && a.is_finite() {
        Err(overflow())
    } else if value == 0.0 && a != 0.0 && b.is_finite() {
        Err(underflow())
    } else {
        Ok(value)
    }
}

pub(super) fn add4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float32Type, Float32Type, Float32Type>(call, |a, b| {
        let value = a + b;
        if value.is_infinite() && a.is_finite() && b.is_finite() { Err(overflow()) } else { Ok(value) }
    })
}

pub(super) fn subtract4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float32Type, Float32Type, Float32Type>(call, |a, b| {
        let value = a - b;
        if value.is_infinite() && a.is_finite() && b.is_finite() { Err(overflow()) } else { Ok(value) }
    })
}

pub(super) fn multiply4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float32Type, Float32Type, Float32Type>(call, |a, b| {
        let value = a * b;
        if value.is_infinite() && a.is_finite() && b.is_finite() {
            Err(overflow())
        } else if value == 0.0 && a != 0.0 && b != 0.0 {
            Err(underflow())
        } else {
            Ok(value)
        }
    })
}

pub(super) fn divide4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float32Type, Float32Type, Float32Type>(call, |a, b| {
        if b == 0.0 && !a.is_nan() {
            return Err(division_by_zero());
        }
        let value = a / b;
        if value.is_infinite() && a.is_finite() {
            Err(overflow())
        } else if value == 0.0 && a != 0.0 && b.is_finite() {
            Err(underflow())
        } else {
            Ok(value)
        }
    })
}

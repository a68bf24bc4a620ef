//! Arithmetic of integers: overflow is error 22003, a zero divisor error 22012.

use arrow::array::ArrayRef;
use arrow::datatypes::{Int16Type, Int32Type, Int64Type};
use types::{Condition, SqlError, SqlResult};

use super::elementwise::{try_map, try_zip, zip};
use crate::call::Call;

pub(super) fn out_of_range(type_name: &str) -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, format!("{type_name} out of range"))
}

pub(super) fn division_by_zero() -> SqlError {
    SqlError::new(Condition::DivisionByZero, "division by zero")
}

fn checked<T>(value: Option<T>, type_name: &str) -> SqlResult<T> {
    value.ok_or_else(|| out_of_range(type_name))
}

pub(super) fn add_int2(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int16Type, Int16Type, Int16Type>(call, |a, b| checked(a.checked_add(b), "smallint"))
}

pub(super) fn subtract_int2(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int16Type, Int16Type, Int16Type>(call, |a, b| checked(a.checked_sub(b), "smallint"))
}

pub(super) fn multiply_int2(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int16Type, Int16Type, Int16Type>(call, |a, b| checked(a.checked_mul(b), "smallint"))
}

pub(super) fn divide_int2(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int16Type, Int16Type, Int16Type>(call, |a, b| {
        if b == 0 { Err(division_by_zero()) } else { checked(a.checked_div(b), "smallint") }
    })
}

pub(super) fn remainder_int2(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int16Type, Int16Type, Int16Type>(call, |a, b| {
        if b == 0 { Err(division_by_zero()) } else { Ok(a.wrapping_rem(b)) }
    })
}

pub(super) fn negate_int2(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_map::<Int16Type, Int16Type>(call, |a| checked(a.checked_neg(), "smallint"))
}

pub(super) fn add_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int32Type, Int32Type, Int32Type>(call, |a, b| checked(a.checked_add(b), "integer"))
}

pub(super) fn subtract_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int32Type, Int32Type, Int32Type>(call, |a, b| checked(a.checked_sub(b), "integer"))
}

pub(super) fn multiply_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int32Type, Int32Type, Int32Type>(call, |a, b| checked(a.checked_mul(b), "integer"))
}

pub(super) fn divide_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int32Type, Int32Type, Int32Type>(call, |a, b| {
        if b == 0 { Err(division_by_zero()) } else { checked(a.checked_div(b), "integer") }
    })
}

pub(super) fn remainder_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int32Type, Int32Type, Int32Type>(call, |a, b| {
        if b == 0 { Err(division_by_zero()) } else { Ok(a.wrapping_rem(b)) }
    })
}

pub(super) fn negate_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_map::<Int32Type, Int32Type>(call, |a| checked(a.checked_neg(), "integer"))
}

pub(super) fn add_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int64Type, Int64Type, Int64Type>(call, |a, b| checked(a.checked_add(b), "bigint"))
}

pub(super) fn subtract_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int64Type, Int64Type, Int64Type>(call, |a, b| checked(a.checked_sub(b), "bigint"))
}

pub(super) fn multiply_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int64Type, Int64Type, Int64Type>(call, |a, b| checked(a.checked_mul(b), "bigint"))
}

pub(super) fn divide_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int64Type, Int64Type, Int64Type>(call, |a, b| {
        if b == 0 { Err(division_by_zero()) } else { checked(a.checked_div(b), "bigint") }
    })
}

pub(super) fn remainder_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int64Type, Int64Type, Int64Type>(call, |a, b| {
        if b == 0 { Err(division_by_zero()) } else { Ok(a.wrapping_rem(b)) }
    })
}

pub(super) fn negate_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_map::<Int64Type, Int64Type>(call, |a| checked(a.checked_neg(), "bigint"))
}

/// Shifts left; the distance is taken modulo the type's width, as by the processor.
pub(super) fn shift_left_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    zip::<Int32Type, Int32Type, Int32Type>(call, |a, b| a.wrapping_shl(b.cast_unsigned()))
}

pub(super) fn shift_right_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    zip::<Int32Type, Int32Type, Int32Type>(call, |a, b| a.wrapping_shr(b.cast_unsigned()))
}

pub(super) fn not_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_map::<Int32Type, Int32Type>(call, |a| Ok(!a))
}

/// Shifts left; the distance is taken modulo the type's width, as by the processor.
pub(super) fn shift_left_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    zip::<Int64Type, Int32Type, Int64Type>(call, |a, b| a.wrapping_shl(b.cast_unsigned()))
}

pub(super) fn shift_right_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    zip::<Int64Type, Int32Type, Int64Type>(call, |a, b| a.wrapping_shr(b.cast_unsigned()))
}

pub(super) fn not_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_map::<Int64Type, Int64Type>(call, |a| Ok(!a))
}

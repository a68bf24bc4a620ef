//! Applies an operation row by row to primitive arguments, one of which may be constant.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::{binary, try_binary};
use types::{SqlError, SqlResult};

use crate::call::Call;

/// Applies a fallible operation to the rows in which both arguments are not NULL.
pub(super) fn try_zip<A, B, C>(
    call: &Call<'_>,
    apply: impl Fn(A::Native, B::Native) -> SqlResult<C::Native>,
) -> SqlResult<ArrayRef>
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    C: ArrowPrimitiveType,
{
    let (left, right) = (&call.arguments[0], &call.arguments[1]);
    let a: &PrimitiveArray<A> = left.values.as_primitive();
    let b: &PrimitiveArray<B> = right.values.as_primitive();
    let failed = std::cell::RefCell::new(None);
    // Arrow's kernel returns its own error type; the SQL error is stored outside.
    let applied = |x, y| {
        apply(x, y).map_err(|error| {
            *failed.borrow_mut() = Some(error);
            arrow::error::ArrowError::ComputeError(String::new())
        })
    };
    let result: Result<PrimitiveArray<C>, _> =
        match (left.is_constant && a.len() != b.len(), right.is_constant && a.len() != b.len()) {
            (false, false) => try_binary(a, b, applied),
            (true, _) if a.is_null(0) => Ok(PrimitiveArray::new_null(b.len())),
            (_, true) if b.is_null(0) => Ok(PrimitiveArray::new_null(a.len())),
            (true, _) => {
                let constant = a.value(0);
                b.try_unary(|y| applied(constant, y))
            }
            (_, true) => {
                let constant = b.value(0);
                a.try_unary(|x| applied(x, constant))
            }
        };
    match result {
        Ok(values) => Ok(Arc::new(values.with_data_type(call.result_type.arrow_type()))),
        Err(error) => Err(failed.into_inner().unwrap_or_else(|| SqlError::internal(error.to_string()))),
    }
}

/// Applies an operation that cannot fail for any bits: it also runs on NULL rows, so that the loop is vectorized. See
/// [`try_zip`].
pub(super) fn zip<A, B, C>(call: &Call<'_>, apply: impl Fn(A::Native, B::Native) -> C::Native) -> SqlResult<ArrayRef>
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    C: ArrowPrimitiveType,
{
    let (left, right) = (&call.arguments[0], &call.arguments[1]);
    let a: &PrimitiveArray<A> = left.values.as_primitive();
    let b: &PrimitiveArray<B> = right.values.as_primitive();
    let result: PrimitiveArray<C> =
        match (left.is_constant && a.len() != b.len(), right.is_constant && a.len() != b.len()) {
            (false, false) => binary(a, b, apply).map_err(|error| SqlError::internal(error.to_string()))?,
            (true, _) if a.is_null(0) => PrimitiveArray::new_null(b.len()),
            (_, true) if b.is_null(0) => PrimitiveArray::new_null(a.len()),
            (true, _) => {
                let constant = a.value(0);
                b.unary(|y| apply(constant, y))
            }
            (_, true) => {
                let constant = b.value(0);
                a.unary(|x| apply(x, constant))
            }
        };
    Ok(Arc::new(result.with_data_type(call.result_type.arrow_type())))
}

/// Applies a fallible operation to the rows in which the argument is not NULL.
pub(super) fn try_map<A, C>(call: &Call<'_>, apply: impl Fn(A::Native) -> SqlResult<C::Native>) -> SqlResult<ArrayRef>
where
    A: ArrowPrimitiveType,
    C: ArrowPrimitiveType,
{
    let values: PrimitiveArray<C> = call.arguments[0].values.as_primitive::<A>().try_unary(apply)?;
    Ok(Arc::new(values.with_data_type(call.result_type.arrow_type())))
}

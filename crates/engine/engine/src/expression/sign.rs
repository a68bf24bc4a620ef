//! Negation and absolute value.

use std::sync::Arc;

use super::arithmetic::{narrow_if_possible, to_wide};
use super::columnar_value::ColumnarValue;
use crate::{Bounds, Column, ColumnData, Error, Result};

/// Operation on the sign of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignOperation {
    /// Negation.
    Negate,
    /// Absolute value.
    Absolute,
}

/// Computes negations or absolute values of exact numbers.
pub(super) fn apply_sign(value: ColumnarValue, sign: SignOperation, limits: Bounds) -> Result<ColumnarValue> {
    let ColumnarValue { column, is_scalar } = value;
    let of = |value: i128| match sign {
        SignOperation::Negate => value.checked_neg(),
        SignOperation::Absolute => value.checked_abs(),
    };
    if let ColumnData::Ints { values, bounds } = &column.data {
        let most = bounds.min.abs().max(bounds.max.abs());
        if limits.min <= -most && most <= limits.max.min(i64::MAX.into()) {
            let (values, bounds) = match sign {
                SignOperation::Negate => {
                    (values.iter().map(|value| -value).collect(), Bounds { min: -bounds.max, max: -bounds.min })
                }
                SignOperation::Absolute => {
                    (values.iter().map(|value| value.abs()).collect(), Bounds { min: 0, max: most })
                }
            };
            return Ok(ColumnarValue {
                column: Column { data: ColumnData::Ints { values: Arc::new(values), bounds }, ..column },
                is_scalar,
            });
        }
    }
    let values = to_wide(&column.data)?;
    let computed = values.iter().enumerate().map(|(row, value)| {
        match of(*value).filter(|value| limits.min <= *value && *value <= limits.max) {
            Some(value) => Ok(value),
            None if !column.is_valid(row) => Ok(0),
            None => Err(Error::UncomputableValue("a result is out of its type's range")),
        }
    });
    let data = narrow_if_possible(computed.collect::<Result<_>>()?);
    Ok(ColumnarValue { column: Column { data, ..column }, is_scalar })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed_values(data: ColumnData, sign: SignOperation, limits: Bounds) -> Result<Vec<i128>> {
        let computed = apply_sign(ColumnarValue { column: Column::new(data), is_scalar: false }, sign, limits)?;
        Ok(to_wide(&computed.column.data)?.to_vec())
    }

    #[test]
    fn negating_the_least_integer_fails() {
        let limits = Bounds { min: i32::MIN.into(), max: i32::MAX.into() };
        let data = |values: [i64; 2]| ColumnData::Ints { values: Arc::new(values.to_vec()), bounds: Bounds::I64 };
        for sign in [SignOperation::Negate, SignOperation::Absolute] {
            assert!(
                matches!(signed_values(data([1, i32::MIN.into()]), sign, limits), Err(Error::UncomputableValue(_))),
                "{sign:?}"
            );
            assert!(
                matches!(signed_values(data([1, i64::MIN]), sign, Bounds::I64), Err(Error::UncomputableValue(_))),
                "{sign:?}"
            );
            let beyond = Bounds { min: -(1 << 70), max: 1 << 70 };
            assert_eq!(signed_values(data([0, i64::MIN]), sign, beyond).unwrap(), [0, 1 << 63], "{sign:?}");
            assert_eq!(
                signed_values(ColumnData::WideInts(Arc::new(vec![-(1 << 69)])), sign, beyond).unwrap(),
                [1 << 69],
                "{sign:?}"
            );
        }
        let small = ColumnData::Ints { values: Arc::new(vec![-3, 0, 2]), bounds: Bounds { min: -3, max: 2 } };
        assert_eq!(signed_values(small.clone(), SignOperation::Negate, limits).unwrap(), [3, 0, -2]);
        assert_eq!(signed_values(small, SignOperation::Absolute, limits).unwrap(), [3, 0, 2]);
    }
}

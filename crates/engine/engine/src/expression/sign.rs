//! Negation and absolute value.

use std::sync::Arc;

use super::arithmetic::{narrowed, widened};
use super::computed::Computed;
use crate::{Bounds, Column, Data, Error, Result};

/// Operation on the sign of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Negation.
    Turned,
    /// Absolute value.
    Dropped,
}

/// Computes negations or absolute values of exact numbers.
pub(super) fn signed(value: Computed, sign: Sign, limits: Bounds) -> Result<Computed> {
    let Computed { column, is_scalar } = value;
    let of = |value: i128| match sign {
        Sign::Turned => value.checked_neg(),
        Sign::Dropped => value.checked_abs(),
    };
    if let Data::Ints { values, bounds } = &column.data {
        let most = bounds.min.abs().max(bounds.max.abs());
        if limits.min <= -most && most <= limits.max.min(i64::MAX.into()) {
            let (values, bounds) = match sign {
                Sign::Turned => {
                    (values.iter().map(|value| -value).collect(), Bounds { min: -bounds.max, max: -bounds.min })
                }
                Sign::Dropped => (values.iter().map(|value| value.abs()).collect(), Bounds { min: 0, max: most }),
            };
            return Ok(Computed {
                column: Column { data: Data::Ints { values: Arc::new(values), bounds }, ..column },
                is_scalar,
            });
        }
    }
    let values = widened(&column.data)?;
    let computed = values.iter().enumerate().map(|(row, value)| {
        match of(*value).filter(|value| limits.min <= *value && *value <= limits.max) {
            Some(value) => Ok(value),
            None if !column.is_valid(row) => Ok(0),
            None => Err(Error::Value("a result is out of its type's range")),
        }
    });
    let data = narrowed(computed.collect::<Result<_>>()?);
    Ok(Computed { column: Column { data, ..column }, is_scalar })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(data: Data, sign: Sign, limits: Bounds) -> Result<Vec<i128>> {
        let computed = signed(Computed { column: Column::new(data), is_scalar: false }, sign, limits)?;
        Ok(widened(&computed.column.data)?.to_vec())
    }

    #[test]
    fn the_least_number_has_no_other_sign() {
        let limits = Bounds { min: i32::MIN.into(), max: i32::MAX.into() };
        let data = |values: [i64; 2]| Data::Ints { values: Arc::new(values.to_vec()), bounds: Bounds::I64 };
        for sign in [Sign::Turned, Sign::Dropped] {
            assert!(matches!(of(data([1, i32::MIN.into()]), sign, limits), Err(Error::Value(_))), "{sign:?}");
            assert!(matches!(of(data([1, i64::MIN]), sign, Bounds::I64), Err(Error::Value(_))), "{sign:?}");
            let beyond = Bounds { min: -(1 << 70), max: 1 << 70 };
            assert_eq!(of(data([0, i64::MIN]), sign, beyond).unwrap(), [0, 1 << 63], "{sign:?}");
            assert_eq!(of(Data::Wide(Arc::new(vec![-(1 << 69)])), sign, beyond).unwrap(), [1 << 69], "{sign:?}");
        }
        let small = Data::Ints { values: Arc::new(vec![-3, 0, 2]), bounds: Bounds { min: -3, max: 2 } };
        assert_eq!(of(small.clone(), Sign::Turned, limits).unwrap(), [3, 0, -2]);
        assert_eq!(of(small, Sign::Dropped, limits).unwrap(), [3, 0, 2]);
    }
}

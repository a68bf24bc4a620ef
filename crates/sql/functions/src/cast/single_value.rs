//! Casts of single values, for statements that touch few rows.

use rowstore::Value;
use types::numeric::{self, NumericPrecision};
use types::{SqlResult, SqlType};

use super::is_text;
use super::number::{float_to_numeric, integer_to_numeric, out_of_range, rescale_checked, round_to_integer};

/// Cast between two types that works on single values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueCast {
    /// Both types represent the value in the same way.
    Same,
    ToInteger(IntegerRange),
    NumericToInteger {
        scale: u8,
        range: IntegerRange,
    },
    IntegerToFloat8,
    IntegerToNumeric(NumericPrecision),
    Float8ToNumeric(NumericPrecision),
    NumericToFloat8 {
        scale: u8,
    },
    NumericToNumeric {
        scale: u8,
        digits: NumericPrecision,
    },
    /// Text that need not be cut or padded: it has at most, or if `is_exact` exactly, this many characters.
    Text {
        characters: usize,
        is_exact: bool,
    },
}

/// Range of an integer type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntegerRange {
    least: i64,
    greatest: i64,
    name: &'static str,
}

impl IntegerRange {
    fn try_new(integer: &SqlType) -> Option<Self> {
        let (least, greatest, name) = match integer {
            SqlType::Int2 => (i16::MIN.into(), i16::MAX.into(), "smallint"),
            SqlType::Int4 => (i32::MIN.into(), i32::MAX.into(), "integer"),
            SqlType::Int8 => (i64::MIN, i64::MAX, "bigint"),
            _ => return None,
        };
        Some(Self { least, greatest, name })
    }

    fn check(self, value: i128) -> SqlResult<i64> {
        let fitting = i64::try_from(value).ok().filter(|value| (self.least..=self.greatest).contains(value));
        fitting.ok_or_else(|| out_of_range(self.name))
    }
}

impl ValueCast {
    /// Returns the cast `from` one type `to` another; `None` for casts that create a new text or another value of
    /// variable length.
    pub(crate) fn try_new(from: &SqlType, to: &SqlType) -> Option<Self> {
        use SqlType as T;
        Some(match (from, to) {
            (T::Int2 | T::Int4 | T::Int8, T::Int2 | T::Int4) => Self::ToInteger(IntegerRange::try_new(to)?),
            (T::Numeric { scale, .. }, T::Int2 | T::Int4 | T::Int8) => {
                Self::NumericToInteger { scale: *scale, range: IntegerRange::try_new(to)? }
            }
            (T::Int2 | T::Int4 | T::Int8, T::Int8) | (T::Float8, T::Float8) => Self::Same,
            (T::Int2 | T::Int4 | T::Int8, T::Float8) => Self::IntegerToFloat8,
            (T::Int2 | T::Int4 | T::Int8, T::Numeric { precision, scale }) => {
                Self::IntegerToNumeric(NumericPrecision::new(*precision, *scale))
            }
            (T::Float8, T::Numeric { precision, scale }) => {
                Self::Float8ToNumeric(NumericPrecision::new(*precision, *scale))
            }
            (T::Numeric { scale, .. }, T::Float8) => Self::NumericToFloat8 { scale: *scale },
            (T::Numeric { scale, .. }, T::Numeric { precision, scale: to_scale }) => {
                Self::NumericToNumeric { scale: *scale, digits: NumericPrecision::new(*precision, *to_scale) }
            }
            (T::Char(None), T::Char(Some(length))) => {
                Self::Text { characters: usize::try_from(*length).ok()?, is_exact: true }
            }
            // A cast of `char(n)` to another text type removes the padding.
            (T::Char(_), _) => return None,
            (from, T::Text | T::Varchar(None) | T::Char(None)) if is_text(from) => Self::Same,
            (from, T::Varchar(Some(length))) if is_text(from) => {
                Self::Text { characters: usize::try_from(*length).ok()?, is_exact: false }
            }
            (from, T::Char(Some(length))) if is_text(from) => {
                Self::Text { characters: usize::try_from(*length).ok()?, is_exact: true }
            }
            _ => return None,
        })
    }

    /// Casts a value; `None` if only the array form can.
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is what the cast gives")]
    #[inline]
    pub(crate) fn apply<'a>(&self, value: Value<'a>) -> SqlResult<Option<Value<'a>>> {
        Ok(Some(match (*self, value) {
            (Self::Same, value) => value,
            (Self::ToInteger(range), Value::Int(value)) => Value::Int(range.check(value.into())?),
            (Self::NumericToInteger { scale, range }, Value::Decimal(value)) => {
                Value::Int(range.check(round_to_integer(value, scale))?)
            }
            (Self::IntegerToFloat8, Value::Int(value)) => Value::Float8(value as f64),
            (Self::IntegerToNumeric(digits), Value::Int(value)) => Value::Decimal(integer_to_numeric(value, digits)?),
            (Self::Float8ToNumeric(digits), Value::Float8(value)) => {
                Value::Decimal(float_to_numeric(value, 14, digits)?)
            }
            (Self::NumericToFloat8 { scale }, Value::Decimal(value)) => Value::Float8(numeric::to_float(value, scale)),
            (Self::NumericToNumeric { scale, digits }, Value::Decimal(value)) => {
                Value::Decimal(rescale_checked(value, scale, digits)?)
            }
            (Self::Text { characters, is_exact }, Value::Text(text)) => {
                let count = if text.is_ascii() { text.len() } else { text.chars().count() };
                let fits = if is_exact { count == characters } else { count <= characters };
                return Ok(fits.then_some(Value::Text(text)));
            }
            _ => return Ok(None),
        }))
    }
}

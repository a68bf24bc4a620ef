//! Decodes `numeric` in PostgreSQL's binary form, and determines the precision and scale of numeric parameters.

use types::numeric::{digit_count, power_of_ten};
use types::sql_type::NUMERIC_PRECISION_MAX;
use types::text::{parse_array, parse_numeric, parse_numeric_exact};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::array::ArrayReader;
use super::binary::Reader;
use super::check_utf8;
use super::column::excess_bytes;
use crate::encode::Format;

const NEGATIVE: u16 = 0x4000;
const NOT_A_NUMBER: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const MINUS_INFINITY: u16 = 0xf000;
/// Maximum display scale, which PostgreSQL stores in 14 bits.
const SCALE_MAX: u16 = 0x3fff;
const BASE: u16 = 10_000;
/// Decimal digits in one base-10,000 digit.
const GROUP: i32 = 4;

/// Number on the wire: base-10,000 digits, the first worth 10,000^`weight`, with `scale` significant decimals.
pub(super) struct WireNumeric<'a> {
    digits: &'a [u8],
    weight: i16,
    negative: bool,
    scale: u16,
}

/// Reads and checks the binary form.
pub(super) fn read(bytes: &[u8]) -> SqlResult<WireNumeric<'_>> {
    let malformed = |what: &str| {
        SqlError::new(Condition::InvalidBinaryRepresentation, format!("invalid {what} in external \"numeric\" value"))
    };
    let mut reader = Reader(bytes);
    let count = reader.u16()?;
    let weight = reader.i16()?;
    let sign = reader.u16()?;
    let scale = reader.u16()?;
    match sign {
        0 | NEGATIVE => {}
        NOT_A_NUMBER => return Err(SqlError::unsupported("numeric NaN")),
        INFINITY | MINUS_INFINITY => return Err(SqlError::unsupported("numeric infinity")),
        _ => return Err(malformed("sign")),
    }
    if scale > SCALE_MAX {
        return Err(malformed("scale"));
    }
    let digits = reader.take(2 * usize::from(count))?;
    if digits.chunks_exact(2).any(|digit| u16::from_be_bytes([digit[0], digit[1]]) >= BASE) {
        return Err(malformed("digit"));
    }
    if !reader.0.is_empty() {
        return Err(excess_bytes());
    }
    Ok(WireNumeric { digits, weight, negative: sign == NEGATIVE, scale })
}

impl WireNumeric<'_> {
    /// Returns the value times 10^`scale`, rounded half away from zero.
    ///
    /// # Errors
    /// 22003 for more than `precision` digits.
    pub(super) fn value(&self, precision: u8, scale: u8) -> SqlResult<i128> {
        match self.scaled(scale).filter(|value| digit_count(*value) <= precision) {
            Some(value) => Ok(value),
            // Rounding, truncated digits and errors are rare: the text parser handles them.
            None => parse_numeric(&self.to_text(), precision, scale),
        }
    }

    /// Returns the value times 10^`scale` if that is an integer of 128 bits and no digit lies beyond the wire's scale.
    fn scaled(&self, scale: u8) -> Option<i128> {
        let mut value: i128 = 0;
        let mut exponent = (i32::from(self.weight) + 1) * GROUP;
        let mut digits = self.groups().peekable();
        while let Some(mut group) = digits.next() {
            let mut length = GROUP;
            // The last group often has padding zeros, which could overflow 38 digits.
            while digits.peek().is_none() && length > 0 && group % 10 == 0 {
                group /= 10;
                length -= 1;
            }
            exponent -= length;
            value = value.checked_mul(10_i128.pow(u32::try_from(length).ok()?))?.checked_add(i128::from(group))?;
        }
        if value == 0 {
            return Some(0);
        }
        if exponent < -i32::from(self.scale) {
            return None;
        }
        let missing = u8::try_from(exponent + i32::from(scale)).ok().filter(|missing| *missing <= 38)?;
        let value = value.checked_mul(power_of_ten(missing))?;
        Some(if self.negative { -value } else { value })
    }

    fn groups(&self) -> impl Iterator<Item = u16> {
        self.digits.chunks_exact(2).map(|digit| u16::from_be_bytes([digit[0], digit[1]]))
    }

    fn to_text(&self) -> String {
        use std::fmt::Write as _;
        let group = |index: i32| {
            let at = 2 * usize::try_from(index).ok()?;
            let digit = self.digits.get(at..at + 2)?;
            Some(u16::from_be_bytes([digit[0], digit[1]]))
        };
        let mut text = String::new();
        if self.negative {
            text.push('-');
        }
        let weight = i32::from(self.weight);
        text.push('0');
        for index in 0..=weight {
            write!(text, "{:04}", group(index).unwrap_or(0)).expect("a String takes everything");
        }
        text.push('.');
        let point = text.len();
        let scale = usize::from(self.scale);
        let mut index = weight + 1;
        while text.len() - point < scale {
            write!(text, "{:04}", group(index).unwrap_or(0)).expect("a String takes everything");
            index += 1;
        }
        text.truncate(point + scale);
        if scale == 0 {
            text.pop();
        }
        text
    }
}

/// Form of a parameter as sent.
pub(super) enum ParameterForm {
    /// Value of a type other than numeric.
    AsDeclared,
    /// Numeric value, or array of them, with the type that its digits need.
    WithDigits(SqlType),
    /// Text of a number with more digits than Kiln's numerics have.
    TooManyDigits(String),
}

/// Returns the type of a NULL parameter of type numeric, or an array of it; `None` for other types.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other type gets a precision and scale from its value")]
pub(super) fn null_type(sql_type: &SqlType) -> Option<SqlType> {
    match sql_type {
        SqlType::Numeric { .. } => Some(Digits { integral: 1, scale: 0 }.sql_type()),
        SqlType::Array(element) => null_type(element).map(|element| SqlType::Array(Box::new(element))),
        _ => None,
    }
}

/// Determines the form of a numeric parameter; for an array, from its widest element.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other type gets a precision and scale from its value")]
pub(super) fn parameter_form(bytes: &[u8], format: Format, sql_type: &SqlType) -> SqlResult<ParameterForm> {
    match sql_type {
        SqlType::Numeric { .. } => match count_digits(bytes, format) {
            Ok(digits) => Ok(ParameterForm::WithDigits(digits.sql_type())),
            Err(error) if error.condition == Condition::NumericValueOutOfRange => {
                Ok(ParameterForm::TooManyDigits(match format {
                    Format::Text => check_utf8(bytes)?.to_owned(),
                    Format::Binary => read(bytes)?.to_text(),
                }))
            }
            Err(error) => Err(error),
        },
        SqlType::Array(element) if matches!(**element, SqlType::Numeric { .. }) => {
            let mut widest = Digits { integral: 1, scale: 0 };
            match format {
                Format::Text => parse_array(check_utf8(bytes)?, &mut |element| {
                    if let Some(element) = element {
                        widest = widest.widest(count_digits(element.as_bytes(), format)?);
                    }
                    Ok(())
                })?,
                Format::Binary => ArrayReader::read(bytes, element)?.for_each(|element| {
                    if let Some(element) = element {
                        widest = widest.widest(count_digits(element, format)?);
                    }
                    Ok(())
                })?,
            }
            Ok(ParameterForm::WithDigits(SqlType::Array(Box::new(widest.sql_type()))))
        }
        _ => Ok(ParameterForm::AsDeclared),
    }
}

/// Number of digits before and after the decimal point.
#[derive(Clone, Copy)]
struct Digits {
    integral: u8,
    scale: u8,
}

impl Digits {
    fn widest(self, other: Digits) -> Digits {
        Digits { integral: self.integral.max(other.integral), scale: self.scale.max(other.scale) }
    }

    fn sql_type(self) -> SqlType {
        SqlType::Numeric {
            precision: (self.integral + self.scale).clamp(1, NUMERIC_PRECISION_MAX),
            scale: self.scale.min(NUMERIC_PRECISION_MAX),
        }
    }
}

fn count_digits(bytes: &[u8], format: Format) -> SqlResult<Digits> {
    let text;
    let text = match format {
        Format::Text => check_utf8(bytes)?,
        Format::Binary => {
            text = read(bytes)?.to_text();
            &text
        }
    };
    let (_, precision, scale) = parse_numeric_exact(text)?;
    Ok(Digits { integral: precision - scale, scale })
}

//! Text form of `numeric(p, s)`, whose values are scaled 128-bit integers.

use super::{invalid_syntax, trim};
use crate::sql_type::{BARE_NUMERIC_SCALE, NUMERIC_PRECISION_MAX};
use crate::{Condition, SqlError, SqlResult, numeric};

#[cfg(test)]
mod tests;

/// Parses `text` as `numeric(precision, scale)` and returns the value times 10^`scale`.
///
/// Digits beyond the scale are rounded half away from zero; too many digits before the point are `22003`. For `numeric`
/// without modifiers (38,10) nothing is rounded: a value that does not fit exactly is `22003`.
pub fn parse_numeric(text: &str, precision: u8, scale: u8) -> SqlResult<i128> {
    if let Some(value) = parse_short_numeric(text.as_bytes(), scale)
        && value.unsigned_abs() < numeric::power_of_ten(precision).unsigned_abs()
    {
        return Ok(value);
    }
    let literal = NumericLiteral::parse(text)?;
    let is_bare = precision == NUMERIC_PRECISION_MAX && scale == BARE_NUMERIC_SCALE;
    literal.scaled(precision, scale, is_bare)
}

/// Parses `text` exactly; returns the scaled value, its precision and its scale. `22003` if it has more than 38 digits.
pub fn parse_numeric_exact(text: &str) -> SqlResult<(i128, u8, u8)> {
    let literal = NumericLiteral::parse(text)?;
    let scale = i64::try_from(literal.fraction_count).unwrap_or(i64::MAX).saturating_sub(literal.exponent).max(0);
    let too_long = || {
        SqlError::new(Condition::NumericValueOutOfRange, format!("value \"{}\" has more than 38 digits", trim(text)))
    };
    let scale = u8::try_from(scale).ok().filter(|scale| *scale <= NUMERIC_PRECISION_MAX).ok_or_else(too_long)?;
    let value = literal.scaled(NUMERIC_PRECISION_MAX, scale, true).map_err(|_| too_long())?;
    let precision = numeric::digit_count(value).max(scale).max(1);
    Ok((value, precision, scale))
}

/// Position of a number relative to a range of multiples of 10^-`scale`, which are given as integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumericPosition {
    /// The number is equal to this multiple.
    EqualTo(i128),
    /// The number is between this multiple and the next, both of which are in the range.
    Between(i128),
    /// The number is greater than the range.
    Above,
    /// The number is less than the range.
    Below,
}

/// Returns the position of the number in `text`, which may have any number of digits, relative to the multiples of
/// 10^-`scale` from `least` to `greatest`.
///
/// # Errors
/// `22P02` if `text` is not a number, `0A000` for NaN and infinity.
pub fn numeric_position(text: &str, scale: u8, least: i128, greatest: i128) -> SqlResult<NumericPosition> {
    let literal = NumericLiteral::parse(text)?;
    let Some((floor, is_exact)) = literal.floor(scale) else {
        return Ok(if literal.negative { NumericPosition::Below } else { NumericPosition::Above });
    };
    Ok(if floor < least {
        NumericPosition::Below
    } else if floor > greatest || (floor == greatest && !is_exact) {
        NumericPosition::Above
    } else if is_exact {
        NumericPosition::EqualTo(floor)
    } else {
        NumericPosition::Between(floor)
    })
}

/// Appends a value scaled by 10^`scale`, with exactly `scale` digits after the point.
pub fn format_numeric(value: i128, scale: u8, out: &mut String) {
    let mut digits = [b'0'; 40];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    // 64-bit division is several times faster, and most values fit.
    while u128::from(u64::MAX) < rest {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).expect("a digit is below 10");
        rest /= 10;
    }
    let mut rest = u64::try_from(rest).expect("the loop above reduced it to 64 bits");
    while rest != 0 {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).expect("a digit is below 10");
        rest /= 10;
    }
    let point = digits.len() - usize::from(scale);
    let start = start.min(point - 1);
    if value < 0 {
        out.push('-');
    }
    let spelled = |range: std::ops::Range<usize>| std::str::from_utf8(&digits[range]).expect("digits are ASCII");
    out.push_str(spelled(start..point));
    if scale != 0 {
        out.push('.');
        out.push_str(spelled(point..digits.len()));
    }
}

/// Parses the common case quickly: a sign and up to 18 digits, at most `scale` of them after a point. `None` for other
/// text.
fn parse_short_numeric(bytes: &[u8], scale: u8) -> Option<i128> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || 19 < digits.len() {
        return None;
    }
    let mut value = 0_u64;
    let mut fraction: Option<u8> = None;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + u64::from(digit);
            if let Some(count) = &mut fraction {
                *count += 1;
            }
        } else if byte == b'.' && fraction.is_none() && 1 < digits.len() {
            fraction = Some(0);
        } else {
            return None;
        }
    }
    let missing = scale.checked_sub(fraction.unwrap_or(0))?;
    let value = i128::from(value).checked_mul(numeric::power_of_ten(missing))?;
    Some(if negative { -value } else { value })
}

/// Number in the text: digits around a point, and a power of ten.
struct NumericLiteral<'a> {
    text: &'a str,
    negative: bool,
    integer_digits: &'a [u8],
    fraction_digits: &'a [u8],
    fraction_count: usize,
    exponent: i64,
}

impl<'a> NumericLiteral<'a> {
    fn parse(text: &'a str) -> SqlResult<Self> {
        let word = trim(text);
        let (negative, unsigned) = match word.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let is_special = |name: &str| unsigned.eq_ignore_ascii_case(name.as_bytes());
        if (is_special("nan") && word.len() == 3) || is_special("infinity") || is_special("inf") {
            return Err(SqlError::unsupported(format_args!("the special numeric value \"{word}\"")));
        }
        let whole_count = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, rest) = unsigned.split_at(whole_count);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count()),
            rest => (&rest[..0], rest),
        };
        let exponent = match rest {
            [] => Some(0),
            [b'e' | b'E', digits @ ..] => {
                std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i64>().ok())
            }
            _ => None,
        };
        let exponent = exponent.filter(|exponent| exponent.abs() <= 1_000_000);
        match exponent {
            Some(exponent) if !(whole.is_empty() && fraction.is_empty()) => Ok(Self {
                text: word,
                negative,
                integer_digits: whole,
                fraction_digits: fraction,
                fraction_count: fraction.len(),
                exponent,
            }),
            _ => Err(invalid_syntax("numeric", text)),
        }
    }

    /// Returns the greatest multiple of 10^-`scale` that is not greater than the number, and whether it equals the
    /// number; `None` if it has more than 38 digits.
    fn floor(&self, scale: u8) -> Option<(i128, bool)> {
        let digits = || self.integer_digits.iter().chain(self.fraction_digits).map(|byte| byte - b'0');
        let whole_count = i64::try_from(self.integer_digits.len()).unwrap_or(i64::MAX);
        let retained = whole_count.saturating_add(self.exponent).saturating_add(i64::from(scale));
        let kept_written = usize::try_from(retained.max(0)).unwrap_or(usize::MAX);
        let mut value = 0_i128;
        let mut count = 0;
        for digit in digits().take(kept_written) {
            if value != 0 {
                count += 1;
            }
            if usize::from(NUMERIC_PRECISION_MAX) <= count {
                return None;
            }
            value = value * 10 + i128::from(digit);
        }
        if value != 0 {
            let written = self.integer_digits.len() + self.fraction_digits.len();
            let zeros = u8::try_from(kept_written.saturating_sub(written)).ok()?;
            value = value.checked_mul(numeric::checked_power_of_ten(zeros)?)?;
        }
        let is_exact = digits().skip(kept_written).all(|digit| digit == 0);
        Some(match (self.negative, is_exact) {
            (true, true) => (-value, true),
            (true, false) => (-value - 1, false),
            (false, is_exact) => (value, is_exact),
        })
    }

    fn scaled(&self, precision: u8, scale: u8, exactly: bool) -> SqlResult<i128> {
        let digits = || {
            self.integer_digits
                .iter()
                .chain(self.fraction_digits)
                .map(|byte| byte - b'0')
                .skip_while(|digit| *digit == 0)
        };
        let total_count = self.integer_digits.len() + self.fraction_digits.len();
        let leading_zeros = total_count - digits().count();
        // Number of digits at or above the last retained position.
        let whole_count = i64::try_from(self.integer_digits.len()).unwrap_or(i64::MAX);
        let retained = whole_count.saturating_add(self.exponent).saturating_add(i64::from(scale));
        let kept = retained.saturating_sub(i64::try_from(leading_zeros).unwrap_or(i64::MAX));
        let significant = total_count - leading_zeros;
        let overflow = || Err(overflow_error(self.text, precision, scale, exactly));
        if significant == 0 {
            return Ok(0);
        }
        if i64::from(precision) < kept {
            return overflow();
        }
        let mut value = 0_i128;
        let mut rounds_up = false;
        if 0 <= kept {
            let kept = usize::try_from(kept).expect("kept is 0 to 38 in this branch");
            let mut taken = 0;
            for digit in digits().take(kept) {
                value = value * 10 + i128::from(digit);
                taken += 1;
            }
            for _ in taken..kept {
                value *= 10;
            }
            rounds_up = digits().nth(kept).is_some_and(|digit| 5 <= digit);
            if exactly && digits().skip(kept).any(|digit| digit != 0) {
                return Err(inexact_error(self.text));
            }
        } else if exactly {
            return Err(inexact_error(self.text));
        }
        if rounds_up {
            value += 1;
        }
        if numeric::power_of_ten(precision) <= value {
            return overflow();
        }
        Ok(if self.negative { -value } else { value })
    }
}

fn overflow_error(text: &str, precision: u8, scale: u8, exactly: bool) -> SqlError {
    if exactly {
        return inexact_error(text);
    }
    numeric::field_overflow_error(precision, scale)
}

fn inexact_error(text: &str) -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, format!("value \"{text}\" is out of range for type numeric"))
        .with_detail(
            "numeric without precision and scale holds 28 digits before and 10 digits after the decimal point.",
        )
        .with_hint("Declare a precision and scale that fit, such as numeric(38,20).")
}

//! Templates of numbers: `to_char(1234.5, 'FM999,990.00')` and `to_number`.

use arrow::array::ArrayRef;
use arrow::datatypes::{Decimal128Type, Float64Type};
use types::numeric::{self, NumericPrecision};
use types::text::{format_numeric, parse_numeric};
use types::{Condition, SqlError, SqlResult};

use crate::call::Call;
use crate::cast::float_to_numeric;

/// Parsed template.
#[derive(Debug, Default)]
struct NumberTemplate {
    /// `9`, `0` and `,` before the decimal point, in order.
    whole: Vec<u8>,
    /// `9` and `0` after the decimal point.
    fraction: Vec<u8>,
    has_point: bool,
    is_filled: bool,
    sign: Sign,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sign {
    #[default]
    Minus,
    Leading,
    Trailing,
    Brackets,
    TrailingMinus,
}

fn parse_template(template: &str) -> SqlResult<NumberTemplate> {
    let mut parts = NumberTemplate { is_filled: true, ..NumberTemplate::default() };
    let mut rest = template;
    while !rest.is_empty() {
        let two = rest.get(..2).unwrap_or_default().to_ascii_uppercase();
        let taken = match two.as_str() {
            "FM" => {
                parts.is_filled = false;
                2
            }
            "PR" => {
                parts.sign = Sign::Brackets;
                2
            }
            "MI" => {
                parts.sign = Sign::TrailingMinus;
                2
            }
            _ => {
                let symbol = rest.as_bytes()[0];
                match symbol.to_ascii_uppercase() {
                    digit @ (b'9' | b'0') if parts.has_point => parts.fraction.push(digit),
                    digit @ (b'9' | b'0') => parts.whole.push(digit),
                    b',' | b'G' if !parts.has_point => parts.whole.push(b','),
                    b'.' | b'D' if !parts.has_point => parts.has_point = true,
                    b'S' => parts.sign = if parts.whole.is_empty() { Sign::Leading } else { Sign::Trailing },
                    _ => return Err(SqlError::unsupported(format_args!("the number template \"{template}\""))),
                }
                1
            }
        };
        rest = &rest[taken..];
    }
    Ok(parts)
}

impl NumberTemplate {
    fn fill(&self, value: i128, scale: u8, out: &mut String) {
        let places = u8::try_from(self.fraction.len()).unwrap_or(38).min(38);
        let rounded = numeric::rescale(value, scale, places);
        let negative = rounded.is_some_and(|value| value < 0);
        let mut digits = String::new();
        if let Some(rounded) = rounded {
            format_numeric(rounded.abs(), places, &mut digits);
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        let whole = if whole == "0" { "" } else { whole };
        let slot_count = self.whole.iter().filter(|slot| **slot != b',').count();
        let is_overflow = rounded.is_none() || slot_count < whole.len();
        let first_zero = self.whole.iter().position(|slot| *slot == b'0').unwrap_or(usize::MAX);
        let mut body = String::new();
        let mut padding = 0;
        let mut position = 0;
        let mut has_digit = false;
        for (index, slot) in self.whole.iter().enumerate() {
            if *slot == b',' {
                if has_digit {
                    body.push(',')
                } else {
                    padding += 1
                }
                continue;
            }
            let from_end = slot_count - position;
            position += 1;
            if is_overflow {
                body.push('#');
                has_digit = true;
            } else if from_end <= whole.len() {
                body.push(char::from(whole.as_bytes()[whole.len() - from_end]));
                has_digit = true;
            } else if first_zero <= index {
                body.push('0');
                has_digit = true;
            } else if from_end == 1 && (!self.has_point || self.fraction.is_empty()) && whole.is_empty() {
                // A single zero is written if there is no other digit.
                body.push('0');
                has_digit = true;
            } else {
                padding += 1;
            }
        }
        if self.has_point {
            body.push('.');
            if is_overflow {
                body.extend(std::iter::repeat_n('#', self.fraction.len()));
            } else {
                let last_zero = self.fraction.iter().rposition(|slot| *slot == b'0').map_or(0, |last| last + 1);
                let needed =
                    if self.is_filled { fraction.len() } else { fraction.trim_end_matches('0').len().max(last_zero) };
                body.push_str(&fraction[..needed]);
            }
        }
        let blanks = if self.is_filled { " ".repeat(padding) } else { String::new() };
        let (blanks, body) = (blanks.as_str(), body.as_str());
        let blank = if self.is_filled { " " } else { "" };
        match (self.sign, negative) {
            (Sign::Minus, true) => out.push_str(&[blanks, "-", body].concat()),
            (Sign::Minus, false) => out.push_str(&[blank, blanks, body].concat()),
            (Sign::Leading, _) => out.push_str(&[blanks, if negative { "-" } else { "+" }, body].concat()),
            (Sign::Trailing, _) => out.push_str(&[blanks, body, if negative { "-" } else { "+" }].concat()),
            (Sign::Brackets, true) => out.push_str(&[blanks, "<", body, ">"].concat()),
            (Sign::Brackets, false) => out.push_str(&[blank, blanks, body, blank].concat()),
            (Sign::TrailingMinus, true) => out.push_str(&[blanks, body, "-"].concat()),
            (Sign::TrailingMinus, false) => out.push_str(&[blanks, body, blank].concat()),
        }
    }
}

pub(super) fn to_char(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (values, templates, scale) = (call.column::<Decimal128Type>(0), call.text(1), call.scale(0));
    call.build_texts(|row, out| {
        let (Some(value), Some(template)) = (values.get(row), templates.get(row)) else { return Ok(None) };
        parse_template(template)?.fill(value, scale, out);
        Ok(Some(()))
    })
}

pub(super) fn float_to_char(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (values, templates) = (call.column::<Float64Type>(0), call.text(1));
    call.build_texts(|row, out| {
        let (Some(value), Some(template)) = (values.get(row), templates.get(row)) else { return Ok(None) };
        parse_template(template)?.fill(float_to_numeric(value, 14, NumericPrecision::new(38, 15))?, 15, out);
        Ok(Some(()))
    })
}

/// Evaluates `to_number`: reads digits, decimal point and sign, and skips everything else.
pub(super) fn to_number(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (texts, templates) = (call.text(0), call.text(1));
    let result = NumericPrecision::from_sql_type(call.result_type).expect("result type of to_number is not a numeric");
    call.build_primitive::<Decimal128Type>(|row| {
        let (Some(text), Some(template)) = (texts.get(row), templates.get(row)) else { return Ok(None) };
        parse_template(template)?;
        let mut digits = String::new();
        let is_negative = text.contains('-') || (text.contains('<') && text.contains('>'));
        digits.extend(text.chars().filter(|c| c.is_ascii_digit() || *c == '.'));
        if !digits.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(SqlError::new(
                Condition::InvalidTextRepresentation,
                format!("invalid input syntax for type numeric: \"{text}\""),
            ));
        }
        let value = parse_numeric(&digits, result.precision, result.scale)?;
        Ok(Some(if is_negative { -value } else { value }))
    })
}

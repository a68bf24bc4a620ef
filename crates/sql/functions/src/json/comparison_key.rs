//! Comparison keys of `jsonb`: bytes in PostgreSQL's order.
//!
//! The order is null < strings < numbers < booleans < arrays < objects; shorter arrays and objects come first.
//! Numbers are equal if their values are.

use arrow::array::ArrayRef;
use types::SqlResult;
use types::text::{Json, parse_json};

use crate::call::Call;

#[cfg(test)]
mod tests;

pub(crate) fn comparison_key(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_binaries(|row| match json.get(row) {
        Some(json) => {
            let mut out = Vec::new();
            match parse_json(json)? {
                // An empty array at the top level comes before everything else.
                Json::Array(elements) if elements.is_empty() => out.push(0),
                value => append_value(&value, &mut out),
            }
            Ok(Some(out))
        }
        None => Ok(None),
    })
}

fn append_value(value: &Json<'_>, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.push(1),
        Json::String(text) => {
            out.push(2);
            append_text(text, out);
        }
        Json::Number(digits) => {
            out.push(3);
            append_number(digits, out);
        }
        Json::Bool(value) => out.extend([4, u8::from(*value)]),
        Json::Array(elements) => {
            out.push(5);
            append_count(elements.len(), out);
            elements.iter().for_each(|element| append_value(element, out));
        }
        Json::Object(members) => {
            out.push(6);
            append_count(members.len(), out);
            for (name, value) in members {
                append_text(name, out);
                append_value(value, out);
            }
        }
    }
}

fn append_count(count: usize, out: &mut Vec<u8>) {
    out.extend((count as u64).to_be_bytes());
}

/// Appends the bytes of a text and a terminator 0, which no text contains.
fn append_text(text: &str, out: &mut Vec<u8>) {
    out.extend(text.as_bytes());
    out.push(0);
}

/// Appends the sign, the decimal exponent and the digits of a number; all but the sign is inverted for negative
/// numbers.
fn append_number(text: &str, out: &mut Vec<u8>) {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let leading = fraction.len() - fraction.trim_start_matches('0').len();
    let (place, digits) = if whole.is_empty() {
        (-(i64::try_from(leading).unwrap_or(i64::MAX)), fraction[leading..].to_owned())
    } else {
        (i64::try_from(whole.len()).unwrap_or(i64::MAX), [whole, fraction].concat())
    };
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        out.push(1);
        return;
    }
    let mut magnitude = (place.cast_unsigned() ^ (1 << 63)).to_be_bytes().to_vec();
    magnitude.extend(digits.as_bytes());
    magnitude.push(0);
    if is_negative {
        out.push(0);
        out.extend(magnitude.into_iter().map(|byte| !byte));
    } else {
        out.push(2);
        out.extend(magnitude);
    }
}

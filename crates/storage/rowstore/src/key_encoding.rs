//! Encoding of index keys: byte order and byte equality are PostgreSQL's order and equality of the values.
//!
//! A key is the concatenation of its columns' encodings. No encoding is a prefix of another, so earlier columns take
//! precedence over later ones, and the key of the first columns is a prefix of the key of all columns.
//!
//! A value is encoded as a marker byte (1 for a value, 2 for NULL, which sorts last), followed by:
//! - a boolean: one byte
//! - an integer or numeric: big-endian with the sign bit flipped
//! - a float: as float8, with -0 as 0 and every NaN as the greatest value
//! - text (collation C) or bytes: the bytes with 00 written as 00 FF, terminated by 00 00
//! - an interval: its span as a number
//! - a list: its elements, terminated by 0

use types::Interval;

use crate::Value;

#[cfg(test)]
mod tests;

const LIST_END: u8 = 0;
const VALUE_MARKER: u8 = 1;
const NULL_MARKER: u8 = 2;

/// Appends the key of `values`. Returns whether one of them is NULL: such a key never conflicts in a UNIQUE constraint.
pub fn encode_key<'a>(values: impl IntoIterator<Item = Value<'a>>, out: &mut Vec<u8>) -> bool {
    let mut has_null = false;
    for value in values {
        has_null |= value.is_null();
        encode_key_value(value, out);
    }
    has_null
}

/// Appends the encoding of one column's value.
pub fn encode_key_value(value: Value<'_>, out: &mut Vec<u8>) {
    if value.is_null() {
        out.push(NULL_MARKER);
        return;
    }
    out.push(VALUE_MARKER);
    match value {
        Value::Null => {}
        Value::Bool(value) => out.push(u8::from(value)),
        Value::Int(value) => out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes()),
        Value::Decimal(value) => put_i128(value, out),
        Value::Float4(value) => put_float(f64::from(value), out),
        Value::Float8(value) => put_float(value, out),
        Value::Text(text) => put_bytes(text.as_bytes(), out),
        Value::Bytes(bytes) => put_bytes(bytes, out),
        Value::Interval { months, days, nanos } => {
            put_i128(Interval::from_month_day_nano(months, days, nanos).span_us(), out);
        }
        Value::List(list) => {
            for value in list.iter() {
                encode_key_value(value, out);
            }
            out.push(LIST_END);
        }
    }
}

fn put_i128(value: i128, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value ^ i128::MIN).to_be_bytes());
}

fn put_float(value: f64, out: &mut Vec<u8>) {
    let value = if value.is_nan() {
        f64::NAN.abs()
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    let bits = value.to_bits();
    // The bits of negative numbers sort in reverse order.
    let ordered = if value.is_sign_negative() { !bits } else { bits | (1 << 63) };
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn put_bytes(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(zero) = bytes.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&bytes[..zero]);
        out.extend_from_slice(&[0, 0xff]);
        bytes = &bytes[zero + 1..];
    }
    out.extend_from_slice(bytes);
    out.extend_from_slice(&[0, 0]);
}

//! Decodes PostgreSQL values, text and binary, to Arrow, for parameters of statements and for COPY FROM.
//!
//! - `column.rs`: [`ColumnBuilder`], a column under construction; a parameter is a column of one value. Start here.
//! - `text.rs`, `binary.rs`: append one value in either format; `array.rs`: binary arrays.
//! - `numeric.rs`: binary `numeric`, and the precision and scale of numeric parameters.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new type must not compile until text and binary say what they do with it"
)]

mod array;
mod binary;
mod column;
mod numeric;
mod text;

#[cfg(test)]
mod tests;

use datafusion::common::ScalarValue;
use types::text::{DateContext, parse_int2, parse_int4, parse_int8};
use types::{Condition, SqlError, SqlResult, SqlType};

pub use column::ColumnBuilder;

use self::numeric::ParameterForm;
use crate::encode::Format;

/// Decodes parameter `number` (from 1) of `sql_type` from `bytes` (`None` for NULL) to that type's Arrow form.
///
/// A `numeric` gets the precision and scale of its digits, as a literal does, because parameters have no type
/// modifier; NULL gets the smallest. A number with more digits than Kiln's numerics is returned as text: an assignment
/// to a column rounds it, and any other use rejects it.
///
/// # Errors
/// 22P02 and related conditions for invalid text, 22P03 for excess bytes, 08P01 for missing bytes, 22021 for text that
/// is not UTF-8.
pub fn decode_parameter(
    number: usize,
    bytes: Option<&[u8]>,
    format: Format,
    sql_type: &SqlType,
    dates: &DateContext,
) -> SqlResult<ScalarValue> {
    if let Some(value) = decode_common(bytes, format, sql_type)? {
        return Ok(value);
    }
    let own_digits = match bytes {
        Some(bytes) => match numeric::parameter_form(bytes, format, sql_type)? {
            ParameterForm::TooManyDigits(text) => return Ok(ScalarValue::Utf8View(Some(text))),
            ParameterForm::WithDigits(sql_type) => Some(sql_type),
            ParameterForm::AsDeclared => None,
        },
        None => numeric::null_type(sql_type),
    };
    let mut column = ColumnBuilder::new(own_digits.as_ref().unwrap_or(sql_type), dates, 1);
    match (bytes, format) {
        (None, _) => column.push_null(),
        (Some(bytes), Format::Text) => column.push_text(check_utf8(bytes)?)?,
        (Some(bytes), Format::Binary) => column.push_binary(bytes).map_err(|error| {
            if error.condition == Condition::InvalidBinaryRepresentation
                && error.message == column::EXCESS_BYTES_MESSAGE
            {
                SqlError::new(error.condition, format!("{} in bind parameter {number}", column::EXCESS_BYTES_MESSAGE))
            } else {
                error
            }
        })?,
    }
    ScalarValue::try_from_array(&column.finish(), 0).map_err(|error| {
        SqlError::internal(format!("could not decode parameter ${number} of type {sql_type}: {error}"))
    })
}

/// Decodes a parameter of a common type without a [`ColumnBuilder`]; `None` for other types, NULL, and wrong lengths.
fn decode_common(bytes: Option<&[u8]>, format: Format, sql_type: &SqlType) -> SqlResult<Option<ScalarValue>> {
    let Some(bytes) = bytes else { return Ok(None) };
    Ok(match (sql_type, format) {
        (SqlType::Text | SqlType::Varchar(None), _) => Some(ScalarValue::Utf8View(Some(check_utf8(bytes)?.to_owned()))),
        (SqlType::Int2, Format::Binary) => number(bytes, i16::from_be_bytes).map(ScalarValue::from),
        (SqlType::Int4, Format::Binary) => number(bytes, i32::from_be_bytes).map(ScalarValue::from),
        (SqlType::Int8, Format::Binary) => number(bytes, i64::from_be_bytes).map(ScalarValue::from),
        (SqlType::Float8, Format::Binary) => number(bytes, f64::from_be_bytes).map(ScalarValue::from),
        (SqlType::Int2, Format::Text) => Some(parse_int2(check_utf8(bytes)?)?.into()),
        (SqlType::Int4, Format::Text) => Some(parse_int4(check_utf8(bytes)?)?.into()),
        (SqlType::Int8, Format::Text) => Some(parse_int8(check_utf8(bytes)?)?.into()),
        _ => None,
    })
}

fn number<const N: usize, T>(bytes: &[u8], read: impl FnOnce([u8; N]) -> T) -> Option<T> {
    bytes.try_into().ok().map(read)
}

/// Checks that bytes are UTF-8 without zero bytes, and returns them as text.
///
/// # Errors
/// 22021 with the first offending bytes in hexadecimal, in PostgreSQL's words.
pub fn check_utf8(bytes: &[u8]) -> SqlResult<&str> {
    let text = std::str::from_utf8(bytes);
    let valid = text.map_or_else(|error| error.valid_up_to(), str::len);
    match memchr::memchr(0, &bytes[..valid]) {
        Some(at) => Err(invalid_utf8(bytes, at)),
        None => text.map_err(|_| invalid_utf8(bytes, valid)),
    }
}

/// Returns 22021 for the invalid sequence at `at`.
///
/// It names as many bytes as the first one announces, up to a line end, so that the message does not depend on how COPY
/// cuts its input.
#[must_use]
pub fn invalid_utf8(bytes: &[u8], at: usize) -> SqlError {
    let announced = match bytes.get(at) {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let sequence = &bytes[at..bytes.len().min(at + announced)];
    let length = memchr::memchr2(b'\n', b'\r', sequence).map_or(sequence.len(), |line_end| line_end + 1);
    let shown: Vec<String> = sequence[..length].iter().map(|byte| format!("0x{byte:02x}")).collect();
    SqlError::new(
        Condition::CharacterNotInRepertoire,
        format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
    )
}

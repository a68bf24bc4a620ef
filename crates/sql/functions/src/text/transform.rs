//! Length, replacing, trimming, padding, hashing and encoding of strings.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryBuilder};
use arrow::datatypes::{Int32Type, Int64Type};
use md5::{Digest, Md5};
use types::text::{format_bytea, parse_bytea};
use types::value_memory::{VALUE_BYTES_MAX, check_growth, check_length, too_long_error};
use types::{Condition, SqlError, SqlResult};

use crate::call::Call;

pub(super) fn byte_count(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<Int32Type>(|row| Ok(call.bytes(0, row).and_then(|bytes| i32::try_from(bytes.len()).ok())))
}

pub(super) fn replace(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, from, to) = (call.text(0), call.text(1), call.text(2));
    call.build_texts(|row, out| {
        let (Some(text), Some(from), Some(to)) = (text.get(row), from.get(row), to.get(row)) else { return Ok(None) };
        if from.is_empty() {
            out.push_str(text);
            return Ok(Some(()));
        }
        let mut rest = 0;
        for (index, found) in text.match_indices(from) {
            check_growth(out, index - rest + to.len())?;
            out.push_str(&text[rest..index]);
            out.push_str(to);
            rest = index + found.len();
        }
        out.push_str(&text[rest..]);
        Ok(Some(()))
    })
}

/// Evaluates `translate`. Characters without a counterpart are dropped; the first of repeated ones counts.
pub(super) fn translate(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, from, to) = (call.text(0), call.text(1), call.text(2));
    call.build_texts(|row, out| {
        let (Some(text), Some(from), Some(to)) = (text.get(row), from.get(row), to.get(row)) else { return Ok(None) };
        for character in text.chars() {
            match from.chars().position(|candidate| candidate == character) {
                None => out.push(character),
                Some(position) => out.extend(to.chars().nth(position)),
            }
        }
        Ok(Some(()))
    })
}

pub(super) fn repeat(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, count) = (call.text(0), call.column::<Int32Type>(1));
    call.build_texts(|row, out| {
        let (Some(text), Some(count)) = (text.get(row), count.get(row)) else { return Ok(None) };
        let count = usize::try_from(count).unwrap_or(0);
        check_length(text.len().saturating_mul(count))?;
        out.extend(std::iter::repeat_n(text, count));
        Ok(Some(()))
    })
}

fn trim(call: &Call<'_>, cut: impl for<'t> Fn(&'t str, &dyn Fn(char) -> bool) -> &'t str) -> SqlResult<ArrayRef> {
    let text = call.text(0);
    call.build_slices(|row| {
        let Some(text) = text.get(row) else { return Ok(None) };
        if call.argument_count() == 1 {
            return Ok(Some(cut(text, &|c| c == ' ')));
        }
        Ok(call.text(1).get(row).map(|set| cut(text, &|c| set.contains(c))))
    })
}

pub(super) fn trim_both(call: &Call<'_>) -> SqlResult<ArrayRef> {
    trim(call, |text, is_cut| text.trim_matches(is_cut))
}

pub(super) fn trim_left(call: &Call<'_>) -> SqlResult<ArrayRef> {
    trim(call, |text, is_cut| text.trim_start_matches(is_cut))
}

pub(super) fn trim_right(call: &Call<'_>) -> SqlResult<ArrayRef> {
    trim(call, |text, is_cut| text.trim_end_matches(is_cut))
}

/// Truncates or pads text to a length.
fn pad(call: &Call<'_>, is_left: bool) -> SqlResult<ArrayRef> {
    let (text, length) = (call.text(0), call.column::<Int32Type>(1));
    call.build_texts(|row, out| {
        let (Some(text), Some(length)) = (text.get(row), length.get(row)) else { return Ok(None) };
        let fill = if call.argument_count() == 3 { call.text(2).get(row) } else { Some(" ") };
        let Some(fill) = fill else { return Ok(None) };
        let length = usize::try_from(length).unwrap_or(0);
        // PostgreSQL computes this limit with four bytes per character.
        if VALUE_BYTES_MAX / 4 <= length {
            return Err(too_long_error());
        }
        let count = text.chars().count();
        let kept = text.char_indices().nth(length).map_or(text, |(index, _)| &text[..index]);
        let missing = if fill.is_empty() { 0 } else { length.saturating_sub(count) };
        check_length(missing.saturating_add(text.len()))?;
        let filling = fill.chars().cycle().take(missing);
        if is_left {
            out.extend(filling);
            out.push_str(kept);
        } else {
            out.push_str(kept);
            out.extend(filling);
        }
        Ok(Some(()))
    })
}

pub(super) fn pad_left(call: &Call<'_>) -> SqlResult<ArrayRef> {
    pad(call, true)
}

pub(super) fn pad_right(call: &Call<'_>) -> SqlResult<ArrayRef> {
    pad(call, false)
}

pub(super) fn ascii(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let text = call.text(0);
    call.build_primitive::<Int32Type>(|row| {
        Ok(text.get(row).map(|text| text.chars().next().map_or(0, |c| u32::from(c).cast_signed())))
    })
}

pub(super) fn chr(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let code = call.column::<Int32Type>(0);
    call.build_texts(|row, out| {
        let Some(code) = code.get(row) else { return Ok(None) };
        let error = |message: &str| SqlError::new(Condition::ProgramLimitExceeded, message);
        if code == 0 {
            return Err(error("null character not permitted"));
        }
        let character = u32::try_from(code).ok().and_then(char::from_u32);
        out.push(character.ok_or_else(|| error("requested character not valid for encoding"))?);
        Ok(Some(()))
    })
}

pub(super) fn hex_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let value = call.column::<Int32Type>(0);
    call.build_texts(|row, out| {
        Ok(value.get(row).map(|value| write!(out, "{value:x}").expect("writing to a String cannot fail")))
    })
}

pub(super) fn hex_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let value = call.column::<Int64Type>(0);
    call.build_texts(|row, out| {
        Ok(value.get(row).map(|value| write!(out, "{value:x}").expect("writing to a String cannot fail")))
    })
}

fn push_md5(bytes: &[u8], out: &mut String) {
    for byte in Md5::digest(bytes) {
        write!(out, "{byte:02x}").expect("writing to a String cannot fail");
    }
}

pub(super) fn md5_text(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let text = call.text(0);
    call.build_texts(|row, out| Ok(text.get(row).map(|text| push_md5(text.as_bytes(), out))))
}

pub(super) fn md5_bytes(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_texts(|row, out| Ok(call.bytes(0, row).map(|bytes| push_md5(bytes, out))))
}

fn unknown_encoding(name: &str) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, format!("unrecognized encoding: \"{name}\""))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn push_base64(bytes: &[u8], out: &mut String) {
    let mut line = 0;
    for chunk in bytes.chunks(3) {
        // Lines have 76 characters, as in MIME.
        if line == 76 {
            out.push('\n');
            line = 0;
        }
        let group =
            chunk.iter().enumerate().fold(0_u32, |group, (index, byte)| group | u32::from(*byte) << (16 - 8 * index));
        for index in 0..4 {
            let digit = usize::try_from(group >> (18 - 6 * index) & 63).expect("six bits");
            out.push(if index <= chunk.len() { char::from(BASE64[digit]) } else { '=' });
        }
        line += 4;
    }
}

fn read_base64(text: &str) -> SqlResult<Vec<u8>> {
    let invalid = |symbol: char| {
        SqlError::new(
            Condition::InvalidParameterValue,
            format!("invalid symbol \"{symbol}\" found while decoding base64 sequence"),
        )
    };
    let (mut bytes, mut group, mut bits) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0_u32);
    for symbol in text.chars().filter(|c| !c.is_ascii_whitespace()) {
        if symbol == '=' {
            break;
        }
        let digit = BASE64.iter().position(|digit| char::from(*digit) == symbol).ok_or_else(|| invalid(symbol))?;
        group = group << 6 | u32::try_from(digit).expect("six bits");
        bits += 6;
        if 8 <= bits {
            bits -= 8;
            bytes.push(u8::try_from(group >> bits & 255).expect("eight bits"));
        }
    }
    Ok(bytes)
}

pub(super) fn encode(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let encoding = call.text(1);
    call.build_texts(|row, out| {
        let (Some(bytes), Some(encoding)) = (call.bytes(0, row), encoding.get(row)) else { return Ok(None) };
        match encoding.to_ascii_lowercase().as_str() {
            "hex" => {
                format_bytea(bytes, out);
                out.drain(..2);
            }
            "base64" => push_base64(bytes, out),
            "escape" => {
                for byte in bytes {
                    match byte {
                        b'\\' => out.push_str("\\\\"),
                        0 | 128.. => write!(out, "\\{byte:03o}").expect("writing to a String cannot fail"),
                        plain => out.push(char::from(*plain)),
                    }
                }
            }
            _ => return Err(unknown_encoding(encoding)),
        }
        Ok(Some(()))
    })
}

pub(super) fn decode(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, encoding) = (call.text(0), call.text(1));
    call.build_binaries(|row| {
        let (Some(text), Some(encoding)) = (text.get(row), encoding.get(row)) else { return Ok(None) };
        match encoding.to_ascii_lowercase().as_str() {
            "hex" => parse_bytea(&format!("\\x{text}")).map(Some),
            "base64" => read_base64(text).map(Some),
            "escape" => parse_bytea(text).map(Some),
            _ => Err(unknown_encoding(encoding)),
        }
    })
}

pub(super) fn random_uuid(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let mut builder = FixedSizeBinaryBuilder::with_capacity(call.rows, 16);
    for _ in 0..call.rows {
        builder.append_value(call.session.random.uuid().as_bytes()).expect("a uuid has 16 bytes");
    }
    Ok(Arc::new(builder.finish()))
}

//! Functions of character strings and byte strings.
//!
//! - `transform.rs`: length, padding, trimming, replacing, encoding,
//! - `substring.rs`: substrings,
//! - `quote.rs`: quoting for SQL; `format.rs`: the function `format`.

mod format;
mod quote;
mod substring;
mod transform;

use arrow::array::ArrayRef;
use datafusion::functions::{string as s, unicode as u};
use types::value_guard::check_length;
use types::{SqlResult, SqlType};

use super::call::Call;
use super::cast::TextWriter;
use super::definition::{Definition, Overload, ParameterType as T, ResultType};

const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const BYTEA: ResultType = ResultType::fixed(SqlType::Bytea);
const UUID: ResultType = ResultType::fixed(SqlType::Uuid);
const TEXTS: ResultType = ResultType::Computed(|_| Ok(SqlType::Array(Box::new(SqlType::Text))));

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("upper", &[Overload::builtin(&[T::Text], TEXT, s::upper)]),
    Definition::new("lower", &[Overload::builtin(&[T::Text], TEXT, s::lower)]),
    Definition::new("initcap", &[Overload::builtin(&[T::Text], TEXT, u::initcap)]),
    Definition::new(
        "length",
        &[
            Overload::builtin(&[T::Text], INT4, u::character_length),
            Overload::rows(&[T::Bytea], INT4, transform::byte_count),
        ],
    ),
    Definition::new("char_length", &[Overload::builtin(&[T::Text], INT4, u::character_length)]),
    Definition::new("character_length", &[Overload::builtin(&[T::Text], INT4, u::character_length)]),
    Definition::new(
        "octet_length",
        &[
            Overload::builtin(&[T::Text], INT4, s::octet_length),
            Overload::rows(&[T::Bytea], INT4, transform::byte_count),
        ],
    ),
    Definition::new("bit_length", &[Overload::builtin(&[T::Text], INT4, s::bit_length)]),
    Definition::new("reverse", &[Overload::builtin(&[T::Text], TEXT, u::reverse)]),
    Definition::new("replace", &[Overload::rows(&[T::Text, T::Text, T::Text], TEXT, transform::replace)]),
    Definition::new("translate", &[Overload::rows(&[T::Text, T::Text, T::Text], TEXT, transform::translate)]),
    Definition::new("repeat", &[Overload::rows(&[T::Text, T::Int4], TEXT, transform::repeat)]),
    Definition::new("starts_with", &[Overload::builtin(&[T::Text, T::Text], BOOL, s::starts_with)]),
    Definition::new("^@", &[Overload::builtin(&[T::Text, T::Text], BOOL, s::starts_with)]),
    Definition::new("strpos", &[Overload::builtin(&[T::Text, T::Text], INT4, u::strpos)]),
    Definition::new("position", &[Overload::rows(&[T::Text, T::Text], INT4, substring::position)]),
    Definition::new("substring", substring::SUBSTRING),
    Definition::new("substr", substring::SUBSTRING),
    Definition::new("left", &[Overload::rows(&[T::Text, T::Int4], TEXT, substring::left)]),
    Definition::new("right", &[Overload::rows(&[T::Text, T::Int4], TEXT, substring::right)]),
    Definition::new("split_part", &[Overload::rows(&[T::Text, T::Text, T::Int4], TEXT, substring::split_part)]),
    Definition::new(
        "overlay",
        &[
            Overload::rows(&[T::Text, T::Text, T::Int4], TEXT, substring::overlay),
            Overload::rows(&[T::Text, T::Text, T::Int4, T::Int4], TEXT, substring::overlay),
        ],
    ),
    Definition::new(
        "btrim",
        &[
            Overload::rows(&[T::Text], TEXT, transform::trim_both),
            Overload::rows(&[T::Text, T::Text], TEXT, transform::trim_both),
        ],
    ),
    Definition::new(
        "trim",
        &[
            Overload::rows(&[T::Text], TEXT, transform::trim_both),
            Overload::rows(&[T::Text, T::Text], TEXT, transform::trim_both),
        ],
    ),
    Definition::new(
        "ltrim",
        &[
            Overload::rows(&[T::Text], TEXT, transform::trim_left),
            Overload::rows(&[T::Text, T::Text], TEXT, transform::trim_left),
        ],
    ),
    Definition::new(
        "rtrim",
        &[
            Overload::rows(&[T::Text], TEXT, transform::trim_right),
            Overload::rows(&[T::Text, T::Text], TEXT, transform::trim_right),
        ],
    ),
    Definition::new(
        "lpad",
        &[
            Overload::rows(&[T::Text, T::Int4], TEXT, transform::pad_left),
            Overload::rows(&[T::Text, T::Int4, T::Text], TEXT, transform::pad_left),
        ],
    ),
    Definition::new(
        "rpad",
        &[
            Overload::rows(&[T::Text, T::Int4], TEXT, transform::pad_right),
            Overload::rows(&[T::Text, T::Int4, T::Text], TEXT, transform::pad_right),
        ],
    ),
    Definition::new("ascii", &[Overload::rows(&[T::Text], INT4, transform::ascii)]),
    Definition::new("chr", &[Overload::rows(&[T::Int4], TEXT, transform::chr)]),
    Definition::new(
        "to_hex",
        &[Overload::rows(&[T::Int4], TEXT, transform::hex_int4), Overload::rows(&[T::Int8], TEXT, transform::hex_int8)],
    ),
    Definition::new(
        "md5",
        &[
            Overload::rows(&[T::Text], TEXT, transform::md5_text),
            Overload::rows(&[T::Bytea], TEXT, transform::md5_bytes),
        ],
    ),
    Definition::new("sha256", &[Overload::builtin(&[T::Bytea], BYTEA, datafusion::functions::crypto::sha256)]),
    Definition::new("encode", &[Overload::rows(&[T::Bytea, T::Text], TEXT, transform::encode)]),
    Definition::new("decode", &[Overload::rows(&[T::Text, T::Text], BYTEA, transform::decode)]),
    Definition::new("concat", &[Overload::rows(&[T::Any], TEXT, concat).variadic()]),
    Definition::new("concat_ws", &[Overload::rows(&[T::Text, T::Any], TEXT, concat_ws).variadic()]),
    Definition::new("format", &[Overload::rows(&[T::Text, T::Any], TEXT, format::format).variadic()]),
    Definition::new("quote_ident", &[Overload::rows(&[T::Text], TEXT, quote::identifier)]),
    Definition::new("quote_literal", &[Overload::rows(&[T::Any], TEXT, quote::literal)]),
    Definition::new("quote_nullable", &[Overload::rows(&[T::Any], TEXT, quote::nullable)]),
    Definition::volatile("gen_random_uuid", &[Overload::rows(&[], UUID, transform::random_uuid)]),
    Definition::new("parse_ident", &[Overload::rows(&[T::Text], TEXTS, quote::parse_identifier)]),
];

/// Appends an argument's row in its type's text format; returns `None` for NULL.
pub(super) fn push_argument(call: &Call<'_>, index: usize, row: usize, out: &mut String) -> SqlResult<Option<()>> {
    let argument = &call.arguments[index];
    let row = if argument.is_constant { 0 } else { row };
    // Output functions write `t` and `f`; a cast writes `true` and `false`.
    if call.argument_types[index] == SqlType::Bool {
        return Ok(call.boolean(index, row).map(|value| types::text::format_bool(value, out)));
    }
    let writer = TextWriter::new(&argument.values, &call.argument_types[index], call.session.zone)
        .with_names(call.session.names());
    writer.check_memory(row, out)?;
    let written = writer.write(row, out);
    check_length(out.len())?;
    Ok(written)
}

fn concat(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_texts(|row, out| {
        for index in 0..call.argument_count() {
            let _ = push_argument(call, index, row, out)?;
        }
        Ok(Some(()))
    })
}

fn concat_ws(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let separator = call.text(0);
    call.build_texts(|row, out| {
        let Some(separator) = separator.get(row) else { return Ok(None) };
        let mut is_first = true;
        for index in 1..call.argument_count() {
            let before = out.len();
            if !is_first {
                out.push_str(separator);
            }
            match push_argument(call, index, row, out)? {
                Some(()) => is_first = false,
                None => out.truncate(before),
            }
        }
        Ok(Some(()))
    })
}

/// Concatenates text and a value of any type, which is cast to text.
pub(super) fn concatenate_any(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_texts(|row, out| {
        for index in 0..2 {
            let argument = &call.arguments[index];
            let row = if argument.is_constant { 0 } else { row };
            let writer = TextWriter::new(&argument.values, &call.argument_types[index], call.session.zone)
                .with_names(call.session.names());
            writer.check_memory(row, out)?;
            if writer.write(row, out).is_none() {
                return Ok(None);
            }
            check_length(out.len())?;
        }
        Ok(Some(()))
    })
}

pub(super) fn concatenate_bytes(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_binaries(|row| Ok(call.bytes(0, row).zip(call.bytes(1, row)).map(|(a, b)| [a, b].concat())))
}

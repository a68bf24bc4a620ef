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
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};
use super::fallibility;

const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const BYTEA: ResultType = ResultType::fixed(SqlType::Bytea);
const UUID: ResultType = ResultType::fixed(SqlType::Uuid);
const TEXTS: ResultType = ResultType::Computed(|_| Ok(SqlType::Array(Box::new(SqlType::Text))));

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("upper", "uppercase", &[Overload::builtin(&[T::Text], TEXT, F::Nothing, s::upper)]),
    Definition::new("lower", "lowercase", &[Overload::builtin(&[T::Text], TEXT, F::Nothing, s::lower)]),
    Definition::new("initcap", "capitalize each word", &[Overload::builtin(&[T::Text], TEXT, F::Nothing, u::initcap)]),
    Definition::new(
        "length",
        "length",
        &[
            Overload::builtin(&[T::Text], INT4, F::Nothing, u::character_length),
            Overload::rows(&[T::Bytea], INT4, F::Nothing, transform::byte_count),
        ],
    ),
    Definition::new(
        "char_length",
        "number of characters",
        &[Overload::builtin(&[T::Text], INT4, F::Nothing, u::character_length)],
    ),
    Definition::new(
        "character_length",
        "number of characters",
        &[Overload::builtin(&[T::Text], INT4, F::Nothing, u::character_length)],
    ),
    Definition::new(
        "octet_length",
        "number of bytes",
        &[
            Overload::builtin(&[T::Text], INT4, F::Nothing, s::octet_length),
            Overload::rows(&[T::Bytea], INT4, F::Nothing, transform::byte_count),
        ],
    ),
    Definition::new("bit_length", "number of bits", &[Overload::builtin(&[T::Text], INT4, F::Nothing, s::bit_length)]),
    Definition::new(
        "reverse",
        "reverse the characters",
        &[Overload::builtin(&[T::Text], TEXT, F::Nothing, u::reverse)],
    ),
    Definition::new(
        "replace",
        "replace all occurrences of a substring",
        &[Overload::rows(
            &[T::Text, T::Text, T::Text],
            TEXT,
            F::Computed(fallibility::replacement),
            transform::replace,
        )],
    ),
    Definition::new(
        "translate",
        "map a set of characters appearing in a string",
        &[Overload::rows(&[T::Text, T::Text, T::Text], TEXT, F::Nothing, transform::translate)],
    ),
    Definition::new(
        "repeat",
        "replicate a string a number of times",
        &[Overload::rows(&[T::Text, T::Int4], TEXT, F::SomeValues, transform::repeat)],
    ),
    Definition::new(
        "starts_with",
        "whether a string begins with a prefix",
        &[Overload::builtin(&[T::Text, T::Text], BOOL, F::Nothing, s::starts_with)],
    ),
    Definition::new("^@", "starts with", &[Overload::builtin(&[T::Text, T::Text], BOOL, F::Nothing, s::starts_with)]),
    Definition::new(
        "strpos",
        "position of a substring",
        &[Overload::builtin(&[T::Text, T::Text], INT4, F::Nothing, u::strpos)],
    ),
    Definition::new(
        "position",
        "position of a substring",
        &[Overload::rows(&[T::Text, T::Text], INT4, F::Nothing, substring::position)],
    ),
    Definition::new("substring", "extract a portion of a string", substring::SUBSTRING),
    Definition::new("substr", "extract a portion of a string", substring::SUBSTRING),
    Definition::new(
        "left",
        "first characters of a string",
        &[Overload::rows(&[T::Text, T::Int4], TEXT, F::Nothing, substring::left)],
    ),
    Definition::new(
        "right",
        "last characters of a string",
        &[Overload::rows(&[T::Text, T::Int4], TEXT, F::Nothing, substring::right)],
    ),
    Definition::new(
        "split_part",
        "split a string at a delimiter and return the nth field",
        &[Overload::rows(&[T::Text, T::Text, T::Int4], TEXT, F::Literals(&[2]), substring::split_part)],
    ),
    Definition::new(
        "overlay",
        "substitute a portion of a string",
        &[
            Overload::rows(&[T::Text, T::Text, T::Int4], TEXT, F::SomeValues, substring::overlay),
            Overload::rows(&[T::Text, T::Text, T::Int4, T::Int4], TEXT, F::SomeValues, substring::overlay),
        ],
    ),
    Definition::new(
        "btrim",
        "trim characters from both ends of a string",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::trim_both),
            Overload::rows(&[T::Text, T::Text], TEXT, F::Nothing, transform::trim_both),
        ],
    ),
    Definition::new(
        "trim",
        "trim characters from both ends of a string",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::trim_both),
            Overload::rows(&[T::Text, T::Text], TEXT, F::Nothing, transform::trim_both),
        ],
    ),
    Definition::new(
        "ltrim",
        "trim characters from the left end of a string",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::trim_left),
            Overload::rows(&[T::Text, T::Text], TEXT, F::Nothing, transform::trim_left),
        ],
    ),
    Definition::new(
        "rtrim",
        "trim characters from the right end of a string",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::trim_right),
            Overload::rows(&[T::Text, T::Text], TEXT, F::Nothing, transform::trim_right),
        ],
    ),
    Definition::new(
        "lpad",
        "left-pad a string to a length",
        &[
            Overload::rows(&[T::Text, T::Int4], TEXT, F::SomeValues, transform::pad_left),
            Overload::rows(&[T::Text, T::Int4, T::Text], TEXT, F::SomeValues, transform::pad_left),
        ],
    ),
    Definition::new(
        "rpad",
        "right-pad a string to a length",
        &[
            Overload::rows(&[T::Text, T::Int4], TEXT, F::SomeValues, transform::pad_right),
            Overload::rows(&[T::Text, T::Int4, T::Text], TEXT, F::SomeValues, transform::pad_right),
        ],
    ),
    Definition::new(
        "ascii",
        "code of the first character",
        &[Overload::rows(&[T::Text], INT4, F::Nothing, transform::ascii)],
    ),
    Definition::new("chr", "character of a code", &[Overload::rows(&[T::Int4], TEXT, F::SomeValues, transform::chr)]),
    Definition::new(
        "to_hex",
        "number as hexadecimal text",
        &[
            Overload::rows(&[T::Int4], TEXT, F::Nothing, transform::hex_int4),
            Overload::rows(&[T::Int8], TEXT, F::Nothing, transform::hex_int8),
        ],
    ),
    Definition::new(
        "md5",
        "MD5 hash",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::md5_text),
            Overload::rows(&[T::Bytea], TEXT, F::Nothing, transform::md5_bytes),
        ],
    ),
    Definition::new(
        "sha256",
        "SHA-256 hash",
        &[Overload::builtin(&[T::Bytea], BYTEA, F::Nothing, datafusion::functions::crypto::sha256)],
    ),
    Definition::new(
        "encode",
        "convert bytea value into some ASCII-only text string",
        &[Overload::rows(&[T::Bytea, T::Text], TEXT, F::Literals(&[1]), transform::encode)],
    ),
    Definition::new(
        "decode",
        "convert ASCII-encoded text string into bytea value",
        &[Overload::rows(&[T::Text, T::Text], BYTEA, F::SomeValues, transform::decode)],
    ),
    Definition::new("concat", "concatenate values", &[Overload::rows(&[T::Any], TEXT, F::Nothing, concat).variadic()]),
    Definition::new(
        "concat_ws",
        "concatenate values with separators",
        &[Overload::rows(&[T::Text, T::Any], TEXT, F::Nothing, concat_ws).variadic()],
    ),
    Definition::new(
        "format",
        "format text like printf",
        &[Overload::rows(&[T::Text, T::Any], TEXT, F::SomeValues, format::format).variadic()],
    ),
    Definition::new(
        "quote_ident",
        "quote an identifier for usage in a querystring",
        &[Overload::rows(&[T::Text], TEXT, F::Nothing, quote::identifier)],
    ),
    Definition::new(
        "quote_literal",
        "quote a literal for usage in a querystring",
        &[Overload::rows(&[T::Any], TEXT, F::Nothing, quote::literal)],
    ),
    Definition::new(
        "quote_nullable",
        "quote a possibly null literal for usage in a querystring",
        &[Overload::rows(&[T::Any], TEXT, F::Nothing, quote::nullable)],
    ),
    Definition::volatile(
        "gen_random_uuid",
        "generate a random UUID",
        &[Overload::rows(&[], UUID, F::Nothing, transform::random_uuid)],
    ),
    Definition::new(
        "parse_ident",
        "parse a qualified identifier to an array",
        &[Overload::rows(&[T::Text], TEXTS, F::SomeValues, quote::parse_identifier)],
    ),
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

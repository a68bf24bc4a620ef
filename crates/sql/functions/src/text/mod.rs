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
use types::value_memory::check_length;
use types::{SqlResult, SqlType};

use super::call::Call;
use super::cast::TextWriter;
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};
use super::fallibility;

const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const BYTEA: ResultType = ResultType::fixed(SqlType::Bytea);
const UUID: ResultType = ResultType::fixed(SqlType::Uuid);
const TEXTS: ResultType = ResultType::Computed(|_| Ok(SqlType::Array(Box::new(SqlType::Text))));

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("upper", "uppercase", &[Overload::builtin(&[T::Text], TEXT, F::Nothing, s::upper)])
        .in_catalog(&[catalog_entry(871, "text", "text")]),
    Definition::new("lower", "lowercase", &[Overload::builtin(&[T::Text], TEXT, F::Nothing, s::lower)])
        .in_catalog(&[catalog_entry(870, "text", "text")]),
    Definition::new("initcap", "capitalize each word", &[Overload::builtin(&[T::Text], TEXT, F::Nothing, u::initcap)])
        .in_catalog(&[catalog_entry(872, "text", "text")]),
    Definition::new(
        "length",
        "length",
        &[
            Overload::builtin(&[T::Text], INT4, F::Nothing, u::character_length),
            Overload::rows(&[T::Bytea], INT4, F::Nothing, transform::byte_count),
        ],
    )
    .in_catalog(&[
        catalog_entry(1317, "text", "int4"),
        catalog_entry(1318, "bpchar", "int4"),
        catalog_entry(2010, "bytea", "int4"),
    ]),
    Definition::new(
        "char_length",
        "number of characters",
        &[Overload::builtin(&[T::Text], INT4, F::Nothing, u::character_length)],
    )
    .in_catalog(&[catalog_entry(1372, "bpchar", "int4"), catalog_entry(1381, "text", "int4")]),
    Definition::new(
        "character_length",
        "number of characters",
        &[Overload::builtin(&[T::Text], INT4, F::Nothing, u::character_length)],
    )
    .in_catalog(&[catalog_entry(1367, "bpchar", "int4"), catalog_entry(1369, "text", "int4")]),
    Definition::new(
        "octet_length",
        "number of bytes",
        &[
            Overload::builtin(&[T::Text], INT4, F::Nothing, s::octet_length),
            Overload::rows(&[T::Bytea], INT4, F::Nothing, transform::byte_count),
        ],
    )
    .in_catalog(&[
        catalog_entry(720, "bytea", "int4"),
        catalog_entry(1374, "text", "int4"),
        catalog_entry(1375, "bpchar", "int4"),
    ]),
    Definition::new("bit_length", "number of bits", &[Overload::builtin(&[T::Text], INT4, F::Nothing, s::bit_length)])
        .in_catalog(&[catalog_entry(1811, "text", "int4")]),
    Definition::new(
        "reverse",
        "reverse the characters",
        &[Overload::builtin(&[T::Text], TEXT, F::Nothing, u::reverse)],
    )
    .in_catalog(&[catalog_entry(3062, "text", "text")]),
    Definition::new(
        "replace",
        "replace all occurrences of a substring",
        &[Overload::rows(
            &[T::Text, T::Text, T::Text],
            TEXT,
            F::Computed(fallibility::replacement),
            transform::replace,
        )],
    )
    .in_catalog(&[catalog_entry(2087, "text,text,text", "text")]),
    Definition::new(
        "translate",
        "map a set of characters appearing in a string",
        &[Overload::rows(&[T::Text, T::Text, T::Text], TEXT, F::Nothing, transform::translate)],
    )
    .in_catalog(&[catalog_entry(878, "text,text,text", "text")]),
    Definition::new(
        "repeat",
        "replicate a string a number of times",
        &[Overload::rows(&[T::Text, T::Int4], TEXT, F::SomeValues, transform::repeat)],
    )
    .in_catalog(&[catalog_entry(1622, "text,int4", "text")]),
    Definition::new(
        "starts_with",
        "whether a string begins with a prefix",
        &[Overload::builtin(&[T::Text, T::Text], BOOL, F::Nothing, s::starts_with)],
    )
    .in_catalog(&[catalog_entry(3696, "text,text", "bool")]),
    Definition::new("^@", "starts with", &[Overload::builtin(&[T::Text, T::Text], BOOL, F::Nothing, s::starts_with)]),
    Definition::new(
        "strpos",
        "position of a substring",
        &[Overload::builtin(&[T::Text, T::Text], INT4, F::Nothing, u::strpos)],
    )
    .in_catalog(&[catalog_entry(868, "text,text", "int4")]),
    Definition::new(
        "position",
        "position of a substring",
        &[Overload::rows(&[T::Text, T::Text], INT4, F::Nothing, substring::position)],
    )
    .in_catalog(&[catalog_entry(849, "text,text", "int4")]),
    Definition::new("substring", "extract a portion of a string", substring::SUBSTRING).in_catalog(&[
        catalog_entry(936, "text,int4,int4", "text"),
        catalog_entry(937, "text,int4", "text"),
        catalog_entry(2012, "bytea,int4,int4", "bytea"),
        catalog_entry(2013, "bytea,int4", "bytea"),
        catalog_entry(2073, "text,text", "text"),
    ]),
    Definition::new("substr", "extract a portion of a string", substring::SUBSTRING).in_catalog(&[
        catalog_entry(877, "text,int4,int4", "text"),
        catalog_entry(883, "text,int4", "text"),
        catalog_entry(2085, "bytea,int4,int4", "bytea"),
        catalog_entry(2086, "bytea,int4", "bytea"),
    ]),
    Definition::new(
        "left",
        "first characters of a string",
        &[Overload::rows(&[T::Text, T::Int4], TEXT, F::Nothing, substring::left)],
    )
    .in_catalog(&[catalog_entry(3060, "text,int4", "text")]),
    Definition::new(
        "right",
        "last characters of a string",
        &[Overload::rows(&[T::Text, T::Int4], TEXT, F::Nothing, substring::right)],
    )
    .in_catalog(&[catalog_entry(3061, "text,int4", "text")]),
    Definition::new(
        "split_part",
        "split a string at a delimiter and return the nth field",
        &[Overload::rows(&[T::Text, T::Text, T::Int4], TEXT, F::Literals(&[2]), substring::split_part)],
    )
    .in_catalog(&[catalog_entry(2088, "text,text,int4", "text")]),
    Definition::new(
        "overlay",
        "substitute a portion of a string",
        &[
            Overload::rows(&[T::Text, T::Text, T::Int4], TEXT, F::SomeValues, substring::overlay),
            Overload::rows(&[T::Text, T::Text, T::Int4, T::Int4], TEXT, F::SomeValues, substring::overlay),
        ],
    )
    .in_catalog(&[catalog_entry(1404, "text,text,int4,int4", "text"), catalog_entry(1405, "text,text,int4", "text")]),
    Definition::new(
        "btrim",
        "trim characters from both ends of a string",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::trim_both),
            Overload::rows(&[T::Text, T::Text], TEXT, F::Nothing, transform::trim_both),
        ],
    )
    .in_catalog(&[catalog_entry(884, "text,text", "text"), catalog_entry(885, "text", "text")]),
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
    )
    .in_catalog(&[catalog_entry(875, "text,text", "text"), catalog_entry(881, "text", "text")]),
    Definition::new(
        "rtrim",
        "trim characters from the right end of a string",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::trim_right),
            Overload::rows(&[T::Text, T::Text], TEXT, F::Nothing, transform::trim_right),
        ],
    )
    .in_catalog(&[catalog_entry(876, "text,text", "text"), catalog_entry(882, "text", "text")]),
    Definition::new(
        "lpad",
        "left-pad a string to a length",
        &[
            Overload::rows(&[T::Text, T::Int4], TEXT, F::SomeValues, transform::pad_left),
            Overload::rows(&[T::Text, T::Int4, T::Text], TEXT, F::SomeValues, transform::pad_left),
        ],
    )
    .in_catalog(&[catalog_entry(873, "text,int4,text", "text"), catalog_entry(879, "text,int4", "text")]),
    Definition::new(
        "rpad",
        "right-pad a string to a length",
        &[
            Overload::rows(&[T::Text, T::Int4], TEXT, F::SomeValues, transform::pad_right),
            Overload::rows(&[T::Text, T::Int4, T::Text], TEXT, F::SomeValues, transform::pad_right),
        ],
    )
    .in_catalog(&[catalog_entry(874, "text,int4,text", "text"), catalog_entry(880, "text,int4", "text")]),
    Definition::new(
        "ascii",
        "code of the first character",
        &[Overload::rows(&[T::Text], INT4, F::Nothing, transform::ascii)],
    )
    .in_catalog(&[catalog_entry(1620, "text", "int4")]),
    Definition::new("chr", "character of a code", &[Overload::rows(&[T::Int4], TEXT, F::SomeValues, transform::chr)])
        .in_catalog(&[catalog_entry(1621, "int4", "text")]),
    Definition::new(
        "to_hex",
        "number as hexadecimal text",
        &[
            Overload::rows(&[T::Int4], TEXT, F::Nothing, transform::hex_int4),
            Overload::rows(&[T::Int8], TEXT, F::Nothing, transform::hex_int8),
        ],
    )
    .in_catalog(&[catalog_entry(2089, "int4", "text"), catalog_entry(2090, "int8", "text")]),
    Definition::new(
        "md5",
        "MD5 hash",
        &[
            Overload::rows(&[T::Text], TEXT, F::Nothing, transform::md5_text),
            Overload::rows(&[T::Bytea], TEXT, F::Nothing, transform::md5_bytes),
        ],
    )
    .in_catalog(&[catalog_entry(2311, "text", "text"), catalog_entry(2321, "bytea", "text")]),
    Definition::new(
        "sha256",
        "SHA-256 hash",
        &[Overload::builtin(&[T::Bytea], BYTEA, F::Nothing, datafusion::functions::crypto::sha256)],
    )
    .in_catalog(&[catalog_entry(3420, "bytea", "bytea")]),
    Definition::new(
        "encode",
        "convert bytea value into some ASCII-only text string",
        &[Overload::rows(&[T::Bytea, T::Text], TEXT, F::Literals(&[1]), transform::encode)],
    )
    .in_catalog(&[catalog_entry(1946, "bytea,text", "text")]),
    Definition::new(
        "decode",
        "convert ASCII-encoded text string into bytea value",
        &[Overload::rows(&[T::Text, T::Text], BYTEA, F::SomeValues, transform::decode)],
    )
    .in_catalog(&[catalog_entry(1947, "text,text", "bytea")]),
    Definition::new("concat", "concatenate values", &[Overload::rows(&[T::Any], TEXT, F::Nothing, concat).variadic()])
        .in_catalog(&[catalog_entry(3058, "any", "text").stable().called_on_null()]),
    Definition::new(
        "concat_ws",
        "concatenate values with separators",
        &[Overload::rows(&[T::Text, T::Any], TEXT, F::Nothing, concat_ws).variadic()],
    )
    .in_catalog(&[catalog_entry(3059, "text,any", "text").stable().called_on_null()]),
    Definition::new(
        "format",
        "format text like printf",
        &[Overload::rows(&[T::Text, T::Any], TEXT, F::SomeValues, format::format).variadic()],
    )
    .in_catalog(&[
        catalog_entry(3539, "text,any", "text").stable().called_on_null(),
        catalog_entry(3540, "text", "text").stable().called_on_null(),
    ]),
    Definition::new(
        "quote_ident",
        "quote an identifier for usage in a querystring",
        &[Overload::rows(&[T::Text], TEXT, F::Nothing, quote::identifier)],
    )
    .in_catalog(&[catalog_entry(1282, "text", "text")]),
    Definition::new(
        "quote_literal",
        "quote a literal for usage in a querystring",
        &[Overload::rows(&[T::Any], TEXT, F::Nothing, quote::literal)],
    )
    .in_catalog(&[catalog_entry(1283, "text", "text"), catalog_entry(1285, "anyelement", "text").stable()]),
    Definition::new(
        "quote_nullable",
        "quote a possibly null literal for usage in a querystring",
        &[Overload::rows(&[T::Any], TEXT, F::Nothing, quote::nullable)],
    )
    .in_catalog(&[
        catalog_entry(1289, "text", "text").called_on_null(),
        catalog_entry(1290, "anyelement", "text").stable().called_on_null(),
    ]),
    Definition::volatile(
        "gen_random_uuid",
        "generate a random UUID",
        &[Overload::rows(&[], UUID, F::Nothing, transform::random_uuid)],
    )
    .in_catalog(&[catalog_entry(3432, "", "uuid").volatile()]),
    Definition::new(
        "parse_ident",
        "parse a qualified identifier to an array",
        &[
            Overload::rows(&[T::Text], TEXTS, F::SomeValues, quote::parse_identifier),
            Overload::rows(&[T::Text, T::Bool], TEXTS, F::SomeValues, quote::parse_identifier),
        ],
    )
    .in_catalog(&[catalog_entry(1268, "text,bool", "_text")]),
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

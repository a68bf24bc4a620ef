//! Quoting of identifiers and literals for SQL text.

use arrow::array::ArrayRef;
use types::{Condition, SqlError, SqlResult};

use super::push_argument;
use crate::call::Call;
use crate::text_array_builder::build_text_arrays;

/// Keywords that must be quoted as identifiers, sorted.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

/// Appends a name, quoted only if necessary.
pub(super) fn push_identifier(name: &str, out: &mut String) {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && RESERVED.binary_search(&name).is_err();
    if is_plain {
        out.push_str(name);
        return;
    }
    out.push('"');
    out.push_str(&name.replace('"', "\"\""));
    out.push('"');
}

/// Appends a string literal; with backslashes it is an escape string.
pub(super) fn push_literal(text: &str, out: &mut String) {
    if text.contains('\\') {
        out.push('E');
    }
    out.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            out.push(character);
        }
        out.push(character);
    }
    out.push('\'');
}

pub(super) fn identifier(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let name = call.text(0);
    call.build_texts(|row, out| Ok(name.get(row).map(|name| push_identifier(name, out))))
}

pub(super) fn literal(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let mut text = String::new();
    call.build_texts(|row, out| {
        text.clear();
        Ok(push_argument(call, 0, row, &mut text)?.map(|()| push_literal(&text, out)))
    })
}

pub(super) fn nullable(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let mut text = String::new();
    call.build_texts(|row, out| {
        text.clear();
        match push_argument(call, 0, row, &mut text)? {
            Some(()) => push_literal(&text, out),
            None => out.push_str("NULL"),
        }
        Ok(Some(()))
    })
}

/// Splits a dotted name into its identifiers; unquoted ones are folded to lower case. What follows them is an error if
/// `is_strict`, and ignored otherwise. An error is the detail of PostgreSQL's message, which may be empty.
fn split_identifiers(name: &str, is_strict: bool) -> Result<Vec<String>, &'static str> {
    let mut identifiers = Vec::new();
    let mut rest = name.trim_start();
    loop {
        let identifier = if let Some(quoted) = rest.strip_prefix('"') {
            let (identifier, after) = read_quoted(quoted).ok_or("String has unclosed double quotes.")?;
            rest = after;
            if identifier.is_empty() {
                return Err("Quoted identifier must not be empty.");
            }
            identifier
        } else if rest.starts_with(|first: char| first.is_alphabetic() || first == '_' || !first.is_ascii()) {
            let ends = |c: char| c.is_ascii() && !(c.is_ascii_alphanumeric() || c == '_' || c == '$');
            let (identifier, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
            rest = after;
            identifier.to_lowercase()
        } else if rest.starts_with('.') {
            return Err("No valid identifier before \".\".");
        } else if identifiers.is_empty() {
            return Err("");
        } else {
            return Err("No valid identifier after \".\".");
        };
        identifiers.push(identifier);
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() || !is_strict => return Ok(identifiers),
            None => return Err(""),
        }
    }
}

/// Reads a quoted identifier, whose first quote has been read, and returns it with what follows; `None` if the quote is
/// never closed.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut identifier = String::new();
    let mut characters = text.char_indices().peekable();
    loop {
        let (at, character) = characters.next()?;
        if character != '"' {
            identifier.push(character);
        } else if characters.next_if(|(_, next)| *next == '"').is_some() {
            identifier.push('"');
        } else {
            return Some((identifier, &text[at + 1..]));
        }
    }
}

/// Evaluates `parse_ident(name, is_strict)`.
pub(super) fn parse_identifier(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let name = call.text(0);
    let has_strictness = call.arguments.len() > 1;
    build_text_arrays(call, |row, parts| {
        let is_strict = if has_strictness { call.boolean(1, row) } else { Some(true) };
        let (Some(name), Some(is_strict)) = (name.get(row), is_strict) else { return Ok(false) };
        let identifiers = split_identifiers(name, is_strict).map_err(|detail| {
            let error = SqlError::new(
                Condition::InvalidParameterValue,
                format!("string is not a valid identifier: \"{name}\""),
            );
            if detail.is_empty() { error } else { error.with_detail(detail) }
        })?;
        identifiers.iter().try_for_each(|part| parts.push(Some(part)))?;
        Ok(true)
    })
}

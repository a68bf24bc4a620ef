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

/// Splits a dotted name into its parts; unquoted ones are folded to lower case.
fn split_name(name: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let part = if let Some(quoted) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut characters = quoted.char_indices().peekable();
            let end = loop {
                let (index, character) = characters.next()?;
                if character != '"' {
                    part.push(character);
                } else if characters.next_if(|(_, next)| *next == '"').is_some() {
                    part.push('"');
                } else {
                    break index + 1;
                }
            };
            rest = &quoted[end..];
            part
        } else {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            rest = after;
            part.to_lowercase()
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None => return rest.is_empty().then_some(parts),
        }
    }
}

pub(super) fn parse_identifier(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let name = call.text(0);
    build_text_arrays(call, |row, parts| {
        let Some(name) = name.get(row) else { return Ok(false) };
        let split = split_name(name).ok_or_else(|| {
            SqlError::new(Condition::InvalidParameterValue, format!("string is not a valid identifier: \"{name}\""))
        })?;
        split.iter().try_for_each(|part| parts.push(Some(part)))?;
        Ok(true)
    })
}

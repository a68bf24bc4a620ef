//! Regular expressions and SIMILAR TO. A constant pattern is compiled once per batch.

use arrow::array::ArrayRef;
use arrow::datatypes::Int32Type;
use regex::{Regex, RegexBuilder};
use types::value_memory::check_growth;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::call::Call;
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};
use super::text_array_builder::build_text_arrays;

#[cfg(test)]
mod tests;

const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const TEXTS: ResultType = ResultType::Computed(|_| Ok(SqlType::Array(Box::new(SqlType::Text))));

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "~",
        "matches regular expression",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Literals(&[1]), |call| matches(call, "", true))],
    ),
    Definition::new(
        "~*",
        "matches regular expression, case-insensitive",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Literals(&[1]), |call| matches(call, "i", true))],
    ),
    Definition::new(
        "!~",
        "does not match regular expression",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Literals(&[1]), |call| matches(call, "", false))],
    ),
    Definition::new(
        "!~*",
        "does not match regular expression, case-insensitive",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Literals(&[1]), |call| matches(call, "i", false))],
    ),
    Definition::new(
        "like_escape",
        "convert a LIKE pattern to use backslash escapes; written LIKE y ESCAPE z",
        &[Overload::rows(&[T::Text, T::Text], TEXT, F::SomeValues, like_escape)],
    )
    .in_catalog(&[catalog_entry(1637, "text,text", "text")]),
    Definition::new(
        "similar_to",
        "matches SQL regular expression; written x SIMILAR TO y",
        &[
            Overload::rows(&[T::Text, T::Text], BOOL, F::Literals(&[1]), similar),
            Overload::rows(&[T::Text, T::Text, T::Text], BOOL, F::Literals(&[1, 2]), similar),
        ],
    ),
    Definition::new(
        "regexp_like",
        "test for a match of a regular expression",
        &[
            Overload::rows(&[T::Text, T::Text], BOOL, F::Literals(&[1]), |call| matches(call, "", true)),
            Overload::rows(&[T::Text, T::Text, T::Text], BOOL, F::Literals(&[1, 2]), |call| matches(call, "", true)),
        ],
    )
    .in_catalog(&[catalog_entry(6263, "text,text", "bool"), catalog_entry(6264, "text,text,text", "bool")]),
    Definition::new(
        "regexp_count",
        "count matches of a regular expression",
        &[Overload::rows(&[T::Text, T::Text], INT4, F::Literals(&[1]), count)],
    )
    .in_catalog(&[catalog_entry(6254, "text,text", "int4")]),
    Definition::new(
        "regexp_substr",
        "extract the substring that matches a regular expression",
        &[Overload::rows(&[T::Text, T::Text], TEXT, F::Literals(&[1]), whole_match)],
    )
    .in_catalog(&[catalog_entry(6265, "text,text", "text")]),
    Definition::new(
        "regexp_match",
        "captured groups of the first match of a regular expression",
        &[
            Overload::rows(&[T::Text, T::Text], TEXTS, F::Literals(&[1]), groups),
            Overload::rows(&[T::Text, T::Text, T::Text], TEXTS, F::Literals(&[1, 2]), groups),
        ],
    )
    .in_catalog(&[catalog_entry(3396, "text,text", "_text"), catalog_entry(3397, "text,text,text", "_text")]),
    Definition::new(
        "regexp_replace",
        "replace text that matches a regular expression",
        &[
            Overload::rows(&[T::Text, T::Text, T::Text], TEXT, F::Literals(&[1]), replace),
            Overload::rows(&[T::Text, T::Text, T::Text, T::Text], TEXT, F::Literals(&[1, 3]), replace),
        ],
    )
    .in_catalog(&[catalog_entry(2284, "text,text,text", "text"), catalog_entry(2285, "text,text,text,text", "text")]),
    Definition::new(
        "regexp_split_to_array",
        "split text at matches of a regular expression",
        &[
            Overload::rows(&[T::Text, T::Text], TEXTS, F::Literals(&[1]), split),
            Overload::rows(&[T::Text, T::Text, T::Text], TEXTS, F::Literals(&[1, 2]), split),
        ],
    )
    .in_catalog(&[catalog_entry(2767, "text,text", "_text"), catalog_entry(2768, "text,text,text", "_text")]),
];

/// Cache of the last compiled regular expression, reused while pattern and flags stay the same.
#[derive(Default)]
struct RegexCache {
    key: Option<(String, String)>,
    regex: Option<Regex>,
}

impl RegexCache {
    fn get(&mut self, pattern: &str, flags: &str) -> SqlResult<&Regex> {
        let is_same = self.key.as_ref().is_some_and(|(kept, kept_flags)| kept == pattern && kept_flags == flags);
        if !is_same || self.regex.is_none() {
            self.regex = Some(compile(pattern, flags)?);
            self.key = Some((pattern.to_owned(), flags.to_owned()));
        }
        Ok(self.regex.as_ref().expect("regex was compiled by the branch above"))
    }
}

fn compile(pattern: &str, flags: &str) -> SqlResult<Regex> {
    let mut translated = translate(pattern)?;
    let mut builder_flags = (false, true, false, false);
    for flag in flags.chars() {
        match flag {
            'i' => builder_flags.0 = true,
            'c' => builder_flags.0 = false,
            'n' | 'm' => (builder_flags.1, builder_flags.2) = (false, true),
            's' => (builder_flags.1, builder_flags.2) = (true, false),
            'p' => builder_flags.1 = false,
            'w' => builder_flags.2 = true,
            'x' => builder_flags.3 = true,
            't' | 'g' | 'e' => {}
            'q' => translated = regex::escape(pattern),
            other => {
                return Err(SqlError::new(
                    Condition::InvalidParameterValue,
                    format!("invalid regular expression option: \"{other}\""),
                ));
            }
        }
    }
    RegexBuilder::new(&translated)
        .case_insensitive(builder_flags.0)
        .dot_matches_new_line(builder_flags.1)
        .multi_line(builder_flags.2)
        .ignore_whitespace(builder_flags.3)
        .build()
        .map_err(|error| {
            let reason = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            SqlError::new(Condition::InvalidRegularExpression, format!("invalid regular expression: {reason}"))
        })
}

/// Translates PostgreSQL's regular expression syntax to that of the `regex` crate, which itself rejects unsupported
/// constructs.
fn translate(pattern: &str) -> SqlResult<String> {
    let pattern = pattern.strip_prefix("***:").unwrap_or(pattern);
    if let Some(literal) = pattern.strip_prefix("***=") {
        return Ok(regex::escape(literal));
    }
    let mut out = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('m') => out.push_str("\\b{start}"),
            Some('M') => out.push_str("\\b{end}"),
            Some('y') => out.push_str("\\b"),
            Some('Y') => out.push_str("\\B"),
            Some('Z') => out.push_str("\\z"),
            Some(digit @ '1'..='9') => {
                return Err(SqlError::unsupported(format_args!(
                    "a back reference (\\{digit}) in a regular expression"
                )));
            }
            Some(other) if other.is_ascii_alphanumeric() || other.is_ascii_punctuation() => out.extend(['\\', other]),
            Some(other) => out.push(other),
            None => {
                return Err(SqlError::new(
                    Condition::InvalidRegularExpression,
                    "invalid regular expression: invalid escape \\ sequence",
                ));
            }
        }
    }
    Ok(out)
}

fn matches(call: &Call<'_>, flags: &str, wanted: bool) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    let mut compiled = RegexCache::default();
    call.build_booleans(|row| {
        let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
        let flags = if call.argument_count() == 3 {
            let Some(flags) = call.text(2).get(row) else { return Ok(None) };
            flags
        } else {
            flags
        };
        Ok(Some(compiled.get(pattern, flags)?.is_match(text) == wanted))
    })
}

fn count(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    let mut compiled = RegexCache::default();
    call.build_primitive::<Int32Type>(|row| {
        let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
        Ok(i32::try_from(compiled.get(pattern, "")?.find_iter(text).count()).ok())
    })
}

fn whole_match(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    let mut compiled = RegexCache::default();
    call.build_slices(|row| {
        let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
        Ok(compiled.get(pattern, "")?.find(text).map(|found| found.as_str()))
    })
}

/// Evaluates `substring(text from pattern)`: returns the first group, or the entire match if there are no groups.
pub(super) fn substring(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    let mut compiled = RegexCache::default();
    call.build_slices(|row| {
        let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
        let captures = compiled.get(pattern, "")?.captures(text);
        Ok(captures
            .and_then(|captures| if captures.len() == 1 { captures.get(0) } else { captures.get(1) })
            .map(|found| found.as_str()))
    })
}

/// Rejects `substring(text similar pattern escape '#')`, whose `#"` separators are not supported.
pub(super) fn substring_similar(_call: &Call<'_>) -> SqlResult<ArrayRef> {
    Err(SqlError::unsupported("substring(text SIMILAR pattern ESCAPE character)"))
}

fn groups(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    let mut compiled = RegexCache::default();
    build_text_arrays(call, |row, parts| {
        let flags = if call.argument_count() == 3 { call.text(2).get(row) } else { Some("") };
        let (Some(text), Some(pattern), Some(flags)) = (text.get(row), pattern.get(row), flags) else {
            return Ok(false);
        };
        let Some(captures) = compiled.get(pattern, flags)?.captures(text) else { return Ok(false) };
        let first = usize::from(1 < captures.len());
        for index in first..captures.len() {
            parts.push(captures.get(index).map(|found| found.as_str()))?;
        }
        Ok(true)
    })
}

/// Evaluates `regexp_replace`. Only the first match is replaced unless the flags contain `g`.
fn replace(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, pattern, replacement) = (call.text(0), call.text(1), call.text(2));
    let mut compiled = RegexCache::default();
    call.build_texts(|row, out| {
        let flags = if call.argument_count() == 4 { call.text(3).get(row) } else { Some("") };
        let (Some(text), Some(pattern), Some(replacement), Some(flags)) =
            (text.get(row), pattern.get(row), replacement.get(row), flags)
        else {
            return Ok(None);
        };
        let regex = compiled.get(pattern, flags)?;
        let limit = if flags.contains('g') { usize::MAX } else { 1 };
        let mut rest = 0;
        for captures in regex.captures_iter(text).take(limit) {
            let found = captures.get(0).expect("group 0 is the whole match");
            check_growth(out, found.start() - rest + replacement.len())?;
            out.push_str(&text[rest..found.start()]);
            expand(replacement, &captures, out)?;
            rest = found.end();
        }
        out.push_str(&text[rest..]);
        Ok(Some(()))
    })
}

/// Appends a replacement with `\1` to `\9` and `\&` filled in.
fn expand(replacement: &str, captures: &regex::Captures<'_>, out: &mut String) -> SqlResult<()> {
    let push_group = |index: usize, out: &mut String| {
        let group = captures.get(index).map_or("", |group| group.as_str());
        check_growth(out, group.len())?;
        out.push_str(group);
        SqlResult::Ok(())
    };
    let mut characters = replacement.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('&') => push_group(0, out)?,
            Some(digit @ '1'..='9') => {
                let index = usize::try_from(u32::from(digit) - u32::from('0')).expect("one digit");
                push_group(index, out)?;
            }
            Some('\\') | None => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
        }
    }
    Ok(())
}

fn split(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    let mut compiled = RegexCache::default();
    build_text_arrays(call, |row, parts| {
        let flags = if call.argument_count() == 3 { call.text(2).get(row) } else { Some("") };
        let (Some(text), Some(pattern), Some(flags)) = (text.get(row), pattern.get(row), flags) else {
            return Ok(false);
        };
        let regex = compiled.get(pattern, flags)?;
        let mut rest = 0;
        for found in regex.find_iter(text) {
            // Empty matches at the ends do not split.
            if found.is_empty() && (found.start() == 0 || found.start() == text.len()) {
                continue;
            }
            parts.push(Some(&text[rest..found.start()]))?;
            rest = found.end();
        }
        parts.push(Some(&text[rest..]))?;
        Ok(true)
    })
}

/// Translates a LIKE pattern with another escape character to one with the backslash.
fn like_escape(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (pattern, escape) = (call.text(0), call.text(1));
    call.build_texts(|row, out| {
        let (Some(pattern), Some(escape)) = (pattern.get(row), escape.get(row)) else { return Ok(None) };
        translate_escape(pattern, escape, out).map(Some)
    })
}

/// Appends `pattern` with its escape character turned into a backslash.
pub(crate) fn translate_escape(pattern: &str, escape: &str, out: &mut String) -> SqlResult<()> {
    let escape = escape_character(escape)?;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            out.push('\\');
            out.extend(characters.next());
        } else if character == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(character);
        }
    }
    Ok(())
}

fn escape_character(escape: &str) -> SqlResult<Option<char>> {
    let mut characters = escape.chars();
    let first = characters.next();
    if characters.next().is_some() {
        return Err(SqlError::new(Condition::InvalidEscapeSequence, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    Ok(first)
}

fn similar(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    let mut compiled = RegexCache::default();
    let mut last: Option<(String, String)> = None;
    call.build_booleans(|row| {
        let escape = if call.argument_count() == 3 { call.text(2).get(row) } else { Some("\\") };
        let (Some(text), Some(pattern), Some(escape)) = (text.get(row), pattern.get(row), escape) else {
            return Ok(None);
        };
        if last.as_ref().is_none_or(|(kept, _)| kept != pattern) {
            last = Some((pattern.to_owned(), similar_to_regex(pattern, escape_character(escape)?)));
        }
        let (_, translated) = last.as_ref().expect("set above");
        Ok(Some(compiled.get(translated, "")?.is_match(text)))
    })
}

/// Translates a SIMILAR TO pattern to a regular expression that matches the entire text.
fn similar_to_regex(pattern: &str, escape: Option<char>) -> String {
    let mut out = "^(?:".to_owned();
    let mut in_brackets = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            if let Some(next) = characters.next() {
                out.push_str(&regex::escape(next.encode_utf8(&mut [0; 4])));
            }
            continue;
        }
        match character {
            '[' if !in_brackets => {
                in_brackets = true;
                out.push('[');
            }
            ']' if in_brackets => {
                in_brackets = false;
                out.push(']');
            }
            '\\' => out.push_str("\\\\"),
            other if in_brackets => out.push(other),
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    out.push_str(")$");
    out
}

//! Substrings, by position and by separator. Positions count characters from 1.

use arrow::array::ArrayRef;
use arrow::datatypes::Int32Type;
use types::{Condition, SqlError, SqlResult, SqlType};

use crate::call::Call;
use crate::definition::{FailsFor as F, Overload, ParameterType as T, ResultType};
use crate::regular_expression;

const TEXT: ResultType = ResultType::fixed(SqlType::Text);

pub(super) const SUBSTRING: &[Overload] = &[
    Overload::rows(&[T::Text, T::Int4], TEXT, F::Nothing, substring_from),
    Overload::rows(&[T::Text, T::Int4, T::Int4], TEXT, F::Literals(&[2]), substring),
    Overload::rows(&[T::Bytea, T::Int4], ResultType::fixed(SqlType::Bytea), F::Nothing, bytes_from),
    Overload::rows(&[T::Bytea, T::Int4, T::Int4], ResultType::fixed(SqlType::Bytea), F::Literals(&[2]), bytes_from),
    Overload::rows(&[T::Text, T::Text], TEXT, F::Literals(&[1]), regular_expression::substring),
    Overload::rows(&[T::Text, T::Text, T::Text], TEXT, F::SomeValues, regular_expression::substring_similar),
];

/// Returns the characters from position `from` (from 1) to before `end`.
fn char_range(text: &str, from: i64, end: i64) -> &str {
    let from = from.max(1);
    if end <= from {
        return "";
    }
    let (skip, take) =
        (usize::try_from(from - 1).unwrap_or(usize::MAX), usize::try_from(end - from).unwrap_or(usize::MAX));
    if text.is_ascii() {
        let start = skip.min(text.len());
        return &text[start..start.saturating_add(take).min(text.len())];
    }
    let start = text.char_indices().nth(skip).map_or(text.len(), |(index, _)| index);
    let rest = &text[start..];
    let length = rest.char_indices().nth(take).map_or(rest.len(), |(index, _)| index);
    &rest[..length]
}

fn negative_length() -> SqlError {
    SqlError::new(Condition::SubstringError, "negative substring length not allowed")
}

fn substring_from(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, from) = (call.text(0), call.column::<Int32Type>(1));
    call.build_slices(|row| {
        Ok(text.get(row).zip(from.get(row)).map(|(text, from)| char_range(text, from.into(), i64::MAX)))
    })
}

fn substring(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, from, count) = (call.text(0), call.column::<Int32Type>(1), call.column::<Int32Type>(2));
    call.build_slices(|row| {
        let (Some(text), Some(from), Some(count)) = (text.get(row), from.get(row), count.get(row)) else {
            return Ok(None);
        };
        if count < 0 {
            return Err(negative_length());
        }
        Ok(Some(char_range(text, from.into(), i64::from(from) + i64::from(count))))
    })
}

fn bytes_from(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let from = call.column::<Int32Type>(1);
    call.build_binaries(|row| {
        let (Some(bytes), Some(from)) = (call.bytes(0, row), from.get(row)) else { return Ok(None) };
        let end = if call.argument_count() == 3 {
            let Some(count) = call.column::<Int32Type>(2).get(row) else { return Ok(None) };
            if count < 0 {
                return Err(negative_length());
            }
            i64::from(from) + i64::from(count)
        } else {
            i64::MAX
        };
        let start = usize::try_from(i64::from(from).max(1) - 1).unwrap_or(usize::MAX).min(bytes.len());
        let end = usize::try_from((end - 1).max(0)).unwrap_or(usize::MAX).clamp(start, bytes.len());
        Ok(Some(bytes[start..end].to_vec()))
    })
}

pub(super) fn left(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, count) = (call.text(0), call.column::<Int32Type>(1));
    call.build_slices(|row| {
        Ok(text.get(row).zip(count.get(row)).map(|(text, count)| {
            let count = if count < 0 { length(text) + i64::from(count) } else { i64::from(count) };
            char_range(text, 1, 1 + count)
        }))
    })
}

pub(super) fn right(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, count) = (call.text(0), call.column::<Int32Type>(1));
    call.build_slices(|row| {
        Ok(text.get(row).zip(count.get(row)).map(|(text, count)| {
            let from = if count < 0 { 1 - i64::from(count) } else { length(text) - i64::from(count) + 1 };
            char_range(text, from, i64::MAX)
        }))
    })
}

fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// Returns the position of a substring, from 1; 0 if there is none.
pub(super) fn position(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (part, text) = (call.text(0), call.text(1));
    call.build_primitive::<Int32Type>(|row| {
        let (Some(part), Some(text)) = (part.get(row), text.get(row)) else { return Ok(None) };
        Ok(Some(
            text.find(part).map_or(0, |index| i32::try_from(text[..index].chars().count() + 1).unwrap_or(i32::MAX)),
        ))
    })
}

pub(super) fn split_part(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, separator, field) = (call.text(0), call.text(1), call.column::<Int32Type>(2));
    call.build_slices(|row| {
        let (Some(text), Some(separator), Some(field)) = (text.get(row), separator.get(row), field.get(row)) else {
            return Ok(None);
        };
        let index = usize::try_from(field.unsigned_abs()).unwrap_or(usize::MAX);
        match (field, separator.is_empty()) {
            (0, _) => Err(SqlError::new(Condition::InvalidParameterValue, "field position must not be zero")),
            (1 | -1, true) => Ok(Some(text)),
            (_, true) => Ok(Some("")),
            (1.., false) => Ok(Some(text.split(separator).nth(index - 1).unwrap_or_default())),
            (_, false) => Ok(Some(text.rsplit(separator).nth(index - 1).unwrap_or_default())),
        }
    })
}

pub(super) fn overlay(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, with, from) = (call.text(0), call.text(1), call.column::<Int32Type>(2));
    call.build_texts(|row, out| {
        let (Some(text), Some(with), Some(from)) = (text.get(row), with.get(row), from.get(row)) else {
            return Ok(None);
        };
        let count = if call.argument_count() == 4 {
            let Some(count) = call.column::<Int32Type>(3).get(row) else { return Ok(None) };
            i64::from(count)
        } else {
            length(with)
        };
        if from <= 0 {
            return Err(negative_length());
        }
        out.push_str(char_range(text, 1, from.into()));
        out.push_str(with);
        out.push_str(char_range(text, i64::from(from) + count, i64::MAX));
        Ok(Some(()))
    })
}

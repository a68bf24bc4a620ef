//! Access to parts of a JSON value: `->`, `->>`, `#>`, `#>>`, types and lengths.

use std::borrow::Cow;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int32Type;
use types::text::json::{elements, members, string_value};
use types::{Condition, SqlError, SqlResult, SqlType};

use crate::call::Call;

fn member<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    // The last of equal keys wins.
    members(json)?.into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn nth(json: &str, index: i32) -> Option<&str> {
    let elements = elements(json)?;
    let position = if index < 0 {
        elements.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(index).ok()?
    };
    elements.get(position).copied()
}

/// Converts a JSON value to text: strings without quotes, JSON's null to NULL.
fn as_text(json: &str) -> Option<Cow<'_, str>> {
    let json = json.trim();
    if json == "null" {
        return None;
    }
    string_value(json).or(Some(Cow::Borrowed(json)))
}

fn push_text(json: Option<&str>, out: &mut String) -> Option<()> {
    out.push_str(&as_text(json?)?);
    Some(())
}

pub(super) fn field(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (json, key) = (call.text(0), call.text(1));
    call.build_slices(|row| Ok(json.get(row).zip(key.get(row)).and_then(|(json, key)| member(json, key))))
}

pub(super) fn field_text(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (json, key) = (call.text(0), call.text(1));
    call.build_texts(|row, out| {
        Ok(push_text(json.get(row).zip(key.get(row)).and_then(|(json, key)| member(json, key)), out))
    })
}

/// Returns an element of an array; a `jsonb` scalar is treated as an array of one element.
fn element_at<'a>(sql_type: &SqlType, json: &'a str, index: i32) -> Option<&'a str> {
    let is_scalar = !json.trim_start().starts_with(['{', '[']);
    if *sql_type == SqlType::Jsonb && is_scalar {
        return matches!(index, 0 | -1).then_some(json);
    }
    nth(json, index)
}

pub(super) fn element(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (json, index) = (call.text(0), call.column::<Int32Type>(1));
    call.build_slices(|row| {
        Ok(json.get(row).zip(index.get(row)).and_then(|(json, index)| element_at(&call.argument_types[0], json, index)))
    })
}

pub(super) fn element_text(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (json, index) = (call.text(0), call.column::<Int32Type>(1));
    call.build_texts(|row, out| {
        let found = json
            .get(row)
            .zip(index.get(row))
            .and_then(|(json, index)| element_at(&call.argument_types[0], json, index));
        Ok(push_text(found, out))
    })
}

fn path_step<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    match json.trim_start().as_bytes().first()? {
        b'{' => member(json, name),
        b'[' => nth(json, name.parse().ok()?),
        _ => None,
    }
}

fn follow_path<'a>(json: &'a str, path: &ArrayRef) -> Option<&'a str> {
    path.as_string_view().iter().try_fold(json, |json, name| path_step(json, name?))
}

pub(super) fn path(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_slices(|row| Ok(json.get(row).zip(call.list(1, row)).and_then(|(json, path)| follow_path(json, &path))))
}

pub(super) fn path_text(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_texts(|row, out| {
        Ok(push_text(json.get(row).zip(call.list(1, row)).and_then(|(json, path)| follow_path(json, &path)), out))
    })
}

fn walk_arguments<'a>(call: &Call<'a>, row: usize) -> Option<&'a str> {
    let json = call.text(0).get(row)?;
    (1..call.argument_count()).try_fold(json, |json, index| path_step(json, call.text(index).get(row)?))
}

pub(super) fn path_of_arguments(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_slices(|row| Ok(walk_arguments(call, row)))
}

pub(super) fn path_text_of_arguments(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_texts(|row, out| Ok(push_text(walk_arguments(call, row), out)))
}

pub(super) fn type_name(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_slices(|row| {
        Ok(json.get(row).map(|json| match json.trim_start().as_bytes().first() {
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b'"') => "string",
            Some(b't' | b'f') => "boolean",
            Some(b'n') => "null",
            _ => "number",
        }))
    })
}

pub(super) fn array_length(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_primitive::<Int32Type>(|row| {
        let Some(json) = json.get(row) else { return Ok(None) };
        let elements = elements(json).ok_or_else(|| {
            let what = if json.trim_start().starts_with('{') { "an object" } else { "a scalar" };
            let message = if what == "an object" {
                "cannot get array length of a non-array"
            } else {
                "cannot get array length of a scalar"
            };
            SqlError::new(Condition::InvalidParameterValue, message)
        })?;
        Ok(i32::try_from(elements.len()).ok())
    })
}

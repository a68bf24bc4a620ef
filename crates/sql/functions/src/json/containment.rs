//! Containment and existence operators of `jsonb`: `@>`, `<@`, `?`, `?|`, `?&`.

use arrow::array::{ArrayRef, AsArray};
use types::text::{Json, parse_json};
use types::{SqlResult, ValueMemoryCounter};

use crate::call::Call;

/// Returns whether `whole` contains `part`. The time is proportional to the product of both sizes, so cancellation is
/// checked.
fn contains_value(whole: &Json<'_>, part: &Json<'_>, is_top: bool, guard: &mut ValueMemoryCounter) -> SqlResult<bool> {
    guard.add(0)?;
    let mut is_among = |whole: &[Json<'_>], part: &Json<'_>| {
        for found in whole {
            if contains_value(found, part, false, guard)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    Ok(match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => {
            for (key, value) in part {
                let mut is_there = false;
                for (name, found) in whole {
                    if name == key && contains_value(found, value, false, guard)? {
                        is_there = true;
                        break;
                    }
                }
                if !is_there {
                    return Ok(false);
                }
            }
            true
        }
        (Json::Array(whole), Json::Array(part)) => {
            for value in part {
                if !is_among(whole, value)? {
                    return Ok(false);
                }
            }
            true
        }
        // An array contains a scalar, but only at the top level.
        (Json::Array(whole), scalar) if is_top && !matches!(scalar, Json::Object(_)) => is_among(whole, scalar)?,
        (Json::Number(a), Json::Number(b)) => a == b || same_number(a, b),
        (a, b) => a == b,
    })
}

/// Compares numbers by value: 1 equals 1.0.
fn same_number(a: &str, b: &str) -> bool {
    fn canonical(text: &str) -> &str {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
    }
    canonical(a) == canonical(b)
}

/// Returns whether one JSON text contains another.
fn contains_text(whole: &str, part: &str) -> SqlResult<bool> {
    contains_value(&parse_json(whole)?, &parse_json(part)?, true, &mut ValueMemoryCounter::default())
}

pub(super) fn contains(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (whole, part) = (call.text(0), call.text(1));
    call.build_booleans(|row| match (whole.get(row), part.get(row)) {
        (Some(whole), Some(part)) => contains_text(whole, part).map(Some),
        _ => Ok(None),
    })
}

pub(super) fn contained(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (part, whole) = (call.text(0), call.text(1));
    call.build_booleans(|row| match (whole.get(row), part.get(row)) {
        (Some(whole), Some(part)) => contains_text(whole, part).map(Some),
        _ => Ok(None),
    })
}

fn has_member(json: &Json<'_>, key: &str) -> bool {
    match json {
        Json::Object(members) => members.iter().any(|(name, _)| name == key),
        Json::Array(elements) => elements.iter().any(|element| matches!(element, Json::String(text) if text == key)),
        Json::String(text) => text == key,
        _ => false,
    }
}

pub(super) fn has_key(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (json, key) = (call.text(0), call.text(1));
    call.build_booleans(|row| match (json.get(row), key.get(row)) {
        (Some(json), Some(key)) => Ok(Some(has_member(&parse_json(json)?, key))),
        _ => Ok(None),
    })
}

fn keys(call: &Call<'_>, test: impl Fn(&Json<'_>, &[&str]) -> bool) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_booleans(|row| match (json.get(row), call.list(1, row)) {
        (Some(json), Some(keys)) => {
            Ok(Some(test(&parse_json(json)?, &keys.as_string_view().iter().flatten().collect::<Vec<_>>())))
        }
        _ => Ok(None),
    })
}

pub(super) fn has_any(call: &Call<'_>) -> SqlResult<ArrayRef> {
    keys(call, |json, keys| keys.iter().any(|key| has_member(json, key)))
}

pub(super) fn has_all(call: &Call<'_>) -> SqlResult<ArrayRef> {
    keys(call, |json, keys| keys.iter().all(|key| has_member(json, key)))
}

//! Construction of JSON from SQL values, and modification of `jsonb`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float32Type, Float64Type, Int32Type, TimestampMicrosecondType};
use types::text::json::{elements, members};
use types::text::{Json, format_json_string, format_timestamp, normalize_jsonb, parse_json};
use types::value_memory::{check_growth, check_length};
use types::{Condition, ObjectNames, SessionZone, SqlError, SqlResult, SqlType};

use crate::call::Call;
use crate::cast::TextWriter;

/// Writer of one array's rows as JSON values.
pub(crate) struct JsonWriter<'a> {
    values: &'a ArrayRef,
    sql_type: &'a SqlType,
    zone: SessionZone,
    /// Names of objects for `reg…` values; without them they are written as numbers.
    names: Option<&'a dyn ObjectNames>,
}

impl<'a> JsonWriter<'a> {
    pub(crate) fn new(values: &'a ArrayRef, sql_type: &'a SqlType, zone: SessionZone) -> Self {
        Self { values, sql_type, zone, names: None }
    }

    /// Adds names for the values of `reg…` types.
    pub(crate) fn with_names(mut self, names: Option<&'a dyn ObjectNames>) -> Self {
        self.names = names;
        self
    }

    /// Appends a row's value; NULL becomes JSON's null.
    #[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a JSON form")]
    pub(crate) fn write(&self, row: usize, out: &mut String) {
        use SqlType as T;
        if self.values.is_null(row) {
            out.push_str("null");
            return;
        }
        let writer = TextWriter::new(self.values, self.sql_type, self.zone);
        let writer = writer.with_names(self.names);
        let mut text = String::new();
        match self.sql_type {
            T::Bool | T::Int2 | T::Int4 | T::Int8 | T::Numeric { .. } | T::Json | T::Jsonb => {
                writer.write(row, out);
            }
            T::Float4 if self.values.as_primitive::<Float32Type>().value(row).is_finite() => {
                writer.write(row, out);
            }
            T::Float8 if self.values.as_primitive::<Float64Type>().value(row).is_finite() => {
                writer.write(row, out);
            }
            T::Timestamp | T::TimestampTz => {
                // Timestamps are written in ISO 8601 with a `T`, and their offsets with minutes.
                let us = self.values.as_primitive::<TimestampMicrosecondType>().value(row);
                if *self.sql_type == T::Timestamp {
                    format_timestamp(us, &mut text);
                } else {
                    format_timestamp(self.zone.to_local(us), &mut text);
                    let offset = text.len();
                    types::time_zone::push_offset(self.zone.offset_at(us), &mut text);
                    if text.len() - offset == 3 {
                        text.push_str(":00");
                    }
                }
                format_json_string(&text.replacen(' ', "T", 1), out);
            }
            T::Array(element) => {
                let list = self.values.as_list::<i32>().value(row);
                let inner = JsonWriter { names: self.names, ..JsonWriter::new(&list, element, self.zone) };
                out.push('[');
                for index in 0..list.len() {
                    if index != 0 {
                        out.push(',');
                    }
                    inner.write(index, out);
                }
                out.push(']');
            }
            T::Char(_) => format_json_string(self.values.as_string_view().value(row), out),
            T::Float4
            | T::Float8
            | T::Text
            | T::Varchar(_)
            | T::Date
            | T::Time
            | T::Interval
            | T::Bytea
            | T::Uuid
            | T::Oid
            | T::Name
            | T::InternalChar
            | T::Regclass
            | T::Regtype
            | T::Regproc
            | T::Regnamespace
            | T::Regrole
            | T::Regprocedure
            | T::Regoperator
            | T::Int2Vector
            | T::OidVector
            | T::Unknown => {
                writer.write(row, &mut text);
                format_json_string(&text, out);
            }
        }
    }
}

fn write_argument(call: &Call<'_>, index: usize, row: usize, out: &mut String) -> SqlResult<()> {
    let argument = &call.arguments[index];
    let row = if argument.is_constant { 0 } else { row };
    let writer = JsonWriter::new(&argument.values, &call.argument_types[index], call.session.zone)
        .with_names(call.session.names());
    TextWriter::new(&argument.values, &call.argument_types[index], call.session.zone).check_memory(row, out)?;
    writer.write(row, out);
    check_length(out.len())
}

/// Normalizes the text if the result is `jsonb`.
fn finish(call: &Call<'_>, out: &mut String) -> SqlResult<Option<()>> {
    if *call.result_type == SqlType::Jsonb {
        let normal = normalize_jsonb(out)?;
        out.clear();
        out.push_str(&normal);
    }
    Ok(Some(()))
}

pub(super) fn to_json(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_texts(|row, out| {
        let argument = &call.arguments[0];
        if argument.values.is_null(if argument.is_constant { 0 } else { row }) {
            return Ok(None);
        }
        write_argument(call, 0, row, out)?;
        finish(call, out)
    })
}

pub(super) fn array(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_texts(|row, out| {
        out.push('[');
        for index in 0..call.argument_count() {
            if index != 0 {
                out.push_str(", ");
            }
            write_argument(call, index, row, out)?;
        }
        out.push(']');
        finish(call, out)
    })
}

pub(super) fn object(call: &Call<'_>) -> SqlResult<ArrayRef> {
    if !call.argument_count().is_multiple_of(2) {
        return Err(SqlError::new(Condition::InvalidParameterValue, "argument list must have even number of elements"));
    }
    let mut key = String::new();
    call.build_texts(|row, out| {
        out.push('{');
        for index in (0..call.argument_count()).step_by(2) {
            if index != 0 {
                out.push_str(", ");
            }
            let argument = &call.arguments[index];
            key.clear();
            TextWriter::new(&argument.values, &call.argument_types[index], call.session.zone)
                .with_names(call.session.names())
                .write(if argument.is_constant { 0 } else { row }, &mut key)
                .ok_or_else(|| {
                    SqlError::new(
                        Condition::InvalidParameterValue,
                        format!("argument {}: key must not be null", index + 1),
                    )
                })?;
            format_json_string(&key, out);
            out.push_str(" : ");
            write_argument(call, index + 1, row, out)?;
        }
        out.push('}');
        finish(call, out)
    })
}

fn write_members<'a>(parts: impl Iterator<Item = (&'a str, &'a str)>, out: &mut String) {
    out.push('{');
    for (index, (key, value)) in parts.enumerate() {
        if index != 0 {
            out.push_str(", ");
        }
        format_json_string(key, out);
        out.push_str(": ");
        out.push_str(value);
    }
    out.push('}');
}

fn write_elements<'a>(parts: impl Iterator<Item = &'a str>, out: &mut String) {
    out.push('[');
    for (index, value) in parts.enumerate() {
        if index != 0 {
            out.push_str(", ");
        }
        out.push_str(value);
    }
    out.push(']');
}

/// Evaluates `jsonb || jsonb`: objects are merged, everything else is concatenated as arrays.
pub(crate) fn concatenate(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (left, right) = (call.text(0), call.text(1));
    call.build_texts(|row, out| {
        let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
        if let (Some(a), Some(b)) = (members(left), members(right)) {
            write_members(a.iter().chain(&b).map(|(key, value)| (key.as_ref(), *value)), out);
        } else {
            let parts = |json| elements(json).unwrap_or_else(|| vec![json]);
            write_elements(parts(left).into_iter().chain(parts(right)), out);
        }
        finish(call, out)
    })
}

pub(crate) fn remove_key(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (json, key) = (call.text(0), call.text(1));
    call.build_texts(|row, out| {
        let (Some(json), Some(key)) = (json.get(row), key.get(row)) else { return Ok(None) };
        if let Some(parts) = members(json) {
            write_members(parts.iter().filter(|(name, _)| name != key).map(|(key, value)| (key.as_ref(), *value)), out);
        } else if let Some(parts) = elements(json) {
            let mut quoted = String::new();
            format_json_string(key, &mut quoted);
            write_elements(parts.into_iter().filter(|part| *part != quoted), out);
        } else {
            return Err(SqlError::new(Condition::InvalidParameterValue, "cannot delete from scalar"));
        }
        finish(call, out)
    })
}

pub(crate) fn remove_index(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (json, index) = (call.text(0), call.column::<Int32Type>(1));
    call.build_texts(|row, out| {
        let (Some(json), Some(index)) = (json.get(row), index.get(row)) else { return Ok(None) };
        let parts = elements(json).ok_or_else(|| {
            SqlError::new(Condition::InvalidParameterValue, "cannot delete from object using integer index")
        })?;
        let count = i64::try_from(parts.len()).unwrap_or(i64::MAX);
        let position = if index < 0 { count + i64::from(index) } else { i64::from(index) };
        write_elements(
            parts.into_iter().enumerate().filter(|(at, _)| i64::try_from(*at) != Ok(position)).map(|(_, part)| part),
            out,
        );
        finish(call, out)
    })
}

fn without_nulls(value: Json<'_>) -> Json<'_> {
    match value {
        Json::Array(elements) => Json::Array(elements.into_iter().map(without_nulls).collect()),
        Json::Object(members) => Json::Object(
            members
                .into_iter()
                .filter(|(_, value)| *value != Json::Null)
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        other => other,
    }
}

pub(super) fn strip_nulls(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_texts(|row, out| {
        let Some(json) = json.get(row) else { return Ok(None) };
        without_nulls(parse_json(json)?).write_normal(out)?;
        Ok(Some(()))
    })
}

/// Writes indented JSON. The indentation of nested values grows with the square of their depth, so the memory limit
/// is checked.
fn write_pretty(json: &str, indent: usize, out: &mut String) -> SqlResult<()> {
    let line = |indent: usize, out: &mut String| {
        check_growth(out, 1 + indent * 4)?;
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * 4));
        SqlResult::Ok(())
    };
    if let Some(parts) = members(json) {
        out.push('{');
        for (index, (key, value)) in parts.iter().enumerate() {
            if index != 0 {
                out.push(',');
            }
            line(indent + 1, out)?;
            check_growth(out, key.len())?;
            format_json_string(key, out);
            out.push_str(": ");
            write_pretty(value, indent + 1, out)?;
        }
        line(indent, out)?;
        out.push('}');
    } else if let Some(parts) = elements(json) {
        out.push('[');
        for (index, value) in parts.iter().enumerate() {
            if index != 0 {
                out.push(',');
            }
            line(indent + 1, out)?;
            write_pretty(value, indent + 1, out)?;
        }
        line(indent, out)?;
        out.push(']');
    } else {
        check_growth(out, json.len())?;
        out.push_str(json);
    }
    Ok(())
}

pub(super) fn pretty(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let json = call.text(0);
    call.build_texts(|row, out| json.get(row).map(|json| write_pretty(json, 0, out)).transpose())
}

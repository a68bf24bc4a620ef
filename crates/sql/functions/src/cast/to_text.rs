//! Casts any value to text, and limits the length of text.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a text form")]

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use session_context::EvaluationContext;
use types::text::{
    ArrayWriter, format_bytea, format_date, format_float4, format_float8, format_int, format_interval, format_numeric,
    format_time, format_timestamp, format_timestamptz, format_uuid,
};
use types::value_memory::check_growth;
use types::{
    Condition, Interval, ObjectNames, SessionZone, SqlError, SqlResult, SqlType, TypeGroup, ValueMemoryCounter,
};

use super::{CastKind, is_text};
use crate::array_value_bytes::value_bytes;

/// Writer of one array's rows in the text format of their type.
pub(crate) struct TextWriter<'a> {
    values: &'a ArrayRef,
    sql_type: &'a SqlType,
    zone: SessionZone,
    /// Names of objects for `reg…` values; without them they print as numbers.
    names: Option<&'a dyn ObjectNames>,
}

impl<'a> TextWriter<'a> {
    pub(crate) fn new(values: &'a ArrayRef, sql_type: &'a SqlType, zone: SessionZone) -> Self {
        Self { values, sql_type, zone, names: None }
    }

    /// Adds names for the values of `reg…` types.
    pub(crate) fn with_names(mut self, names: Option<&'a dyn ObjectNames>) -> Self {
        self.names = names;
        self
    }

    /// Checks the memory limit before a row's value is appended to `out`, if its text may be far longer than its
    /// memory: the elements of an array can share theirs.
    pub(crate) fn check_memory(&self, row: usize, out: &str) -> SqlResult<()> {
        if self.sql_type.group() == TypeGroup::Array && self.values.is_valid(row) {
            check_growth(out, value_bytes(self.values.slice(row, 1).as_ref()))?;
        }
        Ok(())
    }

    /// Appends a row's value; returns `None` for NULL.
    pub(crate) fn write(&self, row: usize, out: &mut String) -> Option<()> {
        use SqlType as T;
        let values = self.values;
        if values.is_null(row) {
            return None;
        }
        match self.sql_type {
            // A cast writes `true` and `false`; the wire protocol sends `t` and `f`.
            T::Bool => out.push_str(if values.as_boolean().value(row) { "true" } else { "false" }),
            T::Int2 => format_int(values.as_primitive::<Int16Type>().value(row).into(), out),
            T::Int4 => format_int(values.as_primitive::<Int32Type>().value(row).into(), out),
            T::Int8 => format_int(values.as_primitive::<Int64Type>().value(row), out),
            T::Numeric { scale, .. } => format_numeric(values.as_primitive::<Decimal128Type>().value(row), *scale, out),
            T::Float4 => format_float4(values.as_primitive::<Float32Type>().value(row), out),
            T::Float8 => format_float8(values.as_primitive::<Float64Type>().value(row), out),
            T::Date => format_date(values.as_primitive::<Date32Type>().value(row), out),
            T::Time => format_time(values.as_primitive::<Time64MicrosecondType>().value(row), out),
            T::Timestamp => format_timestamp(values.as_primitive::<TimestampMicrosecondType>().value(row), out),
            T::TimestampTz => {
                format_timestamptz(values.as_primitive::<TimestampMicrosecondType>().value(row), &self.zone, out)
            }
            T::Interval => {
                let span = values.as_primitive::<IntervalMonthDayNanoType>().value(row);
                format_interval(&Interval::from_month_day_nano(span.months, span.days, span.nanoseconds), out);
            }
            T::Bytea => format_bytea(values.as_binary::<i32>().value(row), out),
            T::Uuid => {
                let bytes = values.as_fixed_size_binary().value(row);
                format_uuid(bytes.try_into().expect("a uuid has 16 bytes"), out);
            }
            sql_type @ (T::Oid
            | T::Regclass
            | T::Regtype
            | T::Regproc
            | T::Regnamespace
            | T::Regrole
            | T::Regprocedure
            | T::Regoperator) => {
                let number = values.as_primitive::<UInt32Type>().value(row);
                match self.names.filter(|_| sql_type.is_reg_type()) {
                    Some(names) => out.push_str(&names.format(self.sql_type, number)),
                    None => write!(out, "{number}").expect("writing to a String cannot fail"),
                }
            }
            T::Array(element) => self.write_array(row, element, out),
            T::Int2Vector => self.write_vector(row, &T::Int2, out),
            T::OidVector => self.write_vector(row, &T::Oid, out),
            // A cast of `char(n)` to text removes the padding.
            T::Char(_) => out.push_str(values.as_string_view().value(row).trim_end_matches(' ')),
            T::Text | T::Varchar(_) | T::Name | T::InternalChar | T::Json | T::Jsonb | T::Unknown => {
                out.push_str(values.as_string_view().value(row));
            }
        }
        Some(())
    }

    fn write_vector(&self, row: usize, element: &SqlType, out: &mut String) {
        let elements = self.values.as_list::<i32>().value(row);
        let writer = TextWriter::new(&elements, element, self.zone);
        for index in 0..elements.len() {
            if index != 0 {
                out.push(' ');
            }
            let _ = writer.write(index, out);
        }
    }

    fn write_array(&self, row: usize, element: &SqlType, out: &mut String) {
        let elements = self.values.as_list::<i32>().value(row);
        let writer = TextWriter { names: self.names, ..TextWriter::new(&elements, element, self.zone) };
        let mut array = ArrayWriter::start(out);
        let mut text = String::new();
        for index in 0..elements.len() {
            text.clear();
            match (element, elements.is_null(index)) {
                (_, true) => array.null(),
                (SqlType::Bool, false) => array.element(if elements.as_boolean().value(index) { "t" } else { "f" }),
                // Inside an array `char(n)` keeps its padding.
                (SqlType::Char(_), false) => array.element(elements.as_string_view().value(index)),
                _ => {
                    writer.write(index, &mut text);
                    array.element(&text);
                }
            }
        }
        array.finish();
    }
}

pub(super) fn convert(
    values: &ArrayRef,
    from: &SqlType,
    to: &SqlType,
    kind: CastKind,
    session: &EvaluationContext,
) -> SqlResult<ArrayRef> {
    let is_same = match (from, to) {
        (from, SqlType::Char(None)) => is_text(from),
        (SqlType::Char(_), _) => false,
        (from, SqlType::Text | SqlType::Varchar(None)) => is_text(from),
        _ => false,
    };
    if is_same {
        return Ok(Arc::clone(values));
    }
    let writer = TextWriter::new(values, from, session.zone).with_names(session.names());
    let mut builder = StringViewBuilder::with_capacity(values.len());
    let (mut text, mut guard) = (String::new(), ValueMemoryCounter::default());
    for row in 0..values.len() {
        text.clear();
        writer.check_memory(row, &text)?;
        match writer.write(row, &mut text) {
            Some(()) => {
                fit_length(&mut text, from, to, kind)?;
                guard.add_text(text.len())?;
                builder.append_value(&text);
            }
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Truncates or pads to the target's length. An assignment truncates blanks only.
pub(super) fn fit_length(text: &mut String, from: &SqlType, to: &SqlType, kind: CastKind) -> SqlResult<()> {
    let (length, is_padded) = match to {
        SqlType::Varchar(Some(length)) => (*length, false),
        SqlType::Char(Some(length)) => (*length, true),
        SqlType::Name => (63, false),
        SqlType::InternalChar => (1, false),
        SqlType::Varchar(None)
        | SqlType::Char(None)
        | SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Text
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Interval
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Array(_)
        | SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => return Ok(()),
    };
    let limit = usize::try_from(length).unwrap_or(usize::MAX);
    if kind == CastKind::Comparison {
        text.truncate(text.trim_end_matches(' ').len());
    }
    // ASCII text has as many characters as bytes.
    let count = if text.is_ascii() { text.len() } else { text.chars().count() };
    if limit < count && kind == CastKind::Comparison {
        return Ok(());
    }
    if limit < count {
        let end = text.char_indices().nth(limit).map_or(text.len(), |(index, _)| index);
        let is_cut_silently =
            kind == CastKind::Explicit && (is_text(from) || is_padded || matches!(to, SqlType::Varchar(_)));
        if !is_cut_silently && text[end..].bytes().any(|byte| byte != b' ') {
            return Err(SqlError::new(Condition::StringDataRightTruncation, format!("value too long for type {to}")));
        }
        text.truncate(end);
    } else if is_padded {
        text.extend(std::iter::repeat_n(' ', limit - count));
    }
    Ok(())
}

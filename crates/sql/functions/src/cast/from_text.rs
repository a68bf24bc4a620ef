//! Casts from text to any type, with PostgreSQL's messages for invalid input.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until text is cast to it")]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, ListArray,
    PrimitiveBuilder, StringViewArray, StringViewBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use session_context::EvaluationContext;
use types::text::{
    check_json, normalize_jsonb, parse_array, parse_bool, parse_bytea, parse_date_in, parse_float4, parse_float8,
    parse_int2, parse_int4, parse_int8, parse_interval, parse_numeric, parse_oid, parse_time, parse_timestamp_in,
    parse_timestamptz_in, parse_uuid,
};
use types::{Condition, SqlError, SqlResult, SqlType, ValueMemoryCounter};

use super::{CastKind, cast_array as convert_any, missing_cast, to_text};
use crate::call::check_binary;
use crate::text_array_builder::ELEMENT_BYTES;
use crate::type_rules::plain_type_name;

pub(super) fn convert(
    values: &ArrayRef,
    to: &SqlType,
    kind: CastKind,
    session: &EvaluationContext,
) -> SqlResult<ArrayRef> {
    use SqlType as T;
    let texts = values.as_string_view();
    match to {
        T::Bool => {
            let mut builder = BooleanBuilder::with_capacity(texts.len());
            for text in texts {
                builder.append_option(text.map(parse_bool).transpose()?);
            }
            Ok(Arc::new(builder.finish()))
        }
        T::Int2 => parse_primitives::<Int16Type>(texts, to, parse_int2),
        T::Int4 => parse_primitives::<Int32Type>(texts, to, parse_int4),
        T::Int8 => parse_primitives::<Int64Type>(texts, to, parse_int8),
        T::Numeric { precision, scale } => {
            parse_primitives::<Decimal128Type>(texts, to, |text| parse_numeric(text, *precision, *scale))
        }
        T::Float4 => parse_primitives::<Float32Type>(texts, to, parse_float4),
        T::Float8 => parse_primitives::<Float64Type>(texts, to, parse_float8),
        T::Date => parse_primitives::<Date32Type>(texts, to, |text| {
            session.parse_with_dates(|dates| parse_date_in(text, dates))
        }),
        T::Time => parse_primitives::<Time64MicrosecondType>(texts, to, parse_time),
        T::Timestamp => parse_primitives::<TimestampMicrosecondType>(texts, to, |text| {
            session.parse_with_dates(|dates| parse_timestamp_in(text, dates))
        }),
        T::TimestampTz => parse_primitives::<TimestampMicrosecondType>(texts, to, |text| {
            session.parse_with_dates(|dates| parse_timestamptz_in(text, dates))
        }),
        T::Interval => parse_primitives::<IntervalMonthDayNanoType>(texts, to, |text| {
            let (months, days, nanoseconds) = parse_interval(text)?.to_month_day_nano()?;
            Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
        }),
        T::Oid => parse_primitives::<UInt32Type>(texts, to, parse_oid),
        T::Regclass | T::Regtype | T::Regproc | T::Regnamespace | T::Regrole | T::Regprocedure | T::Regoperator => {
            let names = session.names().ok_or_else(|| {
                SqlError::internal("cast from text to a reg type (such as regclass) ran without access to the catalog")
            })?;
            parse_primitives::<UInt32Type>(texts, to, |text| names.parse(to, text))
        }
        T::Bytea => {
            let (mut builder, mut guard) = (BinaryBuilder::new(), ValueMemoryCounter::default());
            for text in texts {
                let bytes = text.map(parse_bytea).transpose()?;
                check_binary(&builder, bytes.as_deref(), &mut guard)?;
                builder.append_option(bytes);
            }
            Ok(Arc::new(builder.finish()))
        }
        T::Uuid => {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
            for text in texts {
                match text {
                    Some(text) => builder.append_value(parse_uuid(text)?).expect("a uuid has 16 bytes"),
                    None => builder.append_null(),
                }
            }
            Ok(Arc::new(builder.finish()))
        }
        T::Json => {
            texts.iter().flatten().try_for_each(check_json)?;
            Ok(Arc::clone(values))
        }
        T::Jsonb => {
            let (mut builder, mut guard) =
                (StringViewBuilder::with_capacity(texts.len()), ValueMemoryCounter::default());
            for text in texts {
                let json = text.map(normalize_jsonb).transpose()?;
                guard.add_text(json.as_ref().map_or(0, String::len))?;
                builder.append_option(json);
            }
            Ok(Arc::new(builder.finish()))
        }
        T::Array(element) => parse_lists(texts, to, (element, kind), session, |text, add| parse_array(text, add)),
        T::Int2Vector | T::OidVector => {
            let element = to.element().ok_or_else(|| {
                SqlError::internal("cast from text to a vector type (int2vector, oidvector) that has no element type")
            })?;
            parse_lists(texts, to, (&element, kind), session, |text, add| {
                text.split_whitespace().try_for_each(|element| add(Some(element)))
            })
        }
        T::Text | T::Varchar(_) | T::Char(_) | T::Name | T::InternalChar => {
            to_text::convert(values, &T::Text, to, kind, session)
        }
        T::Unknown => Ok(Arc::clone(values)),
    }
}

/// Casts `jsonb` numbers and booleans to SQL types.
pub(super) fn from_jsonb(
    values: &ArrayRef,
    to: &SqlType,
    kind: CastKind,
    session: &EvaluationContext,
) -> SqlResult<ArrayRef> {
    let name = |text: &str| match text.as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "numeric",
    };
    let wanted = if *to == SqlType::Bool { "boolean" } else { "numeric" };
    let texts = values.as_string_view();
    if let Some(other) = texts.iter().flatten().map(name).find(|found| *found != wanted) {
        return Err(SqlError::new(
            Condition::InvalidParameterValue,
            format!("cannot cast jsonb {other} to type {}", plain_type_name(to)),
        ));
    }
    if matches!(to, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) {
        let wide = SqlType::Numeric { precision: 38, scale: 0 };
        return convert_any(&convert(values, &wide, kind, session)?, &wide, to, kind, session);
    }
    if matches!(to, SqlType::Bool | SqlType::Numeric { .. } | SqlType::Float4 | SqlType::Float8) {
        return convert(values, to, kind, session);
    }
    Err(missing_cast(&SqlType::Jsonb, to))
}

fn parse_primitives<T: ArrowPrimitiveType>(
    texts: &StringViewArray,
    to: &SqlType,
    parse: impl Fn(&str) -> SqlResult<T::Native>,
) -> SqlResult<ArrayRef> {
    let mut builder = PrimitiveBuilder::<T>::with_capacity(texts.len()).with_data_type(to.arrow_type());
    let mut guard = ValueMemoryCounter::default();
    for text in texts {
        builder.append_option(text.map(&parse).transpose()?);
        guard.add(0)?;
    }
    Ok(Arc::new(builder.finish()))
}

/// Builds arrays whose elements `split` finds in each text.
fn parse_lists(
    texts: &StringViewArray,
    to: &SqlType,
    (element, kind): (&SqlType, CastKind),
    session: &EvaluationContext,
    split: impl Fn(&str, &mut dyn FnMut(Option<&str>) -> SqlResult<()>) -> SqlResult<()>,
) -> SqlResult<ArrayRef> {
    let mut elements = StringViewBuilder::new();
    let (mut lengths, mut guard) = (Vec::with_capacity(texts.len()), ValueMemoryCounter::default());
    for text in texts {
        let mut count = 0;
        if let Some(text) = text {
            split(text, &mut |element| {
                guard.add(ELEMENT_BYTES + element.map_or(0, str::len))?;
                elements.append_option(element);
                count += 1;
                Ok(())
            })?;
        }
        lengths.push(count);
    }
    let DataType::List(item) = to.arrow_type() else {
        return Err(SqlError::internal("cast from text to an array: the Arrow type of the array is not a list"));
    };
    let elements: ArrayRef = Arc::new(elements.finish());
    let values = convert(&elements, element, kind, session)?;
    let nulls = texts.nulls().cloned().map(|nulls| NullBuffer::new(nulls.into_inner()));
    Ok(Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, nulls)))
}

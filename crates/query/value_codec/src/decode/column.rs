//! A column under construction, to which PostgreSQL values in text or binary are appended.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, Decimal128Array, FixedSizeBinaryArray, ListArray,
    NullBufferBuilder, PrimitiveArray, StringViewBuilder,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use types::text::DateContext;
use types::{Condition, SqlError, SqlResult, SqlType};

/// Message of 22P03 for a value with excess bytes.
pub(crate) const EXCESS_BYTES_MESSAGE: &str = "incorrect binary data format";

/// Builder of one column in the Arrow form of its SQL type.
///
/// Type modifiers apply as in an assignment: numbers are rounded, `char(n)` is padded, text that is too long is an
/// error. A push that fails appends nothing; the caller may push NULL instead and continue.
#[derive(Debug)]
pub struct ColumnBuilder {
    pub(super) sql_type: SqlType,
    pub(super) dates: DateContext,
    pub(super) values: Values,
    nulls: NullBufferBuilder,
}

/// Values so far, with a variant for each input function; NULLs have the type's zero.
#[derive(Debug)]
pub(super) enum Values {
    Bool(BooleanBufferBuilder),
    Int2(Vec<i16>),
    Int4(Vec<i32>),
    Int8(Vec<i64>),
    Date(Vec<i32>),
    Time(Vec<i64>),
    Timestamp(Vec<i64>),
    TimestampTz(Vec<i64>),
    Oid(Vec<u32>),
    /// Numbers of objects of a `reg…` type.
    Object(Vec<u32>),
    Float4(Vec<f32>),
    Float8(Vec<f64>),
    Numeric {
        values: Vec<i128>,
        precision: u8,
        scale: u8,
    },
    Interval(Vec<IntervalMonthDayNano>),
    Text {
        values: Box<StringViewBuilder>,
        rule: TextRule,
    },
    Bytes {
        offsets: Vec<i32>,
        data: Vec<u8>,
    },
    Uuid(Vec<u8>),
    Array {
        offsets: Vec<i32>,
        items: Box<ColumnBuilder>,
    },
    /// `int2vector` or `oidvector`, whose text has blanks between the elements.
    Vector {
        offsets: Vec<i32>,
        items: Box<ColumnBuilder>,
    },
}

/// Rule by which text becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRule {
    /// Any text is a value: `text`, and `varchar` and `char` of any length.
    Any,
    /// `varchar(n)` and `char(n)`: [`fit_text`] fits text to their length.
    Limited(TextLimit),
    Json,
    Jsonb,
    Name,
    InternalChar,
}

/// Length of a `varchar(n)` or `char(n)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLimit {
    characters: u32,
    is_char: bool,
}

impl ColumnBuilder {
    /// Creates an empty column of `sql_type` with capacity for `capacity` values; `dates` is used to parse dates.
    #[must_use]
    pub fn new(sql_type: &SqlType, dates: &DateContext, capacity: usize) -> Self {
        let values = match sql_type {
            SqlType::Bool => Values::Bool(BooleanBufferBuilder::new(capacity)),
            SqlType::Int2 => Values::Int2(Vec::with_capacity(capacity)),
            SqlType::Int4 => Values::Int4(Vec::with_capacity(capacity)),
            SqlType::Int8 => Values::Int8(Vec::with_capacity(capacity)),
            SqlType::Date => Values::Date(Vec::with_capacity(capacity)),
            SqlType::Time => Values::Time(Vec::with_capacity(capacity)),
            SqlType::Timestamp => Values::Timestamp(Vec::with_capacity(capacity)),
            SqlType::TimestampTz => Values::TimestampTz(Vec::with_capacity(capacity)),
            SqlType::Oid => Values::Oid(Vec::with_capacity(capacity)),
            SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator => Values::Object(Vec::with_capacity(capacity)),
            SqlType::Float4 => Values::Float4(Vec::with_capacity(capacity)),
            SqlType::Float8 => Values::Float8(Vec::with_capacity(capacity)),
            SqlType::Numeric { precision, scale } => {
                Values::Numeric { values: Vec::with_capacity(capacity), precision: *precision, scale: *scale }
            }
            SqlType::Interval => Values::Interval(Vec::with_capacity(capacity)),
            SqlType::Text | SqlType::Varchar(None) | SqlType::Char(None) | SqlType::Unknown => {
                Self::text(TextRule::Any, capacity)
            }
            SqlType::Varchar(Some(characters)) => {
                let limit = TextLimit { characters: *characters, is_char: false };
                Self::text(TextRule::Limited(limit), capacity)
            }
            SqlType::Char(Some(characters)) => {
                let limit = TextLimit { characters: *characters, is_char: true };
                Self::text(TextRule::Limited(limit), capacity)
            }
            SqlType::Json => Self::text(TextRule::Json, capacity),
            SqlType::Jsonb => Self::text(TextRule::Jsonb, capacity),
            SqlType::Name => Self::text(TextRule::Name, capacity),
            SqlType::InternalChar => Self::text(TextRule::InternalChar, capacity),
            SqlType::Bytea => Values::Bytes { offsets: new_offsets(capacity), data: Vec::new() },
            SqlType::Uuid => Values::Uuid(Vec::with_capacity(16 * capacity)),
            SqlType::Array(element) => {
                Values::Array { offsets: new_offsets(capacity), items: Box::new(Self::new(element, dates, capacity)) }
            }
            SqlType::Int2Vector => Self::vector(&SqlType::Int2, dates, capacity),
            SqlType::OidVector => Self::vector(&SqlType::Oid, dates, capacity),
        };
        Self { sql_type: sql_type.clone(), dates: *dates, values, nulls: NullBufferBuilder::new(capacity) }
    }

    fn text(rule: TextRule, capacity: usize) -> Values {
        Values::Text { values: Box::new(new_text_builder(capacity)), rule }
    }

    fn vector(element: &SqlType, dates: &DateContext, capacity: usize) -> Values {
        Values::Vector { offsets: new_offsets(capacity), items: Box::new(Self::new(element, dates, capacity)) }
    }

    /// Returns the type of the values.
    #[must_use]
    pub fn sql_type(&self) -> &SqlType {
        &self.sql_type
    }

    /// Returns the number of values so far, including NULLs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Returns whether no value was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a NULL.
    pub fn push_null(&mut self) {
        match &mut self.values {
            Values::Bool(values) => values.append(false),
            Values::Int2(values) => values.push(0),
            Values::Int4(values) | Values::Date(values) => values.push(0),
            Values::Int8(values) | Values::Time(values) | Values::Timestamp(values) | Values::TimestampTz(values) => {
                values.push(0)
            }
            Values::Oid(values) | Values::Object(values) => values.push(0),
            Values::Float4(values) => values.push(0.0),
            Values::Float8(values) => values.push(0.0),
            Values::Numeric { values, .. } => values.push(0),
            Values::Interval(values) => values.push(IntervalMonthDayNano::ZERO),
            Values::Text { values, .. } => values.append_null(),
            Values::Bytes { offsets, data } => offsets.push(arrow_offset(data.len())),
            Values::Uuid(values) => values.extend_from_slice(&[0; 16]),
            // Elements of a list whose push failed stay in `items`, covered by this NULL.
            Values::Array { offsets, items } | Values::Vector { offsets, items } => {
                offsets.push(arrow_offset(items.len()));
            }
        }
        self.nulls.append_null();
    }

    /// Marks the value just appended to `values` as not NULL.
    pub(super) fn mark_valid(&mut self) {
        self.nulls.append_non_null();
    }

    /// Finishes the column, in the Arrow form of its SQL type.
    #[must_use]
    pub fn finish(mut self) -> ArrayRef {
        let nulls = self.nulls.finish();
        fn primitive<T: ArrowPrimitiveType>(
            values: Vec<T::Native>,
            nulls: Option<arrow::buffer::NullBuffer>,
        ) -> PrimitiveArray<T> {
            PrimitiveArray::new(ScalarBuffer::from(values), nulls)
        }
        match self.values {
            Values::Bool(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Int2(values) => Arc::new(primitive::<Int16Type>(values, nulls)),
            Values::Int4(values) => Arc::new(primitive::<Int32Type>(values, nulls)),
            Values::Int8(values) => Arc::new(primitive::<Int64Type>(values, nulls)),
            Values::Date(values) => Arc::new(primitive::<Date32Type>(values, nulls)),
            Values::Time(values) => Arc::new(primitive::<Time64MicrosecondType>(values, nulls)),
            Values::Timestamp(values) => Arc::new(primitive::<TimestampMicrosecondType>(values, nulls)),
            Values::TimestampTz(values) => Arc::new(
                primitive::<TimestampMicrosecondType>(values, nulls)
                    .with_timezone(types::arrow_field::TIMESTAMPTZ_ZONE),
            ),
            Values::Oid(values) | Values::Object(values) => Arc::new(primitive::<UInt32Type>(values, nulls)),
            Values::Float4(values) => Arc::new(primitive::<Float32Type>(values, nulls)),
            Values::Float8(values) => Arc::new(primitive::<Float64Type>(values, nulls)),
            Values::Numeric { values, .. } => Arc::new(
                Decimal128Array::new(ScalarBuffer::from(values), nulls).with_data_type(self.sql_type.arrow_type()),
            ),
            Values::Interval(values) => Arc::new(primitive::<IntervalMonthDayNanoType>(values, nulls)),
            Values::Text { mut values, .. } => Arc::new(values.finish()),
            Values::Bytes { offsets, data } => Arc::new(BinaryArray::new(
                OffsetBuffer::new(ScalarBuffer::from(offsets)),
                Buffer::from_vec(data),
                nulls,
            )),
            Values::Uuid(values) => Arc::new(FixedSizeBinaryArray::new(16, Buffer::from_vec(values), nulls)),
            Values::Array { offsets, items } | Values::Vector { offsets, items } => {
                let field = Arc::new(items.sql_type.item_field());
                Arc::new(ListArray::new(field, OffsetBuffer::new(ScalarBuffer::from(offsets)), items.finish(), nulls))
            }
        }
    }
}

/// Returns offsets with a leading zero and capacity for `capacity` values.
fn new_offsets(capacity: usize) -> Vec<i32> {
    let mut offsets = Vec::with_capacity(capacity + 1);
    offsets.push(0);
    offsets
}

/// Converts a length to an Arrow offset; a batch of COPY has a few megabytes and a parameter less than 1 GB.
pub(super) fn arrow_offset(length: usize) -> i32 {
    i32::try_from(length).expect("a column under construction stays below 2 GB")
}

/// Returns 22P03 for a value with more bytes than its type takes.
pub(super) fn excess_bytes() -> SqlError {
    SqlError::new(Condition::InvalidBinaryRepresentation, EXCESS_BYTES_MESSAGE)
}

/// Returns 08P01 for a value with fewer bytes than its type takes.
pub(super) fn too_short() -> SqlError {
    SqlError::new(Condition::ProtocolViolation, "insufficient data left in message")
}

/// Fits text to `varchar(n)` and `char(n)` as their input functions do: excess blanks are dropped and `char` is padded.
///
/// # Errors
/// 22001 for other excess characters.
pub(super) fn fit_text<'a>(
    text: &'a str,
    limit: TextLimit,
    sql_type: &SqlType,
    padded: &'a mut String,
) -> SqlResult<&'a str> {
    let TextLimit { characters: limit, is_char } = limit;
    let limit = usize::try_from(limit).expect("32 bits fit a usize");
    // No text has more characters than bytes.
    if text.len() <= limit && !is_char {
        return Ok(text);
    }
    let length = if text.is_ascii() { text.len() } else { text.chars().count() };
    if length > limit {
        let cut = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
        if text.as_bytes()[cut..].iter().any(|byte| *byte != b' ') {
            return Err(SqlError::new(
                Condition::StringDataRightTruncation,
                format!("value too long for type {sql_type}"),
            ));
        }
        return Ok(&text[..cut]);
    }
    if !is_char || length == limit {
        return Ok(text);
    }
    padded.clear();
    padded.push_str(text);
    padded.extend(std::iter::repeat_n(' ', limit - length));
    Ok(padded)
}

/// Creates a text builder; for a single value, such as a parameter, with a small block.
fn new_text_builder(capacity: usize) -> StringViewBuilder {
    let builder = StringViewBuilder::with_capacity(capacity);
    if capacity == 1 { builder.with_fixed_block_size(128) } else { builder }
}

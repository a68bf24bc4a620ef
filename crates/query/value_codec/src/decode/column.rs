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

/// Values so far; NULLs have the type's zero.
#[derive(Debug)]
pub(super) enum Values {
    Bool(BooleanBufferBuilder),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt32(Vec<u32>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal(Vec<i128>),
    Interval(Vec<IntervalMonthDayNano>),
    Text(Box<StringViewBuilder>),
    Bytes { offsets: Vec<i32>, data: Vec<u8> },
    Uuid(Vec<u8>),
    List { offsets: Vec<i32>, items: Box<ColumnBuilder> },
}

impl ColumnBuilder {
    /// Creates an empty column of `sql_type` with capacity for `capacity` values; `dates` is used to parse dates.
    #[must_use]
    pub fn new(sql_type: &SqlType, dates: &DateContext, capacity: usize) -> Self {
        let values = match sql_type {
            SqlType::Bool => Values::Bool(BooleanBufferBuilder::new(capacity)),
            SqlType::Int2 => Values::Int16(Vec::with_capacity(capacity)),
            SqlType::Int4 | SqlType::Date => Values::Int32(Vec::with_capacity(capacity)),
            SqlType::Int8 | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => {
                Values::Int64(Vec::with_capacity(capacity))
            }
            SqlType::Oid
            | SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator => Values::UInt32(Vec::with_capacity(capacity)),
            SqlType::Float4 => Values::Float32(Vec::with_capacity(capacity)),
            SqlType::Float8 => Values::Float64(Vec::with_capacity(capacity)),
            SqlType::Numeric { .. } => Values::Decimal(Vec::with_capacity(capacity)),
            SqlType::Interval => Values::Interval(Vec::with_capacity(capacity)),
            SqlType::Text
            | SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Json
            | SqlType::Jsonb
            | SqlType::Name
            | SqlType::InternalChar
            | SqlType::Unknown => Values::Text(Box::new(new_text_builder(capacity))),
            SqlType::Bytea => Values::Bytes { offsets: new_offsets(capacity), data: Vec::new() },
            SqlType::Uuid => Values::Uuid(Vec::with_capacity(16 * capacity)),
            SqlType::Array(element) => Self::list(element, dates, capacity),
            SqlType::Int2Vector => Self::list(&SqlType::Int2, dates, capacity),
            SqlType::OidVector => Self::list(&SqlType::Oid, dates, capacity),
        };
        Self { sql_type: sql_type.clone(), dates: *dates, values, nulls: NullBufferBuilder::new(capacity) }
    }

    fn list(element: &SqlType, dates: &DateContext, capacity: usize) -> Values {
        Values::List { offsets: new_offsets(capacity), items: Box::new(Self::new(element, dates, capacity)) }
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
            Values::Int16(values) => values.push(0),
            Values::Int32(values) => values.push(0),
            Values::Int64(values) => values.push(0),
            Values::UInt32(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal(values) => values.push(0),
            Values::Interval(values) => values.push(IntervalMonthDayNano::ZERO),
            Values::Text(values) => values.append_null(),
            Values::Bytes { offsets, data } => offsets.push(arrow_offset(data.len())),
            Values::Uuid(values) => values.extend_from_slice(&[0; 16]),
            // Elements of a list whose push failed stay in `items`, covered by this NULL.
            Values::List { offsets, items } => offsets.push(arrow_offset(items.len())),
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
            Values::Int16(values) => Arc::new(primitive::<Int16Type>(values, nulls)),
            Values::Int32(values) if self.sql_type == SqlType::Date => Arc::new(primitive::<Date32Type>(values, nulls)),
            Values::Int32(values) => Arc::new(primitive::<Int32Type>(values, nulls)),
            Values::Int64(values) => match self.sql_type {
                SqlType::Time => Arc::new(primitive::<Time64MicrosecondType>(values, nulls)),
                SqlType::Timestamp => Arc::new(primitive::<TimestampMicrosecondType>(values, nulls)),
                SqlType::TimestampTz => Arc::new(
                    primitive::<TimestampMicrosecondType>(values, nulls)
                        .with_timezone(types::arrow_field::TIMESTAMPTZ_ZONE),
                ),
                _ => Arc::new(primitive::<Int64Type>(values, nulls)),
            },
            Values::UInt32(values) => Arc::new(primitive::<UInt32Type>(values, nulls)),
            Values::Float32(values) => Arc::new(primitive::<Float32Type>(values, nulls)),
            Values::Float64(values) => Arc::new(primitive::<Float64Type>(values, nulls)),
            Values::Decimal(values) => Arc::new(
                Decimal128Array::new(ScalarBuffer::from(values), nulls).with_data_type(self.sql_type.arrow_type()),
            ),
            Values::Interval(values) => Arc::new(primitive::<IntervalMonthDayNanoType>(values, nulls)),
            Values::Text(mut values) => Arc::new(values.finish()),
            Values::Bytes { offsets, data } => Arc::new(BinaryArray::new(
                OffsetBuffer::new(ScalarBuffer::from(offsets)),
                Buffer::from_vec(data),
                nulls,
            )),
            Values::Uuid(values) => Arc::new(FixedSizeBinaryArray::new(16, Buffer::from_vec(values), nulls)),
            Values::List { offsets, items } => {
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
pub(super) fn fit_text<'a>(text: &'a str, sql_type: &SqlType, padded: &'a mut String) -> SqlResult<&'a str> {
    let (limit, is_char) = match sql_type {
        SqlType::Varchar(Some(limit)) => (*limit, false),
        SqlType::Char(Some(limit)) => (*limit, true),
        _ => return Ok(text),
    };
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

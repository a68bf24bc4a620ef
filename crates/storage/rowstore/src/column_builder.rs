//! Building of Arrow columns value by value, in the Arrow type of the column's SQL type.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, ListArray, NullBufferBuilder, PrimitiveBuilder,
    StringViewBuilder,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, FieldRef, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, UInt32Type,
};
use types::SqlType;

use crate::value::List;
use crate::{Error, Result, Value};

/// Builder of one Arrow column. After an error it must not be used any more.
#[derive(Debug)]
pub struct ColumnBuilder {
    data_type: DataType,
    values: TypedBuilder,
}

#[derive(Debug)]
enum TypedBuilder {
    Bool(BooleanBuilder),
    Int2(PrimitiveBuilder<Int16Type>),
    Int4(PrimitiveBuilder<Int32Type>),
    Int8(PrimitiveBuilder<Int64Type>),
    Oid(PrimitiveBuilder<UInt32Type>),
    Date(PrimitiveBuilder<Date32Type>),
    Time(PrimitiveBuilder<Time64MicrosecondType>),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    Decimal(PrimitiveBuilder<Decimal128Type>),
    Float4(PrimitiveBuilder<Float32Type>),
    Float8(PrimitiveBuilder<Float64Type>),
    Interval(PrimitiveBuilder<IntervalMonthDayNanoType>),
    Text(StringViewBuilder),
    Bytes(BinaryBuilder),
    Uuid(FixedSizeBinaryBuilder),
    List(Box<ListBuilder>),
}

/// Builder of a list column.
#[derive(Debug)]
struct ListBuilder {
    item_field: FieldRef,
    item_builder: ColumnBuilder,
    /// Number of elements so far: the end of the last list.
    element_count: i32,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl ColumnBuilder {
    /// Creates a builder of a column of `sql_type` with memory reserved for `capacity` values.
    pub fn new(sql_type: &SqlType, capacity: usize) -> Result<ColumnBuilder> {
        Self::from_arrow_type(sql_type.arrow_type(), capacity)
    }

    fn from_arrow_type(data_type: DataType, capacity: usize) -> Result<ColumnBuilder> {
        let values = match &data_type {
            DataType::Boolean => TypedBuilder::Bool(BooleanBuilder::with_capacity(capacity)),
            DataType::Int16 => TypedBuilder::Int2(new_primitive_builder(&data_type, capacity)),
            DataType::Int32 => TypedBuilder::Int4(new_primitive_builder(&data_type, capacity)),
            DataType::Int64 => TypedBuilder::Int8(new_primitive_builder(&data_type, capacity)),
            DataType::UInt32 => TypedBuilder::Oid(new_primitive_builder(&data_type, capacity)),
            DataType::Date32 => TypedBuilder::Date(new_primitive_builder(&data_type, capacity)),
            DataType::Time64(TimeUnit::Microsecond) => TypedBuilder::Time(new_primitive_builder(&data_type, capacity)),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                TypedBuilder::Timestamp(new_primitive_builder(&data_type, capacity))
            }
            DataType::Decimal128(..) => TypedBuilder::Decimal(new_primitive_builder(&data_type, capacity)),
            DataType::Float32 => TypedBuilder::Float4(new_primitive_builder(&data_type, capacity)),
            DataType::Float64 => TypedBuilder::Float8(new_primitive_builder(&data_type, capacity)),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                TypedBuilder::Interval(new_primitive_builder(&data_type, capacity))
            }
            DataType::Utf8View => TypedBuilder::Text(text_builder(capacity)),
            DataType::Binary => TypedBuilder::Bytes(BinaryBuilder::with_capacity(capacity, 0)),
            DataType::FixedSizeBinary(width) => {
                TypedBuilder::Uuid(FixedSizeBinaryBuilder::with_capacity(capacity, *width))
            }
            DataType::List(item) => TypedBuilder::List(Box::new(ListBuilder::new(item, capacity)?)),
            other => return Err(Error::UnsupportedType(other.clone())),
        };
        Ok(ColumnBuilder { data_type, values })
    }

    /// Adds a value; fails with [`Error::TypeMismatch`] if it has another type or is out of the type's range.
    #[inline]
    pub fn append(&mut self, value: Value<'_>) -> Result<()> {
        match (&mut self.values, value) {
            (TypedBuilder::Bool(values), Value::Bool(value)) => values.append_value(value),
            (TypedBuilder::Bool(values), Value::Null) => values.append_null(),
            (TypedBuilder::Int2(values), value) => return append_int(values, value),
            (TypedBuilder::Int4(values), value) => return append_int(values, value),
            (TypedBuilder::Int8(values), value) => return append_int(values, value),
            (TypedBuilder::Oid(values), value) => return append_int(values, value),
            (TypedBuilder::Date(values), value) => return append_int(values, value),
            (TypedBuilder::Time(values), value) => return append_int(values, value),
            (TypedBuilder::Timestamp(values), value) => return append_int(values, value),
            (TypedBuilder::Decimal(values), Value::Decimal(value)) => values.append_value(value),
            (TypedBuilder::Decimal(values), Value::Null) => values.append_null(),
            (TypedBuilder::Float4(values), Value::Float4(value)) => values.append_value(value),
            (TypedBuilder::Float4(values), Value::Null) => values.append_null(),
            (TypedBuilder::Float8(values), Value::Float8(value)) => values.append_value(value),
            (TypedBuilder::Float8(values), Value::Null) => values.append_null(),
            (TypedBuilder::Interval(values), Value::Interval { months, days, nanos }) => {
                values.append_value(IntervalMonthDayNano::new(months, days, nanos));
            }
            (TypedBuilder::Interval(values), Value::Null) => values.append_null(),
            (TypedBuilder::Text(values), Value::Text(value)) => {
                values.try_append_value(value).map_err(|_| Error::ArrayOverflow(DataType::Utf8View))?;
            }
            (TypedBuilder::Text(values), Value::Null) => values.append_null(),
            (TypedBuilder::Bytes(values), Value::Bytes(value)) => {
                if i32::try_from(values.values_slice().len() + value.len()).is_err() {
                    return Err(Error::ArrayOverflow(DataType::Binary));
                }
                values.append_value(value);
            }
            (TypedBuilder::Bytes(values), Value::Null) => values.append_null(),
            (TypedBuilder::Uuid(values), Value::Bytes(bytes)) => {
                values.append_value(bytes).map_err(|_| type_mismatch(&value, &self.data_type))?;
            }
            (TypedBuilder::Uuid(values), Value::Null) => values.append_null(),
            (TypedBuilder::List(lists), Value::List(list)) => return lists.append(list),
            (TypedBuilder::List(lists), Value::Null) => lists.append_null(),
            (_, value) => return Err(type_mismatch(&value, &self.data_type)),
        }
        Ok(())
    }

    /// Returns the number of values added.
    #[must_use]
    pub fn len(&self) -> usize {
        use arrow::array::ArrayBuilder;
        match &self.values {
            TypedBuilder::Bool(values) => values.len(),
            TypedBuilder::Int2(values) => values.len(),
            TypedBuilder::Int4(values) => values.len(),
            TypedBuilder::Int8(values) => values.len(),
            TypedBuilder::Oid(values) => values.len(),
            TypedBuilder::Date(values) => values.len(),
            TypedBuilder::Time(values) => values.len(),
            TypedBuilder::Timestamp(values) => values.len(),
            TypedBuilder::Decimal(values) => values.len(),
            TypedBuilder::Float4(values) => values.len(),
            TypedBuilder::Float8(values) => values.len(),
            TypedBuilder::Interval(values) => values.len(),
            TypedBuilder::Text(values) => values.len(),
            TypedBuilder::Bytes(values) => values.len(),
            TypedBuilder::Uuid(values) => values.len(),
            TypedBuilder::List(lists) => lists.offsets.len() - 1,
        }
    }

    /// Whether no values were added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the column and resets the builder.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.values {
            TypedBuilder::Bool(values) => Arc::new(values.finish()),
            TypedBuilder::Int2(values) => Arc::new(values.finish()),
            TypedBuilder::Int4(values) => Arc::new(values.finish()),
            TypedBuilder::Int8(values) => Arc::new(values.finish()),
            TypedBuilder::Oid(values) => Arc::new(values.finish()),
            TypedBuilder::Date(values) => Arc::new(values.finish()),
            TypedBuilder::Time(values) => Arc::new(values.finish()),
            TypedBuilder::Timestamp(values) => Arc::new(values.finish()),
            TypedBuilder::Decimal(values) => Arc::new(values.finish()),
            TypedBuilder::Float4(values) => Arc::new(values.finish()),
            TypedBuilder::Float8(values) => Arc::new(values.finish()),
            TypedBuilder::Interval(values) => Arc::new(values.finish()),
            TypedBuilder::Text(values) => Arc::new(values.finish()),
            TypedBuilder::Bytes(values) => Arc::new(values.finish()),
            TypedBuilder::Uuid(values) => Arc::new(values.finish()),
            TypedBuilder::List(lists) => Arc::new(lists.finish()),
        }
    }
}

impl ListBuilder {
    fn new(item: &FieldRef, capacity: usize) -> Result<ListBuilder> {
        let mut offsets = Vec::with_capacity(capacity + 1);
        offsets.push(0);
        let items = ColumnBuilder::from_arrow_type(item.data_type().clone(), capacity)?;
        Ok(ListBuilder {
            item_field: Arc::clone(item),
            item_builder: items,
            element_count: 0,
            offsets,
            nulls: NullBufferBuilder::new(capacity),
        })
    }

    fn append(&mut self, list: List<'_>) -> Result<()> {
        let count = i32::try_from(list.len()).ok().and_then(|length| self.element_count.checked_add(length));
        self.element_count = count.ok_or_else(|| Error::ArrayOverflow(self.item_builder.data_type.clone()))?;
        for value in list.iter() {
            self.item_builder.append(value)?;
        }
        self.offsets.push(self.element_count);
        self.nulls.append_non_null();
        Ok(())
    }

    fn append_null(&mut self) {
        self.offsets.push(self.element_count);
        self.nulls.append_null();
    }

    fn finish(&mut self) -> ListArray {
        self.element_count = 0;
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        ListArray::new(Arc::clone(&self.item_field), offsets, self.item_builder.finish(), self.nulls.finish())
    }
}

fn new_primitive_builder<T: ArrowPrimitiveType>(data_type: &DataType, capacity: usize) -> PrimitiveBuilder<T> {
    PrimitiveBuilder::with_capacity(capacity).with_data_type(data_type.clone())
}

#[inline]
fn append_int<T: ArrowPrimitiveType<Native: TryFrom<i64>>>(
    values: &mut PrimitiveBuilder<T>,
    value: Value<'_>,
) -> Result<()> {
    match value {
        Value::Null => values.append_null(),
        Value::Int(int) => {
            values.append_value(T::Native::try_from(int).map_err(|_| type_mismatch(&value, &T::DATA_TYPE))?);
        }
        other => return Err(type_mismatch(&other, &T::DATA_TYPE)),
    }
    Ok(())
}

fn type_mismatch(value: &Value<'_>, column: &DataType) -> Error {
    Error::TypeMismatch { value: value.kind(), column: column.clone() }
}

/// Creates a builder of text. Up to 64 texts get a small first block: the default block of 16 KiB per column is too
/// much for single rows.
fn text_builder(capacity: usize) -> StringViewBuilder {
    const SMALL_CAPACITY_MAX: usize = 64;
    const BLOCK_BYTES_PER_TEXT: usize = 128;
    let builder = StringViewBuilder::with_capacity(capacity);
    match u32::try_from(capacity.max(1) * BLOCK_BYTES_PER_TEXT) {
        Ok(block_bytes) if capacity <= SMALL_CAPACITY_MAX => builder.with_fixed_block_size(block_bytes),
        _ => builder,
    }
}

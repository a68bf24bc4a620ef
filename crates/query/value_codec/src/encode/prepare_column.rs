//! Casts a column to the Arrow form of its SQL type and downcasts it, once per batch.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, StringViewArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt32Type,
};
use types::{SqlError, SqlResult, SqlType};

/// Downcast column in the Arrow form of its SQL type.
#[derive(Debug)]
pub(super) enum TypedColumn {
    Null,
    Bool(BooleanArray),
    Int2(Int16Array),
    Int4(Int32Array),
    Int8(Int64Array),
    Oid(UInt32Array),
    /// Object of a `reg…` type: its name in text, its number in binary.
    Object(UInt32Array, SqlType),
    Numeric(Decimal128Array, u8),
    Float4(Float32Array),
    Float8(Float64Array),
    Text(StringViewArray),
    Jsonb(StringViewArray),
    Date(Date32Array),
    Time(Time64MicrosecondArray),
    Timestamp(TimestampMicrosecondArray),
    TimestampTz(TimestampMicrosecondArray),
    Interval(IntervalMonthDayNanoArray),
    Bytea(BinaryArray),
    Uuid(FixedSizeBinaryArray),
    List {
        offsets: OffsetBuffer<i32>,
        items: ArrayRef,
        element: SqlType,
        form: ListForm,
    },
}

/// Text form and lower bound of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListForm {
    /// Array `{1,2}`, with lower bound 1.
    Braces,
    /// Vector `1 2` of the system catalog, with lower bound 0.
    Blanks,
}

/// Prepares `column` for encoding as `sql_type`: free if it has that form already, else one cast of the column.
pub(super) fn prepare(column: &ArrayRef, sql_type: &SqlType) -> SqlResult<(TypedColumn, Option<NullBuffer>)> {
    if *column.data_type() == DataType::Null {
        return Ok((TypedColumn::Null, Some(NullBuffer::new_null(column.len()))));
    }
    let column = normalise(column, sql_type)?;
    let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let values = match sql_type {
        SqlType::Bool => TypedColumn::Bool(column.as_boolean().clone()),
        SqlType::Int2 => TypedColumn::Int2(column.as_primitive::<Int16Type>().clone()),
        SqlType::Int4 => TypedColumn::Int4(column.as_primitive::<Int32Type>().clone()),
        SqlType::Int8 => TypedColumn::Int8(column.as_primitive::<Int64Type>().clone()),
        SqlType::Oid => TypedColumn::Oid(column.as_primitive::<UInt32Type>().clone()),
        SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => TypedColumn::Object(column.as_primitive::<UInt32Type>().clone(), sql_type.clone()),
        SqlType::Numeric { .. } => {
            let values = column.as_primitive::<Decimal128Type>().clone();
            let scale = u8::try_from(values.scale()).expect("normalise casts decimals of negative scale");
            TypedColumn::Numeric(values, scale)
        }
        SqlType::Float4 => TypedColumn::Float4(column.as_primitive::<Float32Type>().clone()),
        SqlType::Float8 => TypedColumn::Float8(column.as_primitive::<Float64Type>().clone()),
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Json
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Unknown => TypedColumn::Text(column.as_string_view().clone()),
        SqlType::Jsonb => TypedColumn::Jsonb(column.as_string_view().clone()),
        SqlType::Date => TypedColumn::Date(column.as_primitive::<Date32Type>().clone()),
        SqlType::Time => TypedColumn::Time(column.as_primitive::<Time64MicrosecondType>().clone()),
        SqlType::Timestamp => TypedColumn::Timestamp(column.as_primitive::<TimestampMicrosecondType>().clone()),
        SqlType::TimestampTz => TypedColumn::TimestampTz(column.as_primitive::<TimestampMicrosecondType>().clone()),
        SqlType::Interval => TypedColumn::Interval(column.as_primitive::<IntervalMonthDayNanoType>().clone()),
        SqlType::Bytea => TypedColumn::Bytea(column.as_binary::<i32>().clone()),
        SqlType::Uuid => TypedColumn::Uuid(column.as_fixed_size_binary().clone()),
        SqlType::Array(element) => prepare_list(&column, element, ListForm::Braces),
        SqlType::Int2Vector => prepare_list(&column, &SqlType::Int2, ListForm::Blanks),
        SqlType::OidVector => prepare_list(&column, &SqlType::Oid, ListForm::Blanks),
    };
    Ok((values, nulls))
}

fn prepare_list(column: &ArrayRef, element: &SqlType, form: ListForm) -> TypedColumn {
    let list = column.as_list::<i32>();
    TypedColumn::List {
        offsets: list.offsets().clone(),
        items: Arc::clone(list.values()),
        element: element.clone(),
        form,
    }
}

/// Casts a column to its SQL type's Arrow form. Decimals keep their scale, and lists their item field.
fn normalise(column: &ArrayRef, sql_type: &SqlType) -> SqlResult<ArrayRef> {
    let wanted = match (sql_type, column.data_type()) {
        (SqlType::Numeric { .. }, DataType::Decimal128(_, scale)) if *scale >= 0 => return Ok(Arc::clone(column)),
        (SqlType::Numeric { .. }, DataType::Decimal256(_, scale)) if *scale >= 0 => DataType::Decimal128(38, *scale),
        (SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector, DataType::List(_)) => {
            return Ok(Arc::clone(column));
        }
        (
            SqlType::Array(_),
            DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::ListView(item)
            | DataType::LargeListView(item),
        ) => DataType::List(Arc::clone(item)),
        (SqlType::TimestampTz, DataType::Timestamp(TimeUnit::Microsecond, _))
        | (SqlType::Timestamp, DataType::Timestamp(TimeUnit::Microsecond, None))
        | (SqlType::Interval, DataType::Interval(IntervalUnit::MonthDayNano)) => return Ok(Arc::clone(column)),
        (_, found) => {
            let wanted = sql_type.arrow_type();
            if wanted == *found {
                return Ok(Arc::clone(column));
            }
            wanted
        }
    };
    let strict = arrow::compute::CastOptions { safe: false, ..Default::default() };
    arrow::compute::cast_with_options(column, &wanted, &strict).map_err(|error| {
        SqlError::internal(format!(
            "could not cast a result column of {} to send it as {sql_type}: {error}",
            column.data_type()
        ))
    })
}

//! The hash of keys. Values that a join may take for equal hash alike, whatever the modifiers of their types: whole numbers of any width, texts that
//! differ in blanks at their ends, numerics that differ in zeros at theirs, zeros of either sign. NULL has a hash too.
//!
//! With `mix` as the finalizer of SplitMix64 over its input plus 0x9e3779b97f4a7c15: whole numbers, dates (days), times and timestamps (microseconds) and
//! booleans are `mix` of themselves in 64 bits; a numeric without zeros at its end is `mix(low ^ mix(high))` of its digits' 128 bits, turned left by its
//! scale; a float is `mix` of its 64 bits, with one NaN and one zero; text without blanks at its end, bytes and UUIDs are XXH3. Keys are put together from
//! the first: `hash = mix((hash turned left by 1) ^ key)`, beginning with 0. The bucket is the upper six bits.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use types::SqlType;

use crate::stats::hash::{bytes, decimal, float, int, mix};
use crate::{Error, Result};

/// NULL's, so that rows without a key are together as well.
const NULL: u64 = 0;

/// How values of a type are hashed. Another way to hash the same type gets another letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hashed {
    Bool,
    Int,
    Numeric,
    Float,
    Text,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Bytes,
    Uuid,
}

impl Hashed {
    pub(super) fn of(sql_type: &SqlType) -> Option<Self> {
        Some(match sql_type {
            SqlType::Bool => Self::Bool,
            SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => Self::Int,
            SqlType::Numeric { .. } => Self::Numeric,
            SqlType::Float4 | SqlType::Float8 => Self::Float,
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => Self::Text,
            SqlType::Date => Self::Date,
            SqlType::Time => Self::Time,
            SqlType::Timestamp => Self::Timestamp,
            SqlType::TimestampTz => Self::TimestampTz,
            SqlType::Bytea => Self::Bytes,
            SqlType::Uuid => Self::Uuid,
            _ => return None,
        })
    }

    /// The same of values in their Arrow form: no form is of types that are hashed in several ways.
    pub(super) fn of_form(form: &DataType) -> Option<Self> {
        Some(match form {
            DataType::Boolean => Self::Bool,
            DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Int,
            DataType::Decimal128(..) => Self::Numeric,
            DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::Utf8View => Self::Text,
            DataType::Date32 => Self::Date,
            DataType::Time64(_) => Self::Time,
            DataType::Timestamp(..) => Self::Timestamp,
            DataType::Binary => Self::Bytes,
            DataType::FixedSizeBinary(16) => Self::Uuid,
            _ => return None,
        })
    }

    /// Stands for it where it is written.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Bool => 'o',
            Self::Int => 'i',
            Self::Numeric => 'n',
            Self::Float => 'f',
            Self::Text => 't',
            Self::Date => 'd',
            Self::Time => 'm',
            Self::Timestamp => 's',
            Self::TimestampTz => 'z',
            Self::Bytes => 'b',
            Self::Uuid => 'u',
        }
    }

    /// Mixes the values into the hashes of their rows.
    pub(super) fn add(self, values: &ArrayRef, hashes: &mut [u64]) -> Result<()> {
        match (self, values.data_type()) {
            (Self::Bool, DataType::Boolean) => {
                let values = values.as_boolean();
                each(values.len(), hashes, |row| values.is_valid(row).then(|| int(i64::from(values.value(row)))));
            }
            (Self::Int, DataType::Int16) => numbers::<Int16Type>(values, hashes, |value| int(i64::from(value))),
            (Self::Int, DataType::Int32) => numbers::<Int32Type>(values, hashes, |value| int(i64::from(value))),
            (Self::Int, DataType::Int64) => numbers::<Int64Type>(values, hashes, int),
            (Self::Numeric, DataType::Decimal128(_, scale)) => {
                let scale = *scale;
                numbers::<Decimal128Type>(values, hashes, |digits| numeric(digits, scale));
            }
            (Self::Float, DataType::Float32) => numbers::<Float32Type>(values, hashes, |value| float(f64::from(value))),
            (Self::Float, DataType::Float64) => numbers::<Float64Type>(values, hashes, float),
            (Self::Text, DataType::Utf8View) => {
                let values = values.as_string_view();
                let text = |row| bytes(values.value(row).trim_end_matches(' ').as_bytes());
                each(values.len(), hashes, |row| values.is_valid(row).then(|| text(row)));
            }
            (Self::Date, DataType::Date32) => numbers::<Date32Type>(values, hashes, |value| int(i64::from(value))),
            (Self::Time, DataType::Time64(_)) => numbers::<Time64MicrosecondType>(values, hashes, int),
            (Self::Timestamp | Self::TimestampTz, DataType::Timestamp(..)) => {
                numbers::<TimestampMicrosecondType>(values, hashes, int);
            }
            (Self::Bytes, DataType::Binary) => {
                let values = values.as_binary::<i32>();
                each(values.len(), hashes, |row| values.is_valid(row).then(|| bytes(values.value(row))));
            }
            (Self::Uuid, DataType::FixedSizeBinary(16)) => {
                let values = values.as_fixed_size_binary();
                each(values.len(), hashes, |row| values.is_valid(row).then(|| bytes(values.value(row))));
            }
            (_, other) => return Err(no_hash(other)),
        }
        Ok(())
    }
}

/// The error of values that are no keys.
pub(super) fn no_hash(form: &DataType) -> Error {
    Error::Arrow(ArrowError::SchemaError(format!("a key of values of type {form}")))
}

fn numbers<T: ArrowPrimitiveType>(values: &ArrayRef, hashes: &mut [u64], hash: impl Fn(T::Native) -> u64) {
    let values = values.as_primitive::<T>();
    each(values.len(), hashes, |row| values.is_valid(row).then(|| hash(values.value(row))));
}

/// Of several keys each is mixed with those before it, so that their order counts.
fn each(rows: usize, hashes: &mut [u64], hash: impl Fn(usize) -> Option<u64>) {
    for (row, known) in hashes.iter_mut().enumerate().take(rows) {
        *known = mix(known.rotate_left(1) ^ hash(row).unwrap_or(NULL));
    }
}

/// Of `digits` so many behind the point: the same for 1.5 and 1.50.
fn numeric(mut digits: i128, scale: i8) -> u64 {
    let mut scale = if digits == 0 { 0 } else { scale };
    while 0 < scale && digits % 10 == 0 {
        digits /= 10;
        scale -= 1;
    }
    decimal(digits).rotate_left(u32::from(scale.unsigned_abs()))
}

//! Hash of distribution keys. Values that a join may consider equal have equal hashes, whatever the modifiers of their
//! types: integers of any width, texts that differ in trailing blanks, numerics that differ in trailing zeros, zeros of
//! either sign. NULL has a hash, too.
//!
//! `mix` is the finalizer of SplitMix64 applied to its input plus 0x9e3779b97f4a7c15. Integers, dates (days), times and
//! timestamps (microseconds) and booleans hash to `mix` of their 64-bit value; a numeric without trailing zeros to
//! `mix(low ^ mix(high))` of its 128-bit digits, rotated left by its scale; a float to `mix` of its 64 bits, with one
//! NaN and one zero; text without trailing blanks, bytes and UUIDs to XXH3. Keys are combined from the first on: `hash
//! = mix((hash rotated left by 1) ^ key)`, starting with 0. The bucket is the upper six bits.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use types::SqlType;

use crate::stats::value_hash::{bytes, decimal, float, int, mix};
use crate::{Error, Result};

/// Hash of NULL, so that rows without a key share a bucket.
const NULL: u64 = 0;

/// Hash function of a type. Another function for the same type would get another letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyHash {
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

impl KeyHash {
    /// Returns the hash function of an SQL type; `None` for types that cannot be distribution keys.
    #[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a hash or is no key")]
    pub(super) fn from_sql_type(sql_type: &SqlType) -> Option<Self> {
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
            SqlType::Interval
            | SqlType::Json
            | SqlType::Jsonb
            | SqlType::Array(_)
            | SqlType::Oid
            | SqlType::Name
            | SqlType::InternalChar
            | SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator
            | SqlType::Int2Vector
            | SqlType::OidVector
            | SqlType::Unknown => return None,
        })
    }

    /// Returns the hash function of an Arrow type, which is unique: no Arrow type stands for SQL types with different
    /// functions.
    pub(super) fn from_arrow_type(form: &DataType) -> Option<Self> {
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

    /// Returns the letter that represents the function in a scheme.
    pub(super) fn scheme_letter(self) -> char {
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

    /// Combines the values into the hashes of their rows.
    pub(super) fn add(self, values: &ArrayRef, hashes: &mut [u64]) -> Result<()> {
        match (self, values.data_type()) {
            (Self::Bool, DataType::Boolean) => {
                let values = values.as_boolean();
                combine(values.len(), hashes, |row| values.is_valid(row).then(|| int(i64::from(values.value(row)))));
            }
            (Self::Int, DataType::Int16) => combine_numbers::<Int16Type>(values, hashes, |value| int(i64::from(value))),
            (Self::Int, DataType::Int32) => combine_numbers::<Int32Type>(values, hashes, |value| int(i64::from(value))),
            (Self::Int, DataType::Int64) => combine_numbers::<Int64Type>(values, hashes, int),
            (Self::Numeric, DataType::Decimal128(_, scale)) => {
                let scale = *scale;
                combine_numbers::<Decimal128Type>(values, hashes, |digits| hash_numeric(digits, scale));
            }
            (Self::Float, DataType::Float32) => {
                combine_numbers::<Float32Type>(values, hashes, |value| float(f64::from(value)))
            }
            (Self::Float, DataType::Float64) => combine_numbers::<Float64Type>(values, hashes, float),
            (Self::Text, DataType::Utf8View) => {
                let values = values.as_string_view();
                let text = |row| bytes(values.value(row).trim_end_matches(' ').as_bytes());
                combine(values.len(), hashes, |row| values.is_valid(row).then(|| text(row)));
            }
            (Self::Date, DataType::Date32) => {
                combine_numbers::<Date32Type>(values, hashes, |value| int(i64::from(value)))
            }
            (Self::Time, DataType::Time64(_)) => combine_numbers::<Time64MicrosecondType>(values, hashes, int),
            (Self::Timestamp | Self::TimestampTz, DataType::Timestamp(..)) => {
                combine_numbers::<TimestampMicrosecondType>(values, hashes, int);
            }
            (Self::Bytes, DataType::Binary) => {
                let values = values.as_binary::<i32>();
                combine(values.len(), hashes, |row| values.is_valid(row).then(|| bytes(values.value(row))));
            }
            (Self::Uuid, DataType::FixedSizeBinary(16)) => {
                let values = values.as_fixed_size_binary();
                combine(values.len(), hashes, |row| values.is_valid(row).then(|| bytes(values.value(row))));
            }
            (_, other) => return Err(unhashable_error(other)),
        }
        Ok(())
    }
}

/// Returns the error for values that cannot be keys.
pub(super) fn unhashable_error(form: &DataType) -> Error {
    Error::Arrow(ArrowError::SchemaError(format!("values of type {form} cannot be hashed as a key")))
}

fn combine_numbers<T: ArrowPrimitiveType>(values: &ArrayRef, hashes: &mut [u64], hash: impl Fn(T::Native) -> u64) {
    let values = values.as_primitive::<T>();
    combine(values.len(), hashes, |row| values.is_valid(row).then(|| hash(values.value(row))));
}

/// Combines the next key with those before it; their order counts.
fn combine(rows: usize, hashes: &mut [u64], hash: impl Fn(usize) -> Option<u64>) {
    for (row, known) in hashes.iter_mut().enumerate().take(rows) {
        *known = mix(known.rotate_left(1) ^ hash(row).unwrap_or(NULL));
    }
}

/// Hashes a numeric of `digits` with `scale` decimal places: the same for 1.5 and 1.50.
fn hash_numeric(mut digits: i128, scale: i8) -> u64 {
    let mut scale = if digits == 0 { 0 } else { scale };
    while 0 < scale && digits % 10 == 0 {
        digits /= 10;
        scale -= 1;
    }
    decimal(digits).rotate_left(u32::from(scale.unsigned_abs()))
}

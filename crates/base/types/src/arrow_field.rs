//! Mapping of SQL types to Arrow: a data type, and field metadata with the SQL type if the data type is ambiguous.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has an Arrow type")]

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};

use crate::SqlType;

#[cfg(test)]
mod tests;

/// Metadata key for a type's OID and modifier, `oid:typmod`.
pub const SQL_TYPE_METADATA_KEY: &str = "kiln.type";

/// Time zone of every `timestamptz` array: values are microseconds since 1970-01-01 UTC, independent of the session's
/// zone.
pub const TIMESTAMPTZ_ZONE: &str = "UTC";

impl SqlType {
    /// Returns the Arrow type of this type's values in all batches.
    #[must_use]
    pub fn arrow_type(&self) -> DataType {
        match self {
            SqlType::Bool => DataType::Boolean,
            SqlType::Int2 => DataType::Int16,
            SqlType::Int4 => DataType::Int32,
            SqlType::Int8 => DataType::Int64,
            SqlType::Numeric { precision, scale } => {
                DataType::Decimal128(*precision, i8::try_from(*scale).expect("scale is at most 38"))
            }
            SqlType::Float4 => DataType::Float32,
            SqlType::Float8 => DataType::Float64,
            SqlType::Text
            | SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Json
            | SqlType::Jsonb
            | SqlType::Name
            | SqlType::InternalChar
            | SqlType::Unknown => DataType::Utf8View,
            SqlType::Date => DataType::Date32,
            SqlType::Time => DataType::Time64(TimeUnit::Microsecond),
            SqlType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            SqlType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some(TIMESTAMPTZ_ZONE.into())),
            SqlType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            SqlType::Bytea => DataType::Binary,
            SqlType::Uuid => DataType::FixedSizeBinary(16),
            SqlType::Oid
            | SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator => DataType::UInt32,
            SqlType::Int2Vector => SqlType::Array(Box::new(SqlType::Int2)).arrow_type(),
            SqlType::OidVector => SqlType::Array(Box::new(SqlType::Oid)).arrow_type(),
            SqlType::Array(element) => DataType::List(Arc::new(element.item_field())),
        }
    }

    /// Returns the field of an array's elements of this type. It has no metadata: the array's own field has the SQL
    /// type, and arrays that are converted to single values and back lose inner metadata.
    #[must_use]
    pub fn item_field(&self) -> Field {
        Field::new("item", self.arrow_type(), true)
    }

    /// Returns a field of this type with the SQL type in its metadata.
    #[must_use]
    pub fn arrow_field(&self, name: &str, nullable: bool) -> Field {
        Field::new(name, self.arrow_type(), nullable).with_metadata(self.arrow_metadata())
    }

    /// Returns the metadata for a field of this type; empty if the Arrow type implies it.
    #[must_use]
    pub fn arrow_metadata(&self) -> HashMap<String, String> {
        if SqlType::from_arrow_type(&self.arrow_type()).as_ref() == Some(self) {
            return HashMap::new();
        }
        HashMap::from([(SQL_TYPE_METADATA_KEY.to_owned(), format!("{}:{}", self.oid(), self.typmod()))])
    }

    /// Returns the SQL type of a field: that of its metadata if it fits the Arrow type, else the one that the Arrow
    /// type implies.
    #[must_use]
    pub fn from_arrow_field(field: &Field) -> Option<SqlType> {
        let marked = field.metadata().get(SQL_TYPE_METADATA_KEY).and_then(|mark| {
            let (oid, typmod) = mark.split_once(':')?;
            SqlType::from_oid(oid.parse().ok()?, typmod.parse().ok()?)
        });
        match marked {
            // Functions may copy their argument's metadata and change the type, so the Arrow type decides.
            Some(marked) if same_values(&marked.arrow_type(), field.data_type()) => Some(marked),
            _ => SqlType::from_arrow_type(field.data_type()),
        }
    }

    /// Returns the SQL type that an Arrow type without metadata implies; `None` for types without an SQL type (structs,
    /// maps).
    #[must_use]
    pub fn from_arrow_type(data_type: &DataType) -> Option<SqlType> {
        Some(match data_type {
            DataType::Null => SqlType::Unknown,
            DataType::Boolean => SqlType::Bool,
            DataType::Int8 | DataType::UInt8 | DataType::Int16 => SqlType::Int2,
            DataType::UInt16 | DataType::Int32 => SqlType::Int4,
            DataType::UInt32 | DataType::Int64 => SqlType::Int8,
            DataType::UInt64 => SqlType::Numeric { precision: 20, scale: 0 },
            DataType::Float16 | DataType::Float32 => SqlType::Float4,
            DataType::Float64 => SqlType::Float8,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                SqlType::Numeric { precision: *precision, scale: u8::try_from(*scale).unwrap_or(0) }
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => SqlType::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => SqlType::Bytea,
            DataType::FixedSizeBinary(16) => SqlType::Uuid,
            DataType::FixedSizeBinary(_) => SqlType::Bytea,
            DataType::Date32 | DataType::Date64 => SqlType::Date,
            DataType::Time32(_) | DataType::Time64(_) => SqlType::Time,
            DataType::Timestamp(_, None) => SqlType::Timestamp,
            DataType::Timestamp(_, Some(_)) => SqlType::TimestampTz,
            DataType::Interval(_) | DataType::Duration(_) => SqlType::Interval,
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => SqlType::Array(Box::new(SqlType::from_arrow_field(item)?)),
            DataType::Dictionary(_, values) => SqlType::from_arrow_type(values)?,
            DataType::RunEndEncoded(_, values) => SqlType::from_arrow_field(values)?,
            DataType::Struct(_) | DataType::Union(..) | DataType::Map(..) => return None,
        })
    }
}

/// Whether two Arrow types represent the same values; string layouts are interchangeable.
fn same_values(wanted: &DataType, found: &DataType) -> bool {
    let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (wanted, found) {
        (DataType::List(wanted), DataType::List(found)) => same_values(wanted.data_type(), found.data_type()),
        (_, DataType::Dictionary(_, values)) => same_values(wanted, values),
        _ => wanted == found || (is_text(wanted) && is_text(found)),
    }
}

//! Decides which columns are encoded here, and extracts their values from Arrow arrays.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use parquet::basic::Type as Physical;
use types::SqlType;

/// Physical form of values in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkForm {
    /// Numbers, and floats as their bits.
    Numbers(NumberWidth),
    /// Strings.
    Texts,
}

/// Width of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberWidth {
    FourBytes,
    EightBytes,
}

impl ChunkForm {
    /// Returns the form of a column with this physical type; `None` if Parquet's own writer must encode it.
    pub(super) fn from_types(sql_type: &SqlType, physical: Physical) -> Option<Self> {
        match physical {
            _ if sql_type.element().is_some() => None,
            Physical::INT32 | Physical::FLOAT => Some(Self::Numbers(NumberWidth::FourBytes)),
            Physical::INT64 | Physical::DOUBLE => Some(Self::Numbers(NumberWidth::EightBytes)),
            Physical::BYTE_ARRAY if *sql_type != SqlType::Bytea => Some(Self::Texts),
            _ => None,
        }
    }
}

impl NumberWidth {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::FourBytes => 4,
            Self::EightBytes => 8,
        }
    }

    /// Truncates a difference to this width, as wrapping arithmetic would.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "numbers of 32 bits differ by 32 bits")]
    pub(super) fn truncate(self, lane: i64) -> i64 {
        match self {
            Self::FourBytes => i64::from(lane as i32),
            Self::EightBytes => lane,
        }
    }

    /// Returns the bits of a number of this width.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bits that are wanted are the lowest"
    )]
    pub(super) fn bits(self, lane: i64) -> u64 {
        match self {
            Self::FourBytes => u64::from(lane as u32),
            Self::EightBytes => lane as u64,
        }
    }

    /// Appends plain numbers.
    pub(super) fn append_plain(self, lanes: &[i64], bytes: &mut Vec<u8>) {
        bytes.reserve(lanes.len() * self.bytes());
        match self {
            Self::FourBytes => lanes.iter().for_each(|lane| bytes.extend_from_slice(&lane.to_le_bytes()[..4])),
            Self::EightBytes => lanes.iter().for_each(|lane| bytes.extend_from_slice(&lane.to_le_bytes())),
        }
    }
}

/// Appends the values of an array that are not NULL; `None` if it is not an array of numbers.
pub(super) fn append_lanes(values: &ArrayRef, lanes: &mut Vec<i64>) -> Option<()> {
    fn append_valid_values<T: ArrowPrimitiveType>(
        values: &PrimitiveArray<T>,
        lanes: &mut Vec<i64>,
        lane: impl Fn(T::Native) -> i64,
    ) {
        match values.nulls().filter(|nulls| 0 < nulls.null_count()) {
            None => lanes.extend(values.values().iter().map(|value| lane(*value))),
            Some(nulls) => lanes.extend(nulls.valid_indices().map(|row| lane(values.value(row)))),
        }
    }
    macro_rules! of {
        ($arrow:ty, $lane:expr) => {
            append_valid_values::<$arrow>(values.as_primitive_opt()?, lanes, $lane)
        };
    }
    match values.data_type() {
        DataType::Int16 => of!(Int16Type, i64::from),
        DataType::Int32 => of!(Int32Type, i64::from),
        DataType::UInt32 => of!(UInt32Type, i64::from),
        DataType::Date32 => of!(Date32Type, i64::from),
        DataType::Int64 => of!(Int64Type, |value| value),
        DataType::Time64(_) => of!(Time64MicrosecondType, |value| value),
        DataType::Timestamp(..) => of!(TimestampMicrosecondType, |value| value),
        #[expect(clippy::cast_possible_truncation, reason = "the column's digits fit 64 bits")]
        DataType::Decimal128(..) => of!(Decimal128Type, |value| value as i64),
        DataType::Float32 => of!(Float32Type, |value: f32| i64::from(value.to_bits())),
        DataType::Float64 => of!(Float64Type, |value: f64| value.to_bits().cast_signed()),
        _ => return None,
    }
    Some(())
}

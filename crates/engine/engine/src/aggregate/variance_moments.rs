//! State of variance and standard deviation: count, mean and sum of squared deviations, updated value by value
//! (Welford) and merged by the formula of Chan, Golub and LeVeque.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::DataType;

use crate::{Error, Result};

/// Count, mean and sum of squared deviations of `float8` values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: i64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub squared_deviations: f64,
}

/// Encoded size in bytes: count, mean and sum, little-endian.
const ENCODED_BYTES: usize = 24;

impl Moments {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squared_deviations += distance * (value - self.mean);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub(super) fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            // The formula would fail here: the square of the distance may be infinite, and 0 times infinity is NaN.
            *self = other;
            return;
        }
        let total = self.count + other.count;
        let distance = other.mean - self.mean;
        let (mine, theirs) = (self.count as f64, other.count as f64);
        self.squared_deviations += other.squared_deviations + distance * distance * mine * theirs / total as f64;
        self.mean += distance * theirs / total as f64;
        self.count = total;
    }

    /// Encodes each state as a binary value.
    pub(super) fn to_array(all: &[Self]) -> ArrayRef {
        let bytes = |moments: &Self| {
            let mut bytes = [0; ENCODED_BYTES];
            bytes[..8].copy_from_slice(&moments.count.to_le_bytes());
            bytes[8..16].copy_from_slice(&moments.mean.to_le_bytes());
            bytes[16..].copy_from_slice(&moments.squared_deviations.to_le_bytes());
            bytes
        };
        Arc::new(BinaryArray::from_iter_values(all.iter().map(bytes)))
    }

    /// Decodes a column of encoded states.
    ///
    /// # Errors
    /// [`Error::Internal`] if the column is not one of encoded states.
    pub fn from_array(array: &ArrayRef) -> Result<Vec<Self>> {
        let other = || Error::Internal("a column to be read as variance states has other values");
        if *array.data_type() != DataType::Binary {
            return Err(other());
        }
        let array = array.as_binary::<i32>();
        let moments = |row: usize| {
            let bytes = array.value(row);
            if bytes.len() != ENCODED_BYTES {
                return Err(other());
            }
            let word = |at: usize| -> [u8; 8] { bytes[at..at + 8].try_into().expect("eight bytes") };
            let (count, mean) = (i64::from_le_bytes(word(0)), f64::from_le_bytes(word(8)));
            Ok(Self { count, mean, squared_deviations: f64::from_le_bytes(word(16)) })
        };
        (0..array.len()).map(moments).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_spread_as_the_whole_is() {
        // Values far from zero, for which the sum of their squares would lose all digits.
        let values: Vec<f64> = (0..1_000).map(|number| 1.0e9 + f64::from(number % 10)).collect();
        let mut parts = [Moments::default(); 3];
        values.iter().enumerate().for_each(|(at, value)| parts[at % 2].add(*value));
        let parts = Moments::from_array(&Moments::to_array(&parts)).unwrap();
        let mut whole = Moments::default();
        parts.iter().for_each(|part| whole.merge(*part));
        assert_eq!(whole.count, 1_000);
        assert!((whole.mean - 1.0e9 - 4.5).abs() < 1.0e-6, "{whole:?}");
        assert!((whole.squared_deviations - 8_250.0).abs() < 1.0e-3, "{whole:?}");
        let mut far = Moments::default();
        far.add(1.0e200);
        whole = Moments::default();
        whole.merge(far);
        assert_eq!(whole, far, "no value, then one whose square is infinite");
        assert!(Moments::from_array(&(Arc::new(BinaryArray::from(vec![b"x".as_slice()])) as ArrayRef)).is_err());
    }
}

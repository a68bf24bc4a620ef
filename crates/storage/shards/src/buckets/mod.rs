//! Hash buckets of distributed tables: equal keys of all tables have the same bucket.
//!
//! The rows of a shard are stored bucket by bucket, and the catalog stores the bucket of each run of rows
//! ([`ShardBuckets`]). The hash (`key_hash.rs`) is part of the storage format and never changes; a better one would be
//! another scheme. `bucket_runs.rs` records the buckets of a shard.

mod bucket_runs;
mod key_hash;

#[cfg(test)]
mod tests;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use key_hash::{KeyHash, unhashable_error};
use types::{ColumnId, SqlType};
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;

pub use bucket_runs::{BucketRunsBuilder, ShardBuckets};

/// Number of buckets: more than most clusters have workers, and few enough that a bucket of a large table spans some
/// pages.
pub const BUCKET_COUNT: usize = 64;

/// Number of hash bits below the bucket number.
const HASH_BITS_BELOW_BUCKET: u32 = u64::BITS - BUCKET_COUNT.trailing_zeros();

/// Distribution key: the columns by whose values rows are assigned to buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketKeys {
    columns: Vec<(ColumnId, KeyHash)>,
    scheme: u64,
}

impl BucketKeys {
    /// Creates the distribution key of these columns, in this order. `None` without columns, and if a type cannot be
    /// hashed: see [`is_hashable`].
    #[must_use]
    pub fn new<'a>(columns: impl IntoIterator<Item = (ColumnId, &'a SqlType)>) -> Option<Self> {
        let columns: Vec<_> = columns
            .into_iter()
            .map(|(id, sql_type)| Some((id, KeyHash::from_sql_type(sql_type)?)))
            .collect::<Option<_>>()?;
        if columns.is_empty() {
            return None;
        }
        let named: Vec<_> =
            columns.iter().map(|(column, hashed)| format!("{}{}", hashed.scheme_letter(), column.0)).collect();
        let written = format!("1:{BUCKET_COUNT}:{}", named.join(":"));
        Some(Self { scheme: xxh3_64(written.as_bytes()), columns })
    }

    /// Returns the columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.columns.iter().map(|(column, _)| *column)
    }

    /// Returns the column if there is exactly one.
    #[must_use]
    pub fn only_column(&self) -> Option<ColumnId> {
        match self.columns[..] {
            [(column, _)] => Some(column),
            _ => None,
        }
    }

    /// Returns the scheme: a hash of the columns, the hash functions of their types and the number of buckets. Shards
    /// of the same scheme have comparable buckets.
    #[must_use]
    pub fn scheme(&self) -> u64 {
        self.scheme
    }

    /// Computes the bucket of each row; `values` are the key columns, in order, as Arrow arrays of their types.
    ///
    /// # Errors
    /// If values have an unexpected Arrow type.
    pub fn buckets(&self, values: &[ArrayRef]) -> Result<Vec<u8>> {
        buckets(self.columns.iter().map(|(_, hashed)| *hashed), values)
    }
}

/// Computes the bucket of each row from key values alone, as [`BucketKeys::buckets`] does for a table with keys of
/// these types.
///
/// # Errors
/// If values [have no buckets](has_buckets).
pub fn compute_buckets(values: &[ArrayRef]) -> Result<Vec<u8>> {
    let hashed = |values: &ArrayRef| {
        KeyHash::from_arrow_type(values.data_type()).ok_or_else(|| unhashable_error(values.data_type()))
    };
    buckets(values.iter().map(hashed).collect::<Result<Vec<_>>>()?.into_iter(), values)
}

/// Computes the bucket of each row.
fn buckets(hashed: impl Iterator<Item = KeyHash>, values: &[ArrayRef]) -> Result<Vec<u8>> {
    let rows = values.first().map_or(0, Array::len);
    let mut hashes = vec![0_u64; rows];
    for (hashed, values) in hashed.zip(values) {
        hashed.add(values, &mut hashes)?;
    }
    Ok(hashes
        .into_iter()
        .map(|hash| u8::try_from(hash >> HASH_BITS_BELOW_BUCKET).expect("bucket numbers fit u8"))
        .collect())
}

/// Returns true if values of this Arrow type have buckets.
#[must_use]
pub fn is_hashable_arrow(form: &DataType) -> bool {
    KeyHash::from_arrow_type(form).is_some()
}

/// Returns true if columns of this SQL type can be part of a distribution key.
#[must_use]
pub fn is_hashable(sql_type: &SqlType) -> bool {
    KeyHash::from_sql_type(sql_type).is_some()
}

//! Buckets: rows of a table that is distributed on a key are put together by a hash of the key, so that equal keys of all tables have the same number.
//!
//! A shard's rows lie bucket by bucket, and the catalog keeps which rows are of which ([`ShardBuckets`]). `hash.rs` is the hash, which is part of what
//! is stored: it never changes, a better one is another scheme.

mod hash;
mod runs;

#[cfg(test)]
mod tests;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use hash::{Hashed, no_hash};
use types::{ColumnId, SqlType};
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;

pub use runs::{BucketRuns, ShardBuckets};

/// How many buckets there are: more than workers of most clusters, and few enough that a bucket of a large table is a few pages at least.
pub const BUCKETS: usize = 64;

/// Bits of a hash that are not a bucket's number.
const HASH_BITS: u32 = u64::BITS - BUCKETS.trailing_zeros();

/// The columns by which a table's rows have buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketKeys {
    columns: Vec<(ColumnId, Hashed)>,
    scheme: u64,
}

impl BucketKeys {
    /// The keys of these columns, in the order in which they are named. `None` without columns, and where values of one have no hash:
    /// see [`is_hashable`].
    #[must_use]
    pub fn new<'a>(columns: impl IntoIterator<Item = (ColumnId, &'a SqlType)>) -> Option<Self> {
        let columns: Vec<_> =
            columns.into_iter().map(|(id, sql_type)| Some((id, Hashed::of(sql_type)?))).collect::<Option<_>>()?;
        if columns.is_empty() {
            return None;
        }
        let named: Vec<_> = columns.iter().map(|(column, hashed)| format!("{}{}", hashed.letter(), column.0)).collect();
        let written = format!("1:{BUCKETS}:{}", named.join(":"));
        Some(Self { scheme: xxh3_64(written.as_bytes()), columns })
    }

    /// The columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.columns.iter().map(|(column, _)| *column)
    }

    /// The column, where it is one.
    #[must_use]
    pub fn only_column(&self) -> Option<ColumnId> {
        match self.columns[..] {
            [(column, _)] => Some(column),
            _ => None,
        }
    }

    /// Stands for the columns, how their values are hashed and how many buckets there are: shards with the same one can be told apart by bucket.
    #[must_use]
    pub fn scheme(&self) -> u64 {
        self.scheme
    }

    /// The bucket of each row; `values` are of the columns, in order, in their types' Arrow form.
    ///
    /// # Errors
    /// Values of another form.
    pub fn buckets(&self, values: &[ArrayRef]) -> Result<Vec<u8>> {
        buckets(self.columns.iter().map(|(_, hashed)| *hashed), values)
    }
}

/// The bucket of each row of these keys, whatever table they are of: as [`BucketKeys::buckets`] of a table whose keys are of these types.
///
/// # Errors
/// Values that [have no buckets](has_buckets).
pub fn buckets_of(values: &[ArrayRef]) -> Result<Vec<u8>> {
    let hashed = |values: &ArrayRef| Hashed::of_form(values.data_type()).ok_or_else(|| no_hash(values.data_type()));
    buckets(values.iter().map(hashed).collect::<Result<Vec<_>>>()?.into_iter(), values)
}

fn buckets(hashed: impl Iterator<Item = Hashed>, values: &[ArrayRef]) -> Result<Vec<u8>> {
    let rows = values.first().map_or(0, Array::len);
    let mut hashes = vec![0_u64; rows];
    for (hashed, values) in hashed.zip(values) {
        hashed.add(values, &mut hashes)?;
    }
    Ok(hashes.into_iter().map(|hash| u8::try_from(hash >> HASH_BITS).expect("64 buckets")).collect())
}

/// Whether values of this form tell their bucket.
#[must_use]
pub fn has_buckets(form: &DataType) -> bool {
    Hashed::of_form(form).is_some()
}

/// Whether rows can have buckets by values of a type.
#[must_use]
pub fn is_hashable(sql_type: &SqlType) -> bool {
    Hashed::of(sql_type).is_some()
}

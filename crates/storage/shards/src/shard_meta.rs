//! Metadata of a shard in the catalog: enough to prune it and to estimate plans without opening the file.

use serde::{Deserialize, Serialize};
use types::{ColumnId, RowId, ShardId, SqlType};

use crate::{BucketKeys, Datum, Hll, ShardBuckets};

/// Metadata of an immutable shard file, or of an external file in the state in which it was listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardMeta {
    pub id: ShardId,
    /// Path below the storage prefix: `tables/<oid>/<shard id>.parquet`; for an external file its path or URL.
    pub object: String,
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Size of the file's tail in bytes: everything after the pages, that is page indexes and footer. Since it is
    /// known, one read opens a shard.
    pub tail_bytes: u64,
    /// XXH3 of the tail, which in turn contains the checksums of the pages.
    pub tail_checksum: u64,
    /// One entry per column the shard was written with, in column order; columns added later have none.
    pub columns: Vec<ColumnStats>,
    /// Row groups in row order: the units into which scans are divided.
    pub row_groups: Vec<RowGroupMeta>,
    #[serde(default)]
    pub row_ids: RowIds,
    /// Bucket of each row; `None` if the rows have none or are not in bucket order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<ShardBuckets>,
}

/// Assignment of ids to the rows of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RowIds {
    /// The rows have no ids yet: the shard belongs to no table, or was written by a version without row ids.
    #[default]
    None,
    /// Consecutive ids; this is the first row's.
    From(RowId),
    /// The file stores them in the column [`ROW_ID_COLUMN`].
    Stored,
}

/// Field id of the column that stores the ids of rows that were rewritten; the one that Iceberg reserves for this.
pub const ROW_ID_COLUMN: ColumnId = ColumnId(2_147_483_540);
/// Id of a virtual column, present in no file: the position of each row in its shard, from 0.
pub const ORDINAL_COLUMN: ColumnId = ColumnId(2_147_483_545);

/// Metadata of a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowGroupMeta {
    pub rows: u64,
    /// Size of its pages in the file.
    pub bytes: u64,
}

/// Statistics of one column of one shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    pub column: ColumnId,
    pub nulls: u64,
    /// True if the number of NULLs is unknown: external files need not state it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nulls_guessed: bool,
    /// Minimum of the values that are not NULL; for text a lower bound of at most 64 bytes. `None` if all values are
    /// NULL or scans use no order of the type (interval, json, jsonb, arrays).
    pub min: Option<Datum>,
    /// Maximum of the values that are not NULL; for text and bytes an upper bound of at most 64 bytes. `None` as for
    /// `min`, and if no short upper bound exists.
    pub max: Option<Datum>,
    /// True if `min` and `max` are actual values; false if a long text or byte string was truncated.
    pub bounds_exact: bool,
    /// HyperLogLog sketch of the distinct values that are not NULL.
    pub distinct: Hll,
    /// True if there is no NULL and no value is less than the one before it.
    pub ascending: bool,
    /// True if there is no NULL and every value is greater than the one before it, so that values are unique within the
    /// shard.
    pub strictly_ascending: bool,
    /// Mean length of runs of equal neighbours (NULLs equal each other); 1 if every value differs from the one before.
    pub average_run: f32,
    /// Most frequent values of a sample, most frequent first, with their estimated count in the shard.
    pub heavy_hitters: Vec<(Datum, u64)>,
    /// Size of the column's pages in the file.
    pub bytes: u64,
}

/// Definition of a column as shard files need it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnDef {
    /// Field id in the file; columns are looked up by it, never by name.
    pub id: ColumnId,
    pub name: String,
    pub sql_type: SqlType,
    pub nullable: bool,
    /// Missing value as text: the value of the column in shards written without it; `None` is NULL.
    pub missing: Option<String>,
}

impl ShardMeta {
    /// Returns the buckets of the rows if they were assigned by `keys`.
    #[must_use]
    pub fn buckets_for_keys(&self, keys: &BucketKeys) -> Option<&ShardBuckets> {
        self.buckets.as_ref().filter(|buckets| buckets.scheme == keys.scheme() && buckets.is_valid_for(self.rows))
    }

    /// Returns the statistics of `column`; `None` if the shard was written before the column existed.
    #[must_use]
    pub fn column(&self, column: ColumnId) -> Option<&ColumnStats> {
        self.columns.iter().find(|stats| stats.column == column)
    }
}

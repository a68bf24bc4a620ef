//! What the catalog keeps per shard and column: enough to skip a shard and to estimate a plan without opening a file.

use serde::{Deserialize, Serialize};
use types::{ColumnId, RowId, ShardId, SqlType};

use crate::{BucketKeys, Datum, Hll, ShardBuckets};

/// One immutable shard file and what is known about it; or a file of others, while it is what it was when it was listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardMeta {
    pub id: ShardId,
    /// Path below the storage prefix: `tables/<oid>/<shard id>.parquet`. Of a file of others its path or URL.
    pub object: String,
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Size of the file's tail, everything after the pages: page indexes and footer. One read of the known length opens a shard.
    pub tail_bytes: u64,
    /// XXH3 of the tail, which in turn holds the checksums of the pages.
    pub tail_checksum: u64,
    /// One entry per column the shard was written with, in column order; a column added later has none.
    pub columns: Vec<ColumnStats>,
    /// The file's row groups in row order: the parts a scan is divided into.
    pub row_groups: Vec<RowGroupMeta>,
    #[serde(default)]
    pub row_ids: RowIds,
    /// Which rows are of which bucket; `None` where they have none, or lie in disorder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<ShardBuckets>,
}

/// How the rows of a shard got their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RowIds {
    /// Not yet: the shard is no table's, or of a version before rows had ids.
    #[default]
    None,
    /// One after the other, the first row's being this.
    From(RowId),
    /// The column [`ROW_ID_COLUMN`] of the file holds them.
    Stored,
}

/// The field id of the column that holds the ids of rows that have moved: the one that Iceberg keeps for it.
pub const ROW_ID_COLUMN: ColumnId = ColumnId(2_147_483_540);
/// The id of a column that no file has: the places of the rows in their shard, from 0.
pub const ORDINAL_COLUMN: ColumnId = ColumnId(2_147_483_545);

/// One row group of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowGroupMeta {
    pub rows: u64,
    /// Bytes of its pages in the file.
    pub bytes: u64,
}

/// What is known about one column of one shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    pub column: ColumnId,
    pub nulls: u64,
    /// Nobody knows how many are NULL: files of others need not say it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nulls_guessed: bool,
    /// Least value that is not NULL; for text a lower bound of at most 64 bytes. `None` when all values are NULL or the type
    /// has no order that scans use (interval, json, jsonb, arrays).
    pub min: Option<Datum>,
    /// Greatest value that is not NULL; for text and bytes an upper bound of at most 64 bytes. `None` as for `min`, and when
    /// no short upper bound exists.
    pub max: Option<Datum>,
    /// Whether `min` and `max` are values that occur; false where a long text or byte string was cut.
    pub bounds_exact: bool,
    /// Sketch of the distinct values that are not NULL.
    pub distinct: Hll,
    /// No NULL, and no value is less than the one before it.
    pub ascending: bool,
    /// No NULL, and every value is greater than the one before it: values are unique within the shard.
    pub strictly_ascending: bool,
    /// Mean length of runs of equal neighbours (NULLs equal each other); 1 when every value differs from the one before.
    pub average_run: f32,
    /// Values that a sample shows to be frequent, most frequent first, with their estimated count in the shard.
    pub heavy_hitters: Vec<(Datum, u64)>,
    /// Bytes of the column's pages in the file.
    pub bytes: u64,
}

/// A table's column as a shard file knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnDef {
    /// Field id in the file; a column is found by this, never by its name.
    pub id: ColumnId,
    pub name: String,
    pub sql_type: SqlType,
    pub nullable: bool,
    /// Text form of the value that rows of shards without this column have; `None` is NULL.
    pub missing: Option<String>,
}

impl ShardMeta {
    /// The buckets of its rows, if these are by `keys`.
    #[must_use]
    pub fn buckets_by(&self, keys: &BucketKeys) -> Option<&ShardBuckets> {
        self.buckets.as_ref().filter(|buckets| buckets.scheme == keys.scheme() && buckets.are_of(self.rows))
    }

    /// What is known about `column`; `None` if the shard was written before the column existed.
    #[must_use]
    pub fn column(&self, column: ColumnId) -> Option<&ColumnStats> {
        self.columns.iter().find(|stats| stats.column == column)
    }
}

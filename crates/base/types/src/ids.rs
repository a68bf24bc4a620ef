//! Ids as newtypes, so that different ids cannot be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Id of a catalog object (schema, table, view, role, constraint), like PostgreSQL's `oid`: from one counter, never
/// reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Oid(pub u32);

impl Oid {
    /// First id of user objects. PostgreSQL reserves lower ids, and tools rely on that.
    pub const FIRST_USER: Oid = Oid(16_384);
}

/// Id of a column within its table: `attnum` in `pg_attribute` and field id in Parquet. From 1, not reused by DROP
/// COLUMN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ColumnId(pub i32);

/// Random id of a shard, contained in the object's name; concurrent writers never collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "[u8; 16]", into = "[u8; 16]")]
pub struct ShardId(pub uuid::Uuid);

/// Id of a row within its table, unchanged from insertion to deletion by updates, flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowId(pub u64);

/// Position in the order of commits; also identifies the snapshot that sees this commit and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommitTs(pub u64);

/// Id of one execution of a statement, attached to its logs, errors and spans. It counts from a random start, so that
/// it is unique across restarts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueryId(pub u64);

impl From<[u8; 16]> for ShardId {
    fn from(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }
}

impl From<ShardId> for [u8; 16] {
    fn from(id: ShardId) -> Self {
        id.0.into_bytes()
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_simple().fmt(f)
    }
}

impl fmt::Display for CommitTs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

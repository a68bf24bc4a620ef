//! Identities as newtypes, so that a table's id is never taken for a column's.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Identity of a catalog object (schema, table, view, role, constraint), as PostgreSQL's `oid`: one counter for all, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Oid(pub u32);

impl Oid {
    /// The first id given to a user's object; PostgreSQL keeps lower ones for itself, and tools rely on it.
    pub const FIRST_USER: Oid = Oid(16_384);
}

/// Identity of a column within its table: attnum in `pg_attribute` and field id in Parquet. From 1, never reused after DROP COLUMN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ColumnId(pub i32);

/// Identity of a shard, random: two writers never collide and an object's name says which shard it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "[u8; 16]", into = "[u8; 16]")]
pub struct ShardId(pub uuid::Uuid);

/// Identity of a row within its table, from its insertion to its deletion: updates keep it, and so do the moves between stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowId(pub u64);

/// Position in the one order of commits; also the snapshot that sees this commit and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommitTs(pub u64);

/// Identity of one statement's run, carried by its logs, errors and spans. Unique within a server's life and, by its random start, across restarts.
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

//! Ids of external files in the column cache: the same for the same content of a file read as the same columns of a
//! table, so that cached blocks are found again after a restart.

use std::hash::Hash;

use types::{Oid, ShardId};
use uuid::{Builder, Version};
use xxhash_rust::xxh3::Xxh3;

use super::ExternalFileLocation;
use crate::ColumnDef;

/// Number of leading bytes of an id that hold the table's OID.
const TABLE_OID_BYTES: usize = size_of::<u32>();

impl ExternalFileLocation {
    /// Returns the id of the file's blocks for `columns` of a table. It contains the table's OID unhashed, so that file
    /// names and times chosen by others cannot collide with another table's. Its UUID version differs from that of
    /// shards.
    #[must_use]
    pub fn id(&self, table: Oid, columns: &[ColumnDef]) -> ShardId {
        let columns: Vec<_> = columns.iter().map(|column| (column.id.0, &column.name, &column.sql_type)).collect();
        let mut hasher = Xxh3::new();
        columns.hash(&mut hasher);
        match self {
            Self::Path { path, state } => (path, state).hash(&mut hasher),
            Self::Object { objects, object } => (objects.url(), object).hash(&mut hasher),
        }
        let mut bytes = hasher.digest128().to_be_bytes();
        bytes[..TABLE_OID_BYTES].copy_from_slice(&table.0.to_be_bytes());
        ShardId(Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// Returns the table of an external file's id; `None` for the id of a shard.
#[must_use]
pub fn table_of_cache_id(id: ShardId) -> Option<Oid> {
    let table = id.0.as_bytes().first_chunk::<TABLE_OID_BYTES>().expect("a UUID has 16 bytes");
    (id.0.get_version() == Some(Version::Custom)).then(|| Oid(u32::from_be_bytes(*table)))
}

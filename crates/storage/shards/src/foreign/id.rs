//! Under which id blocks of a file of others are kept: the same for the same content of the same file as the same columns of a table, so that
//! what was kept is found again after a restart.

use std::hash::Hash;

use types::{Oid, ShardId};
use uuid::{Builder, Version};
use xxhash_rust::xxh3::Xxh3;

use super::ForeignPlace;
use crate::ColumnDef;

/// Bytes of an id that say which table's it is.
const TABLE_BYTES: usize = size_of::<u32>();

impl ForeignPlace {
    /// The id of its blocks as `columns` of a table. The table stands in it as it is: whatever names and times others give their files, none of them
    /// is taken for one of another table. Nor for a shard, whose ids are of another version.
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
        bytes[..TABLE_BYTES].copy_from_slice(&table.0.to_be_bytes());
        ShardId(Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// The table whose file has the id; `None` for that of a shard.
#[must_use]
pub fn table_of(id: ShardId) -> Option<Oid> {
    let table = id.0.as_bytes().first_chunk::<TABLE_BYTES>().expect("an id is longer");
    (id.0.get_version() == Some(Version::Custom)).then(|| Oid(u32::from_be_bytes(*table)))
}

//! Format of a stored record: a format byte, a checksum, and the object as MessagePack with named fields.
//!
//! Named fields allow a later version to add a field with a default and still read older records. The checksum is
//! seeded with kind and id, so that a record under another object's key is detected as damaged.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use types::Oid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Error, ObjectKind, Result};

#[cfg(test)]
mod tests;

/// Format that this version writes.
const FORMAT: u8 = 1;
const CHECKSUM_BYTES: usize = 8;

/// Encodes an object as a record.
pub(crate) fn encode<T: Serialize>(kind: ObjectKind, oid: Oid, object: &T) -> Bytes {
    let mut bytes = vec![FORMAT];
    bytes.extend([0; CHECKSUM_BYTES]);
    rmp_serde::encode::write_named(&mut bytes, object)
        .expect("catalog objects serialize to MessagePack, and writing to memory does not fail");
    let (head, content) = bytes.split_at_mut(1 + CHECKSUM_BYTES);
    head[1..].copy_from_slice(&checksum(kind, oid, content).to_le_bytes());
    Bytes::from(bytes)
}

/// Decodes the object of a record.
pub(crate) fn decode<T: DeserializeOwned>(kind: ObjectKind, oid: Oid, bytes: &[u8]) -> Result<T> {
    let damaged = |reason: String| Error::Damaged { kind, oid, reason };
    let (&format, rest) = bytes.split_first().ok_or_else(|| damaged("it is empty".to_owned()))?;
    if format != FORMAT {
        return Err(Error::NewerFormat { kind, oid, found: format, supported: FORMAT });
    }
    let (expected, content) =
        rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(|| damaged("it is cut short".to_owned()))?;
    let found = checksum(kind, oid, content);
    if found != u64::from_le_bytes(*expected) {
        return Err(damaged("its checksum does not match its content".to_owned()));
    }
    rmp_serde::from_slice(content).map_err(|error| damaged(error.to_string()))
}

fn checksum(kind: ObjectKind, oid: Oid, content: &[u8]) -> u64 {
    xxh3_64_with_seed(content, u64::from(kind_byte(kind)) << 32 | u64::from(oid.0))
}

/// Returns the byte that stands for a kind in the store. Bytes must never be reused or renumbered.
pub(crate) fn kind_byte(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Database => 1,
        ObjectKind::Schema => 2,
        ObjectKind::Table => 3,
        ObjectKind::View => 4,
        ObjectKind::Role => 5,
        ObjectKind::Sample => 6,
        ObjectKind::Shard => 7,
        ObjectKind::Sequence => 8,
        ObjectKind::Relation => unreachable!("a relation is stored as a table, view or sequence"),
    }
}

/// Returns the kind that a byte stands for in the catalog's space.
pub(crate) fn kind_from_byte(byte: u8) -> Option<ObjectKind> {
    let kinds = [
        ObjectKind::Database,
        ObjectKind::Schema,
        ObjectKind::Table,
        ObjectKind::View,
        ObjectKind::Role,
        ObjectKind::Sample,
        ObjectKind::Sequence,
    ];
    kinds.into_iter().find(|&kind| kind_byte(kind) == byte)
}

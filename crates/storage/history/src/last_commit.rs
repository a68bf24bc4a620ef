//! The number of the newest commit, as recorded in a store.

use kv::{Batch, Space, TxKv};
use types::CommitTs;

use crate::{HistoryError, Result};

/// Its key in the space `StoreMetadata`.
pub(crate) const LAST_COMMIT: &[u8] = b"last_commit";

/// Records in the batch that the store contains all commits up to `ts`.
pub fn put_last_commit(batch: &mut Batch, ts: CommitTs) {
    batch.put(Space::StoreMetadata, LAST_COMMIT, ts.0.to_be_bytes().to_vec());
}

/// Reads the newest commit in the store; `None` in a new store.
///
/// # Errors
/// Fails if the store cannot be read.
pub fn last_commit(kv: &dyn TxKv) -> Result<Option<CommitTs>> {
    let Some(bytes) = kv.get(Space::StoreMetadata, LAST_COMMIT)? else { return Ok(None) };
    let damaged = HistoryError::DamagedStore { what: "number of the last commit" };
    parse_commit(&bytes).map(Some).ok_or(damaged)
}

/// Parses a stored commit number; `None` if the bytes are not one.
#[must_use]
pub fn parse_commit(bytes: &[u8]) -> Option<CommitTs> {
    <[u8; 8]>::try_from(bytes).ok().map(|bytes| CommitTs(u64::from_be_bytes(bytes)))
}

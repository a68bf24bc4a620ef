//! The number of the newest commit, as a store keeps it.

use kv::{Batch, Space, TxKv};
use types::CommitTs;

use crate::{HistoryError, Result};

/// Its key in the space `Meta`.
pub(crate) const LAST_COMMIT: &[u8] = b"last_commit";

/// Records that all commits up to `ts` are in the store.
pub fn put_last_commit(batch: &mut Batch, ts: CommitTs) {
    batch.put(Space::Meta, LAST_COMMIT, ts.0.to_be_bytes().to_vec());
}

/// The newest commit in the store; `None` in a new one.
///
/// # Errors
/// Where the store cannot be read.
pub fn last_commit(kv: &dyn TxKv) -> Result<Option<CommitTs>> {
    let Some(bytes) = kv.get(Space::Meta, LAST_COMMIT)? else { return Ok(None) };
    let damaged = HistoryError::DamagedStore { what: "number of the last commit" };
    parse_commit(&bytes).map(Some).ok_or(damaged)
}

/// A commit's number of its stored bytes; `None` where they are no number.
#[must_use]
pub fn parse_commit(bytes: &[u8]) -> Option<CommitTs> {
    <[u8; 8]>::try_from(bytes).ok().map(|bytes| CommitTs(u64::from_be_bytes(bytes)))
}

//! The state of affairs as the store tells it at the start.

use std::collections::BTreeSet;

use catalog::{CatalogState, stored};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::{CommitTs, Failpoint};

use crate::{Error, Result};

/// What the store holds.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) ts: CommitTs,
    pub(crate) catalog: CatalogState,
    /// The oldest commit whose objects are all there.
    pub(crate) floor: CommitTs,
    /// Announced objects of transactions that did not commit.
    pub(crate) uploads: BTreeSet<String>,
}

/// Reads the store; a new one gets a fresh catalog first.
pub(crate) fn recover(kv: &dyn TxKv) -> Result<Recovered> {
    let Some(ts) = last_commit(kv)? else {
        let catalog = CatalogState::fresh();
        let ts = CommitTs(1);
        let mut batch = Batch::new();
        stored::write_all(&catalog, &mut batch);
        put_last_commit(&mut batch, ts);
        kv.write(batch)?;
        Failpoint::CatalogMade.pass();
        return Ok(Recovered { ts, catalog, floor: CommitTs(0), uploads: BTreeSet::new() });
    };
    let (catalog, upgrade) = stored::read(kv)?.ok_or(Error::Damaged { what: "catalog" })?;
    if !upgrade.is_empty() {
        kv.write(upgrade)?;
    }
    let uploads = kv
        .scan(Space::Uploads, KeyRange::all(), Direction::Forward)?
        .map(|entry| {
            let (key, _) = entry?;
            String::from_utf8(key.to_vec()).map_err(|_| Error::Damaged { what: "list of uploads" })
        })
        .collect::<Result<_>>()?;
    Failpoint::Recovered.pass();
    let floor = kv.get(Space::Meta, FLOOR)?.as_deref().and_then(parse_commit).unwrap_or_default();
    Ok(Recovered { ts, catalog, floor, uploads })
}

/// Records that all commits up to `ts` are in the store.
pub(crate) fn put_last_commit(batch: &mut Batch, ts: CommitTs) {
    batch.put(Space::Meta, LAST_COMMIT, ts.0.to_be_bytes().to_vec());
}

/// Records that objects which commits before `ts` name may be gone.
pub(crate) fn put_floor(batch: &mut Batch, ts: CommitTs) {
    batch.put(Space::Meta, FLOOR, ts.0.to_be_bytes().to_vec());
}

/// The newest commit in the store; `None` in a new one.
pub(crate) fn last_commit(kv: &dyn TxKv) -> Result<Option<CommitTs>> {
    let Some(bytes) = kv.get(Space::Meta, LAST_COMMIT)? else { return Ok(None) };
    parse_commit(&bytes).map(Some).ok_or(Error::Damaged { what: "number of the last commit" })
}

/// A commit's number as it is stored.
pub(crate) fn parse_commit(bytes: &[u8]) -> Option<CommitTs> {
    <[u8; 8]>::try_from(bytes).ok().map(|bytes| CommitTs(u64::from_be_bytes(bytes)))
}

const FLOOR: &[u8] = b"floor";
/// Where the newest commit's number lies in the space `Meta`.
pub(crate) const LAST_COMMIT: &[u8] = b"last_commit";

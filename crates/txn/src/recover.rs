//! The state of affairs as the store tells it at the start.

use std::collections::BTreeSet;

use catalog::{CatalogState, stored};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::CommitTs;

use crate::{Error, Result};

/// What the store holds.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) ts: CommitTs,
    pub(crate) catalog: CatalogState,
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
        return Ok(Recovered { ts, catalog, uploads: BTreeSet::new() });
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
    Ok(Recovered { ts, catalog, uploads })
}

/// Records that all commits up to `ts` are in the store.
pub(crate) fn put_last_commit(batch: &mut Batch, ts: CommitTs) {
    batch.put(Space::Meta, LAST_COMMIT, ts.0.to_be_bytes().to_vec());
}

fn last_commit(kv: &dyn TxKv) -> Result<Option<CommitTs>> {
    let Some(bytes) = kv.get(Space::Meta, LAST_COMMIT)? else { return Ok(None) };
    let bytes = <[u8; 8]>::try_from(&bytes[..]).map_err(|_| Error::Damaged { what: "number of the last commit" })?;
    Ok(Some(CommitTs(u64::from_be_bytes(bytes))))
}

const LAST_COMMIT: &[u8] = b"last_commit";

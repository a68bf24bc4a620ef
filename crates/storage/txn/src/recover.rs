//! Recovery: the state of a store at the start of the server.

use std::collections::BTreeSet;

use catalog::{CatalogState, persistence};
use history::{last_commit, parse_commit, put_last_commit};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::{CommitTs, Failpoint};

use crate::{Error, Result};

/// State recovered from the store.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) ts: CommitTs,
    pub(crate) catalog: CatalogState,
    /// The oldest commit whose objects are all guaranteed to exist.
    pub(crate) snapshot_floor: CommitTs,
    /// Announced objects of transactions that did not commit.
    pub(crate) uploads: BTreeSet<String>,
}

/// Reads the store; an empty one is initialized with a new catalog first.
pub(crate) fn recover(kv: &dyn TxKv) -> Result<Recovered> {
    let Some(ts) = last_commit(kv).map_err(Error::from_opening)? else {
        let catalog = CatalogState::new_warehouse();
        let ts = CommitTs(1);
        let mut batch = Batch::new();
        persistence::write_all(&catalog, &mut batch);
        put_last_commit(&mut batch, ts);
        kv.write(batch)?;
        Failpoint::CatalogMade.pass();
        return Ok(Recovered { ts, catalog, snapshot_floor: CommitTs(0), uploads: BTreeSet::new() });
    };
    let (catalog, upgrade) = persistence::read(kv)?.ok_or(Error::Damaged { what: "catalog" })?;
    if !upgrade.is_empty() {
        kv.write(upgrade)?;
    }
    let uploads = kv
        .scan(Space::PendingUploads, KeyRange::all(), Direction::Forward)?
        .map(|entry| {
            let (key, _) = entry?;
            String::from_utf8(key.to_vec()).map_err(|_| Error::Damaged { what: "list of uploads" })
        })
        .collect::<Result<_>>()?;
    Failpoint::Recovered.pass();
    let snapshot_floor =
        kv.get(Space::StoreMetadata, SNAPSHOT_FLOOR_KEY)?.as_deref().and_then(parse_commit).unwrap_or_default();
    Ok(Recovered { ts, catalog, snapshot_floor, uploads })
}

/// Records that objects referenced by commits before `ts` may have been deleted.
pub(crate) fn put_snapshot_floor(batch: &mut Batch, ts: CommitTs) {
    batch.put(Space::StoreMetadata, SNAPSHOT_FLOOR_KEY, ts.0.to_be_bytes().to_vec());
}

const SNAPSHOT_FLOOR_KEY: &[u8] = b"floor";

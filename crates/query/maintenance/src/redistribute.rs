//! Rows of a table that was not distributed as it is when they were written.

use std::sync::Arc;

use futures::future::BoxFuture;
use scan::bucket_keys;
use types::{Oid, SqlResult};

use crate::choose;
use crate::maintenance::Maintenance;

impl Maintenance {
    /// Puts the rows of shards that have no buckets by the table's key into shards that have; how many shards went. Those of a table that is not
    /// distributed on a key stay as they are.
    ///
    /// # Errors
    /// What the storage reports; the shards that are left then stay.
    pub fn redistribute(self: &Arc<Self>, table: Oid) -> BoxFuture<'_, SqlResult<usize>> {
        Box::pin(self.redistribute_unboxed(table))
    }

    async fn redistribute_unboxed(self: &Arc<Self>, table: Oid) -> SqlResult<usize> {
        let mut count = 0;
        loop {
            let _alone = self.turn.lock().await;
            let snapshot = self.transactions.current();
            let Some(definition) = snapshot.state.table(table).map(Arc::clone) else { return Ok(count) };
            let Some(keys) = bucket_keys(&definition) else { return Ok(count) };
            let chosen = choose::unbucketed(&snapshot.state.rows(table).shards, &keys);
            if chosen.is_empty() {
                return Ok(count);
            }
            let rows = snapshot.state.rows(table).shards_only(&chosen);
            match self.compact_shards(&definition, rows).await? {
                // Others have changed the table meanwhile: the next VACUUM finds what is left.
                0 => return Ok(count),
                gone => count += gone,
            }
        }
    }
}

//! Redistribution: rewrites shards that were written before the table was distributed on its present key.

use std::sync::Arc;

use futures::future::BoxFuture;
use scan::bucket_keys;
use types::{Oid, SqlResult};

use crate::compaction_choice;
use crate::maintenance::Maintenance;

impl Maintenance {
    /// Rewrites the shards that have no buckets by the table's distribution key, and returns the number of replaced
    /// shards. Does nothing for a table that is not distributed on a key.
    ///
    /// # Errors
    /// Errors of the storage; the remaining shards are then unchanged.
    pub fn redistribute(self: &Arc<Self>, table: Oid) -> BoxFuture<'_, SqlResult<usize>> {
        Box::pin(self.redistribute_unboxed(table))
    }

    async fn redistribute_unboxed(self: &Arc<Self>, table: Oid) -> SqlResult<usize> {
        let mut count = 0;
        loop {
            let _alone = self.maintenance_lock.lock().await;
            let snapshot = self.transactions.current();
            let Some(definition) = snapshot.state.table(table).map(Arc::clone) else { return Ok(count) };
            let Some(keys) = bucket_keys(&definition) else { return Ok(count) };
            let chosen = compaction_choice::select_unbucketed(&snapshot.state.rows(table).shards, &keys);
            if chosen.is_empty() {
                return Ok(count);
            }
            let rows = snapshot.state.rows(table).shards_only(&chosen);
            match self.compact_shards(&definition, rows).await? {
                // Conflict with another transaction: the next VACUUM rewrites the remaining shards.
                0 => return Ok(count),
                gone => count += gone,
            }
        }
    }
}

//! Flush of fresh rows to shards and compaction of shards, concurrently with reads and writes.
//!
//! Changes made while the shards are written are mapped to the rows' new positions by the commit, so that no snapshot
//! shows a row twice or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulk_load::table_sample;
use catalog::{Change, CompactedShards, FlushedRows, Storage, Table, TableRows, TableShards};
use futures::future::BoxFuture;
use scan::bucket_keys;
use storage_error::from_txn;
use txn::{Isolation, Snapshot};
use types::{Failpoint, Oid, ShardId, SqlResult};

use crate::compaction_choice;
use crate::maintenance::Maintenance;

impl Maintenance {
    /// Flushes the fresh rows of a table to shards, and returns their number: 0 if the table was dropped, has row
    /// storage, or lost a conflict with another transaction.
    ///
    /// # Errors
    /// Errors of the storage; the rows then stay fresh.
    pub fn flush(self: &Arc<Self>, table: Oid) -> BoxFuture<'_, SqlResult<u64>> {
        Box::pin(self.flush_unboxed(table))
    }

    async fn flush_unboxed(self: &Arc<Self>, table: Oid) -> SqlResult<u64> {
        let _alone = self.maintenance_lock.lock().await;
        let Some(snapshot) = self.seal_fresh_rows(table).await? else { return Ok(0) };
        let Some(definition) = snapshot.state.table(table).map(Arc::clone) else { return Ok(0) };
        let rows = snapshot.state.rows(table);
        let Some(sealed) = &rows.fresh.sealed else { return Ok(0) };
        let generation = sealed.generation;
        Failpoint::Sealed.pass();
        let mut transaction = self.transactions.begin(Isolation::ReadCommitted);
        let rewritten = self.rewrite(&definition, rows.sealed_only(), &transaction).await?;
        let mut places: Vec<_> = rewritten.positions().map(|(id, _, shard, ordinal)| (id, shard, ordinal)).collect();
        places.sort_unstable();
        let count = places.len() as u64;
        Failpoint::SettleWritten.pass();
        transaction.refresh().map_err(from_txn)?;
        let view = transaction.view();
        let sample = table_sample::next_sample(view.state.shards(table), &rewritten.sample, count, &definition)?;
        let flushed = Arc::new(FlushedRows { generation, shards: rewritten.shards, positions: places, sample });
        match transaction.stage(vec![Change::Flush { table, flushed }]) {
            // Dropped or truncated meanwhile: there is nothing to flush.
            Err(txn::Error::Catalog(_)) => return Ok(0),
            staged => staged.map_err(from_txn)?,
        }
        match transaction.commit().await {
            Err(txn::Error::Conflict(_)) => Ok(0),
            committed => committed.map_err(from_txn).map(|_| {
                Failpoint::Settled.pass();
                count
            }),
        }
    }

    /// Seals the table's fresh rows unless sealed ones are waiting, and returns a snapshot with the sealed rows; `None`
    /// if there are none to flush.
    async fn seal_fresh_rows(&self, table: Oid) -> SqlResult<Option<Snapshot>> {
        let snapshot = self.transactions.current();
        let rows = snapshot.state.rows(table);
        if snapshot.state.table(table).is_none_or(|table| table.storage == Storage::Row) {
            return Ok(None);
        }
        if rows.fresh.sealed.is_some() {
            return Ok(Some(snapshot));
        }
        if rows.fresh.active.is_empty() {
            return Ok(None);
        }
        let mut transaction = self.transactions.begin(Isolation::ReadCommitted);
        match transaction.stage(vec![Change::SealFreshRows { table }]) {
            Err(txn::Error::Catalog(_)) => return Ok(None),
            staged => staged.map_err(from_txn)?,
        }
        match transaction.commit().await {
            Err(txn::Error::Conflict(_)) => Ok(None),
            committed => committed.map_err(from_txn).map(|_| Some(self.transactions.current())),
        }
    }

    /// Merges shards that are small or have many deleted rows, and returns the number of replaced shards.
    ///
    /// # Errors
    /// Errors of the storage; the shards then stay.
    pub fn compact(self: &Arc<Self>, table: Oid) -> BoxFuture<'_, SqlResult<usize>> {
        let choose = |table: &Table, shards: &TableShards| {
            compaction_choice::select_for_compaction(shards, bucket_keys(table).is_some())
        };
        Box::pin(self.compact_chosen(table, choose))
    }

    /// Compacts the shards that `choose` selects; otherwise as [`Self::compact`].
    ///
    /// # Errors
    /// As [`Self::compact`].
    pub async fn compact_chosen(
        self: &Arc<Self>,
        table: Oid,
        choose: impl FnOnce(&Table, &TableShards) -> Vec<ShardId>,
    ) -> SqlResult<usize> {
        let _alone = self.maintenance_lock.lock().await;
        let snapshot = self.transactions.current();
        let Some(definition) = snapshot.state.table(table).map(Arc::clone) else { return Ok(0) };
        let chosen = choose(&definition, &snapshot.state.rows(table).shards);
        if chosen.is_empty() {
            return Ok(0);
        }
        let rows = snapshot.state.rows(table).shards_only(&chosen);
        self.compact_shards(&definition, rows).await
    }

    /// Rewrites all shards of `rows` and commits the replacement; returns the number of replaced shards, 0 after a
    /// conflict. The caller holds `maintenance_lock`.
    pub(crate) async fn compact_shards(self: &Arc<Self>, table: &Arc<Table>, rows: TableRows) -> SqlResult<usize> {
        let old: Vec<ShardId> = rows.shards.shards.ids().collect();
        let removed = old.iter().map(|shard| {
            let deleted = rows.shards.deleted.get(shard).map(|deleted| deleted.positions.clone());
            (*shard, Arc::new(deleted.unwrap_or_default()))
        });
        let removed = removed.collect();
        let mut transaction = self.transactions.begin(Isolation::ReadCommitted);
        let rewritten = self.rewrite(table, rows, &transaction).await?;
        let mut places: BTreeMap<ShardId, Vec<(u32, u32, u32)>> = BTreeMap::new();
        for (_, place, shard, ordinal) in rewritten.positions() {
            let (number, before) = (place >> 32, place & i64::from(u32::MAX));
            let old = old[usize::try_from(number).expect("the scan encodes a shard as a non-negative index")];
            let before = u32::try_from(before).expect("an ordinal masked to 32 bits fits u32");
            places.entry(old).or_default().push((before, shard, ordinal));
        }
        places.values_mut().for_each(|places| places.sort_unstable());
        Failpoint::CompactWritten.pass();
        let compacted = Arc::new(CompactedShards { removed, shards: rewritten.shards, positions: places });
        transaction.refresh().map_err(from_txn)?;
        match transaction.stage(vec![Change::CompactShards { table: table.oid, compacted }]) {
            Err(txn::Error::Catalog(_)) => return Ok(0),
            staged => staged.map_err(from_txn)?,
        }
        match transaction.commit().await {
            Err(txn::Error::Conflict(_)) => Ok(0),
            committed => committed.map_err(from_txn).map(|_| {
                Failpoint::Compacted.pass();
                old.len()
            }),
        }
    }
}

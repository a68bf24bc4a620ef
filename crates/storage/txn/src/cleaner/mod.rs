//! Cleaner: deletes uploads that were never committed, garbage that no snapshot references, and orphans, which nothing
//! references.
//!
//! - `storage_check.rs`: compares the bucket with the catalog and the store's records
//!
//! An object is deleted before its record, so that after a crash in between the deletion is only repeated.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use catalog::{CatalogState, persistence};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use history::TABLES;
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use tokio::runtime::{Handle, RuntimeFlavor};
use types::{CommitTs, Failpoint, InjectedBug, ServiceHealth, with_causes};

use crate::commit_group::Proposal;
use crate::garbage_records::{self, GarbageRecord};
use crate::recover::put_snapshot_floor;
use crate::transactions::Core;
use crate::{Error, Result, Transactions, dropped_tables, upload_announcements};

mod storage_check;
#[cfg(test)]
mod tests;

pub use storage_check::{StorageClass, StorageRow};

/// Records that one durable write removes at most.
const RECORDS_PER_WRITE_MAX: usize = 1_000;
/// Time that objects are retained beyond the retention, which is at most doubled by it.
const RETENTION_MARGIN: Duration = Duration::from_secs(60);
/// Parallel deletions.
const CONCURRENT_DELETES_MAX: usize = 16;

/// Delay after a failed load, so that other failures are cleaned up together.
const FAILURE_DELAY: Duration = Duration::from_secs(1);

/// Intervals of the cleaner.
#[derive(Debug, Clone, Copy)]
pub struct CleanSettings {
    /// Interval between cleanings of uploads and garbage.
    pub interval: Duration,
    /// Interval between listings of the bucket for orphans.
    pub list_interval: Duration,
    /// Minimum age of an unreferenced object to be deleted as an orphan.
    pub orphan_age: Duration,
}

impl Default for CleanSettings {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            // A listing costs a request per thousand objects, and orphans arise only if an upload outlives its server.
            list_interval: Duration::from_secs(6 * 3_600),
            orphan_age: Duration::from_secs(24 * 3_600),
        }
    }
}

/// Result of a cleaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanReport {
    /// Deleted objects of transactions that did not commit.
    pub uploads: usize,
    /// Deleted objects that commits removed from the catalog.
    pub garbage: usize,
    /// Deleted objects that nothing referenced.
    pub orphans: usize,
    /// Objects whose deletion failed; the next cleaning retries.
    pub failed: usize,
}

impl Transactions {
    /// Runs the cleaner until a write to the store fails or the storage is lost to another server.
    pub fn run_cleaner<'a>(&'a self, settings: CleanSettings, health: &'a ServiceHealth) -> BoxFuture<'a, ()> {
        Box::pin(self.run_cleaner_unboxed(settings, health))
    }

    async fn run_cleaner_unboxed(&self, settings: CleanSettings, health: &ServiceHealth) {
        let (mut listed_at, mut listing_failure) = (None, None);
        while !self.is_poisoned() {
            let now = self.core.clock.monotonic();
            let failure = log_report(self.clean_once().await);
            if listed_at.is_none_or(|listed_at| settings.list_interval <= now.saturating_sub(listed_at)) {
                listing_failure = log_report(self.delete_orphans(settings.orphan_age).await);
                listed_at = Some(now);
            }
            match failure.as_ref().or(listing_failure.as_ref()) {
                Some(error) => health.report_failure(error),
                None => health.report_success(),
            }
            tokio::select! {
                () = self.core.clock.sleep(settings.interval) => {}
                // A failed load may have filled the disk, so its objects are deleted soon.
                () = self.core.uploads.wait_for_failure() => self.core.clock.sleep(FAILURE_DELAY.min(settings.interval)).await,
            }
        }
    }

    /// Deletes the uploads of failed transactions and the garbage that no snapshot needs; also removes
    /// expired records of outcomes, dropped tables and row moves.
    pub async fn clean_once(&self) -> Result<CleanReport> {
        let core = &self.core;
        let _alone = core.cleaning_lock.lock().await;
        core.write_authority.check().await.map_err(Error::ClaimNotVerified)?;
        core.moves.forget(core.snapshots.horizon());
        self.delete_retired_row_keys().await?;
        core.delete_expired_outcomes().await?;
        let cutoff_us = core.retention_cutoff_us();
        let old = core.blocking(move |kv| dropped_tables::list_before(kv, cutoff_us)).await?;
        core.write(|batch| {
            for key in old {
                batch.delete(Space::DroppedTables, key);
            }
        })
        .await?;
        let mut report = CleanReport::default();
        for chunk in core.uploads.failed_objects().chunks(RECORDS_PER_WRITE_MAX) {
            let deleted = core.delete_objects(chunk.to_vec(), &mut report).await;
            Failpoint::UploadsDeleted.pass();
            let records = deleted.clone();
            core.write(move |batch| {
                records.iter().for_each(|object| upload_announcements::delete_announcement(batch, object))
            })
            .await?;
            core.uploads.remove_deleted(&deleted);
            report.uploads += deleted.len();
        }
        let mut last: Option<GarbageRecord> = None;
        loop {
            // The horizon is read for each chunk, so that a long cleaning profits from snapshots that end meanwhile.
            let horizon = core.snapshots.horizon();
            let mut chunk = core.read_garbage(last.clone(), horizon, core.retention_cutoff_us()).await?;
            let Some(end) = chunk.last() else { break };
            last = Some(end.clone());
            core.retire_garbage(&mut chunk).await?;
            core.copy_log_before_deleting().await?;
            core.write_authority.check().await.map_err(Error::ClaimNotVerified)?;
            let deleted: HashSet<String> = core
                .delete_objects(chunk.iter().map(|garbage| garbage.object.clone()).collect(), &mut report)
                .await
                .into_iter()
                .collect();
            Failpoint::GarbageDeleted.pass();
            report.garbage += deleted.len();
            let gone = chunk.into_iter().filter(move |garbage| deleted.contains(&garbage.object));
            core.write(move |batch| gone.for_each(|garbage| garbage.delete(batch))).await?;
        }
        Ok(report)
    }

    /// Deletes the keys of rows that were flushed to Parquet or dropped with their table; no state contains them any
    /// more.
    async fn delete_retired_row_keys(&self) -> Result<()> {
        let core = &self.core;
        for prefix in core.blocking(|kv| Ok(persistence::rows::retired_prefixes(kv)?)).await? {
            let mut left = KeyRange::prefix(&prefix);
            loop {
                let range = left.clone();
                let read = move |kv: &dyn TxKv| {
                    let entries = kv.scan(Space::UnflushedRows, range, Direction::Forward)?;
                    entries.take(RECORDS_PER_WRITE_MAX).map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()
                };
                let keys = core.blocking(read).await?;
                let Some(last) = keys.last() else { break };
                // The scan continues after the deleted keys: until the deletions reach the trees of the store, each
                // scan would step over them again.
                left = left.after(last.clone());
                core.write(|batch| {
                    for key in keys {
                        batch.delete(Space::UnflushedRows, key);
                    }
                })
                .await?;
                Failpoint::RowsRetired.pass();
            }
        }
        Ok(())
    }

    /// Lists all objects of tables and deletes shards older than `age` that no table, upload or garbage record
    /// references. Objects that are not named like a shard are reported in the log and not deleted.
    pub async fn delete_orphans(&self, age: Duration) -> Result<CleanReport> {
        let core = &self.core;
        let _alone = core.cleaning_lock.lock().await;
        // The order makes this safe: an object moves from the uploads to the catalog and from there to the garbage, and
        // is added to the next before it is removed from the last. Since the listing comes first, every object in it
        // that is no orphan is found in what is read afterwards.
        let newest_us = core.clock.now_us().saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
        let listed: Vec<String> = core
            .objects
            .list_stream(TABLES)
            .map_err(Error::ListObjects)?
            .try_filter(|object| std::future::ready(object.modified.timestamp_micros() <= newest_us))
            .map_ok(|object| object.name)
            .try_collect()
            .await
            .map_err(Error::ListObjects)?;
        let known = ReferencedObjects {
            uploads: core.uploads.announced_objects(),
            catalog: core.snapshots.pin_newest().state,
            garbage: core.garbage_object_names().await?,
        };
        // Until a restored warehouse has begun its timeline, a restore finds the old one, whose objects are orphans
        // here.
        core.copy_log_before_deleting().await?;
        core.write_authority.check().await.map_err(Error::ClaimNotVerified)?;
        let (orphans, strange) = known.orphans(listed);
        for object in strange {
            tracing::warn!(object, "unexpected object in the folder of tables; it is not deleted");
        }
        let mut report = CleanReport::default();
        let deleted = core.delete_objects(orphans, &mut report).await;
        for object in &deleted {
            tracing::warn!(object, "deleted an orphan object: no table, upload or garbage record references it");
        }
        report.orphans = deleted.len();
        Ok(report)
    }
}

/// The objects that are referenced.
#[derive(Debug)]
struct ReferencedObjects {
    uploads: HashSet<String>,
    catalog: Arc<CatalogState>,
    garbage: HashSet<String>,
}

impl ReferencedObjects {
    /// Returns the listed objects that nothing references: first those named like shards, then the others.
    fn orphans(&self, listed: Vec<String>) -> (Vec<String>, Vec<String>) {
        let tables = self.catalog.tables();
        let shards: HashSet<_> = tables.flat_map(|table| self.catalog.shards(table.oid).shards.objects()).collect();
        listed
            .into_iter()
            .filter(|object| {
                let is_uploaded = self.uploads.contains(object) && !InjectedBug::CleaningIgnoresUploads.is_active();
                !shards.contains(object.as_str()) && !is_uploaded && !self.garbage.contains(object)
            })
            .partition(|object| is_shard_object_name(object))
    }
}

/// Returns whether `object` is `tables/<number>/<32 hexadecimal digits>.parquet`.
fn is_shard_object_name(object: &str) -> bool {
    let parts = || {
        let (table, file) = object.strip_prefix(TABLES)?.strip_prefix('/')?.split_once('/')?;
        Some((table, file.strip_suffix(".parquet")?))
    };
    parts().is_some_and(|(table, shard)| {
        table.parse::<u32>().is_ok() && shard.len() == 32 && shard.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Logs the result of a cleaning; returns the reason if it failed or was incomplete.
fn log_report(report: Result<CleanReport>) -> Option<String> {
    match report {
        Ok(report) if report == CleanReport::default() => None,
        Ok(CleanReport { uploads, garbage, orphans, failed }) => {
            tracing::info!(uploads, garbage, orphans, failed, "deleted unreferenced objects");
            (0 < failed).then(|| format!("{failed} objects could not be deleted"))
        }
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not delete unreferenced objects; the next cleaning retries"
            );
            Some(with_causes(&error))
        }
    }
}

impl Core {
    /// Deletes the objects and returns those that were deleted.
    async fn delete_objects(&self, objects: Vec<String>, report: &mut CleanReport) -> Vec<String> {
        let deletes = stream::iter(objects).map(|object| async move {
            match self.objects.delete(&object).await {
                Ok(()) => Some(object),
                Err(error) => {
                    tracing::warn!(
                        object,
                        error = &error as &dyn std::error::Error,
                        "could not delete an object; the next cleaning retries"
                    );
                    None
                }
            }
        });
        let outcomes: Vec<Option<String>> = deletes.buffer_unordered(CONCURRENT_DELETES_MAX).collect().await;
        report.failed += outcomes.iter().filter(|outcome| outcome.is_none()).count();
        outcomes.into_iter().flatten().collect()
    }

    /// Copies the log to the bucket, so that a restore never ends at a state that references deleted objects: it finds
    /// the commits that removed them.
    async fn copy_log_before_deleting(&self) -> Result<()> {
        match &self.history {
            Some(history) if !InjectedBug::CleaningIgnoresArchiving.is_active() => {
                history.upload_log().await.map_err(|error| Error::ArchiveLog(Box::new(error)))
            }
            _ => Ok(()),
        }
    }

    async fn read_garbage(
        &self,
        after: Option<GarbageRecord>,
        horizon: CommitTs,
        cutoff_us: i64,
    ) -> Result<Vec<GarbageRecord>> {
        self.blocking(move |kv| garbage_records::read(kv, after.as_ref(), horizon, cutoff_us, RECORDS_PER_WRITE_MAX))
            .await
    }

    /// Returns the time before which an object must have been removed from the catalog to be deleted.
    fn retention_cutoff_us(&self) -> i64 {
        self.clock.now_us().saturating_sub(self.object_retention_us())
    }

    /// Returns how long objects are retained: slightly longer than the retention, because the time of a commit is taken
    /// before it is written.
    fn object_retention_us(&self) -> i64 {
        let retention = self.history.as_ref().map_or(Duration::ZERO, |history| history.retention());
        let kept = retention.saturating_add(retention.min(RETENTION_MARGIN));
        i64::try_from(kept.as_micros()).unwrap_or(i64::MAX)
    }

    /// Durably forbids snapshots of states that reference the garbage; removes from the list what pinned snapshots or
    /// tables still reference.
    async fn retire_garbage(&self, garbage: &mut Vec<GarbageRecord>) -> Result<()> {
        let named = garbage.iter().filter(|garbage| garbage.referenced_until_us.is_some());
        if let Some(floor) = named.map(|garbage| garbage.garbage_since).max() {
            let floor = self.snapshots.raise_snapshot_floor(floor);
            garbage.retain(|garbage| garbage.referenced_until_us.is_none() || garbage.garbage_since <= floor);
            self.write(|batch| put_snapshot_floor(batch, floor)).await?;
        }
        let state = self.snapshots.pin_newest().state;
        let listed: HashSet<&str> = garbage.iter().map(|garbage| garbage.object.as_str()).collect();
        let objects = state.tables().flat_map(|table| state.shards(table.oid).shards.objects());
        let named: HashSet<String> = objects.filter(|object| listed.contains(&**object)).map(Cow::into_owned).collect();
        garbage.retain(|garbage| {
            let is_named = named.contains(&garbage.object);
            if is_named {
                tracing::error!(
                    object = garbage.object,
                    "garbage record of an object that a table references; the object is not deleted"
                );
            }
            !is_named
        });
        Ok(())
    }

    /// Returns the store's garbage records if the proposal copies rows, which may reference such objects again.
    pub(crate) fn garbage_for_clone(&self, proposal: &Proposal) -> Vec<GarbageRecord> {
        if !proposal.copies_rows() {
            return Vec::new();
        }
        match garbage_records::read(&*self.kv, None, CommitTs(u64::MAX - 1), i64::MAX, usize::MAX) {
            Ok(listed) => listed,
            // A garbage record that remains by mistake does no harm: the cleaner never deletes what a table references.
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not read the garbage records; the cloned table's objects stay listed as garbage"
                );
                Vec::new()
            }
        }
    }

    async fn garbage_object_names(&self) -> Result<HashSet<String>> {
        self.blocking(|kv| {
            let garbage = garbage_records::read(kv, None, CommitTs(u64::MAX - 1), i64::MAX, usize::MAX)?;
            Ok(garbage.into_iter().map(|garbage| garbage.object).collect())
        })
        .await
    }

    /// Writes the batch that `fill` fills; a failed write poisons the instance.
    pub(crate) async fn write(&self, fill: impl FnOnce(&mut Batch)) -> Result<()> {
        let mut batch = Batch::new();
        fill(&mut batch);
        if batch.is_empty() {
            return Ok(());
        }
        let written = self.blocking(|kv| Ok(kv.write(batch)?)).await;
        if let Err(Error::Store(error)) = &written {
            self.poison(error);
        }
        written
    }

    /// Runs `step` on a thread that may block on the store.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        step: impl FnOnce(&dyn TxKv) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let kv = Arc::clone(&self.kv);
        // A current-thread runtime belongs to a test or simulation, whose order of steps must not depend on a second
        // thread.
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return step(&*kv);
        }
        tokio::task::spawn_blocking(move || step(&*kv))
            .await
            .expect("invariant of blocking steps: they do not panic and are cancelled only at process exit")
    }
}

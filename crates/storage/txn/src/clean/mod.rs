//! Deleting objects that nobody needs: uploads that were never committed, garbage that no snapshot sees, and orphans, which
//! nothing knows of.
//!
//! An object is deleted first and its record after: a crash in between deletes it again, which does no harm.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use catalog::{CatalogState, stored};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use history::TABLES;
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use tokio::runtime::{Handle, RuntimeFlavor};
use types::{CommitTs, Failpoint, Health, Mutation, with_causes};

use crate::garbage::{self, Garbage};
use crate::group::Proposal;
use crate::recover::put_floor;
use crate::transactions::Core;
use crate::{Error, Result, Transactions, dropped, uploads};

mod check;
#[cfg(test)]
mod tests;

pub use check::{StorageClass, StorageRow};

/// Objects whose records one durable write removes.
const CHUNK: usize = 1_000;
/// Objects are kept for so much longer than the retention, and at most for twice as long.
const KEPT_LONGER: Duration = Duration::from_secs(60);
/// Objects deleted at a time.
const DELETES_AT_ONCE: usize = 16;

/// After a load that failed the cleaner waits so long for others.
const SOON: Duration = Duration::from_secs(1);

/// How often to clean.
#[derive(Debug, Clone, Copy)]
pub struct CleanSettings {
    /// Between cleanings of uploads and garbage.
    pub every: Duration,
    /// Between listings of the bucket.
    pub list_every: Duration,
    /// An object that nothing knows of is an orphan once it is older.
    pub orphan_age: Duration,
}

impl Default for CleanSettings {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(60),
            // A listing costs a request per thousand objects; orphans only come about where an upload outlived its server.
            list_every: Duration::from_secs(6 * 3_600),
            orphan_age: Duration::from_secs(24 * 3_600),
        }
    }
}

/// What a cleaning did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanReport {
    /// Objects of transactions that did not commit.
    pub uploads: usize,
    /// Objects that commits took out of the catalog.
    pub garbage: usize,
    /// Objects that nothing knew of.
    pub orphans: usize,
    /// Objects that could not be deleted; the next cleaning tries again.
    pub failed: usize,
}

impl Transactions {
    /// Cleans for as long as the server runs; returns when a write to the store has failed.
    pub fn keep_clean<'a>(&'a self, settings: CleanSettings, health: &'a Health) -> BoxFuture<'a, ()> {
        Box::pin(self.keep_clean_unboxed(settings, health))
    }

    async fn keep_clean_unboxed(&self, settings: CleanSettings, health: &Health) {
        let (mut listed_at, mut listing_failure) = (None, None);
        while !self.is_poisoned() {
            let now = self.core.clock.monotonic();
            let failure = log(self.clean_once().await);
            if listed_at.is_none_or(|listed_at| settings.list_every <= now.saturating_sub(listed_at)) {
                listing_failure = log(self.delete_orphans(settings.orphan_age).await);
                listed_at = Some(now);
            }
            match failure.as_ref().or(listing_failure.as_ref()) {
                Some(error) => health.report_failure(error),
                None => health.report_success(),
            }
            tokio::select! {
                () = self.core.clock.sleep(settings.every) => {}
                // What a load has left that failed may be what the disk lacks.
                () = self.core.in_flight.failed() => self.core.clock.sleep(SOON.min(settings.every)).await,
            }
        }
    }

    /// Deletes the uploads of transactions that failed, and the garbage that no registered snapshot needs.
    pub async fn clean_once(&self) -> Result<CleanReport> {
        let core = &self.core;
        let _alone = core.cleaning.lock().await;
        core.tenure.check().await.map_err(Error::Claim)?;
        core.moves.forget(core.visible.horizon());
        self.remove_retired_rows().await?;
        core.forget_outcomes().await?;
        let cutoff_us = core.cutoff_us();
        let old = core.blocking(move |kv| dropped::old(kv, cutoff_us)).await?;
        core.write(|batch| {
            for key in old {
                batch.delete(Space::Dropped, key);
            }
        })
        .await?;
        let mut report = CleanReport::default();
        for chunk in core.in_flight.dead().chunks(CHUNK) {
            let deleted = core.delete(chunk.to_vec(), &mut report).await;
            Failpoint::UploadsDeleted.pass();
            let records = deleted.clone();
            core.write(move |batch| records.iter().for_each(|object| uploads::delete(batch, object))).await?;
            core.in_flight.forget(&deleted);
            report.uploads += deleted.len();
        }
        let mut last: Option<Garbage> = None;
        loop {
            // Taken anew each time, so that a long cleaning follows the snapshots that end meanwhile.
            let horizon = core.visible.horizon();
            let mut chunk = core.read_garbage(last.clone(), horizon, core.cutoff_us()).await?;
            let Some(end) = chunk.last() else { break };
            last = Some(end.clone());
            core.retire(&mut chunk).await?;
            core.copy_log_before_deleting().await?;
            core.tenure.check().await.map_err(Error::Claim)?;
            let deleted: HashSet<String> = core
                .delete(chunk.iter().map(|garbage| garbage.object.clone()).collect(), &mut report)
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

    /// Removes the keys of rows that have settled, or went with their table. What is removed is part of no state.
    async fn remove_retired_rows(&self) -> Result<()> {
        let core = &self.core;
        for prefix in core.blocking(|kv| Ok(stored::rows::retired(kv)?)).await? {
            let mut left = KeyRange::prefix(&prefix);
            loop {
                let range = left.clone();
                let read = move |kv: &dyn TxKv| {
                    let entries = kv.scan(Space::Rows, range, Direction::Forward)?;
                    entries.take(CHUNK).map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()
                };
                let keys = core.blocking(read).await?;
                let Some(last) = keys.last() else { break };
                // What was removed lies there until the store's trees are told: it is not to be passed over each time.
                left = left.after(last.clone());
                core.write(|batch| {
                    for key in keys {
                        batch.delete(Space::Rows, key);
                    }
                })
                .await?;
                Failpoint::RowsRetired.pass();
            }
        }
        Ok(())
    }

    /// Lists all objects of tables and deletes those that no shard, upload or record of garbage names and that are older than
    /// `age`. What does not look like a shard is left alone, and said so in the log.
    pub async fn delete_orphans(&self, age: Duration) -> Result<CleanReport> {
        let core = &self.core;
        let _alone = core.cleaning.lock().await;
        // The order makes this safe: listed first, an object is named by what is read after, unless it was an orphan. It moves
        // from the uploads to the catalog and from there to the garbage, and is in the next place before it leaves the last.
        let newest_us = core.clock.now_us().saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
        let listed: Vec<String> = core
            .objects
            .list_stream(TABLES)
            .map_err(Error::List)?
            .try_filter(|object| std::future::ready(object.modified.timestamp_micros() <= newest_us))
            .map_ok(|object| object.name)
            .try_collect()
            .await
            .map_err(Error::List)?;
        let known = Known {
            uploads: core.in_flight.all(),
            catalog: core.visible.current().state,
            garbage: core.all_garbage().await?,
        };
        // Until a restored warehouse has begun its timeline, a restore comes to the old one, whose objects are orphans here.
        core.copy_log_before_deleting().await?;
        core.tenure.check().await.map_err(Error::Claim)?;
        let (orphans, strange) = known.orphans(listed);
        for object in strange {
            tracing::warn!(object, "an object among those of tables is none of this warehouse's");
        }
        let mut report = CleanReport::default();
        let deleted = core.delete(orphans, &mut report).await;
        for object in &deleted {
            tracing::warn!(object, "deleted an object that nothing knew of");
        }
        report.orphans = deleted.len();
        Ok(report)
    }
}

/// The objects that something knows of.
#[derive(Debug)]
struct Known {
    uploads: HashSet<String>,
    catalog: Arc<CatalogState>,
    garbage: HashSet<String>,
}

impl Known {
    /// Of the objects listed those that nothing knows of: first the ones named as shards are, then the others.
    fn orphans(&self, listed: Vec<String>) -> (Vec<String>, Vec<String>) {
        let tables = self.catalog.tables();
        let shards: HashSet<_> = tables.flat_map(|table| self.catalog.shards(table.oid).shards.objects()).collect();
        listed
            .into_iter()
            .filter(|object| {
                let is_uploaded = self.uploads.contains(object) && !Mutation::CleaningIgnoresUploads.is_on();
                !shards.contains(object.as_str()) && !is_uploaded && !self.garbage.contains(object)
            })
            .partition(|object| is_named_as_a_shard(object))
    }
}

/// Whether `object` is `tables/<number>/<32 hexadecimal digits>.parquet`.
fn is_named_as_a_shard(object: &str) -> bool {
    let parts = || {
        let (table, file) = object.strip_prefix(TABLES)?.strip_prefix('/')?.split_once('/')?;
        Some((table, file.strip_suffix(".parquet")?))
    };
    parts().is_some_and(|(table, shard)| {
        table.parse::<u32>().is_ok() && shard.len() == 32 && shard.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Logs what a cleaning did, and returns why it failed.
fn log(report: Result<CleanReport>) -> Option<String> {
    match report {
        Ok(report) if report == CleanReport::default() => None,
        Ok(CleanReport { uploads, garbage, orphans, failed }) => {
            tracing::info!(uploads, garbage, orphans, failed, "deleted objects that nobody needs");
            (0 < failed).then(|| format!("{failed} objects could not be deleted"))
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to clean up objects");
            Some(with_causes(&error))
        }
    }
}

impl Core {
    /// Deletes the objects and returns those that are gone.
    async fn delete(&self, objects: Vec<String>, report: &mut CleanReport) -> Vec<String> {
        let deletes = stream::iter(objects).map(|object| async move {
            match self.objects.delete(&object).await {
                Ok(()) => Some(object),
                Err(error) => {
                    tracing::warn!(object, error = &error as &dyn std::error::Error, "failed to delete an object");
                    None
                }
            }
        });
        let outcomes: Vec<Option<String>> = deletes.buffer_unordered(DELETES_AT_ONCE).collect().await;
        report.failed += outcomes.iter().filter(|outcome| outcome.is_none()).count();
        outcomes.into_iter().flatten().collect()
    }

    /// A restore from the storage must not come to a state that names what is deleted: the commits that let go of it have to be there.
    async fn copy_log_before_deleting(&self) -> Result<()> {
        match &self.history {
            Some(history) if !Mutation::GarbageBeforeLog.is_on() => {
                history.upload().await.map_err(|error| Error::History(Box::new(error)))
            }
            _ => Ok(()),
        }
    }

    async fn read_garbage(&self, after: Option<Garbage>, horizon: CommitTs, cutoff_us: i64) -> Result<Vec<Garbage>> {
        self.blocking(move |kv| garbage::read(kv, after.as_ref(), horizon, cutoff_us, CHUNK)).await
    }

    /// Objects that a state has named since then are kept.
    fn cutoff_us(&self) -> i64 {
        self.clock.now_us().saturating_sub(self.kept_us())
    }

    /// How long objects are kept, a little longer than anyone may ask for them: the time of a commit is taken before it is written.
    fn kept_us(&self) -> i64 {
        let retention = self.history.as_ref().map_or(Duration::ZERO, |history| history.retention());
        let kept = retention.saturating_add(retention.min(KEPT_LONGER));
        i64::try_from(kept.as_micros()).unwrap_or(i64::MAX)
    }

    /// Lets nobody come to look at a state that names the objects, durably; keeps of them those that nobody does look at.
    async fn retire(&self, garbage: &mut Vec<Garbage>) -> Result<()> {
        let named = garbage.iter().filter(|garbage| garbage.named_until_us.is_some());
        if let Some(floor) = named.map(|garbage| garbage.since).max() {
            let floor = self.visible.raise_floor(floor);
            garbage.retain(|garbage| garbage.named_until_us.is_none() || garbage.since <= floor);
            self.write(|batch| put_floor(batch, floor)).await?;
        }
        let state = self.visible.current().state;
        let listed: HashSet<&str> = garbage.iter().map(|garbage| garbage.object.as_str()).collect();
        let objects = state.tables().flat_map(|table| state.shards(table.oid).shards.objects());
        let named: HashSet<String> = objects.filter(|object| listed.contains(&**object)).map(Cow::into_owned).collect();
        garbage.retain(|garbage| {
            let is_named = named.contains(&garbage.object);
            if is_named {
                tracing::error!(
                    object = garbage.object,
                    "an object that a table names is listed as garbage; it is kept"
                );
            }
            !is_named
        });
        Ok(())
    }

    /// What the store lists as garbage, where the proposal may need it again.
    pub(crate) fn listed(&self, proposal: &Proposal) -> Vec<Garbage> {
        if !proposal.clones() {
            return Vec::new();
        }
        match garbage::read(&*self.kv, None, CommitTs(u64::MAX - 1), i64::MAX, usize::MAX) {
            Ok(listed) => listed,
            // A record that stays where it should go is found by the cleaner, which keeps what a table names.
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to read the list of garbage");
                Vec::new()
            }
        }
    }

    async fn all_garbage(&self) -> Result<HashSet<String>> {
        self.blocking(|kv| {
            let garbage = garbage::read(kv, None, CommitTs(u64::MAX - 1), i64::MAX, usize::MAX)?;
            Ok(garbage.into_iter().map(|garbage| garbage.object).collect())
        })
        .await
    }

    /// Writes what `fill` puts into a batch.
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

    /// Runs `step` where it may wait for the store.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        step: impl FnOnce(&dyn TxKv) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let kv = Arc::clone(&self.kv);
        // A runtime of one thread is a test's, and a simulation's steps must not depend on a second thread.
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return step(&*kv);
        }
        tokio::task::spawn_blocking(move || step(&*kv))
            .await
            .expect("the step does not panic, and is cancelled only when the process ends")
    }
}

//! History of a warehouse: archived log and checkpoints in the bucket, from which any state within the retention can be
//! rebuilt.
//!
//! | object | holds |
//! |---|---|
//! | `log/<timeline>/<first>-<last>` | the records `first` to `last` of the store's log (`kv::log`) |
//! | `log/<timeline>/begin.json` | the timeline and record that this one continues; the first timeline has none |
//! | `checkpoints/<timeline>/<record>.redb.zst` | a copy of the store after that record |
//! | `checkpoints/<timeline>/<record>.json` | the checkpoint's manifest; written after the copy |
//!
//! A restore begins a new timeline, as in PostgreSQL, so that later records of the old timeline are never mixed with
//! it. A start verifies that the store's log agrees with the bucket's, and a restore that all its records form one
//! history.
//!
//! This crate does not know transactions, and writes to the store only to restore it or to begin a timeline: `txn`
//! writes through [`History::write`].
//!
//! Reading order:
//!
//! - `names.rs`, `log_object.rs`: names and formats of the objects
//! - `plan.rs`: the objects that a point in time is rebuilt from
//! - `start.rs`: comparison of store and bucket at the start of a server
//! - `upload.rs`, `checkpoint.rs`: the background services that archive the log and write checkpoints
//! - `retain.rs`: deletion of history older than the retention
//! - `rebuild.rs`, `restore.rs`: a store rebuilt from the bucket, and a data folder restored from it
//! - `past.rs`, `recent.rs`: states for time travel, rebuilt or still in memory
//! - `timeline.rs`, `tenure.rs`: timelines, and the right of a server to write

mod checkpoint;
mod error;
mod last_commit;
mod log_object;
mod names;
mod past;
mod plan;
mod rebuild;
mod recent;
mod restore;
mod retain;
mod start;
mod tenure;
#[cfg(test)]
mod tests;
mod timeline;
mod upload;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kv::log::{LogPosition, Logged};
use kv::{Batch, TxKv};
use objects::{Claim, Objects};
use parking_lot::Mutex;
use types::{Clock, Reserve};
use uuid::Uuid;

pub use error::{HistoryError, Result};
pub use last_commit::{last_commit, parse_commit, put_last_commit};
pub use names::{CHECKPOINTS, LOG, TABLES, is_history};
pub use plan::Gap;
pub use rebuild::Progress;
pub use recent::{Known, Recent};
pub use restore::{RESTORING, Restored, restore};
pub use start::{compare_with_storage, lacks_first_checkpoint};
pub use tenure::Tenure;
pub use timeline::{begin_timeline, fork_from_nothing};

use self::timeline::Timeline;

/// Reason of damage for objects in a format that only a newer version reads.
pub const NEWER: &str = "a newer version of Kiln has written it";

/// Settings of the history.
#[derive(Debug, Clone)]
pub struct HistorySettings {
    /// Id of the instance, recorded in the objects to identify their origin.
    pub instance: Uuid,
    /// Working folder for checkpoints and rebuilt states, used by the history alone.
    pub folder: PathBuf,
    /// The store's file, which checkpoints copy.
    pub store: PathBuf,
    /// Disk space that checkpoints leave free; `None` to leave none.
    pub reserve: Option<Reserve>,
    /// Interval between uploads of new log records.
    pub upload_every: Duration,
    /// Interval between checkpoints.
    pub checkpoint_every: Duration,
    /// Age up to which past states can be restored or read.
    pub retention: Duration,
    /// The claim on the storage; `None` if no other server can use it.
    pub claim: Option<Arc<Claim>>,
}

/// History of one store.
#[derive(Debug)]
pub struct History {
    log: Arc<Logged>,
    objects: Objects,
    clock: Arc<dyn Clock>,
    settings: HistorySettings,
    timeline: u32,
    /// Held during an upload, so that only one runs at a time.
    uploading: tokio::sync::Mutex<()>,
    status: Mutex<Status>,
    /// The record of the newest checkpoint; 0 for none.
    checkpointed: AtomicU64,
    rebuilt: past::Rebuilt,
    tenure: Tenure,
}

#[derive(Debug, Default)]
struct Status {
    uploads: u64,
    failures: u64,
    last_upload_us: Option<i64>,
    last_error: Option<String>,
    last_checkpoint_us: Option<i64>,
}

/// Progress of the history, as `sys.history` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStatus {
    pub log: LogPosition,
    /// Number of log objects written since the start.
    pub uploads: u64,
    /// Number of failed uploads and checkpoints since the start; each was retried.
    pub failures: u64,
    /// Time of the last upload in microseconds since 1970.
    pub last_upload_us: Option<i64>,
    /// The latest failure of an upload or checkpoint; `None` after the next successful upload.
    pub last_error: Option<String>,
    /// The newest record that the newest checkpoint contains.
    /// Time of the last checkpoint in microseconds since 1970.
    pub checkpoint: Option<u64>,
    pub last_checkpoint_us: Option<i64>,
}

impl History {
    /// Opens the history of the store behind `log`.
    ///
    /// # Errors
    /// [`HistoryError::TimelineNotBegun`] before [`begin_timeline`]; others if the store cannot be read.
    pub fn open(log: Arc<Logged>, objects: Objects, clock: Arc<dyn Clock>, settings: HistorySettings) -> Result<Self> {
        let Timeline::Begun(timeline) = timeline::of(&*log as &dyn TxKv)? else {
            return Err(HistoryError::TimelineNotBegun);
        };
        // Leftovers of an earlier server.
        if settings.folder.exists()
            && let Err(error) = std::fs::remove_dir_all(&settings.folder)
        {
            tracing::warn!(
                folder = %settings.folder.display(),
                %error,
                "could not delete the old working folder of the history"
            );
        }
        let tenure = Tenure::new(settings.claim.clone());
        Ok(Self {
            log,
            objects,
            clock,
            settings,
            timeline,
            uploading: tokio::sync::Mutex::new(()),
            status: Mutex::default(),
            checkpointed: AtomicU64::new(0),
            rebuilt: past::Rebuilt::default(),
            tenure,
        })
    }

    /// Returns the server's tenure, which ends when it may no longer write.
    #[must_use]
    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    /// Returns whether the server may no longer write.
    fn is_over(&self) -> bool {
        self.tenure.is_over() || self.log.store().is_poisoned()
    }

    /// Returns the age up to which past states can be restored or read.
    #[must_use]
    pub fn retention(&self) -> Duration {
        self.settings.retention
    }

    /// Writes a commit and returns its time in the log, in microseconds since 1970.
    ///
    /// # Errors
    /// Returns the store's errors.
    pub fn write(&self, batch: Batch) -> kv::Result<i64> {
        self.log.write_logged(batch)
    }

    /// Returns the time of the newest record in microseconds since 1970.
    #[must_use]
    pub fn newest_us(&self) -> i64 {
        self.log.position().newest_us
    }

    /// Uploads the remaining records at shutdown; later commits no longer wait for free space in the log.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the bucket cannot be written.
    pub async fn end(&self) -> Result<()> {
        self.log.end();
        self.upload().await
    }

    /// Returns the progress of uploads and checkpoints.
    #[must_use]
    pub fn status(&self) -> HistoryStatus {
        let status = self.status.lock();
        let checkpoint = self.checkpointed.load(Ordering::Relaxed);
        HistoryStatus {
            log: self.log.position(),
            uploads: status.uploads,
            failures: status.failures,
            last_upload_us: status.last_upload_us,
            last_error: status.last_error.clone(),
            checkpoint: (checkpoint != 0).then_some(checkpoint),
            last_checkpoint_us: status.last_checkpoint_us,
        }
    }
}

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
//! - `object_names.rs`, `log_object.rs`: names and formats of the objects
//! - `rebuild_plan.rs`: the objects that a point in time is rebuilt from
//! - `startup_check.rs`: comparison of store and bucket at the start of a server
//! - `log_upload.rs`, `checkpoint.rs`: the background services that archive the log and write checkpoints
//! - `retention.rs`: deletion of history older than the retention
//! - `rebuild.rs`, `restore_data_folder.rs`: a store rebuilt from the bucket, and a data folder restored from it
//! - `time_travel.rs`, `recent_states.rs`: states for time travel, rebuilt or still in memory
//! - `timeline.rs`, `write_authority.rs`: timelines, and the right of a server to write

mod checkpoint;
mod error;
mod last_commit;
mod log_object;
mod log_upload;
mod object_names;
mod rebuild;
mod rebuild_plan;
mod recent_states;
mod restore_data_folder;
mod retention;
mod startup_check;
#[cfg(test)]
mod tests;
mod time_travel;
mod timeline;
mod write_authority;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kv::logical_log::{LogProgress, RecordingStore};
use kv::{Batch, TxKv};
use objects::{Objects, StorageClaim};
use parking_lot::Mutex;
use types::{Clock, DiskReserve};
use uuid::Uuid;

pub use error::{HistoryError, Result};
pub use last_commit::{last_commit, parse_commit, put_last_commit};
pub use object_names::{CHECKPOINTS, LOG, TABLES, is_history_object};
pub use rebuild::RebuildProgress;
pub use rebuild_plan::LogGap;
pub use recent_states::{HistoricalState, RecentStates};
pub use restore_data_folder::{RESTORING, RestoredStore, restore};
pub use startup_check::{compare_with_storage, lacks_first_checkpoint};
pub use timeline::{begin_timeline, fork_root_timeline};
pub use write_authority::WriteAuthority;

use self::timeline::Timeline;

/// Reason of damage for objects in a format that only a newer version reads.
pub const NEWER_VERSION: &str = "a newer version of Kiln has written it";

/// Settings of the history.
#[derive(Debug, Clone)]
pub struct HistorySettings {
    /// Id of the instance, recorded in the objects to identify their origin.
    pub instance: Uuid,
    /// Working folder for checkpoints and rebuilt states, used by the history alone.
    pub work_folder: PathBuf,
    /// The store's file, which checkpoints copy.
    pub store_file: PathBuf,
    /// Disk space that checkpoints leave free; `None` to leave none.
    pub reserve: Option<DiskReserve>,
    /// Interval between uploads of new log records.
    pub upload_interval: Duration,
    /// Interval between checkpoints.
    pub checkpoint_interval: Duration,
    /// Age up to which past states can be restored or read.
    pub retention: Duration,
    /// The claim on the storage; `None` if no other server can use it.
    pub claim: Option<Arc<StorageClaim>>,
}

/// History of one store.
#[derive(Debug)]
pub struct History {
    log: Arc<RecordingStore>,
    objects: Objects,
    clock: Arc<dyn Clock>,
    settings: HistorySettings,
    timeline: u32,
    /// Held during an upload, so that only one runs at a time.
    upload_lock: tokio::sync::Mutex<()>,
    status: Mutex<Status>,
    /// The record of the newest checkpoint; 0 for none.
    newest_checkpoint_record: AtomicU64,
    rebuilt_states: time_travel::RebuiltStates,
    write_authority: WriteAuthority,
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
    pub log: LogProgress,
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
    pub fn open(
        log: Arc<RecordingStore>,
        objects: Objects,
        clock: Arc<dyn Clock>,
        settings: HistorySettings,
    ) -> Result<Self> {
        let Timeline::Begun(timeline) = timeline::read_timeline(&*log as &dyn TxKv)? else {
            return Err(HistoryError::TimelineNotBegun);
        };
        // Leftovers of an earlier server.
        if settings.work_folder.exists()
            && let Err(error) = std::fs::remove_dir_all(&settings.work_folder)
        {
            tracing::warn!(
                folder = %settings.work_folder.display(),
                %error,
                "could not delete the old working folder of the history"
            );
        }
        let write_authority = WriteAuthority::new(settings.claim.clone());
        Ok(Self {
            log,
            objects,
            clock,
            settings,
            timeline,
            upload_lock: tokio::sync::Mutex::new(()),
            status: Mutex::default(),
            newest_checkpoint_record: AtomicU64::new(0),
            rebuilt_states: time_travel::RebuiltStates::default(),
            write_authority,
        })
    }

    /// Returns the server's write authority, which ends when it may no longer write.
    #[must_use]
    pub fn write_authority(&self) -> WriteAuthority {
        self.write_authority.clone()
    }

    /// Returns whether the server may no longer write.
    fn has_lost_write_authority(&self) -> bool {
        self.write_authority.is_over() || self.log.inner().is_poisoned()
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
        self.log.write_recorded(batch)
    }

    /// Returns the time of the newest record in microseconds since 1970.
    #[must_use]
    pub fn newest_record_us(&self) -> i64 {
        self.log.progress().newest_written_us
    }

    /// Uploads the remaining records at shutdown; later commits no longer wait for free space in the log.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the bucket cannot be written.
    pub async fn upload_remaining(&self) -> Result<()> {
        self.log.disable_backpressure();
        self.upload_log().await
    }

    /// Returns the progress of uploads and checkpoints.
    #[must_use]
    pub fn status(&self) -> HistoryStatus {
        let status = self.status.lock();
        let checkpoint = self.newest_checkpoint_record.load(Ordering::Relaxed);
        HistoryStatus {
            log: self.log.progress(),
            uploads: status.uploads,
            failures: status.failures,
            last_upload_us: status.last_upload_us,
            last_error: status.last_error.clone(),
            checkpoint: (checkpoint != 0).then_some(checkpoint),
            last_checkpoint_us: status.last_checkpoint_us,
        }
    }
}

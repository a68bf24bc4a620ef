//! What was: the log and the checkpoints in the bucket, from which any moment within the retention is rebuilt.
//!
//! | object | holds |
//! |---|---|
//! | `log/<timeline>/<first>-<last>` | the records `first` to `last` of the store's log (`kv::log`) |
//! | `log/<timeline>/begin.json` | which record of which older timeline it goes on from; the first has none |
//! | `checkpoints/<timeline>/<record>.redb.zst` | the store after that record |
//! | `checkpoints/<timeline>/<record>.json` | what the checkpoint is; written after it |
//!
//! A restore begins a new timeline, as in PostgreSQL: what an older one went on to say is never mixed with it. A start makes sure that the
//! store's log is the bucket's, and a restore that all its records are of one history.
//!
//! Never knows what a transaction is, and writes to the store only where it restores it or begins a timeline: `txn` writes through [`History::write`].
//!
//! Start at `plan.rs` for which objects a moment needs and `start.rs` for what a start compares, then `upload.rs` and `checkpoint.rs` for how they come about.

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

/// Why an object is not read.
pub const NEWER: &str = "a newer version of Kiln has written it";

/// How history is kept.
#[derive(Debug, Clone)]
pub struct HistorySettings {
    /// Whose log it is, for people who find it.
    pub instance: Uuid,
    /// A folder of its own for checkpoints on their way.
    pub folder: PathBuf,
    /// The store's file, which a checkpoint copies there.
    pub store: PathBuf,
    /// What checkpoints leave free on the disk of both; `None` for nothing.
    pub reserve: Option<Reserve>,
    /// Between looks for records to copy.
    pub upload_every: Duration,
    pub checkpoint_every: Duration,
    /// How long a moment can be gone back to.
    pub retention: Duration,
    /// The claim on the storage; `None` where nobody else can come to it.
    pub claim: Option<Arc<Claim>>,
}

/// The history of one store.
#[derive(Debug)]
pub struct History {
    log: Arc<Logged>,
    objects: Objects,
    clock: Arc<dyn Clock>,
    settings: HistorySettings,
    timeline: u32,
    /// One copying at a time.
    uploading: tokio::sync::Mutex<()>,
    status: Mutex<Status>,
    /// The record of the newest checkpoint; 0 for none yet.
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

/// How far the history has come, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryStatus {
    pub log: LogPosition,
    /// Objects of the log written since the start.
    pub uploads: u64,
    /// Uploads and checkpoints that failed since the start; each was tried again.
    pub failures: u64,
    /// Microseconds since 1970, here and below.
    pub last_upload_us: Option<i64>,
    /// The failure of the newest upload or checkpoint that failed; `None` once an object of the log was written again.
    pub last_error: Option<String>,
    /// The record that the newest checkpoint contains.
    pub checkpoint: Option<u64>,
    pub last_checkpoint_us: Option<i64>,
}

impl History {
    /// The history of what is written to `log`.
    ///
    /// # Errors
    /// Where the store cannot be read, or has not begun its timeline: [`begin_timeline`].
    pub fn open(log: Arc<Logged>, objects: Objects, clock: Arc<dyn Clock>, settings: HistorySettings) -> Result<Self> {
        let Timeline::Begun(timeline) = timeline::of(&*log as &dyn TxKv)? else {
            return Err(HistoryError::TimelineNotBegun);
        };
        // What an earlier server had begun.
        if settings.folder.exists()
            && let Err(error) = std::fs::remove_dir_all(&settings.folder)
        {
            tracing::warn!(folder = %settings.folder.display(), %error, "failed to empty the folder of the history");
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

    /// The time in which the server may write.
    #[must_use]
    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    /// Whether there is nothing more to be written.
    fn is_over(&self) -> bool {
        self.tenure.is_over() || self.log.store().is_poisoned()
    }

    /// The time for which a moment can be gone back to.
    #[must_use]
    pub fn retention(&self) -> Duration {
        self.settings.retention
    }

    /// Writes a commit; when that was, in microseconds since 1970, as the log tells it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(&self, batch: Batch) -> kv::Result<i64> {
        self.log.write_logged(batch)
    }

    /// The time of the newest record, in microseconds since 1970.
    #[must_use]
    pub fn newest_us(&self) -> i64 {
        self.log.position().newest_us
    }

    /// Copies what the log holds by now; commits from now on do not wait for room in it.
    ///
    /// # Errors
    /// Where the store cannot be read or the bucket cannot be written.
    pub async fn end(&self) -> Result<()> {
        self.log.end();
        self.upload().await
    }

    /// The progress of copies and checkpoints.
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

//! Failpoints: named places in the code at which a test makes the server process abort, a request fail or a task panic.
//!
//! `KILN_FAILPOINT=commit-durable:2` aborts the process when it reaches the failpoint for the second time,
//! `store-write:1:error` injects an error at the first time, and `sealed:1:panic` a panic. Without a plan, a failpoint
//! costs one relaxed load.

use std::io;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A failpoint. The name that tests use is the variant in kebab case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failpoint {
    /// A new store file is complete but not renamed to its final name.
    StoreMade,
    /// Before a batch is written to the write-ahead log. Can fail.
    StoreWrite,
    /// The batch is durable in the write-ahead log.
    StoreWritten,
    /// The log's batches are written to the store's trees but not committed. Can fail.
    StoreFlush,
    /// The log's batches are durable in the trees.
    StoreFlushed,
    /// An object's bytes are durable but not renamed to its name. Can fail.
    ObjectWritten,
    /// An object has its name, but the rename may not be durable.
    ObjectNamed,
    /// An object is stored durably, but its writer has no response yet.
    ObjectStored,
    /// An object is deleted, but not durably.
    ObjectDeleted,
    /// The storage prefix is claimed.
    Claimed,
    /// A new catalog is durable.
    CatalogMade,
    /// The catalog was read.
    Recovered,
    /// Ids of rows are reserved.
    RowIdsReserved,
    /// An upload is announced, but nothing is written.
    UploadAnnounced,
    /// A group of commits is assembled.
    CommitAdmitted,
    /// The group is durable, but not visible.
    CommitDurable,
    /// The group is visible, but its clients have no response yet.
    CommitVisible,
    /// Objects of failed transactions are deleted, but their records are not.
    UploadsDeleted,
    /// Garbage objects are deleted, but their records are not.
    GarbageDeleted,
    /// Some records of flushed rows are deleted.
    RowsRetired,
    /// Fresh rows are sealed.
    Sealed,
    /// The shards of sealed rows are written, but not committed.
    SettleWritten,
    /// The flush of sealed rows is committed.
    Settled,
    /// Compacted shards are written, but not committed.
    CompactWritten,
    /// The compaction is committed.
    Compacted,
    /// Log records are read, but not archived.
    LogRead,
    /// Log records are archived, but not marked so.
    LogCopied,
    /// A checkpoint is created in the data folder, but not uploaded.
    CheckpointMade,
    /// The checkpoint is uploaded, but not marked as complete.
    CheckpointStored,
    /// The checkpoint is marked as complete; objects that it makes obsolete are not deleted.
    CheckpointNamed,
    /// One obsolete archive object is deleted, others are not.
    PastDeleted,
    /// The timeline of a restored store is created in the storage, but the store does not record it.
    TimelineBegun,
    /// A restore has created its working folder.
    RestoreBegun,
    /// The restore has fetched its checkpoint.
    RestoreFetched,
    /// The restore has replayed the archived log.
    RestoreRebuilt,
    /// The restore has prepared the store for a new timeline.
    RestoreForked,
    /// The restore has written the instance to the data folder.
    RestoreNamed,
    /// The restore has moved the store to its final place, but not cleaned up.
    RestorePlaced,
    /// One key space of an older store is upgraded, others are not.
    StoreUpgraded,
}

impl Failpoint {
    /// All failpoints, in the order of a server's life.
    pub const ALL: [Failpoint; 39] = [
        Failpoint::StoreMade,
        Failpoint::StoreWrite,
        Failpoint::StoreWritten,
        Failpoint::StoreFlush,
        Failpoint::StoreFlushed,
        Failpoint::ObjectWritten,
        Failpoint::ObjectNamed,
        Failpoint::ObjectStored,
        Failpoint::ObjectDeleted,
        Failpoint::Claimed,
        Failpoint::CatalogMade,
        Failpoint::Recovered,
        Failpoint::RowIdsReserved,
        Failpoint::UploadAnnounced,
        Failpoint::CommitAdmitted,
        Failpoint::CommitDurable,
        Failpoint::CommitVisible,
        Failpoint::UploadsDeleted,
        Failpoint::GarbageDeleted,
        Failpoint::RowsRetired,
        Failpoint::Sealed,
        Failpoint::SettleWritten,
        Failpoint::Settled,
        Failpoint::CompactWritten,
        Failpoint::Compacted,
        Failpoint::LogRead,
        Failpoint::LogCopied,
        Failpoint::CheckpointMade,
        Failpoint::CheckpointStored,
        Failpoint::CheckpointNamed,
        Failpoint::PastDeleted,
        Failpoint::TimelineBegun,
        Failpoint::RestoreBegun,
        Failpoint::RestoreFetched,
        Failpoint::RestoreRebuilt,
        Failpoint::RestoreForked,
        Failpoint::RestoreNamed,
        Failpoint::RestorePlaced,
        Failpoint::StoreUpgraded,
    ];

    /// Returns the failpoints of a server that was neither restored nor upgraded.
    #[must_use]
    pub fn serving() -> &'static [Failpoint] {
        &Self::ALL[..29]
    }

    /// Returns the failpoints of `kiln restore` and of the first start after it.
    #[must_use]
    pub fn restoring() -> &'static [Failpoint] {
        &Self::ALL[29..38]
    }

    /// Returns the failpoints of the first start after an upgrade.
    #[must_use]
    pub fn upgrading() -> &'static [Failpoint] {
        &Self::ALL[38..]
    }

    /// Returns the name used in `KILN_FAILPOINT`.
    #[must_use]
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// Whether an error can be injected.
    #[must_use]
    pub fn can_fail(self) -> bool {
        matches!(self, Self::StoreWrite | Self::StoreFlush | Self::ObjectWritten)
    }

    /// Marks that execution has reached this failpoint, at which no error can be injected.
    ///
    /// # Panics
    /// If a test has planned a panic.
    #[inline]
    pub fn pass(self) {
        if IS_ACTIVE.load(Ordering::Relaxed) {
            // `FailpointPlan::from_str` rejects errors at failpoints that cannot fail.
            drop(self.trigger());
        }
    }

    /// Marks that execution has reached this failpoint, and fails if a test has planned it.
    ///
    /// # Errors
    /// The injected error.
    ///
    /// # Panics
    /// If a test has planned a panic.
    #[inline]
    pub fn check(self) -> io::Result<()> {
        if IS_ACTIVE.load(Ordering::Relaxed) { self.trigger() } else { Ok(()) }
    }

    #[cold]
    fn trigger(self) -> io::Result<()> {
        let Some(plan) = PLAN.get().filter(|plan| plan.failpoint == self) else { return Ok(()) };
        if PASSAGES.fetch_add(1, Ordering::Relaxed) + 1 != plan.passage_number {
            return Ok(());
        }
        tracing::error!(effect = ?plan.effect, "failpoint reached: {}", self.name());
        match plan.effect {
            FailpointEffect::Abort => std::process::abort(),
            FailpointEffect::Fail => Err(io::Error::other(format!("error injected by failpoint {}", self.name()))),
            FailpointEffect::Panic => panic!("injected at {}", self.name()),
        }
    }
}

static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
static PLAN: OnceLock<FailpointPlan> = OnceLock::new();
static PASSAGES: AtomicU64 = AtomicU64::new(0);

/// A planned effect at the n-th passage of a failpoint: `name:n` aborts the process, `name:n:error` injects an error,
/// `name:n:panic` a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailpointPlan {
    failpoint: Failpoint,
    /// Number of the passage, from 1.
    passage_number: u64,
    effect: FailpointEffect,
}

/// Effect of a failpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailpointEffect {
    /// The process aborts.
    Abort,
    /// An error is injected.
    Fail,
    /// The task panics.
    Panic,
}

impl FailpointPlan {
    /// Activates the plan for the rest of the process's life. Only the first plan has an effect.
    pub fn activate(self) {
        IS_ACTIVE.store(PLAN.set(self).is_ok() || IS_ACTIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Activates the plan in the environment variable `KILN_FAILPOINT`, if it is set.
///
/// # Errors
/// [`ParseFailpointError`] if the variable is malformed.
pub fn set_from_environment() -> Result<(), ParseFailpointError> {
    if let Ok(plan) = std::env::var("KILN_FAILPOINT") {
        plan.parse::<FailpointPlan>()?.activate();
    }
    Ok(())
}

/// Error for text that is not a [`FailpointPlan`].
#[derive(Debug, thiserror::Error)]
#[error("invalid failpoint {0:?}: expected name:count, name:count:error or name:count:panic")]
pub struct ParseFailpointError(String);

impl FromStr for FailpointPlan {
    type Err = ParseFailpointError;

    fn from_str(text: &str) -> Result<Self, ParseFailpointError> {
        let refused = || ParseFailpointError(text.to_owned());
        let parts: Vec<&str> = text.split(':').collect();
        let (name, time, effect) = match parts[..] {
            [name, time] => (name, time, FailpointEffect::Abort),
            [name, time, "error"] => (name, time, FailpointEffect::Fail),
            [name, time, "panic"] => (name, time, FailpointEffect::Panic),
            _ => return Err(refused()),
        };
        let point = Failpoint::ALL.into_iter().find(|point| point.name() == name).ok_or_else(refused)?;
        let time = time.parse().ok().filter(|time| 0 < *time).ok_or_else(refused)?;
        if effect == FailpointEffect::Fail && !point.can_fail() {
            return Err(refused());
        }
        Ok(Self { failpoint: point, passage_number: time, effect })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for point in Failpoint::ALL {
            let plan = format!("{}:3", point.name()).parse::<FailpointPlan>().expect("every failpoint's name parses");
            assert_eq!(plan, FailpointPlan { failpoint: point, passage_number: 3, effect: FailpointEffect::Abort });
            let panics =
                format!("{}:1:panic", point.name()).parse::<FailpointPlan>().expect("every failpoint can panic");
            assert_eq!(panics.effect, FailpointEffect::Panic);
            assert_eq!(format!("{}:1:error", point.name()).parse::<FailpointPlan>().is_ok(), point.can_fail());
        }
        for text in ["", "settled", "settled:0", "settled:x", "nowhere:1", "settled:1:error", "store-write:1:error:2"] {
            assert!(text.parse::<FailpointPlan>().is_err(), "{text}");
        }
    }
}

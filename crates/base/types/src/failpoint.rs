//! Named moments at which a test lets a server process die, a request fail or a task panic.
//!
//! `KILN_FAILPOINT=commit-durable:2` ends the process when it comes to that moment for the second time; `store-write:1:error` lets it fail
//! there, and `sealed:1:panic` lets the task that comes there panic. A server that was not told so pays one relaxed load for each.

use std::io;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A moment after which less is left than a caller would like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failpoint {
    /// A new store file is complete and has not got its name.
    StoreMade,
    /// The write-ahead log does not have a write yet. Can fail.
    StoreWrite,
    /// … and has it durably.
    StoreWritten,
    /// The trees of the store have what the log says, but for their commit. Can fail.
    StoreFlush,
    /// … and have it durably.
    StoreFlushed,
    /// An object's bytes are durable, its name is not there. Can fail.
    ObjectWritten,
    /// An object has its name, perhaps not durably.
    ObjectNamed,
    /// An object is there, its writer does not know.
    ObjectStored,
    /// An object is deleted, its record is not.
    ObjectDeleted,
    /// The storage is claimed.
    Claimed,
    /// A new catalog is durable.
    CatalogMade,
    /// The catalog was read.
    Recovered,
    /// Ids of rows are reserved.
    RowIdsReserved,
    /// An object is announced, nothing of it written.
    UploadAnnounced,
    /// A group of commits is put together.
    CommitAdmitted,
    /// … is durable, and nobody sees it.
    CommitDurable,
    /// … is seen by all, and its clients do not know.
    CommitVisible,
    /// Objects of transactions that failed are deleted, their records are not.
    UploadsDeleted,
    /// Objects that nobody needs are deleted, their records are not.
    GarbageDeleted,
    /// Some records of rows that settled are deleted.
    RowsRetired,
    /// Fresh rows are sealed.
    Sealed,
    /// The shards of sealed rows are written.
    SettleWritten,
    /// Sealed rows are in shards.
    Settled,
    /// Shards are written that take the place of others.
    CompactWritten,
    /// They have taken it.
    Compacted,
    /// Records of the log are read, nothing of them is copied.
    LogRead,
    /// … are copied, and the store does not know.
    LogCopied,
    /// A checkpoint is made, and still in the data folder.
    CheckpointMade,
    /// … is in the storage, and nothing says that it is whole.
    CheckpointStored,
    /// … counts; what it makes superfluous is still there.
    CheckpointNamed,
    /// An object of the past that nobody needs is deleted, others are not.
    PastDeleted,
    /// A restored store's timeline is begun, and the store does not know.
    TimelineBegun,
    /// A restore has made its folder.
    RestoreBegun,
    /// … has the checkpoint that it starts from.
    RestoreFetched,
    /// … has applied the log.
    RestoreRebuilt,
    /// … has a store that is to begin a timeline.
    RestoreForked,
    /// … has given the data folder its instance.
    RestoreNamed,
    /// … has put the store in its place, and not cleaned up.
    RestorePlaced,
    /// One space of a store that an older version has written is in the present format, others are not.
    StoreUpgraded,
}

impl Failpoint {
    /// All of them, in the order of a server's life.
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

    /// Those of a server that was neither restored nor upgraded.
    #[must_use]
    pub fn of_serving() -> &'static [Failpoint] {
        &Self::ALL[..29]
    }

    /// Those of `kiln restore`, and of the first start after it.
    #[must_use]
    pub fn of_restoring() -> &'static [Failpoint] {
        &Self::ALL[29..38]
    }

    /// Those of the first start after an older version.
    #[must_use]
    pub fn of_upgrading() -> &'static [Failpoint] {
        &Self::ALL[38..]
    }

    /// What it is called in the environment.
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

    /// Whether what is done there can fail.
    #[must_use]
    pub fn can_fail(self) -> bool {
        matches!(self, Self::StoreWrite | Self::StoreFlush | Self::ObjectWritten)
    }

    /// The process is at this moment: perhaps it ends here.
    ///
    /// # Panics
    /// If a test asks for it.
    #[inline]
    pub fn pass(self) {
        if IS_SET.load(Ordering::Relaxed) {
            // A moment that cannot fail is never set to fail.
            drop(self.reached());
        }
    }

    /// The process is at this moment: perhaps it ends here, or what it does fails.
    ///
    /// # Errors
    /// An injected one, if a test asks for it.
    ///
    /// # Panics
    /// If a test asks for that.
    #[inline]
    pub fn check(self) -> io::Result<()> {
        if IS_SET.load(Ordering::Relaxed) { self.reached() } else { Ok(()) }
    }

    #[cold]
    fn reached(self) -> io::Result<()> {
        let Some(plan) = PLAN.get().filter(|plan| plan.point == self) else { return Ok(()) };
        if TIMES.fetch_add(1, Ordering::Relaxed) + 1 != plan.time {
            return Ok(());
        }
        tracing::error!(failpoint = self.name(), effect = ?plan.effect, "reached as a test wants it");
        match plan.effect {
            Effect::End => std::process::abort(),
            Effect::Fail => Err(io::Error::other(format!("injected at {}", self.name()))),
            Effect::Panic => panic!("injected at {}", self.name()),
        }
    }
}

static IS_SET: AtomicBool = AtomicBool::new(false);
static PLAN: OnceLock<Plan> = OnceLock::new();
static TIMES: AtomicU64 = AtomicU64::new(0);

/// A failpoint, the time that counts, and the effect: `name:time` ends the process, `name:time:error` fails, `name:time:panic` panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    point: Failpoint,
    time: u64,
    effect: Effect,
}

/// The effect of a failpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The process ends.
    End,
    /// The step at the failpoint fails.
    Fail,
    /// The task that comes there panics.
    Panic,
}

impl Plan {
    /// Sets it for the rest of the process's life; once.
    pub fn set(self) {
        IS_SET.store(PLAN.set(self).is_ok() || IS_SET.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Sets what `KILN_FAILPOINT` says, if it says anything.
///
/// # Errors
/// Where it says something else.
pub fn set_from_environment() -> Result<(), NotAPlan> {
    if let Ok(plan) = std::env::var("KILN_FAILPOINT") {
        plan.parse::<Plan>()?.set();
    }
    Ok(())
}

/// Not the form of a [`Plan`].
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no failpoint: name:time, name:time:error or name:time:panic")]
pub struct NotAPlan(String);

impl FromStr for Plan {
    type Err = NotAPlan;

    fn from_str(text: &str) -> Result<Self, NotAPlan> {
        let refused = || NotAPlan(text.to_owned());
        let parts: Vec<&str> = text.split(':').collect();
        let (name, time, effect) = match parts[..] {
            [name, time] => (name, time, Effect::End),
            [name, time, "error"] => (name, time, Effect::Fail),
            [name, time, "panic"] => (name, time, Effect::Panic),
            _ => return Err(refused()),
        };
        let point = Failpoint::ALL.into_iter().find(|point| point.name() == name).ok_or_else(refused)?;
        let time = time.parse().ok().filter(|time| 0 < *time).ok_or_else(refused)?;
        if effect == Effect::Fail && !point.can_fail() {
            return Err(refused());
        }
        Ok(Self { point, time, effect })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for point in Failpoint::ALL {
            let plan = format!("{}:3", point.name()).parse::<Plan>().expect("its own name");
            assert_eq!(plan, Plan { point, time: 3, effect: Effect::End });
            let panics = format!("{}:1:panic", point.name()).parse::<Plan>().expect("any may panic");
            assert_eq!(panics.effect, Effect::Panic);
            assert_eq!(format!("{}:1:error", point.name()).parse::<Plan>().is_ok(), point.can_fail());
        }
        for text in ["", "settled", "settled:0", "settled:x", "nowhere:1", "settled:1:error", "store-write:1:error:2"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
    }
}

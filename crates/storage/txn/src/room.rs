//! Room on the disk of the store: commits are refused before it is full, for a write of the store that fails ends the server.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use catalog::Change;
use parking_lot::Mutex;
use rowstore::OwnRows;
use types::{Clock, Oid, Reserve};

use crate::{Error, Result, Transactions};

#[cfg(test)]
mod tests;

/// The disk is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// What the store writes for a byte of a row at most: the row, its record in the log, and the pages that both lie in.
const WRITTEN_PER_BYTE: u64 = 4;
/// What the store writes for a change of the catalog, more or less.
const CHANGE_BYTES: u64 = 16 << 10;
/// Commits that take rows away may use all of the reserve but this part: they are how room is made.
const LAST_PART: u64 = 4;

/// What is known of the room on the store's disk.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Without one commits take what there is.
    reserve: OnceLock<Reserve>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    at: Option<Duration>,
    /// Less what was given to commits since.
    free: u64,
    is_full: bool,
}

/// What a commit asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    bytes: u64,
    /// It adds nothing but takes away or moves.
    frees: bool,
}

impl Wanted {
    pub(crate) fn of<'a>(changes: &[Change], rows: impl Iterator<Item = (&'a Oid, &'a OwnRows)>) -> Self {
        let mut wanted = Self { bytes: changes.len() as u64 * CHANGE_BYTES, frees: changes.iter().all(frees) };
        for (_, own) in rows {
            wanted.bytes += own.layer.stored_bytes() * WRITTEN_PER_BYTE;
            wanted.frees &= own.layer.rows().next().is_none();
        }
        wanted
    }

    /// The same with so many bytes more.
    pub(crate) fn and(mut self, bytes: u64) -> Self {
        self.bytes += bytes * WRITTEN_PER_BYTE;
        self
    }
}

fn frees(change: &Change) -> bool {
    match change {
        Change::DropSchema(_)
        | Change::DropTable(_)
        | Change::DropView(_)
        | Change::DropSequence(_)
        | Change::DropRole(_)
        | Change::RemoveAllRows { .. }
        | Change::Seal { .. }
        | Change::Settle { .. }
        | Change::Compact { .. } => true,
        Change::PutDatabase(_)
        | Change::PutSchema(_)
        | Change::PutTable(_)
        | Change::PutView(_)
        | Change::PutSequence(_)
        | Change::PutRole(_)
        | Change::AddShards { .. }
        | Change::Clone { .. } => false,
    }
}

/// Whether a commit may be written to a disk with so much room of which `kept` is kept.
fn admits(free: u64, kept: u64, wanted: Wanted) -> bool {
    let kept = if wanted.frees { kept / LAST_PART } else { kept };
    kept.saturating_add(wanted.bytes) <= free
}

impl Room {
    /// Whether there is room for a commit; what it wants is its own then.
    pub(crate) fn take(&self, wanted: Wanted, clock: &dyn Clock) -> Result<()> {
        let Some(reserve) = self.reserve.get() else { return Ok(()) };
        let mut seen = self.seen.lock();
        let now = clock.monotonic();
        if seen.at.is_none_or(|at| LOOK_EVERY <= now.saturating_sub(at)) {
            seen.look(reserve.disk.free_bytes());
            seen.at = Some(now);
        }
        let is_admitted = admits(seen.free, reserve.bytes, wanted);
        if is_admitted {
            seen.free = seen.free.saturating_sub(wanted.bytes);
        }
        seen.tell(is_admitted && !wanted.frees, is_admitted, reserve.bytes);
        if is_admitted { Ok(()) } else { Err(Error::DiskFull { free: seen.free, kept: reserve.bytes }) }
    }
}

impl Seen {
    fn look(&mut self, free: io::Result<u64>) {
        self.free = free.unwrap_or_else(|error| {
            tracing::warn!(%error, "the room on the disk of the catalog is not known");
            u64::MAX
        });
    }

    /// Says in the log when commits begin to be refused, and when they no longer are.
    fn tell(&mut self, has_room: bool, is_admitted: bool, kept: u64) {
        let free = self.free;
        if !is_admitted && !self.is_full {
            tracing::warn!(free, kept, "the disk of the catalog is full: commits that add anything are refused");
        } else if has_room && self.is_full {
            tracing::info!(free, kept, "the disk of the catalog has room again");
        }
        self.is_full = !is_admitted || (self.is_full && !has_room);
    }
}

impl Transactions {
    /// From now on commits leave the reserve of the store's disk as it is, but for those that take away. Once.
    pub fn keep_room(&self, reserve: Reserve) {
        // The first stays: there is one disk.
        let _ = self.core.room.reserve.set(reserve);
    }

    /// Whether commits that add something are admitted at present.
    ///
    /// # Errors
    /// [`Error::DiskFull`].
    pub fn check_room(&self) -> Result<()> {
        self.core.room.take(Wanted { bytes: 0, frees: false }, &*self.core.clock)
    }
}

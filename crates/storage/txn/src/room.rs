//! Disk space check: commits are refused before the store's disk is full, since a failed write of the store stops the
//! server.

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

/// Interval between measurements of the disk's free space.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Upper bound of bytes that the store writes per byte of a row: the row, its log record, and the pages of both.
const WRITTEN_PER_BYTE: u64 = 4;
/// Approximate bytes that the store writes per change of the catalog.
const CHANGE_BYTES: u64 = 16 << 10;
/// Share of the reserve that stays unavailable even to commits that free space: they may use the rest of it.
const LAST_PART: u64 = 4;

/// Free space on the store's disk.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Space to keep free; without it commits may use the whole disk.
    reserve: OnceLock<Reserve>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    at: Option<Duration>,
    /// Measured free bytes, less those granted to commits since.
    free: u64,
    is_full: bool,
}

/// Space that a commit needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    bytes: u64,
    /// True if the commit adds no rows or definitions, but removes or moves them.
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

    /// Returns the same with additional `bytes` of stored records.
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

/// Returns whether a commit may be written to a disk with `free` bytes of which `kept` are reserved.
fn admits(free: u64, kept: u64, wanted: Wanted) -> bool {
    let kept = if wanted.frees { kept / LAST_PART } else { kept };
    kept.saturating_add(wanted.bytes) <= free
}

impl Room {
    /// Checks that there is space for a commit and subtracts it from the free space.
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
            tracing::warn!(%error, "could not measure the free space on the catalog's disk; commits are not limited");
            u64::MAX
        });
    }

    /// Logs the transitions between refusing commits and admitting them.
    fn tell(&mut self, has_room: bool, is_admitted: bool, kept: u64) {
        let free = self.free;
        if !is_admitted && !self.is_full {
            tracing::warn!(free, kept, "no space left on the catalog's disk: commits that add data are refused");
        } else if has_room && self.is_full {
            tracing::info!(free, kept, "the catalog's disk has free space again: commits that add data are admitted");
        }
        self.is_full = !is_admitted || (self.is_full && !has_room);
    }
}

impl Transactions {
    /// Sets the reserve of free space on the store's disk, which only commits that free space may use. Can be set once;
    /// later calls have no effect.
    pub fn keep_room(&self, reserve: Reserve) {
        // A second reserve is ignored: a store has one disk.
        let _ = self.core.room.reserve.set(reserve);
    }

    /// Checks that commits which add data are admitted at present.
    ///
    /// # Errors
    /// [`Error::DiskFull`].
    pub fn check_room(&self) -> Result<()> {
        self.core.room.take(Wanted { bytes: 0, frees: false }, &*self.core.clock)
    }
}

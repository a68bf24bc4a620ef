//! Disk space check: commits are refused before the store's disk is full, since a failed write of the store stops the
//! server.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use catalog::Change;
use parking_lot::Mutex;
use rowstore::UncommittedRows;
use types::{Clock, DiskReserve, Oid};

use crate::{Error, Result, Transactions};

#[cfg(test)]
mod tests;

/// Interval between measurements of the disk's free space.
const MEASURE_INTERVAL: Duration = Duration::from_millis(200);
/// Upper bound of bytes that the store writes per byte of a row: the row, its log record, and the pages of both.
const STORE_BYTES_PER_ROW_BYTE: u64 = 4;
/// Approximate bytes that the store writes per change of the catalog.
const BYTES_PER_CATALOG_CHANGE: u64 = 16 << 10;
/// Share of the reserve that stays unavailable even to commits that free space: they may use the rest of it.
const RESERVE_DIVISOR: u64 = 4;

/// Free space on the store's disk.
#[derive(Debug, Default)]
pub(crate) struct DiskSpace {
    /// Space to keep free; without it commits may use the whole disk.
    reserve: OnceLock<DiskReserve>,
    measurement: Mutex<DiskMeasurement>,
}

#[derive(Debug, Default)]
struct DiskMeasurement {
    measured_at: Option<Duration>,
    /// Measured free bytes, less those granted to commits since.
    free: u64,
    is_full: bool,
}

/// Space that a commit needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpaceDemand {
    bytes: u64,
    /// True if the commit adds no rows or definitions, but removes or moves them.
    frees_space: bool,
}

impl SpaceDemand {
    pub(crate) fn from_changes<'a>(
        changes: &[Change],
        rows: impl Iterator<Item = (&'a Oid, &'a UncommittedRows)>,
    ) -> Self {
        let mut wanted = Self {
            bytes: changes.len() as u64 * BYTES_PER_CATALOG_CHANGE,
            frees_space: changes.iter().all(frees_space),
        };
        for (_, own) in rows {
            wanted.bytes += own.layer.stored_bytes_max() * STORE_BYTES_PER_ROW_BYTE;
            wanted.frees_space &= own.layer.rows().next().is_none();
        }
        wanted
    }

    /// Returns the same with additional `bytes` of stored records.
    pub(crate) fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes += bytes * STORE_BYTES_PER_ROW_BYTE;
        self
    }
}

fn frees_space(change: &Change) -> bool {
    match change {
        Change::DropSchema(_)
        | Change::DropTable(_)
        | Change::DropView(_)
        | Change::DropSequence(_)
        | Change::DropRole(_)
        | Change::RemoveAllRows { .. }
        | Change::SealFreshRows { .. }
        | Change::Flush { .. }
        | Change::CompactShards { .. } => true,
        Change::PutDatabase(_)
        | Change::PutSchema(_)
        | Change::PutTable(_)
        | Change::PutView(_)
        | Change::PutSequence(_)
        | Change::PutRole(_)
        | Change::AddShards { .. }
        | Change::CloneRows { .. } => false,
    }
}

/// Returns whether a commit may be written to a disk with `free` bytes of which `reserve_bytes` are reserved.
fn has_space_for(free: u64, reserve_bytes: u64, wanted: SpaceDemand) -> bool {
    let reserve_bytes = if wanted.frees_space { reserve_bytes / RESERVE_DIVISOR } else { reserve_bytes };
    reserve_bytes.saturating_add(wanted.bytes) <= free
}

impl DiskSpace {
    /// Checks that there is space for a commit and subtracts it from the free space.
    pub(crate) fn reserve_space(&self, wanted: SpaceDemand, clock: &dyn Clock) -> Result<()> {
        let Some(reserve) = self.reserve.get() else { return Ok(()) };
        let mut seen = self.measurement.lock();
        let now = clock.monotonic();
        if seen.measured_at.is_none_or(|at| MEASURE_INTERVAL <= now.saturating_sub(at)) {
            seen.measure(reserve.disk.free_bytes());
            seen.measured_at = Some(now);
        }
        let is_admitted = has_space_for(seen.free, reserve.bytes, wanted);
        if is_admitted {
            seen.free = seen.free.saturating_sub(wanted.bytes);
        }
        seen.log_transition(is_admitted && !wanted.frees_space, is_admitted, reserve.bytes);
        if is_admitted { Ok(()) } else { Err(Error::DiskFull { free: seen.free, reserve_bytes: reserve.bytes }) }
    }
}

impl DiskMeasurement {
    fn measure(&mut self, free: io::Result<u64>) {
        self.free = free.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not measure the free space on the catalog's disk; commits are not limited");
            u64::MAX
        });
    }

    /// Logs the transitions between refusing commits and admitting them.
    fn log_transition(&mut self, has_room: bool, is_admitted: bool, reserve_bytes: u64) {
        let free = self.free;
        if !is_admitted && !self.is_full {
            tracing::warn!(
                free,
                reserve_bytes,
                "no space left on the catalog's disk: commits that add data are refused"
            );
        } else if has_room && self.is_full {
            tracing::info!(
                free,
                reserve_bytes,
                "the catalog's disk has free space again: commits that add data are admitted"
            );
        }
        self.is_full = !is_admitted || (self.is_full && !has_room);
    }
}

impl Transactions {
    /// Sets the reserve of free space on the store's disk, which only commits that free space may use. Can be set once;
    /// later calls have no effect.
    pub fn set_disk_reserve(&self, reserve: DiskReserve) {
        // A second reserve is ignored: a store has one disk.
        let _ = self.core.disk_space.reserve.set(reserve);
    }

    /// Checks that commits which add data are admitted at present.
    ///
    /// # Errors
    /// [`Error::DiskFull`].
    pub fn check_disk_space(&self) -> Result<()> {
        self.core.disk_space.reserve_space(SpaceDemand { bytes: 0, frees_space: false }, &*self.core.clock)
    }
}

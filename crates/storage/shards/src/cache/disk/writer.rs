//! Background thread of the disk tier, which writes and deletes segment files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use types::Oid;

use super::super::{BlockKey, MemoryTier};
use super::block_record::{self, RecordHead};
use super::index::RecordLocation;
use super::{DiskQuota, SharedState, WriteRequest, segment};

/// Interval at which free disk space is checked.
const FREE_SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Size at which a segment is full.
const SEGMENT_BYTES: u64 = 32 << 20;
/// A segment takes at most one part in this many of the limit, so that reclaiming one never loses much.
const SEGMENTS_MIN: u64 = 8;
/// Number of blocks that are skipped after a failed write.
const BLOCKS_SKIPPED_AFTER_FAILURE: u32 = 1_000;
/// The tier leaves this many times the reserve free: commits fail at the reserve, so the tier has to shrink before.
const FREE_RESERVE_FACTOR: u64 = 2;

/// Returns the limit for the files, which take `used` bytes, on a disk with `free` further bytes.
fn disk_tier_bytes_limit(used: u64, free: u64, reserve: u64, most: DiskQuota) -> u64 {
    let room = used.saturating_add(free);
    let left = reserve.saturating_mul(FREE_RESERVE_FACTOR);
    room.saturating_sub(left).min(room / most.space_divisor.max(1)).min(most.bytes_max)
}

/// State of the thread.
pub(super) struct Writer {
    files: Arc<SharedState>,
    /// Memory tier; blocks that are hot there are worth writing again.
    memory: Weak<Mutex<MemoryTier>>,
    /// Segment being filled.
    open_segment: Option<OpenSegment>,
    /// Number of the next segment.
    next_number: u64,
    /// Buffer for serialized records.
    record_buffer: Vec<u8>,
    /// Number of blocks still to be skipped after a failure.
    skips_left: u32,
}

/// Segment being filled.
struct OpenSegment {
    file: File,
    number: u64,
    bytes: u64,
}

impl Writer {
    pub(super) fn new(files: Arc<SharedState>, memory: Weak<Mutex<MemoryTier>>) -> Self {
        Self { files, memory, open_segment: None, next_number: 0, record_buffer: Vec::new(), skips_left: 0 }
    }

    /// Writes blocks until the tier is dropped.
    pub(super) fn run(mut self, requests: &Receiver<WriteRequest>) {
        self.recover_segments();
        loop {
            let order = requests.recv_timeout(FREE_SPACE_CHECK_INTERVAL);
            let done = match order {
                Ok(order) => self.write(&order),
                Err(RecvTimeoutError::Timeout) => self.enforce_limit(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = done {
                tracing::warn!(%error, "could not write a block to the cache's disk tier; the next blocks are skipped");
                (self.open_segment, self.skips_left) = (None, BLOCKS_SKIPPED_AFTER_FAILURE);
            }
        }
    }

    /// Scans the segments of an earlier run, newest first; deletes those without valid records.
    fn recover_segments(&mut self) {
        let folder = &self.files.settings.folder;
        let numbers = match segment::list_segment_numbers(folder) {
            Ok(numbers) => numbers,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return tracing::warn!(%error, "could not list the cache's folder; its files are not reused"),
        };
        self.next_number = numbers.last().map_or(0, |newest| newest.saturating_add(1));
        for number in numbers.into_iter().rev() {
            let (found, bytes) = segment::scan_records(folder, number).unwrap_or_else(|error| {
                tracing::warn!(%error, number, "could not read a cache file; deleting it");
                (Vec::new(), 0)
            });
            if found.is_empty() {
                // If deletion fails, the next start tries again.
                let _ = segment::remove(folder, number);
                continue;
            }
            self.files.index.lock().add_recovered_segment(number, bytes, found);
        }
    }

    /// Writes a block unless it is on disk or does not fit.
    fn write(&mut self, order: &WriteRequest) -> io::Result<()> {
        if 0 < self.skips_left {
            self.skips_left -= 1;
            return Ok(());
        }
        if self.files.index.lock().contains(&order.key) {
            return Ok(());
        }
        let mut record = std::mem::take(&mut self.record_buffer);
        let written = match block_record::encode(order.key, order.table, &order.block, &mut record) {
            Some(head) if self.make_room_for(head.record_bytes())? => self.append(order.key, order.table, &record),
            _ => Ok(()),
        };
        self.record_buffer = record;
        written
    }

    /// Reclaims segments until a record fits; returns false if it cannot.
    fn make_room_for(&mut self, bytes: u64) -> io::Result<bool> {
        let limit = self.update_limit();
        if limit / SEGMENTS_MIN < bytes {
            return Ok(false);
        }
        while limit < self.files.index.lock().file_bytes() + bytes {
            if !self.reclaim(true)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reclaims segments until the limit is met.
    fn enforce_limit(&mut self) -> io::Result<()> {
        let limit = self.update_limit();
        while limit < self.files.index.lock().file_bytes() && self.reclaim(false)? {}
        Ok(())
    }

    /// Computes and publishes the current limit.
    fn update_limit(&self) -> u64 {
        let settings = &self.files.settings;
        let used = self.files.index.lock().file_bytes();
        // If free space is unknown, only the configured maximum counts.
        let free = settings.reserve.disk.free_bytes().unwrap_or(u64::MAX);
        let limit = disk_tier_bytes_limit(used, free, settings.reserve.bytes, *self.files.quota.lock());
        self.files.limit.store(limit, Ordering::Relaxed);
        limit
    }

    /// Deletes the oldest segment; with `again`, its blocks worth keeping are written again, else lost. Returns false
    /// if there is no segment.
    fn reclaim(&mut self, rewrite: bool) -> io::Result<bool> {
        let memory = self.memory.upgrade();
        let is_worth = |key: &BlockKey| memory.as_ref().is_some_and(|memory| memory.lock().blocks.is_hot(key));
        let Some(gone) = self.files.index.lock().reclaim(is_worth) else { return Ok(false) };
        if self.open_segment.as_ref().is_some_and(|current| current.number == gone.segment) {
            self.open_segment = None;
        }
        let folder = &self.files.settings.folder;
        let read = |(key, location): &(BlockKey, RecordLocation)| {
            let record = segment::read(folder, *location).ok().filter(|_| rewrite)?;
            let head = RecordHead::read(&record).filter(|head| head.key == *key)?;
            Some((head, record))
        };
        let records: Vec<_> = gone.survivors.iter().map(read).collect();
        let mut done = segment::remove(folder, gone.segment);
        for ((key, location), record) in gone.survivors.iter().zip(records) {
            match record.filter(|_| done.is_ok()) {
                Some((head, record)) => done = self.append(*key, head.table, &record),
                None => self.files.index.lock().remove_unwritten(key, *location),
            }
        }
        done.map(|()| true)
    }

    /// Appends a record to the segment being filled; starts a new one if it is full.
    fn append(&mut self, key: BlockKey, table: Oid, record: &[u8]) -> io::Result<()> {
        let bytes = record.len() as u64;
        let full_at = SEGMENT_BYTES.min(self.files.limit.load(Ordering::Relaxed) / SEGMENTS_MIN);
        if self.open_segment.as_ref().is_none_or(|current| full_at < current.bytes + bytes) {
            let number = self.next_number;
            self.next_number += 1;
            let file = segment::create(&self.files.settings.folder, number)?;
            self.files.index.lock().add_segment(number);
            self.open_segment = Some(OpenSegment { file, number, bytes: 0 });
        }
        let current = self.open_segment.as_mut().expect("a segment was opened above");
        current.file.write_all_at(record, current.bytes)?;
        let location = RecordLocation { segment: current.number, offset: current.bytes, bytes };
        current.bytes += bytes;
        self.files.index.lock().add_record(key, table, location);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_leave_twice_the_reserve_free_and_take_their_part_alone() {
        let most = |bytes_max, part| DiskQuota { bytes_max, space_divisor: part };
        assert_eq!(disk_tier_bytes_limit(10, 100, 30, most(1_000, 1)), 50);
        assert_eq!(disk_tier_bytes_limit(10, 40, 30, most(1_000, 1)), 0, "what is there goes");
        assert_eq!(disk_tier_bytes_limit(10, 100, 0, most(50, 1)), 50);
        assert_eq!(disk_tier_bytes_limit(10, 110, 5, most(50, 4)), 30);
        assert_eq!(disk_tier_bytes_limit(u64::MAX, 100, 0, most(u64::MAX, 1)), u64::MAX);
    }
}

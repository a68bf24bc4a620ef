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

use super::super::{BlockKey, Memory};
use super::index::Place;
use super::record::{self, RecordHead};
use super::{DiskPart, Files, Order, segment};

/// Interval at which free disk space is checked.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Size at which a segment is full.
const SEGMENT_BYTES: u64 = 32 << 20;
/// A segment takes at most one part in this many of the limit, so that reclaiming one never loses much.
const SEGMENTS_MIN: u64 = 8;
/// Number of blocks that are skipped after a failed write.
const LEFT_OUT: u32 = 1_000;
/// The tier leaves this many times the reserve free: commits fail at the reserve, so the tier has to shrink before.
const RESERVES: u64 = 2;

/// Returns the limit for the files, which take `used` bytes, on a disk with `free` further bytes.
fn limit(used: u64, free: u64, reserve: u64, most: DiskPart) -> u64 {
    let room = used.saturating_add(free);
    let left = reserve.saturating_mul(RESERVES);
    room.saturating_sub(left).min(room / most.part.max(1)).min(most.bytes_max)
}

/// State of the thread.
pub(super) struct Writer {
    files: Arc<Files>,
    /// Memory tier; blocks that are hot there are worth writing again.
    memory: Weak<Mutex<Memory>>,
    /// Segment being filled.
    current: Option<Filling>,
    /// Number of the next segment.
    next: u64,
    /// Buffer for serialized records.
    record: Vec<u8>,
    /// Number of blocks still to be skipped after a failure.
    left_out: u32,
}

/// Segment being filled.
struct Filling {
    file: File,
    number: u64,
    bytes: u64,
}

impl Writer {
    pub(super) fn new(files: Arc<Files>, memory: Weak<Mutex<Memory>>) -> Self {
        Self { files, memory, current: None, next: 0, record: Vec::new(), left_out: 0 }
    }

    /// Writes blocks until the tier is dropped.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        self.find_files();
        loop {
            let order = orders.recv_timeout(LOOK_EVERY);
            let done = match order {
                Ok(order) => self.write(&order),
                Err(RecvTimeoutError::Timeout) => self.make_room(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = done {
                tracing::warn!(%error, "could not write a block to the cache's disk tier; the next blocks are skipped");
                (self.current, self.left_out) = (None, LEFT_OUT);
            }
        }
    }

    /// Scans the segments of an earlier run, newest first; deletes those without valid records.
    fn find_files(&mut self) {
        let folder = &self.files.settings.folder;
        let numbers = match segment::numbers(folder) {
            Ok(numbers) => numbers,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return tracing::warn!(%error, "could not list the cache's folder; its files are not reused"),
        };
        self.next = numbers.last().map_or(0, |newest| newest.saturating_add(1));
        for number in numbers.into_iter().rev() {
            let (found, bytes) = segment::walk(folder, number).unwrap_or_else(|error| {
                tracing::warn!(%error, number, "could not read a cache file; deleting it");
                (Vec::new(), 0)
            });
            if found.is_empty() {
                // If deletion fails, the next start tries again.
                let _ = segment::remove(folder, number);
                continue;
            }
            self.files.index.lock().add_found(number, bytes, found);
        }
    }

    /// Writes a block unless it is on disk or does not fit.
    fn write(&mut self, order: &Order) -> io::Result<()> {
        if 0 < self.left_out {
            self.left_out -= 1;
            return Ok(());
        }
        if self.files.index.lock().contains(&order.key) {
            return Ok(());
        }
        let mut record = std::mem::take(&mut self.record);
        let written = match record::encode(order.key, order.table, &order.block, &mut record) {
            Some(head) if self.has_room(head.record_bytes())? => self.append(order.key, order.table, &record),
            _ => Ok(()),
        };
        self.record = record;
        written
    }

    /// Reclaims segments until a record fits; returns false if it cannot.
    fn has_room(&mut self, bytes: u64) -> io::Result<bool> {
        let limit = self.look();
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
    fn make_room(&mut self) -> io::Result<()> {
        let limit = self.look();
        while limit < self.files.index.lock().file_bytes() && self.reclaim(false)? {}
        Ok(())
    }

    /// Computes and publishes the current limit.
    fn look(&self) -> u64 {
        let settings = &self.files.settings;
        let used = self.files.index.lock().file_bytes();
        // If free space is unknown, only the configured maximum counts.
        let free = settings.reserve.disk.free_bytes().unwrap_or(u64::MAX);
        let limit = limit(used, free, settings.reserve.bytes, *self.files.most.lock());
        self.files.limit.store(limit, Ordering::Relaxed);
        limit
    }

    /// Deletes the oldest segment; with `again`, its blocks worth keeping are written again, else lost. Returns false
    /// if there is no segment.
    fn reclaim(&mut self, again: bool) -> io::Result<bool> {
        let memory = self.memory.upgrade();
        let is_worth = |key: &BlockKey| memory.as_ref().is_some_and(|memory| memory.lock().blocks.is_kept(key));
        let Some(gone) = self.files.index.lock().reclaim(is_worth) else { return Ok(false) };
        if self.current.as_ref().is_some_and(|current| current.number == gone.segment) {
            self.current = None;
        }
        let folder = &self.files.settings.folder;
        let read = |(key, place): &(BlockKey, Place)| {
            let record = segment::read(folder, *place).ok().filter(|_| again)?;
            let head = RecordHead::read(&record).filter(|head| head.key == *key)?;
            Some((head, record))
        };
        let records: Vec<_> = gone.kept.iter().map(read).collect();
        let mut done = segment::remove(folder, gone.segment);
        for ((key, place), record) in gone.kept.iter().zip(records) {
            match record.filter(|_| done.is_ok()) {
                Some((head, record)) => done = self.append(*key, head.table, &record),
                None => self.files.index.lock().lost(key, *place),
            }
        }
        done.map(|()| true)
    }

    /// Appends a record to the segment being filled; starts a new one if it is full.
    fn append(&mut self, key: BlockKey, table: Oid, record: &[u8]) -> io::Result<()> {
        let bytes = record.len() as u64;
        let full_at = SEGMENT_BYTES.min(self.files.limit.load(Ordering::Relaxed) / SEGMENTS_MIN);
        if self.current.as_ref().is_none_or(|current| full_at < current.bytes + bytes) {
            let number = self.next;
            self.next += 1;
            let file = segment::create(&self.files.settings.folder, number)?;
            self.files.index.lock().add_segment(number);
            self.current = Some(Filling { file, number, bytes: 0 });
        }
        let current = self.current.as_mut().expect("a segment was opened above");
        current.file.write_all_at(record, current.bytes)?;
        let place = Place { segment: current.number, at: current.bytes, bytes };
        current.bytes += bytes;
        self.files.index.lock().add(key, table, place);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_leave_twice_the_reserve_free_and_take_their_part_alone() {
        let most = |bytes_max, part| DiskPart { bytes_max, part };
        assert_eq!(limit(10, 100, 30, most(1_000, 1)), 50);
        assert_eq!(limit(10, 40, 30, most(1_000, 1)), 0, "what is there goes");
        assert_eq!(limit(10, 100, 0, most(50, 1)), 50);
        assert_eq!(limit(10, 110, 5, most(50, 4)), 30);
        assert_eq!(limit(u64::MAX, 100, 0, most(u64::MAX, 1)), u64::MAX);
    }
}

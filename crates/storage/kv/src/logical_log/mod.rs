//! Logical log of a store: each batch also writes itself as a record, until the record has been archived.
//!
//! A record is written to the space `LogicalLog` by the batch that it describes. `history` copies records to object storage;
//! later writes remove the copied ones. The physical write-ahead log, which makes a batch durable, is in `wal/`.
//!
//! Records are numbered from 1 without gaps, and each contains the checksum of its predecessor. The newest record
//! always stays in the store: from it the log continues after a restart.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::{Condvar, Mutex};
use types::Clock;

use crate::key::{KeyReader, KeyWriter};
use crate::{BATCH_BYTES_MAX, Batch, Direction, Entries, Error, KeyRange, Result, Space, TxKv};

mod record;
#[cfg(test)]
mod tests;

pub use record::{NO_PREDECESSOR, Record};

/// Maximum bytes of a record in one value; a longer record is split over consecutive keys.
const PART_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of archived records that one write removes.
const REMOVED_RECORDS_MAX: usize = 512;
/// Interval at which a blocked write rechecks whether it may continue.
const BACKPRESSURE_POLL: Duration = Duration::from_millis(100);

/// Number of the first record of a store that had content before it had a log. The content has no record; it counts as
/// record 1.
const FIRST_RECORD_AFTER_UPGRADE: u64 = 2;

/// A store that records each of its writes in an archivable log.
#[derive(Debug)]
pub struct RecordingStore {
    inner: Arc<dyn TxKv>,
    clock: Arc<dyn Clock>,
    /// Bytes of unarchived records beyond which writes block (backpressure).
    unarchived_bytes_max: u64,
    state: Mutex<LogState>,
    log_space_freed: Condvar,
}

#[derive(Debug)]
struct LogState {
    /// Number of the newest record; 0 before the first.
    newest_record: u64,
    /// Time of the newest record, in microseconds since 1970.
    newest_written_us: i64,
    /// Checksum of the newest record; the next record contains it.
    newest_checksum: u64,
    /// Number of the last archived record.
    last_archived: u64,
    /// Records in the store, oldest first.
    stored_records: VecDeque<StoredRecord>,
    /// Bytes of the records that are not archived.
    unarchived_bytes: u64,
    /// Whether backpressure is off because the server is shutting down.
    is_shutting_down: bool,
}

/// A record in the store, by its number and size.
#[derive(Debug, Clone, Copy)]
struct StoredRecord {
    number: u64,
    part_count: u32,
    bytes: u64,
}

/// Progress of the log: its newest record and the records already archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogProgress {
    /// Number of the newest record; 0 before the first.
    pub newest_record: u64,
    /// Time at which it was written, in microseconds since 1970.
    pub newest_written_us: i64,
    /// Number of the last archived record; all before it are archived too.
    pub last_archived: u64,
    /// Bytes of the records that are not archived yet.
    pub unarchived_bytes: u64,
}

impl RecordingStore {
    /// Wraps `inner` and continues its log after the newest record; writes block above `unarchived_bytes_max` unarchived bytes.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn open(inner: Arc<dyn TxKv>, clock: Arc<dyn Clock>, unarchived_bytes_max: u64) -> Result<Self> {
        let mut stored: VecDeque<StoredRecord> = VecDeque::new();
        for entry in inner.scan(Space::LogicalLog, KeyRange::all(), Direction::Forward)? {
            let (key, value) = entry?;
            let (number, _) = parse_record_key(&key)?;
            let bytes = value.len() as u64;
            match stored.back_mut().filter(|last| last.number == number) {
                Some(last) => {
                    last.part_count += 1;
                    last.bytes += bytes;
                }
                None => stored.push_back(StoredRecord { number, part_count: 1, bytes }),
            }
        }
        let mut state = LogState {
            newest_record: 0,
            newest_written_us: 0,
            newest_checksum: NO_PREDECESSOR,
            last_archived: 0,
            unarchived_bytes: 0,
            stored_records: stored,
            is_shutting_down: false,
        };
        if let Some(last) = state.stored_records.back() {
            state.newest_record = last.number;
            state.last_archived = state.stored_records[0].number - 1;
            state.unarchived_bytes = state.stored_records.iter().map(|stored| stored.bytes).sum();
            let newest = newest_record(&*inner)?.ok_or(Error::DamagedRecord)?;
            (state.newest_written_us, state.newest_checksum) = (newest.written_us, newest.checksum);
        } else if store_has_entries(&*inner)? {
            (state.newest_record, state.last_archived) =
                (FIRST_RECORD_AFTER_UPGRADE - 1, FIRST_RECORD_AFTER_UPGRADE - 1);
        }
        Ok(Self { inner, clock, unarchived_bytes_max, state: Mutex::new(state), log_space_freed: Condvar::new() })
    }

    /// Returns the progress of the log.
    #[must_use]
    pub fn progress(&self) -> LogProgress {
        let state = self.state.lock();
        LogProgress {
            newest_record: state.newest_record,
            newest_written_us: state.newest_written_us,
            last_archived: state.last_archived,
            unarchived_bytes: state.unarchived_bytes,
        }
    }

    /// Returns encoded records that are not archived, oldest first: at least one, more until `bytes_max` is reached.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unarchived_records(&self, bytes_max: usize) -> Result<Vec<Bytes>> {
        let archived = self.state.lock().last_archived;
        read_records(&*self.inner, archived + 1, bytes_max)
    }

    /// Marks all records up to `number` as archived; later writes remove them from the store.
    pub fn mark_archived(&self, number: u64) {
        let mut state = self.state.lock();
        let before = state.last_archived;
        state.last_archived = number.min(state.newest_record).max(before);
        let archived = state.last_archived;
        let bytes: u64 = state
            .stored_records
            .iter()
            .filter(|stored| before < stored.number && stored.number <= archived)
            .map(|stored| stored.bytes)
            .sum();
        state.unarchived_bytes = state.unarchived_bytes.saturating_sub(bytes);
        drop(state);
        self.log_space_freed.notify_all();
    }

    /// Turns backpressure off for the server's shutdown: writes no longer wait for records to be archived.
    pub fn disable_backpressure(&self) {
        self.state.lock().is_shutting_down = true;
        self.log_space_freed.notify_all();
    }

    /// Writes `batch` as [`TxKv::write`] does and returns the time in its record, in microseconds since 1970.
    ///
    /// # Errors
    /// As [`TxKv::write`].
    pub fn write_recorded(&self, mut batch: Batch) -> Result<i64> {
        batch.check_sizes()?;
        let bytes = batch.encoded_bytes_max();
        if BATCH_BYTES_MAX < bytes {
            return Err(Error::BatchTooLong { bytes });
        }
        let mut state = self.state.lock();
        if batch.is_empty() {
            self.inner.write(batch)?;
            return Ok(state.newest_written_us);
        }
        while self.unarchived_bytes_max < state.unarchived_bytes && !state.is_shutting_down && !self.inner.is_poisoned()
        {
            self.log_space_freed.wait_for(&mut state, BACKPRESSURE_POLL);
        }
        let number = state.newest_record + 1;
        let written_us = self.clock.now_us().max(state.newest_written_us);
        let record = Record::encode(number, written_us, Some(state.newest_checksum), &batch);
        let part_count = put_record(&mut batch, number, &record);
        let archived = state.last_archived;
        let removed: Vec<StoredRecord> = state
            .stored_records
            .iter()
            .take_while(|stored| stored.number <= archived)
            .take(REMOVED_RECORDS_MAX)
            .copied()
            .collect();
        for stored in &removed {
            for part in 0..stored.part_count {
                batch.delete(Space::LogicalLog, record_key(stored.number, part));
            }
        }
        self.inner.write(batch)?;
        state.stored_records.drain(..removed.len());
        let bytes = record.len() as u64;
        state.stored_records.push_back(StoredRecord { number, part_count, bytes });
        (state.newest_record, state.newest_written_us, state.newest_checksum) =
            (number, written_us, Record::checksum_of(&record));
        state.unarchived_bytes += bytes;
        Ok(written_us)
    }

    /// Returns the wrapped store, for operations that the log does not record.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn TxKv> {
        &self.inner
    }
}

/// Reads the newest record in the space `LogicalLog` of a store; `None` if there is none.
///
/// # Errors
/// If the store cannot be read.
pub fn newest_record(kv: &dyn TxKv) -> Result<Option<Record>> {
    first_record(kv, Direction::Reverse)
}

/// Reads the oldest record in the space `LogicalLog` of a store; all before it are archived. `None` if there is none.
///
/// # Errors
/// As [`newest_record`].
pub fn oldest_record(kv: &dyn TxKv) -> Result<Option<Record>> {
    first_record(kv, Direction::Forward)
}

/// Reads the record `number` in the space `LogicalLog` of a store; `None` if it does not exist.
///
/// # Errors
/// As [`newest_record`].
pub fn find_record(kv: &dyn TxKv, number: u64) -> Result<Option<Record>> {
    let found = read_records(kv, number, 1)?.first().map(Record::parse).transpose()?;
    Ok(found.filter(|record| record.number == number))
}

/// Reads the first record in a direction.
fn first_record(kv: &dyn TxKv, direction: Direction) -> Result<Option<Record>> {
    let Some(end) = kv.scan(Space::LogicalLog, KeyRange::all(), direction)?.next().transpose()? else {
        return Ok(None);
    };
    let (number, _) = parse_record_key(&end.0)?;
    read_records(kv, number, 1)?.first().map(Record::parse).transpose()
}

/// Adds changes to `batch` that make `record` the only record in the log of `kv`, so that the log continues after it.
///
/// # Errors
/// If the store cannot be read.
pub fn reset_log_to(kv: &dyn TxKv, record: &Record, batch: &mut Batch) -> Result<()> {
    for entry in kv.scan(Space::LogicalLog, KeyRange::all(), Direction::Forward)? {
        batch.delete(Space::LogicalLog, entry?.0);
    }
    put_record(batch, record.number, &record.to_bytes());
    Ok(())
}

impl TxKv for RecordingStore {
    fn write(&self, batch: Batch) -> Result<()> {
        self.write_recorded(batch).map(drop)
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        self.inner.get(space, key)
    }

    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.inner.multi_get(space, keys)
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries> {
        self.inner.scan(space, range, direction)
    }

    /// Deletes by an ordinary batch, so that the log records it.
    fn delete_prefix(&self, space: Space, prefix: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        for entry in self.inner.scan(space, KeyRange::prefix(prefix), Direction::Forward)? {
            batch.delete(space, entry?.0);
        }
        self.write(batch)
    }

    fn checkpoint(&self, path: &Path) -> Result<()> {
        self.inner.checkpoint(path)
    }

    fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }
}

/// Adds `record` to `batch` in parts of at most [`PART_BYTES`]; returns the number of parts.
fn put_record(batch: &mut Batch, number: u64, record: &Bytes) -> u32 {
    let mut parts = 0;
    for start in (0..record.len()).step_by(PART_BYTES) {
        batch.put(
            Space::LogicalLog,
            record_key(number, parts),
            record.slice(start..record.len().min(start + PART_BYTES)),
        );
        parts += 1;
    }
    parts
}

/// Reads encoded records from `number` on: at least one, more until `bytes_max` is reached.
fn read_records(kv: &dyn TxKv, number: u64, bytes_max: usize) -> Result<Vec<Bytes>> {
    let mut records: Vec<(u64, BytesMut)> = Vec::new();
    let mut bytes = 0;
    for entry in kv.scan(Space::LogicalLog, KeyRange::from(record_key(number, 0)), Direction::Forward)? {
        let (key, value) = entry?;
        let (number, _) = parse_record_key(&key)?;
        match records.last_mut().filter(|(last, _)| *last == number) {
            Some((_, record)) => record.extend_from_slice(&value),
            None if bytes_max <= bytes => break,
            None => records.push((number, BytesMut::from(&value[..]))),
        }
        bytes += value.len();
    }
    Ok(records.into_iter().map(|(_, record)| record.freeze()).collect())
}

fn store_has_entries(kv: &dyn TxKv) -> Result<bool> {
    for space in Space::ALL {
        if kv.scan(space, KeyRange::all(), Direction::Forward)?.next().transpose()?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn record_key(number: u64, part: u32) -> Vec<u8> {
    KeyWriter::new().u64(number).u32(part).finish()
}

fn parse_record_key(key: &[u8]) -> Result<(u64, u32)> {
    let mut reader = KeyReader::new(key);
    let read = (reader.u64()?, reader.u32()?);
    reader.finish()?;
    Ok(read)
}

//! Archivable record log of a store: each batch also writes itself as a record, until the record has been archived.
//!
//! A record is written to the space `Log` by the batch that it describes. `history` copies records to object storage;
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
const FORGET_MAX: usize = 512;
/// Interval at which a blocked write rechecks whether it may continue.
const ROOM_POLL: Duration = Duration::from_millis(100);

/// Number of the first record of a store that had content before it had a log. The content has no record; it counts as
/// record 1.
const FIRST_OF_OLD: u64 = 2;

/// A store that records each of its writes in an archivable log.
#[derive(Debug)]
pub struct Logged {
    inner: Arc<dyn TxKv>,
    clock: Arc<dyn Clock>,
    /// Bytes of unarchived records beyond which writes block (backpressure).
    waiting_max: u64,
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Debug)]
struct State {
    /// Number of the newest record; 0 before the first.
    newest: u64,
    /// Time of the newest record, in microseconds since 1970.
    newest_us: i64,
    /// Checksum of the newest record; the next record contains it.
    checksum: u64,
    /// Number of the last archived record.
    copied: u64,
    /// Records in the store, oldest first.
    kept: VecDeque<Kept>,
    /// Bytes of the records that are not archived.
    waiting_bytes: u64,
    /// Whether backpressure is off because the server is shutting down.
    ends: bool,
}

/// A record in the store, by its number and size.
#[derive(Debug, Clone, Copy)]
struct Kept {
    number: u64,
    parts: u32,
    bytes: u64,
}

/// Progress of the log: its newest record and the records already archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// Number of the newest record; 0 before the first.
    pub newest: u64,
    /// Time at which it was written, in microseconds since 1970.
    pub newest_us: i64,
    /// Number of the last archived record; all before it are archived too.
    pub copied: u64,
    /// Bytes of the records that are not archived yet.
    pub waiting_bytes: u64,
}

impl Logged {
    /// Wraps `inner` and continues its log after the newest record; writes block above `waiting_max` unarchived bytes.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn open(inner: Arc<dyn TxKv>, clock: Arc<dyn Clock>, waiting_max: u64) -> Result<Self> {
        let mut kept: VecDeque<Kept> = VecDeque::new();
        for entry in inner.scan(Space::Log, KeyRange::all(), Direction::Forward)? {
            let (key, value) = entry?;
            let (number, _) = read_key(&key)?;
            let bytes = value.len() as u64;
            match kept.back_mut().filter(|last| last.number == number) {
                Some(last) => {
                    last.parts += 1;
                    last.bytes += bytes;
                }
                None => kept.push_back(Kept { number, parts: 1, bytes }),
            }
        }
        let mut state =
            State { newest: 0, newest_us: 0, checksum: NO_PREDECESSOR, copied: 0, waiting_bytes: 0, kept, ends: false };
        if let Some(last) = state.kept.back() {
            state.newest = last.number;
            state.copied = state.kept[0].number - 1;
            state.waiting_bytes = state.kept.iter().map(|kept| kept.bytes).sum();
            let newest = newest(&*inner)?.ok_or(Error::MalformedRecord)?;
            (state.newest_us, state.checksum) = (newest.written_us, newest.checksum);
        } else if holds_anything(&*inner)? {
            (state.newest, state.copied) = (FIRST_OF_OLD - 1, FIRST_OF_OLD - 1);
        }
        Ok(Self { inner, clock, waiting_max, state: Mutex::new(state), room: Condvar::new() })
    }

    /// Returns the progress of the log.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        let state = self.state.lock();
        LogPosition {
            newest: state.newest,
            newest_us: state.newest_us,
            copied: state.copied,
            waiting_bytes: state.waiting_bytes,
        }
    }

    /// Returns encoded records that are not archived, oldest first: at least one, more until `bytes_max` is reached.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn waiting(&self, bytes_max: usize) -> Result<Vec<Bytes>> {
        let copied = self.state.lock().copied;
        read_from(&*self.inner, copied + 1, bytes_max)
    }

    /// Marks all records up to `number` as archived; later writes remove them from the store.
    pub fn copied_to(&self, number: u64) {
        let mut state = self.state.lock();
        let before = state.copied;
        state.copied = number.min(state.newest).max(before);
        let copied = state.copied;
        let bytes: u64 =
            state.kept.iter().filter(|kept| before < kept.number && kept.number <= copied).map(|kept| kept.bytes).sum();
        state.waiting_bytes = state.waiting_bytes.saturating_sub(bytes);
        drop(state);
        self.room.notify_all();
    }

    /// Turns backpressure off for the server's shutdown: writes no longer wait for records to be archived.
    pub fn end(&self) {
        self.state.lock().ends = true;
        self.room.notify_all();
    }

    /// Writes `batch` as [`TxKv::write`] does and returns the time in its record, in microseconds since 1970.
    ///
    /// # Errors
    /// As [`TxKv::write`].
    pub fn write_logged(&self, mut batch: Batch) -> Result<i64> {
        batch.check_sizes()?;
        let bytes = batch.byte_count();
        if BATCH_BYTES_MAX < bytes {
            return Err(Error::BatchTooLong { bytes });
        }
        let mut state = self.state.lock();
        if batch.is_empty() {
            self.inner.write(batch)?;
            return Ok(state.newest_us);
        }
        while self.waiting_max < state.waiting_bytes && !state.ends && !self.inner.is_poisoned() {
            self.room.wait_for(&mut state, ROOM_POLL);
        }
        let number = state.newest + 1;
        let written_us = self.clock.now_us().max(state.newest_us);
        let record = Record::encode(number, written_us, Some(state.checksum), &batch);
        let parts = put(&mut batch, number, &record);
        let copied = state.copied;
        let forgotten: Vec<Kept> =
            state.kept.iter().take_while(|kept| kept.number <= copied).take(FORGET_MAX).copied().collect();
        for kept in &forgotten {
            for part in 0..kept.parts {
                batch.delete(Space::Log, key(kept.number, part));
            }
        }
        self.inner.write(batch)?;
        state.kept.drain(..forgotten.len());
        let bytes = record.len() as u64;
        state.kept.push_back(Kept { number, parts, bytes });
        (state.newest, state.newest_us, state.checksum) = (number, written_us, Record::checksum_of(&record));
        state.waiting_bytes += bytes;
        Ok(written_us)
    }

    /// Returns the wrapped store, for operations that the log does not record.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn TxKv> {
        &self.inner
    }
}

/// Reads the newest record in the space `Log` of a store; `None` if there is none.
///
/// # Errors
/// If the store cannot be read.
pub fn newest(kv: &dyn TxKv) -> Result<Option<Record>> {
    end(kv, Direction::Reverse)
}

/// Reads the oldest record in the space `Log` of a store; all before it are archived. `None` if there is none.
///
/// # Errors
/// As [`newest`].
pub fn oldest(kv: &dyn TxKv) -> Result<Option<Record>> {
    end(kv, Direction::Forward)
}

/// Reads the record `number` in the space `Log` of a store; `None` if it does not exist.
///
/// # Errors
/// As [`newest`].
pub fn record(kv: &dyn TxKv, number: u64) -> Result<Option<Record>> {
    let found = read_from(kv, number, 1)?.first().map(Record::parse).transpose()?;
    Ok(found.filter(|record| record.number == number))
}

/// Reads the first record in a direction.
fn end(kv: &dyn TxKv, direction: Direction) -> Result<Option<Record>> {
    let Some(end) = kv.scan(Space::Log, KeyRange::all(), direction)?.next().transpose()? else {
        return Ok(None);
    };
    let (number, _) = read_key(&end.0)?;
    read_from(kv, number, 1)?.first().map(Record::parse).transpose()
}

/// Adds changes to `batch` that make `record` the only record in the log of `kv`, so that the log continues after it.
///
/// # Errors
/// If the store cannot be read.
pub fn begin_after(kv: &dyn TxKv, record: &Record, batch: &mut Batch) -> Result<()> {
    for entry in kv.scan(Space::Log, KeyRange::all(), Direction::Forward)? {
        batch.delete(Space::Log, entry?.0);
    }
    put(batch, record.number, &record.to_bytes());
    Ok(())
}

impl TxKv for Logged {
    fn write(&self, batch: Batch) -> Result<()> {
        self.write_logged(batch).map(drop)
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
fn put(batch: &mut Batch, number: u64, record: &Bytes) -> u32 {
    let mut parts = 0;
    for start in (0..record.len()).step_by(PART_BYTES) {
        batch.put(Space::Log, key(number, parts), record.slice(start..record.len().min(start + PART_BYTES)));
        parts += 1;
    }
    parts
}

/// Reads encoded records from `number` on: at least one, more until `bytes_max` is reached.
fn read_from(kv: &dyn TxKv, number: u64, bytes_max: usize) -> Result<Vec<Bytes>> {
    let mut records: Vec<(u64, BytesMut)> = Vec::new();
    let mut bytes = 0;
    for entry in kv.scan(Space::Log, KeyRange::from(key(number, 0)), Direction::Forward)? {
        let (key, value) = entry?;
        let (number, _) = read_key(&key)?;
        match records.last_mut().filter(|(last, _)| *last == number) {
            Some((_, record)) => record.extend_from_slice(&value),
            None if bytes_max <= bytes => break,
            None => records.push((number, BytesMut::from(&value[..]))),
        }
        bytes += value.len();
    }
    Ok(records.into_iter().map(|(_, record)| record.freeze()).collect())
}

fn holds_anything(kv: &dyn TxKv) -> Result<bool> {
    for space in Space::ALL {
        if kv.scan(space, KeyRange::all(), Direction::Forward)?.next().transpose()?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn key(number: u64, part: u32) -> Vec<u8> {
    KeyWriter::new().u64(number).u32(part).finish()
}

fn read_key(key: &[u8]) -> Result<(u64, u32)> {
    let mut reader = KeyReader::new(key);
    let read = (reader.u64()?, reader.u32()?);
    reader.finish()?;
    Ok(read)
}

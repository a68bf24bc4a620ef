//! A store whose every write is a record too: in the space `Log`, by the same batch, until it has been copied elsewhere.
//!
//! Records are numbered from 1 without a gap, and each contains the checksum of the one before it. The newest is always there: it tells
//! where the log goes on after a start.

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

/// Bytes of a record in one value: the others follow under the next keys.
const PART_BYTES: usize = 16 * 1024 * 1024;
/// Copied records that one write removes at most.
const FORGET_MAX: usize = 512;
/// Writes look this often whether there is room again.
const ROOM_POLL: Duration = Duration::from_millis(100);

/// The number of the first record of a store that was written to before it had a log: what record 1 would say is not known.
const FIRST_OF_OLD: u64 = 2;

/// A store with a log.
#[derive(Debug)]
pub struct Logged {
    inner: Arc<dyn TxKv>,
    clock: Arc<dyn Clock>,
    /// Bytes of records that may wait to be copied; beyond, writes wait.
    waiting_max: u64,
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Debug)]
struct State {
    /// Of the newest record; 0 before the first.
    newest: u64,
    newest_us: i64,
    /// Of the newest record, for the next one to contain.
    checksum: u64,
    copied: u64,
    /// The records in the store.
    kept: VecDeque<Kept>,
    /// Bytes of those that are not copied.
    waiting_bytes: u64,
    /// Whether writes no longer wait for room.
    ends: bool,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    number: u64,
    parts: u32,
    bytes: u64,
}

/// How far the log has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// Number of the newest record; 0 before the first.
    pub newest: u64,
    /// When it was written, in microseconds since 1970.
    pub newest_us: i64,
    /// All records up to this one are copied.
    pub copied: u64,
    /// Bytes of the others.
    pub waiting_bytes: u64,
}

impl Logged {
    /// The log goes on where the store says that it ended.
    ///
    /// # Errors
    /// Where the store cannot be read.
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

    /// Records that are not copied, as bytes, from the oldest on: one, and more as long as all have no more than `bytes_max`.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn waiting(&self, bytes_max: usize) -> Result<Vec<Bytes>> {
        let copied = self.state.lock().copied;
        read_from(&*self.inner, copied + 1, bytes_max)
    }

    /// All records up to `number` are copied; later writes remove them.
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

    /// Lets writes go on without waiting for room, as at the end of the server.
    pub fn end(&self) {
        self.state.lock().ends = true;
        self.room.notify_all();
    }

    /// As [`TxKv::write`]; when the batch was written, as its record tells it.
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

    /// The store below, for what is no part of the log.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn TxKv> {
        &self.inner
    }
}

/// The newest record in the space `Log` of a store; `None` where there is none.
///
/// # Errors
/// Where the store cannot be read.
pub fn newest(kv: &dyn TxKv) -> Result<Option<Record>> {
    end(kv, Direction::Reverse)
}

/// The oldest record in the space `Log` of a store: all before it were copied. `None` where there is none.
///
/// # Errors
/// As [`newest`].
pub fn oldest(kv: &dyn TxKv) -> Result<Option<Record>> {
    end(kv, Direction::Forward)
}

/// The record `number` in the space `Log` of a store; `None` where it is not there.
///
/// # Errors
/// As [`newest`].
pub fn record(kv: &dyn TxKv, number: u64) -> Result<Option<Record>> {
    let found = read_from(kv, number, 1)?.first().map(Record::parse).transpose()?;
    Ok(found.filter(|record| record.number == number))
}

/// The first record in a direction.
fn end(kv: &dyn TxKv, direction: Direction) -> Result<Option<Record>> {
    let Some(end) = kv.scan(Space::Log, KeyRange::all(), direction)?.next().transpose()? else {
        return Ok(None);
    };
    let (number, _) = read_key(&end.0)?;
    read_from(kv, number, 1)?.first().map(Record::parse).transpose()
}

/// Adds to `batch` what makes `record` the only one in the log of `kv`.
///
/// # Errors
/// Where the store cannot be read.
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

    /// As a batch like any other, for the log has to tell it.
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

fn put(batch: &mut Batch, number: u64, record: &Bytes) -> u32 {
    let mut parts = 0;
    for start in (0..record.len()).step_by(PART_BYTES) {
        batch.put(Space::Log, key(number, parts), record.slice(start..record.len().min(start + PART_BYTES)));
        parts += 1;
    }
    parts
}

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

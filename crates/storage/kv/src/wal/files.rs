//! The write-ahead log: two files that take turns. One is written to, the other waits for the trees to have what it says.

use std::io;

use bytes::{Bytes, BytesMut};
use redb::StorageBackend;

use super::frame;
use crate::Batch;
use crate::log::Record;

/// A file grows by this at least…
const GROWTH_BYTES_MIN: u64 = 64 * 1024;
/// … and by its length, up to this: with zeros that are synced once, so that later writes change no metadata.
const GROWTH_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What a log is kept in; `redb`'s trait, so that tests let it fail as they let the trees' file.
pub(super) type Medium = Box<dyn StorageBackend>;

#[derive(Debug)]
pub(super) struct Wal {
    files: [LogFile; 2],
    active: usize,
    newest: u64,
    /// Frames of another store are not read, as those that were left beside a file that was replaced.
    identity: u64,
    frame: BytesMut,
}

#[derive(Debug)]
struct LogFile {
    medium: Medium,
    length: u64,
    /// Where the next frame goes.
    end: u64,
}

/// Records that the trees do not have, oldest first.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Those in the file that waits.
    pub(super) waiting: Vec<Record>,
    /// Those in the file that is written to.
    pub(super) active: Vec<Record>,
}

/// Why a log cannot be read.
#[derive(Debug)]
pub(super) enum Unreadable {
    Io(io::Error),
    /// A record after `after` is there, and those between are not.
    Damaged {
        after: u64,
        found: u64,
    },
}

impl From<io::Error> for Unreadable {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

impl Wal {
    /// The log of the store `identity`, whose trees have all records up to `applied`.
    pub(super) fn open(media: [Medium; 2], identity: u64, applied: u64) -> Result<(Self, Found), Unreadable> {
        let [first, second] = media;
        let (first, second) = (read(first, identity, applied)?, read(second, identity, applied)?);
        let begins = |file: &Read| file.records.first().map_or(u64::MAX, |record| record.number);
        // The one that began later is written to; where one has nothing that is needed, it is the other.
        let active = match (first.records.is_empty(), second.records.is_empty()) {
            (true, false) => 1,
            (_, true) => 0,
            (false, false) => usize::from(begins(&first) < begins(&second)),
        };
        let mut reads = [first, second];
        let found = Found {
            waiting: std::mem::take(&mut reads[1 - active].records),
            active: std::mem::take(&mut reads[active].records),
        };
        let mut newest = applied;
        for record in found.waiting.iter().chain(&found.active) {
            if record.number != newest + 1 {
                return Err(Unreadable::Damaged { after: newest, found: record.number });
            }
            newest = record.number;
        }
        // A record is only written when all before it are safe: one beyond a gap tells that something was lost since.
        if let Some(beyond) = reads.iter().filter_map(|file| file.beyond).find(|beyond| newest < *beyond) {
            return Err(Unreadable::Damaged { after: newest, found: beyond });
        }
        let mut files = reads.map(|read| read.file);
        if found.waiting.is_empty() {
            files[1 - active].end = 0;
        }
        if found.active.is_empty() {
            files[active].end = 0;
        } else {
            // The last record may have been read from memory that no sync has reached.
            files[active].medium.sync_data()?;
        }
        Ok((Self { files, active, newest, identity, frame: BytesMut::new() }, found))
    }

    /// Writes `batch` durably; its number.
    pub(super) fn append(&mut self, batch: &Batch) -> io::Result<u64> {
        let number = self.newest + 1;
        self.frame.clear();
        frame::put(&mut self.frame, self.identity, number, batch);
        let file = &mut self.files[self.active];
        file.write(&self.frame)?;
        self.newest = number;
        Ok(number)
    }

    /// Bytes in the file that is written to.
    pub(super) fn active_bytes(&self) -> u64 {
        self.files[self.active].end
    }

    /// Goes on at the start of the other file, whose records the trees must have; the number of the newest record.
    pub(super) fn switch(&mut self, bytes_max: u64) -> io::Result<u64> {
        self.active = 1 - self.active;
        let file = &mut self.files[self.active];
        file.end = 0;
        if bytes_max < file.length {
            file.medium.set_len(bytes_max)?;
            file.length = bytes_max;
        }
        Ok(self.newest)
    }
}

impl LogFile {
    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let end = self.end + frame.len() as u64;
        self.medium.write(self.end, frame)?;
        if self.length < end {
            let growth = self.length.clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX);
            let zeros = vec![0; usize::try_from(growth).map_err(io::Error::other)?];
            self.medium.write(end, &zeros)?;
            self.length = end + growth;
        }
        self.medium.sync_data()?;
        self.end = end;
        Ok(())
    }
}

struct Read {
    file: LogFile,
    /// Those after `applied`.
    records: Vec<Record>,
    /// The number of a record after the first gap.
    beyond: Option<u64>,
}

fn read(medium: Medium, identity: u64, applied: u64) -> io::Result<Read> {
    let length = medium.len()?;
    let mut bytes = BytesMut::zeroed(usize::try_from(length).map_err(io::Error::other)?);
    medium.read(0, &mut bytes)?;
    let bytes = bytes.freeze();
    let (mut end, mut last, mut records) = (0, None, Vec::new());
    while let Some((record, next)) = frame::read(&bytes, end, identity)
        && last.is_none_or(|last| record.number == last + 1)
    {
        (last, end) = (Some(record.number), next);
        if applied < record.number {
            records.push(record);
        }
    }
    let beyond = beyond(&bytes, end, identity, last.unwrap_or(0));
    Ok(Read { file: LogFile { medium, length, end: end as u64 }, records, beyond })
}

/// The highest number of a record from `from` on that is above `last`: what a file held before its turn has lower ones.
fn beyond(bytes: &Bytes, from: usize, identity: u64, last: u64) -> Option<u64> {
    (from..bytes.len())
        .step_by(frame::ALIGN_BYTES)
        .filter_map(|at| frame::read(bytes, at, identity))
        .map(|(record, _)| record.number)
        .filter(|number| last < *number)
        .max()
}

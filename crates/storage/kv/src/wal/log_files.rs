//! The write-ahead log: two files used in alternation.
//!
//! The active file is appended to; the records of the other are being flushed to the trees.

use std::io;

use bytes::{Bytes, BytesMut};
use redb::StorageBackend;

use super::record_frame;
use crate::Batch;
use crate::logical_log::Record;

/// Minimum by which a file grows, in bytes.
const GROWTH_BYTES_MIN: u64 = 64 * 1024;
/// Maximum by which a file grows, in bytes; in between it doubles. Growing writes zeros that are synced once, so that
/// later appends change no file metadata.
const GROWTH_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The storage of a log file. It is `redb`'s trait so that tests can inject failures as for the trees' file.
pub(super) type LogMedium = Box<dyn StorageBackend>;

/// The write-ahead log of one store.
#[derive(Debug)]
pub(super) struct Wal {
    files: [LogFile; 2],
    /// Index of the file that is appended to.
    active_file: usize,
    /// Number of the newest record.
    newest_record: u64,
    /// Identity of the store, part of each frame: frames left over from another store at this path are ignored.
    store_identity: u64,
    /// Buffer in which frames are encoded.
    frame_buffer: BytesMut,
}

#[derive(Debug)]
struct LogFile {
    medium: LogMedium,
    length: u64,
    /// Offset at which the next frame is written.
    append_offset: u64,
}

/// Records recovered from the log that the trees lack, oldest first.
#[derive(Debug, Default)]
pub(super) struct RecoveredRecords {
    /// Records of the inactive file.
    pub(super) inactive: Vec<Record>,
    /// Records of the active file.
    pub(super) active: Vec<Record>,
}

/// Failure to recover a log.
#[derive(Debug)]
pub(super) enum RecoveryError {
    Io(io::Error),
    /// The log has a gap: record `found` exists, but durable records between `after` and it are missing.
    Gap {
        after: u64,
        found: u64,
    },
}

impl From<io::Error> for RecoveryError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

impl Wal {
    /// Opens the log of store `identity` and recovers the records after `applied`, the newest one in the trees.
    pub(super) fn open(
        media: [LogMedium; 2],
        identity: u64,
        applied: u64,
    ) -> Result<(Self, RecoveredRecords), RecoveryError> {
        let [first, second] = media;
        let (first, second) = (recover_file(first, identity, applied)?, recover_file(second, identity, applied)?);
        let begins = |file: &RecoveredFile| file.records.first().map_or(u64::MAX, |record| record.number);
        // The file whose records start later is the active one; a file without unapplied records is inactive.
        let active = match (first.records.is_empty(), second.records.is_empty()) {
            (true, false) => 1,
            (_, true) => 0,
            (false, false) => usize::from(begins(&first) < begins(&second)),
        };
        let mut reads = [first, second];
        let found = RecoveredRecords {
            inactive: std::mem::take(&mut reads[1 - active].records),
            active: std::mem::take(&mut reads[active].records),
        };
        let mut newest = applied;
        for record in found.inactive.iter().chain(&found.active) {
            if record.number != newest + 1 {
                return Err(RecoveryError::Gap { after: newest, found: record.number });
            }
            newest = record.number;
        }
        // A record is written only after all before it are durable, so a record beyond a gap proves that some were
        // lost.
        if let Some(beyond) = reads.iter().filter_map(|file| file.number_after_gap).find(|beyond| newest < *beyond) {
            return Err(RecoveryError::Gap { after: newest, found: beyond });
        }
        let mut files = reads.map(|read| read.file);
        if found.inactive.is_empty() {
            files[1 - active].append_offset = 0;
        }
        if found.active.is_empty() {
            files[active].append_offset = 0;
        } else {
            // The last record may have been read from the page cache before it was synced.
            files[active].medium.sync_data()?;
        }
        Ok((
            Self {
                files,
                active_file: active,
                newest_record: newest,
                store_identity: identity,
                frame_buffer: BytesMut::new(),
            },
            found,
        ))
    }

    /// Appends `batch` durably and returns its record number.
    pub(super) fn append(&mut self, batch: &Batch) -> io::Result<u64> {
        let number = self.newest_record + 1;
        self.frame_buffer.clear();
        record_frame::append(&mut self.frame_buffer, self.store_identity, number, batch);
        let file = &mut self.files[self.active_file];
        file.write(&self.frame_buffer)?;
        self.newest_record = number;
        Ok(number)
    }

    /// Returns the bytes used in the active file.
    pub(super) fn active_bytes(&self) -> u64 {
        self.files[self.active_file].append_offset
    }

    /// Switches to the start of the other file, whose records must be in the trees, and shrinks it to at most
    /// `bytes_max`. Returns the number of the newest record.
    pub(super) fn switch_files(&mut self, bytes_max: u64) -> io::Result<u64> {
        self.active_file = 1 - self.active_file;
        let file = &mut self.files[self.active_file];
        file.append_offset = 0;
        if bytes_max < file.length {
            file.medium.set_len(bytes_max)?;
            file.length = bytes_max;
        }
        Ok(self.newest_record)
    }
}

impl LogFile {
    /// Appends a frame, growing the file if necessary, and syncs it.
    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let end = self.append_offset + frame.len() as u64;
        self.medium.write(self.append_offset, frame)?;
        if self.length < end {
            let growth = self.length.clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX);
            let zeros = vec![0; usize::try_from(growth).map_err(io::Error::other)?];
            self.medium.write(end, &zeros)?;
            self.length = end + growth;
        }
        self.medium.sync_data()?;
        self.append_offset = end;
        Ok(())
    }
}

/// Recovered contents of one log file.
struct RecoveredFile {
    file: LogFile,
    /// Consecutive records from the start of the file, without those already in the trees.
    records: Vec<Record>,
    /// Highest number of a record behind the first gap.
    number_after_gap: Option<u64>,
}

/// Reads a log file up to its first gap or invalid frame, then searches behind it for newer records.
fn recover_file(medium: LogMedium, identity: u64, applied: u64) -> io::Result<RecoveredFile> {
    let length = medium.len()?;
    let mut bytes = BytesMut::zeroed(usize::try_from(length).map_err(io::Error::other)?);
    medium.read(0, &mut bytes)?;
    let bytes = bytes.freeze();
    let (mut end, mut last, mut records) = (0, None, Vec::new());
    while let Some((record, next)) = record_frame::read(&bytes, end, identity)
        && last.is_none_or(|last| record.number == last + 1)
    {
        (last, end) = (Some(record.number), next);
        if applied < record.number {
            records.push(record);
        }
    }
    let beyond = highest_number_after_gap(&bytes, end, identity, last.unwrap_or(0));
    Ok(RecoveredFile { file: LogFile { medium, length, append_offset: end as u64 }, records, number_after_gap: beyond })
}

/// Returns the highest record number above `last` at or after offset `from`. Leftovers of an earlier use of the file
/// have lower numbers.
fn highest_number_after_gap(bytes: &Bytes, from: usize, identity: u64, last: u64) -> Option<u64> {
    (from..bytes.len())
        .step_by(record_frame::ALIGN_BYTES)
        .filter_map(|at| record_frame::read(bytes, at, identity))
        .map(|(record, _)| record.number)
        .filter(|number| last < *number)
        .max()
}

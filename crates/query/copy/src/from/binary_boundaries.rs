//! Record boundaries in binary COPY: a header, records with counted fields, and a trailer.

use types::{Condition, SqlError, SqlResult};

use super::chunk_cutter::ScanProgress;

/// Signature at the start of every binary COPY.
pub(crate) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Field count that marks the end of the data.
pub(crate) const TRAILER: i16 = -1;
/// Mask of critical header flags, which a reader must support; Kiln supports none.
const CRITICAL_FLAGS: i32 = 0x7fff_0000;
/// Header flag of the old format with object ids in each record.
const HAS_OIDS: i32 = 1 << 16;

/// Scanner for record boundaries in binary COPY.
#[derive(Debug)]
pub(super) struct BinaryScanner {
    width: usize,
    header_read: bool,
}

impl BinaryScanner {
    pub(super) fn new(width: usize) -> BinaryScanner {
        BinaryScanner { width, header_read: false }
    }

    /// Scans on from the last boundary. Stops at a malformed record, whose error the parser reports.
    pub(super) fn scan(&mut self, bytes: &[u8], progress: &mut ScanProgress) -> SqlResult<()> {
        if !self.header_read {
            let Some(length) = header_length(bytes)? else { return Ok(()) };
            self.header_read = true;
            progress.boundary = length;
        }
        loop {
            match measure_record(&bytes[progress.boundary..], self.width) {
                RecordVerdict::Complete(length) => {
                    progress.boundary += length;
                    progress.lines += 1;
                }
                RecordVerdict::Trailer => {
                    progress.is_ended = true;
                    let behind = &bytes[progress.boundary + size_of::<i16>()..];
                    return self.check_no_more_data(behind);
                }
                RecordVerdict::Partial | RecordVerdict::Malformed => return Ok(()),
            }
        }
    }

    /// Checks that nothing follows the trailer.
    pub(super) fn check_no_more_data(&self, behind: &[u8]) -> SqlResult<()> {
        if behind.is_empty() { Ok(()) } else { Err(bad_format("received copy data after EOF marker")) }
    }
}

/// Verdict on the bytes at the start of a record.
pub(super) enum RecordVerdict {
    /// Complete record, with its length in bytes.
    Complete(usize),
    Trailer,
    /// Incomplete record: more bytes are needed.
    Partial,
    /// Record with a wrong field count or a negative length.
    Malformed,
}

/// Measures the record at the start of `bytes`.
pub(super) fn measure_record(bytes: &[u8], width: usize) -> RecordVerdict {
    let Some(count) = bytes.first_chunk::<2>() else { return RecordVerdict::Partial };
    let count = i16::from_be_bytes(*count);
    if count == TRAILER {
        return RecordVerdict::Trailer;
    }
    if usize::try_from(count).ok() != Some(width) {
        return RecordVerdict::Malformed;
    }
    let mut at = 2;
    for _ in 0..width {
        let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else {
            return RecordVerdict::Partial;
        };
        at += 4;
        match i32::from_be_bytes(*length) {
            -1 => {}
            length => match usize::try_from(length) {
                Ok(length) => at += length,
                Err(_) => return RecordVerdict::Malformed,
            },
        }
    }
    if at > bytes.len() { RecordVerdict::Partial } else { RecordVerdict::Complete(at) }
}

/// Checks the header and returns its length; `None` if it has not arrived completely.
pub(super) fn header_length(bytes: &[u8]) -> SqlResult<Option<usize>> {
    let seen = bytes.len().min(SIGNATURE.len());
    if bytes[..seen] != SIGNATURE[..seen] {
        return Err(bad_format("COPY file signature not recognized"));
    }
    let Some(fields) = bytes.get(SIGNATURE.len()..).and_then(|rest| rest.first_chunk::<8>()) else { return Ok(None) };
    let [f0, f1, f2, f3, l0, l1, l2, l3] = *fields;
    let flags = i32::from_be_bytes([f0, f1, f2, f3]);
    if flags & HAS_OIDS != 0 {
        return Err(bad_format("invalid COPY file header (WITH OIDS)"));
    }
    if flags & CRITICAL_FLAGS != 0 {
        return Err(bad_format("unrecognized critical flags in COPY file header"));
    }
    let extension = usize::try_from(i32::from_be_bytes([l0, l1, l2, l3]))
        .map_err(|_| bad_format("invalid COPY file header (missing length)"))?;
    let length = SIGNATURE.len() + fields.len() + extension;
    Ok((bytes.len() >= length).then_some(length))
}

/// Returns 22P04 with PostgreSQL's message.
pub(super) fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::BadCopyFileFormat, message)
}

//! Encoding of log records: format, number, time, checksum of the predecessor, changes, checksum. Numbers are
//! big-endian.
//!
//! Because a record's checksum covers the checksum of its predecessor, a chain of matching checksums proves that the
//! records belong to one history.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Batch, Error, Op, Result, Space};

/// Format without the predecessor's checksum: frames of the write-ahead log, and logs written before chaining existed.
const FORMAT_UNCHAINED: u8 = 1;
/// Format with the predecessor's checksum.
const FORMAT_CHAINED: u8 = 2;
const PUT: u8 = 0;
const DELETE: u8 = 1;
/// A put whose value is the unchained record of the preceding changes of this batch: only its number and time are
/// written. A store with a logical log adds such a value to each batch; without this the log would store it twice.
const PUT_RECORD: u8 = 2;
/// The same for a chained record: its number, time and predecessor's checksum are written.
const PUT_CHAINED_RECORD: u8 = 3;
/// Size of format, number, time and count of changes; a chained record has [`CHECKSUM_BYTES`] more.
const HEADER_BYTES: usize = 1 + 8 + 8 + 8;
const CHECKSUM_BYTES: usize = 8;
/// Value of [`Record::previous_checksum`] in a store's first record.
pub const NO_PREDECESSOR: u64 = 0;

/// Log record: one batch that was written to a store, with its number and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Position in the log; consecutive records have consecutive numbers.
    pub number: u64,
    /// Time of the write in microseconds since 1970; never less than that of an earlier record.
    pub written_us: i64,
    /// Checksum of the predecessor; `None` for a record written before records were chained.
    pub previous_checksum: Option<u64>,
    /// Checksum of the encoded record.
    pub checksum: u64,
    /// The changes that were written.
    pub batch: Batch,
}

impl Record {
    /// Encodes `batch` as a record.
    pub(crate) fn encode(number: u64, written_us: i64, previous: Option<u64>, batch: &Batch) -> Bytes {
        let mut bytes = BytesMut::new();
        Self::encode_into(&mut bytes, number, written_us, previous, batch);
        bytes.freeze()
    }

    /// Encodes the record; the bytes equal those that it was decoded from.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        Self::encode(self.number, self.written_us, self.previous_checksum, &self.batch)
    }

    /// Appends `batch`, encoded as a record, to `bytes`.
    pub(crate) fn encode_into(
        bytes: &mut BytesMut,
        number: u64,
        written_us: i64,
        previous: Option<u64>,
        batch: &Batch,
    ) {
        bytes.reserve(Self::encoded_bytes_max(batch));
        let ops = batch.ops();
        let start = bytes.len();
        let head = RecordHeader { number, written_us, previous_checksum: previous };
        bytes.put_u8(head.format());
        head.put(bytes);
        bytes.put_u64(ops.len() as u64);
        let content_start = bytes.len();
        let mut has_embedded_record = false;
        for (at, op) in ops.iter().enumerate() {
            match op {
                Op::Put { space, key, value } => {
                    let embedded = (!has_embedded_record)
                        .then(|| match_embedded_record(value, at, &bytes[content_start..]))
                        .flatten();
                    has_embedded_record |= embedded.is_some();
                    bytes.put_u8(match embedded {
                        None => PUT,
                        Some(RecordHeader { previous_checksum: None, .. }) => PUT_RECORD,
                        Some(RecordHeader { previous_checksum: Some(_), .. }) => PUT_CHAINED_RECORD,
                    });
                    bytes.put_u8(space.byte());
                    put_bytes(bytes, key);
                    match embedded {
                        Some(head) => head.put(bytes),
                        None => put_bytes(bytes, value),
                    }
                }
                Op::Delete { space, key } => {
                    bytes.put_u8(DELETE);
                    bytes.put_u8(space.byte());
                    put_bytes(bytes, key);
                }
            }
        }
        let checksum = xxh3_64(&bytes[start..]);
        bytes.put_u64(checksum);
    }

    /// Returns an upper bound of the encoded size of `batch` as a record, in bytes.
    pub(crate) fn encoded_bytes_max(batch: &Batch) -> usize {
        HEADER_BYTES + CHECKSUM_BYTES + batch.encoded_bytes_max() + CHECKSUM_BYTES
    }

    /// Returns the checksum at the end of an encoded record; zero if `bytes` are too short.
    pub(crate) fn checksum_of(bytes: &Bytes) -> u64 {
        bytes.len().checked_sub(CHECKSUM_BYTES).map_or(0, |at| bytes.slice(at..).get_u64())
    }

    /// Whether the record is the successor of a record with checksum `before`. Unchained records match any predecessor.
    #[must_use]
    pub fn follows(&self, before: u64) -> bool {
        self.previous_checksum.is_none_or(|previous| previous == before)
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// [`Error::DamagedRecord`] if `bytes` are cut off or do not match their checksum.
    pub fn parse(bytes: &Bytes) -> Result<Self> {
        decode(bytes).ok_or(Error::DamagedRecord)
    }
}

/// Header of a record: everything but its changes and its own checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordHeader {
    number: u64,
    written_us: i64,
    previous_checksum: Option<u64>,
}

impl RecordHeader {
    fn format(self) -> u8 {
        if self.previous_checksum.is_some() { FORMAT_CHAINED } else { FORMAT_UNCHAINED }
    }

    fn put(self, bytes: &mut BytesMut) {
        bytes.put_u64(self.number);
        bytes.put_i64(self.written_us);
        if let Some(previous) = self.previous_checksum {
            bytes.put_u64(previous);
        }
    }

    fn read(bytes: &mut impl Buf, is_chained: bool) -> Option<Self> {
        let (number, written_us) = (bytes.try_get_u64().ok()?, bytes.try_get_i64().ok()?);
        let previous = if is_chained { Some(bytes.try_get_u64().ok()?) } else { None };
        Some(Self { number, written_us, previous_checksum: previous })
    }

    /// Reads the format byte and the header after it.
    fn read_with_format(bytes: &mut impl Buf) -> Option<Self> {
        let is_chained = is_chained(bytes.try_get_u8().ok()?)?;
        Self::read(bytes, is_chained)
    }
}

/// Whether records of `format` contain their predecessor's checksum; `None` for a format that this version cannot read.
fn is_chained(format: u8) -> Option<bool> {
    match format {
        FORMAT_UNCHAINED => Some(false),
        FORMAT_CHAINED => Some(true),
        _ => None,
    }
}

/// Returns the header of `value` if `value` is the record of the first `count` changes, whose encoding is `content`.
fn match_embedded_record(value: &[u8], count: usize, content: &[u8]) -> Option<RecordHeader> {
    // The length alone already rules out most values that are not such a record.
    let head_bytes = value.len().checked_sub(content.len() + CHECKSUM_BYTES)?;
    if count == 0 || (head_bytes != HEADER_BYTES && head_bytes != HEADER_BYTES + CHECKSUM_BYTES) {
        return None;
    }
    let (embedded, mut checksum) = value.split_at(value.len() - CHECKSUM_BYTES);
    let (mut head, embedded_content) = embedded.split_at(head_bytes);
    let read = RecordHeader::read_with_format(&mut head)?;
    let is_same = head.try_get_u64().ok()? == count as u64 && head.is_empty() && embedded_content == content;
    (is_same && checksum.get_u64() == xxh3_64(embedded)).then_some(read)
}

fn put_bytes(bytes: &mut BytesMut, part: &[u8]) {
    bytes.put_u32(u32::try_from(part.len()).expect("Batch::check_sizes limits keys and values to 64 MiB"));
    bytes.put_slice(part);
}

fn decode(bytes: &Bytes) -> Option<Record> {
    let content = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let (content, mut checksum) = (bytes.slice(..content), bytes.slice(content..));
    let checksum = checksum.get_u64();
    if xxh3_64(&content) != checksum {
        return None;
    }
    let mut rest = content;
    let RecordHeader { number, written_us, previous_checksum: previous } = RecordHeader::read_with_format(&mut rest)?;
    let count = rest.try_get_u64().ok()?;
    let mut batch = Batch::new();
    let mut has_embedded_record = false;
    for _ in 0..count {
        let kind = rest.try_get_u8().ok()?;
        let space = Space::from_byte(rest.try_get_u8().ok()?)?;
        let key = read_bytes(&mut rest)?;
        match kind {
            PUT => batch.put(space, key, read_bytes(&mut rest)?),
            // At most one per record: nested records would grow quadratically.
            PUT_RECORD | PUT_CHAINED_RECORD if !has_embedded_record => {
                has_embedded_record = true;
                let embedded = RecordHeader::read(&mut rest, kind == PUT_CHAINED_RECORD)?;
                let embedded = Record::encode(embedded.number, embedded.written_us, embedded.previous_checksum, &batch);
                batch.put(space, key, embedded)
            }
            DELETE => batch.delete(space, key),
            _ => return None,
        };
    }
    rest.is_empty().then_some(Record { number, written_us, previous_checksum: previous, checksum, batch })
}

fn read_bytes(rest: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    (length <= rest.len()).then(|| rest.split_to(length))
}

//! One batch as bytes: format, number, time, checksum of the record before, changes, checksum. Numbers are big-endian.
//!
//! Each record contains the checksum of the one before it, and its own checksum covers that: records that follow each other are one history.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Batch, Error, Op, Result, Space};

/// A record without a predecessor: frames of the write-ahead log, and the log of stores before records were chained.
const FORMAT_UNCHAINED: u8 = 1;
/// A record that contains the checksum of its predecessor.
const FORMAT_CHAINED: u8 = 2;
const PUT: u8 = 0;
const DELETE: u8 = 1;
/// A value that is the unchained record of the changes before it: its number and time. A store with a log puts each batch's record beside the batch.
const PUT_TOLD: u8 = 2;
/// The same of a chained record: its number, time and predecessor.
const PUT_TOLD_CHAINED: u8 = 3;
/// Format, number, time, count of the changes.
const HEAD_BYTES: usize = 1 + 8 + 8 + 8;
const CHECKSUM_BYTES: usize = 8;
/// The predecessor of a store's first record.
pub const NO_PREDECESSOR: u64 = 0;

/// One write of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub number: u64,
    /// Microseconds since 1970; never less than an earlier record's.
    pub written_us: i64,
    /// Checksum of the record before it; `None` for one that was written before records were chained.
    pub previous: Option<u64>,
    /// Checksum of its bytes.
    pub checksum: u64,
    pub batch: Batch,
}

impl Record {
    pub(crate) fn encode(number: u64, written_us: i64, previous: Option<u64>, batch: &Batch) -> Bytes {
        let mut bytes = BytesMut::new();
        Self::put(&mut bytes, number, written_us, previous, batch);
        bytes.freeze()
    }

    /// The bytes that the record was read from.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        Self::encode(self.number, self.written_us, self.previous, &self.batch)
    }

    /// Appends the record of `batch` to `bytes`.
    pub(crate) fn put(bytes: &mut BytesMut, number: u64, written_us: i64, previous: Option<u64>, batch: &Batch) {
        bytes.reserve(Self::byte_count(batch));
        let ops = batch.ops();
        let start = bytes.len();
        let head = Head { number, written_us, previous };
        bytes.put_u8(head.format());
        head.put(bytes);
        bytes.put_u64(ops.len() as u64);
        let content_start = bytes.len();
        let mut has_told = false;
        for (at, op) in ops.iter().enumerate() {
            match op {
                Op::Put { space, key, value } => {
                    let told = (!has_told).then(|| told_again(value, at, &bytes[content_start..])).flatten();
                    has_told |= told.is_some();
                    bytes.put_u8(match told {
                        None => PUT,
                        Some(Head { previous: None, .. }) => PUT_TOLD,
                        Some(Head { previous: Some(_), .. }) => PUT_TOLD_CHAINED,
                    });
                    bytes.put_u8(space.byte());
                    put_bytes(bytes, key);
                    match told {
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

    /// Bytes of the record of `batch`, at most.
    pub(crate) fn byte_count(batch: &Batch) -> usize {
        HEAD_BYTES + CHECKSUM_BYTES + batch.byte_count() + CHECKSUM_BYTES
    }

    /// The checksum that a record's `bytes` end with; zero where they are too short for one.
    pub(crate) fn checksum_of(bytes: &Bytes) -> u64 {
        bytes.len().checked_sub(CHECKSUM_BYTES).map_or(0, |at| bytes.slice(at..).get_u64())
    }

    /// Whether the record goes on from one with the checksum `before`. A record from before records were chained goes on from any.
    #[must_use]
    pub fn follows(&self, before: u64) -> bool {
        self.previous.is_none_or(|previous| previous == before)
    }

    /// The record that `bytes` hold.
    ///
    /// # Errors
    /// Where they are not what was written.
    pub fn parse(bytes: &Bytes) -> Result<Self> {
        read(bytes).ok_or(Error::MalformedRecord)
    }
}

/// What a record says of itself, beside its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    number: u64,
    written_us: i64,
    previous: Option<u64>,
}

impl Head {
    fn format(self) -> u8 {
        if self.previous.is_some() { FORMAT_CHAINED } else { FORMAT_UNCHAINED }
    }

    fn put(self, bytes: &mut BytesMut) {
        bytes.put_u64(self.number);
        bytes.put_i64(self.written_us);
        if let Some(previous) = self.previous {
            bytes.put_u64(previous);
        }
    }

    fn read(bytes: &mut impl Buf, is_chained: bool) -> Option<Self> {
        let (number, written_us) = (bytes.try_get_u64().ok()?, bytes.try_get_i64().ok()?);
        let previous = if is_chained { Some(bytes.try_get_u64().ok()?) } else { None };
        Some(Self { number, written_us, previous })
    }

    /// As [`Self::read`], of bytes that begin with the format.
    fn read_whole(bytes: &mut impl Buf) -> Option<Self> {
        let is_chained = is_chained(bytes.try_get_u8().ok()?)?;
        Self::read(bytes, is_chained)
    }
}

/// Whether a record of this format contains the checksum of its predecessor; `None` for a format that this version does not read.
fn is_chained(format: u8) -> Option<bool> {
    match format {
        FORMAT_UNCHAINED => Some(false),
        FORMAT_CHAINED => Some(true),
        _ => None,
    }
}

/// The head of the record that `value` is, where that is the one of the first `count` changes, whose bytes are `content`.
fn told_again(value: &[u8], count: usize, content: &[u8]) -> Option<Head> {
    // All but the head has to be as long as it is: most values are told from records by that alone.
    let head_bytes = value.len().checked_sub(content.len() + CHECKSUM_BYTES)?;
    if count == 0 || (head_bytes != HEAD_BYTES && head_bytes != HEAD_BYTES + CHECKSUM_BYTES) {
        return None;
    }
    let (told, mut checksum) = value.split_at(value.len() - CHECKSUM_BYTES);
    let (mut head, told_content) = told.split_at(head_bytes);
    let read = Head::read_whole(&mut head)?;
    let is_same = head.try_get_u64().ok()? == count as u64 && head.is_empty() && told_content == content;
    (is_same && checksum.get_u64() == xxh3_64(told)).then_some(read)
}

fn put_bytes(bytes: &mut BytesMut, part: &[u8]) {
    bytes.put_u32(u32::try_from(part.len()).expect("the sizes of keys and values were checked"));
    bytes.put_slice(part);
}

fn read(bytes: &Bytes) -> Option<Record> {
    let content = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let (content, mut checksum) = (bytes.slice(..content), bytes.slice(content..));
    let checksum = checksum.get_u64();
    if xxh3_64(&content) != checksum {
        return None;
    }
    let mut rest = content;
    let Head { number, written_us, previous } = Head::read_whole(&mut rest)?;
    let count = rest.try_get_u64().ok()?;
    let mut batch = Batch::new();
    let mut has_told = false;
    for _ in 0..count {
        let kind = rest.try_get_u8().ok()?;
        let space = Space::of_byte(rest.try_get_u8().ok()?)?;
        let key = read_bytes(&mut rest)?;
        match kind {
            PUT => batch.put(space, key, read_bytes(&mut rest)?),
            // Once: a record of records of records would grow with their square.
            PUT_TOLD | PUT_TOLD_CHAINED if !has_told => {
                has_told = true;
                let told = Head::read(&mut rest, kind == PUT_TOLD_CHAINED)?;
                let told = Record::encode(told.number, told.written_us, told.previous, &batch);
                batch.put(space, key, told)
            }
            DELETE => batch.delete(space, key),
            _ => return None,
        };
    }
    rest.is_empty().then_some(Record { number, written_us, previous, checksum, batch })
}

fn read_bytes(rest: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    (length <= rest.len()).then(|| rest.split_to(length))
}

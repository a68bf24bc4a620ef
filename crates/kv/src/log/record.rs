//! One batch as bytes: format, number, time, changes, checksum. Numbers are big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Batch, Error, Op, Result, Space};

const FORMAT: u8 = 1;
const PUT: u8 = 0;
const DELETE: u8 = 1;
/// A value that is the record of the changes before it: its number and time. A store with a log puts each batch's record beside the batch.
const PUT_TOLD: u8 = 2;
/// Format, number, time, count of the changes.
const HEAD_BYTES: usize = 1 + 8 + 8 + 8;
const CHECKSUM_BYTES: usize = 8;

/// One write of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub number: u64,
    /// Microseconds since 1970; never less than an earlier record's.
    pub written_us: i64,
    pub batch: Batch,
}

impl Record {
    pub(crate) fn encode(number: u64, written_us: i64, batch: &Batch) -> Bytes {
        let mut bytes = BytesMut::new();
        Self::put(&mut bytes, number, written_us, batch);
        bytes.freeze()
    }

    /// Appends the record of `batch` to `bytes`.
    pub(crate) fn put(bytes: &mut BytesMut, number: u64, written_us: i64, batch: &Batch) {
        bytes.reserve(Self::byte_count(batch));
        let ops = batch.ops();
        let start = bytes.len();
        bytes.put_u8(FORMAT);
        bytes.put_u64(number);
        bytes.put_i64(written_us);
        bytes.put_u64(ops.len() as u64);
        let mut has_told = false;
        for (at, op) in ops.iter().enumerate() {
            match op {
                Op::Put { space, key, value } => {
                    let told = (!has_told).then(|| told_again(value, at, &bytes[start + HEAD_BYTES..])).flatten();
                    has_told |= told.is_some();
                    bytes.put_u8(if told.is_some() { PUT_TOLD } else { PUT });
                    bytes.put_u8(space.byte());
                    put_bytes(bytes, key);
                    match told {
                        Some((number, written_us)) => {
                            bytes.put_u64(number);
                            bytes.put_i64(written_us);
                        }
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
        HEAD_BYTES + batch.byte_count() + CHECKSUM_BYTES
    }

    /// The record that `bytes` hold.
    ///
    /// # Errors
    /// Where they are not what was written.
    pub fn parse(bytes: &Bytes) -> Result<Self> {
        read(bytes).ok_or(Error::MalformedRecord)
    }
}

/// The number and time of the record that `value` is, where that is the one of the first `count` changes, whose bytes are `content`.
fn told_again(value: &[u8], count: usize, content: &[u8]) -> Option<(u64, i64)> {
    if count == 0 || value.len() != HEAD_BYTES + content.len() + CHECKSUM_BYTES {
        return None;
    }
    let (told, mut checksum) = value.split_at(value.len() - CHECKSUM_BYTES);
    let (mut head, told_content) = told.split_at(HEAD_BYTES);
    let is_format = head.get_u8() == FORMAT;
    let (number, written_us) = (head.get_u64(), head.get_i64());
    let is_same = is_format && head.get_u64() == count as u64 && told_content == content;
    (is_same && checksum.get_u64() == xxh3_64(told)).then_some((number, written_us))
}

fn put_bytes(bytes: &mut BytesMut, part: &[u8]) {
    bytes.put_u32(u32::try_from(part.len()).expect("the sizes of keys and values were checked"));
    bytes.put_slice(part);
}

fn read(bytes: &Bytes) -> Option<Record> {
    let content = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let (content, mut checksum) = (bytes.slice(..content), bytes.slice(content..));
    if xxh3_64(&content) != checksum.get_u64() {
        return None;
    }
    let mut rest = content;
    if rest.try_get_u8().ok()? != FORMAT {
        return None;
    }
    let number = rest.try_get_u64().ok()?;
    let written_us = rest.try_get_i64().ok()?;
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
            PUT_TOLD if !has_told => {
                has_told = true;
                let (number, written_us) = (rest.try_get_u64().ok()?, rest.try_get_i64().ok()?);
                let told = Record::encode(number, written_us, &batch);
                batch.put(space, key, told)
            }
            DELETE => batch.delete(space, key),
            _ => return None,
        };
    }
    rest.is_empty().then_some(Record { number, written_us, batch })
}

fn read_bytes(rest: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    (length <= rest.len()).then(|| rest.split_to(length))
}

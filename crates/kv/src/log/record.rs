//! One batch as bytes: format, number, time, changes, checksum. Numbers are big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Batch, Error, Op, Result, Space};

const FORMAT: u8 = 1;
const PUT: u8 = 0;
const DELETE: u8 = 1;
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
        let content: usize = batch.ops().iter().map(|op| 16 + op.byte_count()).sum();
        let mut bytes = BytesMut::with_capacity(content + 64);
        bytes.put_u8(FORMAT);
        bytes.put_u64(number);
        bytes.put_i64(written_us);
        bytes.put_u64(batch.len() as u64);
        for op in batch.ops() {
            match op {
                Op::Put { space, key, value } => {
                    bytes.put_u8(PUT);
                    bytes.put_u8(space.byte());
                    put_bytes(&mut bytes, key);
                    put_bytes(&mut bytes, value);
                }
                Op::Delete { space, key } => {
                    bytes.put_u8(DELETE);
                    bytes.put_u8(space.byte());
                    put_bytes(&mut bytes, key);
                }
            }
        }
        let checksum = xxh3_64(&bytes);
        bytes.put_u64(checksum);
        bytes.freeze()
    }

    /// The record that `bytes` hold.
    ///
    /// # Errors
    /// Where they are not what was written.
    pub fn parse(bytes: &Bytes) -> Result<Self> {
        read(bytes).ok_or(Error::MalformedRecord)
    }
}

fn put_bytes(bytes: &mut BytesMut, part: &[u8]) {
    bytes.put_u32(u32::try_from(part.len()).expect("keys and values are far shorter than 4 GiB"));
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
    for _ in 0..count {
        let kind = rest.try_get_u8().ok()?;
        let space = Space::of_byte(rest.try_get_u8().ok()?)?;
        let key = read_bytes(&mut rest)?;
        match kind {
            PUT => batch.put(space, key, read_bytes(&mut rest)?),
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

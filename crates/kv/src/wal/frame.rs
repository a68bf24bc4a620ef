//! A record in the write-ahead log: what it is, how long, whose, the record, zeros up to the next multiple of eight.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::log::Record;

const MAGIC: u32 = u32::from_be_bytes(*b"kwal");
/// Magic, length of the record, identity of the store.
const HEADER_BYTES: usize = 4 + 4 + 8;
/// Frames begin at multiples of this.
pub(super) const ALIGN_BYTES: usize = 8;

/// Appends the frame of `record` to `bytes`.
pub(super) fn put(bytes: &mut BytesMut, identity: u64, record: &[u8]) {
    bytes.put_u32(MAGIC);
    bytes.put_u32(u32::try_from(record.len()).expect("a batch is far shorter than 4 GiB"));
    bytes.put_u64(identity);
    bytes.put_slice(record);
    bytes.put_bytes(0, record.len().next_multiple_of(ALIGN_BYTES) - record.len());
}

/// The record whose frame begins at `at` and where the next one would begin; `None` where there is none of this store, or
/// one that was not written whole.
pub(super) fn read(bytes: &Bytes, at: usize, identity: u64) -> Option<(Record, usize)> {
    let mut header = bytes.get(at..at + HEADER_BYTES)?;
    if header.get_u32() != MAGIC {
        return None;
    }
    let length = usize::try_from(header.get_u32()).ok()?;
    if header.get_u64() != identity {
        return None;
    }
    let start = at + HEADER_BYTES;
    let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
    let record = Record::parse(&bytes.slice(start..end)).ok()?;
    Some((record, start + length.next_multiple_of(ALIGN_BYTES)))
}

//! A record in the write-ahead log: what it is, how long, whose, the record, zeros up to the next multiple of eight.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::Batch;
use crate::log::Record;

const MAGIC: u32 = u32::from_be_bytes(*b"kwal");
/// Magic, length of the record, identity of the store.
const HEADER_BYTES: usize = 4 + 4 + 8;
/// Frames begin at multiples of this.
pub(super) const ALIGN_BYTES: usize = 8;

/// Whether the frame of the batch can tell its length.
pub(super) fn holds(batch: &Batch) -> bool {
    u32::try_from(Record::byte_count(batch)).is_ok()
}

/// Appends the frame of the batch's record to `bytes`, which end where a frame may begin.
pub(super) fn put(bytes: &mut BytesMut, identity: u64, number: u64, batch: &Batch) {
    let start = bytes.len();
    bytes.put_u32(MAGIC);
    bytes.put_u32(0);
    bytes.put_u64(identity);
    Record::put(bytes, number, 0, None, batch);
    let length = bytes.len() - start - HEADER_BYTES;
    let length_u32 = u32::try_from(length).expect("the store has asked whether a frame holds it");
    bytes[start + 4..start + 8].copy_from_slice(&length_u32.to_be_bytes());
    bytes.put_bytes(0, length.next_multiple_of(ALIGN_BYTES) - length);
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

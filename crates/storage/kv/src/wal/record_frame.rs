//! Frames of the write-ahead log: magic, record length, store identity, record, zero padding to a multiple of 8 bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::Batch;
use crate::logical_log::Record;

const MAGIC: u32 = u32::from_be_bytes(*b"kwal");
/// Size of magic, record length and store identity.
const HEADER_BYTES: usize = 4 + 4 + 8;
/// Alignment of frames in the file, in bytes.
pub(super) const ALIGN_BYTES: usize = 8;

/// Whether the record of `batch` fits a frame, whose length field has 32 bits.
pub(super) fn fits_in_frame(batch: &Batch) -> bool {
    u32::try_from(Record::encoded_bytes_max(batch)).is_ok()
}

/// Appends `batch` as a frame to `bytes`, whose length must be aligned to [`ALIGN_BYTES`].
pub(super) fn append(bytes: &mut BytesMut, identity: u64, number: u64, batch: &Batch) {
    let start = bytes.len();
    bytes.put_u32(MAGIC);
    bytes.put_u32(0);
    bytes.put_u64(identity);
    Record::encode_into(bytes, number, 0, None, batch);
    let length = bytes.len() - start - HEADER_BYTES;
    let length_u32 = u32::try_from(length).expect("Store::write rejects batches that no frame holds");
    bytes[start + 4..start + 8].copy_from_slice(&length_u32.to_be_bytes());
    bytes.put_bytes(0, length.next_multiple_of(ALIGN_BYTES) - length);
}

/// Reads the frame at offset `at`; returns its record and the offset of the next frame. `None` if there is no complete
/// frame of this store.
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

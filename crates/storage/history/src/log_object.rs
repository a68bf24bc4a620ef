//! Format of a log object: header, compressed records, checksum of both. Numbers are big-endian.

use std::io::Read;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kv::logical_log::Record;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::object_names::LogName;
use crate::{HistoryError, NEWER_VERSION, Result};

/// Magic number; its last character is the format. Records of format 1 are not chained by checksums.
const MAGIC: &[u8; 8] = b"KILNLOG2";
const MAGIC_FORMAT_1: &[u8; 8] = b"KILNLOG1";
const CHECKSUM_BYTES: usize = 8;
const HEAD_BYTES: usize = MAGIC.len() + 16 + 4 + 8 + 8 + 8;
/// Compression level: higher ones take longer and compress catalog records hardly better.
const ZSTD_LEVEL: i32 = 1;

/// Encodes records, at least one and consecutive, as an object.
pub(crate) fn encode(instance: Uuid, name: LogName, records: &[Bytes]) -> Bytes {
    let mut content = Vec::with_capacity(records.iter().map(|record| 8 + record.len()).sum());
    for record in records {
        content.put_u64(record.len() as u64);
        content.extend_from_slice(record);
    }
    let compressed = zstd::bulk::compress(&content, ZSTD_LEVEL).expect("compression into memory does not fail");
    let mut bytes = BytesMut::with_capacity(HEAD_BYTES + compressed.len() + CHECKSUM_BYTES);
    bytes.put_slice(MAGIC);
    bytes.put_slice(instance.as_bytes());
    bytes.put_u32(name.timeline);
    bytes.put_u64(name.first_record);
    bytes.put_u64(name.last_record);
    bytes.put_u64(content.len() as u64);
    bytes.put_slice(&compressed);
    let checksum = xxh3_64(&bytes);
    bytes.put_u64(checksum);
    bytes.freeze()
}

/// Decodes an object; returns the instance that wrote it and its records.
///
/// # Errors
/// [`HistoryError::Damaged`] if the content is not valid for this name.
pub(crate) fn decode(name: LogName, bytes: &Bytes) -> Result<(Uuid, Vec<Record>)> {
    let damaged = |reason| HistoryError::Damaged { object: name.object(), reason };
    let end = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or_else(|| damaged("it is cut short"))?;
    let magic = bytes.get(..MAGIC.len()).filter(|_| HEAD_BYTES <= end);
    if !magic.is_some_and(|magic| magic == MAGIC || magic == MAGIC_FORMAT_1) {
        let is_newer = magic.is_some_and(|magic| magic[..MAGIC.len() - 1] == MAGIC[..MAGIC.len() - 1]);
        return Err(damaged(if is_newer { NEWER_VERSION } else { "it is not a log object" }));
    }
    if xxh3_64(&bytes[..end]) != bytes.slice(end..).get_u64() {
        return Err(damaged("its checksum does not match"));
    }
    let mut rest = bytes.slice(MAGIC.len()..end);
    let instance = Uuid::from_u128(rest.get_u128());
    let head = LogName { timeline: rest.get_u32(), first_record: rest.get_u64(), last_record: rest.get_u64() };
    if head != name {
        return Err(damaged("its header does not match its name"));
    }
    let length = rest.get_u64();
    let mut content = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(&rest[..]).map_err(|_| damaged("it does not decompress"))?;
    // Reads at most the promised length, so that damage cannot exhaust the memory.
    decoder.take(length.saturating_add(1)).read_to_end(&mut content).map_err(|_| damaged("it does not decompress"))?;
    if content.len() as u64 != length {
        return Err(damaged("its decompressed length does not match"));
    }
    let mut content = Bytes::from(content);
    let mut records = Vec::new();
    while !content.is_empty() {
        let length = content.try_get_u64().ok().and_then(|length| usize::try_from(length).ok());
        let length =
            length.filter(|length| *length <= content.len()).ok_or_else(|| damaged("a record is cut short"))?;
        records.push(Record::parse(&content.split_to(length)).map_err(|_| damaged("a record is damaged"))?);
    }
    if !records.iter().map(|record| record.number).eq(name.first_record..=name.last_record) {
        return Err(damaged("its records do not match its name"));
    }
    Ok((instance, records))
}

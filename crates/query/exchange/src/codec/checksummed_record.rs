//! Records of plain data as bytes: a version, a checksum, then MessagePack with field names.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

/// Version of the records that this program writes, and the only one that it reads: workers have the coordinator's
/// version.
const VERSION: u8 = 1;

/// Maximum nesting of a record: a deeper one is malformed.
const DEPTH_MAX: usize = 128;

const CHECKSUM_BYTES: usize = 8;

/// Error of bytes that are not a valid record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the encoded record ends early, after {0} bytes")]
    Short(usize),
    #[error("the encoded record has version {0}, not {VERSION}")]
    Version(u8),
    #[error("the encoded record is damaged: its checksum does not match")]
    Damaged,
    #[error("the encoded record is malformed: {0}")]
    Other(String),
}

/// Appends the encoded `form` to `out`.
///
/// # Errors
/// If `form` cannot be represented in MessagePack.
pub fn write_record(form: &impl Serialize, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let bytes = rmp_serde::to_vec_named(form).map_err(|error| RecordError::Other(error.to_string()))?;
    out.push(VERSION);
    out.extend(xxh3_64(&bytes).to_le_bytes());
    out.extend(bytes);
    Ok(())
}

/// Decodes a record that [`write_record`] encoded.
///
/// # Errors
/// For bytes that are cut off, damaged, of another version, or of another record type.
pub fn read_record<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RecordError> {
    let short = || RecordError::Short(bytes.len());
    let (version, rest) = bytes.split_first().ok_or_else(short)?;
    if *version != VERSION {
        return Err(RecordError::Version(*version));
    }
    let (checksum, rest) = rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(short)?;
    if xxh3_64(rest) != u64::from_le_bytes(*checksum) {
        return Err(RecordError::Damaged);
    }
    read_unchecked(rest)
}

/// Decodes the MessagePack of a record, without version and checksum.
///
/// # Errors
/// For bytes of another record type.
pub fn read_unchecked<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RecordError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(DEPTH_MAX);
    T::deserialize(&mut reader).map_err(|error| RecordError::Other(error.to_string()))
}

//! Plain data as bytes: a version, a checksum, then MessagePack with names.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

/// Of the forms that this program writes, and the only one that it reads: workers are of the coordinator's version.
const VERSION: u8 = 1;

/// What is nested deeper than this was written by nobody.
const DEPTH_MAX: usize = 128;

const CHECKSUM_BYTES: usize = 8;

/// Bytes that are no form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    #[error("the form is cut off after {0} bytes")]
    Short(usize),
    #[error("the form is of version {0}, not {VERSION}")]
    Version(u8),
    #[error("the form is damaged")]
    Damaged,
    #[error("the form is not what it should be: {0}")]
    Other(String),
}

/// `form` as bytes, after those of `out`.
///
/// # Errors
/// What has no form in MessagePack.
pub fn write(form: &impl Serialize, out: &mut Vec<u8>) -> Result<(), FormError> {
    let bytes = rmp_serde::to_vec_named(form).map_err(|error| FormError::Other(error.to_string()))?;
    out.push(VERSION);
    out.extend(xxh3_64(&bytes).to_le_bytes());
    out.extend(bytes);
    Ok(())
}

/// What [`write`] wrote.
///
/// # Errors
/// Bytes that are cut off, damaged, of another version, or of another form.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FormError> {
    let short = || FormError::Short(bytes.len());
    let (version, rest) = bytes.split_first().ok_or_else(short)?;
    if *version != VERSION {
        return Err(FormError::Version(*version));
    }
    let (checksum, rest) = rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(short)?;
    if xxh3_64(rest) != u64::from_le_bytes(*checksum) {
        return Err(FormError::Damaged);
    }
    read_unchecked(rest)
}

/// What is behind the version and the checksum.
///
/// # Errors
/// Bytes of another form.
pub fn read_unchecked<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FormError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(DEPTH_MAX);
    T::deserialize(&mut reader).map_err(|error| FormError::Other(error.to_string()))
}

//! File format of the desired state: a line with format version and checksum, then human-readable JSON.
//!
//! The history is part of the state, so a change and its event are written together.

use xxhash_rust::xxh3::xxh3_64;

use super::DesiredState;

#[cfg(test)]
mod tests;

/// Format version that this program writes.
const FORMAT_VERSION: u32 = 1;
/// Start of each file.
const HEADER_START: &str = "kiln clusters, format ";
/// Text before the checksum, which is 16 hexadecimal digits and ends the line.
const CHECKSUM_LABEL: &str = ", xxh3 ";

/// Failure to decode a stored state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoredError {
    /// The checksum, the form or an invariant is violated.
    #[error("the stored cluster definitions are damaged: {reason}")]
    Damaged { reason: String },
    /// A later version wrote the state.
    #[error("the stored cluster definitions have format version {found}; this program reads up to version {supported}")]
    Format { found: u32, supported: u32 },
}

/// Encodes a state as the content of its file.
#[must_use]
pub fn encode(state: &DesiredState) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(state).expect("a desired state always serializes to JSON");
    json.push(b'\n');
    let mut bytes = format!("{HEADER_START}{FORMAT_VERSION}{CHECKSUM_LABEL}{:016x}\n", xxh3_64(&json)).into_bytes();
    bytes.append(&mut json);
    bytes
}

/// Decodes a state from the content of its file.
///
/// # Errors
/// [`StoredError`]: the format is a later one, or the content is damaged.
pub fn decode(bytes: &[u8]) -> Result<DesiredState, StoredError> {
    let damaged = |reason: &str| StoredError::Damaged { reason: reason.to_owned() };
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("the header line is incomplete"))?;
    let (head, json) = (&bytes[..end], &bytes[end + 1..]);
    let head = str::from_utf8(head).map_err(|_| damaged("the header line is not UTF-8"))?;
    let head = head.strip_prefix(HEADER_START).ok_or_else(|| damaged("the header line has the wrong magic"))?;
    let (format, rest) = head.split_at(head.bytes().take_while(u8::is_ascii_digit).count());
    let found = format.parse().map_err(|_| damaged("the header line has no format version"))?;
    if FORMAT_VERSION < found {
        return Err(StoredError::Format { found, supported: FORMAT_VERSION });
    }
    if found != FORMAT_VERSION || format.len() != FORMAT_VERSION.to_string().len() {
        return Err(damaged("the header line has an unknown format version"));
    }
    let expected = rest.strip_prefix(CHECKSUM_LABEL).ok_or_else(|| damaged("the header line has no checksum"))?;
    if expected != format!("{:016x}", xxh3_64(json)) {
        return Err(damaged("the checksum does not match the content"));
    }
    let state: DesiredState =
        serde_json::from_slice(json).map_err(|error| StoredError::Damaged { reason: error.to_string() })?;
    state.check_invariants().map_err(|reason| StoredError::Damaged { reason })?;
    Ok(state)
}

//! The desired state on disk: a line with format and checksum, then JSON, so that it can be read by people.
//!
//! The history is in it: a change and its record are one write, and neither is ever without the other.

use xxhash_rust::xxh3::xxh3_64;

use super::DesiredState;

#[cfg(test)]
mod tests;

/// The format this version writes.
const FORMAT: u32 = 1;
/// How each file starts.
const MAGIC: &str = "kiln clusters, format ";
/// What is before the checksum, which is 16 hexadecimal digits and ends the line.
const CHECKSUM: &str = ", xxh3 ";

/// Why a stored state does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoredError {
    /// Not what was written.
    #[error("the stored clusters are damaged: {reason}")]
    Damaged { reason: String },
    /// Of a later format.
    #[error("the stored clusters have format {found}, and this version reads up to format {supported}")]
    Format { found: u32, supported: u32 },
}

/// The state's bytes.
#[must_use]
pub fn encode(state: &DesiredState) -> Vec<u8> {
    let mut json =
        serde_json::to_vec_pretty(state).expect("numbers, text and lists serialise, and memory does not fail");
    json.push(b'\n');
    let mut bytes = format!("{MAGIC}{FORMAT}{CHECKSUM}{:016x}\n", xxh3_64(&json)).into_bytes();
    bytes.append(&mut json);
    bytes
}

/// The state that `bytes` hold.
///
/// # Errors
/// They are of a later format, or not what was written.
pub fn decode(bytes: &[u8]) -> Result<DesiredState, StoredError> {
    let damaged = |reason: &str| StoredError::Damaged { reason: reason.to_owned() };
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("its first line has no end"))?;
    let (head, json) = (&bytes[..end], &bytes[end + 1..]);
    let head = str::from_utf8(head).map_err(|_| damaged("its first line is no text"))?;
    let head = head.strip_prefix(MAGIC).ok_or_else(|| damaged("its first line is another's"))?;
    let (format, rest) = head.split_at(head.bytes().take_while(u8::is_ascii_digit).count());
    let found = format.parse().map_err(|_| damaged("its first line names no format"))?;
    if FORMAT < found {
        return Err(StoredError::Format { found, supported: FORMAT });
    }
    if found != FORMAT || format.len() != FORMAT.to_string().len() {
        return Err(damaged("no version wrote its format"));
    }
    let expected = rest.strip_prefix(CHECKSUM).ok_or_else(|| damaged("its first line names no checksum"))?;
    if expected != format!("{:016x}", xxh3_64(json)) {
        return Err(damaged("its checksum does not match its content"));
    }
    let state: DesiredState =
        serde_json::from_slice(json).map_err(|error| StoredError::Damaged { reason: error.to_string() })?;
    state.check().map_err(|reason| StoredError::Damaged { reason })?;
    Ok(state)
}

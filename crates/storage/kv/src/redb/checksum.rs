//! Value checksums and detection of damaged pages.
//!
//! Each stored value ends in a checksum of its space, key and value. `redb` does not verify pages when it reads them,
//! so without the checksum disk damage could produce wrong rows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Space;
use crate::error::Source;

const CHECKSUM_BYTES: usize = 8;

/// Sets `key` to `value` followed by its checksum.
pub(crate) fn insert_checked(
    table: &mut redb::Table<'_, &'static [u8], &'static [u8]>,
    space: Space,
    key: &[u8],
    value: &[u8],
) -> Result<(), Source> {
    let mut stored = table.insert_reserve(key, value.len() + CHECKSUM_BYTES)?;
    let (content, end) = stored.as_mut().split_at_mut(value.len());
    content.copy_from_slice(value);
    end.copy_from_slice(&checksum(space, key, value).to_le_bytes());
    Ok(())
}

/// Returns the value in `stored`; `None` if its checksum does not match.
pub(super) fn verify(space: Space, key: &[u8], stored: &[u8]) -> Option<Bytes> {
    let (value, end) = stored.split_last_chunk::<CHECKSUM_BYTES>()?;
    (u64::from_le_bytes(*end) == checksum(space, key, value)).then(|| Bytes::copy_from_slice(value))
}

fn checksum(space: Space, key: &[u8], value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, xxh3_64_with_seed(key, u64::from(space.byte())))
}

/// Runs `step` and turns a panic into [`DamagedPage`]: `redb` panics on some damaged pages.
pub(super) fn catch_damage<T>(step: impl FnOnce() -> Result<T, Source>) -> Result<T, Source> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|panic| {
        let reason = panic.downcast_ref::<String>().cloned();
        let reason = reason.or_else(|| panic.downcast_ref::<&str>().map(|reason| (*reason).to_owned()));
        Err(DamagedPage(reason.unwrap_or_default()).into())
    })
}

/// Error for a damaged B-tree page; contains the text of `redb`'s panic.
#[derive(Debug, thiserror::Error)]
#[error("a B-tree page of the store file is damaged: {0}")]
pub(crate) struct DamagedPage(pub(crate) String);

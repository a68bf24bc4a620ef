//! The cache of columns, as a process starts it.

use scheduler::Config;
use shards::BlockCache;
use types::{Condition, SqlError, SqlResult};

/// The cache of columns, with what an earlier run has left on its disk.
///
/// # Errors
/// `58030` where its folder cannot be used.
pub fn block_cache(config: &Config) -> SqlResult<BlockCache> {
    let Some(disk) = &config.cache_disk else { return Ok(BlockCache::new(config.cache_bytes)) };
    BlockCache::with_disk(config.cache_bytes, disk.clone())
        .map_err(|error| SqlError::new(Condition::IoError, format!("could not use the cache's folder: {error}")))
}

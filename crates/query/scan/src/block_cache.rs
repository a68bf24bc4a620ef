//! Cache of column pages, created from the configuration.

use scheduler::ResourceConfig;
use shards::BlockCache;
use types::{Condition, SqlError, SqlResult};

/// Creates the cache of column pages, and restores from its disk what an earlier process has cached.
///
/// # Errors
/// `58030` if its folder cannot be used.
pub fn block_cache(config: &ResourceConfig) -> SqlResult<BlockCache> {
    let Some(disk) = &config.cache_disk else { return Ok(BlockCache::new(config.cache_bytes)) };
    BlockCache::with_disk(config.cache_bytes, disk.clone()).map_err(|error| {
        SqlError::new(Condition::IoError, format!("could not use the folder of the block cache: {error}"))
    })
}

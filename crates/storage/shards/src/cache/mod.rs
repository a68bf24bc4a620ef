//! Column cache: packed pages of shard columns in memory and on the local disk, filtered without unpacking them first.
//!
//! Everything in it is a copy of shard files or derived from them, so losing it costs reads, never data. The files, in
//! reading order:
//!
//! - `row_group_scan.rs`: scans a row group through the cache.
//! - `load_pages.rs`: reads pages that the cache lacks from the object; `decode/` turns Parquet pages into blocks.
//! - `block.rs`: a cached page of a column; `int128_conversion.rs`: its 16-byte values;
//!   `uncached_page.rs`: a page that is read and not cached.
//! - `predicate_evaluation.rs`: evaluates predicates on blocks.
//! - `predicate_order.rs`: the order in which predicates are tried.
//! - `recent_reads.rs`: counts recent reads, so that cheap reads are cached only when they repeat.
//! - `idle_prefetch.rs`: caches pages in the background while no scan reads; `prefetch_new_shards.rs`: prefetches pages of new
//!   shards through it.
//! - `eviction.rs`: eviction from memory; `disk/`: the tier on the local disk; `retention.rs`: which blocks to drop early.
//! - `tier_stats.rs`: statistics per table.
//! - `warm_up.rs`: transfers hot blocks to the cache of another worker.
//! - `result_cache.rs`: a second cache with the same rules, for results computed from shards.

mod block;
mod decode;
mod disk;
mod eviction;
mod idle_prefetch;
mod int128_conversion;
mod load_pages;
mod predicate_evaluation;
mod predicate_order;
mod prefetch_new_shards;
mod recent_reads;
mod result_cache;
mod retention;
mod row_group_scan;
mod tier_stats;
mod uncached_page;
mod warm_up;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use types::{CachePolicy, ColumnId, Oid, ShardId};

pub use self::block::ColumnBlock;
use self::disk::{DiskBlockHandle, DiskTier};
pub use self::disk::{DiskQuota, DiskTierSettings};
use self::eviction::EvictionQueues;
use self::idle_prefetch::{IdlePrefetcher, ReadGuard, UncachedColumns};
pub use self::predicate_order::PredicateOrder;
use self::prefetch_new_shards::PrefetchCounters;
use self::recent_reads::RecentReads;
pub use self::result_cache::{ResultKey, ShardResultCache};
use self::retention::CachedShards;
pub use self::retention::RetentionPolicy;
pub use self::row_group_scan::{PageColumn, PageRows, RowGroupPages, ScanBatch, take_rows};
pub use self::tier_stats::CacheStats;
pub use self::uncached_page::UncachedPage;
pub use self::warm_up::{BlockLocation, HotBlock};
use crate::reader::{RowGroupRead, ShardReader};

/// Prefetched blocks leave one part in this many of the memory to blocks that scans ask for.
const PREFETCH_HEADROOM_DIVISOR: u64 = 8;

/// Two-tier cache of column blocks, bounded in bytes and shared by all scans.
#[derive(Debug)]
pub struct BlockCache {
    memory: Arc<Mutex<MemoryTier>>,
    disk: Option<DiskTier>,
    idle_prefetcher: Option<IdlePrefetcher>,
    prefetch_counters: PrefetchCounters,
}

/// Memory tier of the cache.
#[derive(Debug)]
struct MemoryTier {
    /// Cached blocks and their eviction order.
    blocks: EvictionQueues<BlockKey, Arc<ColumnBlock>>,
    /// Shards that may have blocks in this tier, and the retention policy.
    shards: CachedShards,
    /// Recent reads of pages that are not cached.
    recent_reads: RecentReads<BlockKey>,
}

/// Handle to the cache for scans of one table.
#[derive(Debug, Clone)]
pub struct TableCache {
    cache: Arc<BlockCache>,
    table: Oid,
    /// The table's setting: normal, pinned or never cached.
    policy: CachePolicy,
}

/// Identifies a cached page of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    /// The shard, or the id of an external file, which changes with the file's content.
    pub(crate) shard: ShardId,
    pub(crate) column: ColumnId,
    pub(crate) row_group: u32,
    /// Index of the page in the row group, counted in pages of [`blocks::BLOCK_ROWS`] rows.
    pub(crate) page: u32,
}

/// Statistics of one tier of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierStats {
    /// `memory` or `disk`; `fragment` for the cache of computed results.
    pub tier: &'static str,
    /// Largest number of bytes that the tier may hold.
    pub bytes_max: u64,
    /// Statistics by table; table 0 has those of tables that are no longer counted separately.
    pub tables: Vec<(Oid, CacheStats)>,
}

impl BlockCache {
    /// Returns an empty cache of at most `bytes_max` bytes without a disk tier; with 0, scans bypass the cache.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        let memory = MemoryTier {
            blocks: EvictionQueues::new(bytes_max),
            shards: CachedShards::default(),
            recent_reads: RecentReads::default(),
        };
        Self {
            memory: Arc::new(Mutex::new(memory)),
            disk: None,
            idle_prefetcher: None,
            prefetch_counters: PrefetchCounters::default(),
        }
    }

    /// Returns a cache with a disk tier, which takes over the files that an earlier run left in the folder, and starts
    /// the thread that caches pages in the background. If either tier has a capacity of 0, there is no disk tier and
    /// the files are deleted.
    ///
    /// # Errors
    /// If old files cannot be deleted, or a thread cannot be started.
    pub fn with_disk(bytes_max: u64, settings: DiskTierSettings) -> io::Result<Self> {
        let mut cache = Self::new(bytes_max);
        if bytes_max == 0 || settings.bytes_max == 0 {
            DiskTier::clear(&settings.folder)?;
        } else {
            cache.disk = Some(DiskTier::open(settings, &cache.memory)?);
        }
        if bytes_max != 0 {
            cache.idle_prefetcher = Some(IdlePrefetcher::start()?);
        }
        Ok(cache)
    }

    /// Returns the cache's handle for scans of `table`.
    #[must_use]
    pub fn for_table(self: &Arc<Self>, table: Oid, policy: CachePolicy) -> TableCache {
        TableCache { cache: Arc::clone(self), table, policy }
    }

    /// Drops blocks that no table references or wants, and rejects such blocks from now on.
    pub fn apply_retention(&self, policy: &Arc<RetentionPolicy>) {
        if let Some(disk) = &self.disk {
            disk.apply_retention(policy);
        }
        let mut memory = self.memory.lock();
        if memory.shards.set_policy(policy) {
            let gone = memory.blocks.apply_retention(|key, table| policy.decide(key.shard, table));
            // Freed after the lock is released.
            drop(memory);
            drop(gone);
        }
    }

    /// Changes the capacity of both tiers and evicts what exceeds it.
    pub fn set_capacity(&self, bytes_max: u64, disk: DiskQuota) {
        let gone = self.memory.lock().blocks.set_capacity(bytes_max);
        // Freed after the lock is released.
        drop(gone);
        if let Some(of_disk) = &self.disk {
            of_disk.set_quota(disk);
        }
    }

    /// Returns the statistics of the memory tier, summed over all tables.
    #[must_use]
    pub fn memory_stats(&self) -> CacheStats {
        self.memory.lock().blocks.counts().sum()
    }

    /// Returns the statistics of each tier by table.
    #[must_use]
    pub fn tier_stats(&self) -> Vec<TierStats> {
        let memory = self.memory.lock();
        let (bytes_max, tables) = (memory.blocks.bytes_max(), memory.blocks.counts().by_table());
        drop(memory);
        let of_memory = TierStats { tier: "memory", bytes_max, tables };
        [of_memory].into_iter().chain(self.disk.as_ref().map(DiskTier::stats)).collect()
    }
}

impl MemoryTier {
    /// Returns true if a prefetched block of `bytes` bytes fits; part of the memory stays reserved for blocks that
    /// scans ask for.
    fn has_prefetch_room(&self, bytes: u64) -> bool {
        let filled = self.blocks.bytes_max() / PREFETCH_HEADROOM_DIVISOR * (PREFETCH_HEADROOM_DIVISOR - 1);
        self.blocks.bytes().saturating_add(bytes) < filled
    }
}

impl TableCache {
    /// Returns true if scans of the table bypass the cache: its capacity is 0 or the table's policy is never.
    fn is_bypassed(&self) -> bool {
        self.policy == CachePolicy::Never || self.cache.memory.lock().blocks.bytes_max() == 0
    }

    /// Returns true if blocks that this table's scans read are pinned.
    fn is_pinning(&self) -> bool {
        self.policy == CachePolicy::Pin
    }

    /// Returns the block from memory and counts a hit or a miss.
    fn get(&self, key: &BlockKey) -> Option<Arc<ColumnBlock>> {
        self.cache.memory.lock().blocks.get(key, self.table, self.is_pinning()).map(Arc::clone)
    }

    /// Counts a read of a page of a local shard; returns true if the page is to be cached now, because it is read
    /// repeatedly or pinned.
    fn should_cache(&self, key: BlockKey) -> bool {
        self.is_pinning() || self.cache.memory.lock().recent_reads.record_read(&key)
    }

    /// Queues pages that were read and not cached to be cached once no scan reads.
    fn defer_caching(&self, reader: &ShardReader, read: &RowGroupRead, pages: Vec<UncachedColumns>) {
        if let Some(filler) = &self.cache.idle_prefetcher {
            self.register_shard(reader.file().meta.id);
            filler.enqueue(self, reader, read, pages);
        }
    }

    /// Marks the cache as being read until the guard is dropped. Held per page, not per scan, because a cursor may stay
    /// open for days.
    fn begin_read(&self) -> Option<ReadGuard> {
        self.cache.idle_prefetcher.as_ref().map(IdlePrefetcher::begin_read)
    }

    /// Returns the positions of the columns of a page that are not in memory; none if there is no room for prefetched
    /// blocks or the shard is unwanted.
    fn missing_columns(&self, key: BlockKey, columns: impl Iterator<Item = (usize, ColumnId)>) -> Vec<usize> {
        let memory = self.cache.memory.lock();
        if !memory.has_prefetch_room(0) || !memory.shards.admits(key.shard, self.table) {
            return Vec::new();
        }
        let lacks = |column: &ColumnId| !memory.blocks.contains(&BlockKey { column: *column, ..key });
        columns.filter(|(_, column)| lacks(column)).map(|(position, _)| position).collect()
    }

    /// Inserts a block that no scan asked for into memory, unless something would have to be evicted for it or the
    /// shard is unwanted. Returns true if it was inserted.
    fn insert_if_room(&self, key: BlockKey, block: &Arc<ColumnBlock>) -> bool {
        let bytes = block.memory_bytes();
        let mut memory = self.cache.memory.lock();
        if !memory.has_prefetch_room(bytes) || !memory.shards.admits(key.shard, self.table) {
            return false;
        }
        let refused = memory.blocks.put(key, self.table, self.is_pinning(), Arc::clone(block), bytes);
        drop(memory);
        refused.is_empty()
    }

    /// Registers the shard as one that may have blocks in memory.
    fn register_shard(&self, shard: ShardId) {
        self.cache.memory.lock().shards.add(shard);
    }

    /// Looks up a block in the disk tier.
    fn find_on_disk(&self, key: &BlockKey) -> Option<DiskBlockHandle> {
        self.cache.disk.as_ref()?.find(key, self.table)
    }

    /// Inserts a newly packed block into memory and queues it for the disk.
    fn insert(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        if let Some(disk) = &self.cache.disk {
            disk.try_enqueue(key, self.table, block);
        }
        self.insert_from_disk(key, block);
    }

    /// Inserts a block of a page that was read for the first time and had to be packed anyway, if there is room.
    fn insert_first_read(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        self.register_shard(key.shard);
        if self.insert_if_room(key, block)
            && let Some(disk) = &self.cache.disk
        {
            disk.try_enqueue(key, self.table, block);
        }
    }

    /// Inserts a block from a background thread, if there is room, and waits until the disk tier accepts it. Returns
    /// true if it was inserted.
    fn insert_from_background(&self, key: BlockKey, block: &Arc<ColumnBlock>) -> bool {
        let is_kept = self.insert_if_room(key, block);
        if let Some(disk) = self.cache.disk.as_ref().filter(|_| is_kept) {
            disk.enqueue(key, self.table, block);
        }
        is_kept
    }

    /// Inserts a block that is already on disk into memory.
    fn insert_from_disk(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        let (value, bytes) = (Arc::clone(block), block.memory_bytes());
        let mut memory = self.cache.memory.lock();
        memory.shards.add(key.shard);
        let evicted = memory.blocks.put(key, self.table, self.is_pinning(), value, bytes);
        drop(memory);
        // Freed after the lock is released.
        drop(evicted);
    }
}

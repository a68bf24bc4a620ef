//! Hot columns in memory and on the local disk: pages of a shard's columns that are read again become blocks, on which predicates run as
//! they lie.
//!
//! `read.rs` is a scan through the cache, `load.rs` reads what it lacks from the object, `decode/` makes blocks of Parquet's pages,
//! `block.rs` is what is kept of one, `passing.rs` what is read of one that is not, `select.rs` which rows pass, `order.rs` which predicate is tried first. `first_reads.rs` says what
//! is read for the first time: where that costs no request it is not kept, and `fill_when_quiet.rs` does so later, with what `ahead.rs` wants of new shards too. `queues.rs` is what stays
//! when memory runs short, `disk/` what is read again then, `wishes.rs` what goes before, and `counts.rs` how tables are served,
//! `handover.rs` what goes from one cache to another. `results.rs`
//! keeps by the same rules what was computed of shards. Nothing is ever only here.

mod ahead;
mod block;
mod counts;
mod decode;
mod disk;
mod fill_when_quiet;
mod first_reads;
mod handover;
mod load;
mod order;
mod passing;
mod queues;
mod read;
mod results;
mod select;
mod wide;
mod wishes;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use types::{CachePolicy, ColumnId, Oid, ShardId};

use self::ahead::Ahead;
pub use self::block::ColumnBlock;
pub use self::counts::CacheUse;
pub use self::disk::{CacheDisk, DiskPart};
use self::disk::{Disk, Found};
use self::fill_when_quiet::{Filler, PassedPage, Reading};
use self::first_reads::FirstReads;
pub use self::handover::{BlockPlace, HotBlock};
pub use self::order::PredicateOrder;
pub use self::passing::Passing;
use self::queues::Queues;
pub use self::read::{PageColumn, PageRows, Piece, RowGroupPages, take_rows};
pub use self::results::{ResultKey, ShardResults};
pub use self::wishes::CacheWishes;
use self::wishes::HeldShards;
use crate::reader::{RowGroupRead, ShardReader};

/// Of so many parts of the memory one is left to what is asked for again.
const FILLED_PARTS: u64 = 8;

/// Blocks of columns, of as many bytes as it was made for. Shared by all scans.
#[derive(Debug)]
pub struct BlockCache {
    memory: Arc<Mutex<Memory>>,
    disk: Option<Disk>,
    filler: Option<Filler>,
    ahead: Ahead,
}

/// The tier that scans read.
#[derive(Debug)]
struct Memory {
    blocks: Queues<BlockKey, Arc<ColumnBlock>>,
    shards: HeldShards,
    first_reads: FirstReads<BlockKey>,
}

/// The cache as scans of one table use it.
#[derive(Debug, Clone)]
pub struct TableCache {
    cache: Arc<BlockCache>,
    table: Oid,
    policy: CachePolicy,
}

/// One page of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    /// A file of others has an id too, and another one when its content is another.
    pub(crate) shard: ShardId,
    pub(crate) column: ColumnId,
    pub(crate) row_group: u32,
    /// Which [`blocks::BLOCK_ROWS`] rows of the row group.
    pub(crate) number: u32,
}

/// How one of the cache's tiers is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierUse {
    /// `memory` or `disk`, or `fragment` for what was computed.
    pub tier: &'static str,
    /// What it may hold.
    pub bytes_max: u64,
    /// By table; what no table is known for is of the table 0.
    pub tables: Vec<(Oid, CacheUse)>,
}

impl BlockCache {
    /// An empty cache for at most `bytes_max` bytes; for none at all, reads go by it.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        let memory = Memory {
            blocks: Queues::new(bytes_max),
            shards: HeldShards::default(),
            first_reads: FirstReads::default(),
        };
        Self { memory: Arc::new(Mutex::new(memory)), disk: None, filler: None, ahead: Ahead::default() }
    }

    /// Likewise, of which more is kept on disk, and what another run has left there: with no room for it, that goes. What is read once is
    /// kept when nobody reads.
    ///
    /// # Errors
    /// Where files cannot be removed, or a thread cannot be started.
    pub fn with_disk(bytes_max: u64, settings: CacheDisk) -> io::Result<Self> {
        let mut cache = Self::new(bytes_max);
        if bytes_max == 0 || settings.bytes_max == 0 {
            Disk::clear(&settings.folder)?;
        } else {
            cache.disk = Some(Disk::open(settings, &cache.memory)?);
        }
        if bytes_max != 0 {
            cache.filler = Some(Filler::start()?);
        }
        Ok(cache)
    }

    /// The cache for scans of `table`.
    #[must_use]
    pub fn of(self: &Arc<Self>, table: Oid, policy: CachePolicy) -> TableCache {
        TableCache { cache: Arc::clone(self), table, policy }
    }

    /// From now on nothing is held that no table has or wants.
    pub fn keep(&self, wishes: &Arc<CacheWishes>) {
        if let Some(disk) = &self.disk {
            disk.keep(wishes);
        }
        let mut memory = self.memory.lock();
        if memory.shards.note(wishes) {
            let gone = memory.blocks.sort_out(|key, table| wishes.fate(key.shard, table));
            // Freed without the lock.
            drop(memory);
            drop(gone);
        }
    }

    /// Holds so many bytes in memory at most from now on, and as much on disk, if it has one: what there is too much of goes.
    pub fn set_room(&self, bytes_max: u64, disk: DiskPart) {
        let gone = self.memory.lock().blocks.set_bytes_max(bytes_max);
        // Freed without the lock.
        drop(gone);
        if let Some(of_disk) = &self.disk {
            of_disk.set_most(disk);
        }
    }

    /// How its memory is used.
    #[must_use]
    pub fn usage(&self) -> CacheUse {
        self.memory.lock().blocks.counts().sum()
    }

    /// How each tier is used, by table.
    #[must_use]
    pub fn tiers(&self) -> Vec<TierUse> {
        let memory = self.memory.lock();
        let (bytes_max, tables) = (memory.blocks.bytes_max(), memory.blocks.counts().by_table());
        drop(memory);
        let of_memory = TierUse { tier: "memory", bytes_max, tables };
        [of_memory].into_iter().chain(self.disk.as_ref().map(Disk::usage)).collect()
    }
}

impl Memory {
    /// Whether there is room for so many bytes that nobody has asked for again.
    fn has_room(&self, bytes: u64) -> bool {
        let filled = self.blocks.bytes_max() / FILLED_PARTS * (FILLED_PARTS - 1);
        self.blocks.bytes().saturating_add(bytes) < filled
    }
}

impl TableCache {
    /// Whether reads go by it: there is room for nothing, or the table wants none.
    fn is_off(&self) -> bool {
        self.policy == CachePolicy::Never || self.cache.memory.lock().blocks.bytes_max() == 0
    }

    fn pins(&self) -> bool {
        self.policy == CachePolicy::Pin
    }

    fn get(&self, key: &BlockKey) -> Option<Arc<ColumnBlock>> {
        self.cache.memory.lock().blocks.get(key, self.table, self.pins()).map(Arc::clone)
    }

    /// Whether a page of a near shard is to be kept: it comes again, or is pinned.
    fn comes_again(&self, key: BlockKey) -> bool {
        self.pins() || self.cache.memory.lock().first_reads.comes_again(&key)
    }

    /// Has pages kept that passed through, once it is quiet.
    fn keep_later(&self, reader: &ShardReader, read: &RowGroupRead, pages: Vec<PassedPage>) {
        if let Some(filler) = &self.cache.filler {
            self.add_shard(reader.file().meta.id);
            filler.take(self, reader, read, pages);
        }
    }

    /// It is not quiet as long as the guard lives. Not for as long as a scan: a cursor may stay open for days.
    fn reading(&self) -> Option<Reading> {
        self.cache.filler.as_ref().map(Filler::reading)
    }

    /// Of these columns of a page those that are not in memory, as long as there is room for more and the shard is wanted.
    fn lacking(&self, key: BlockKey, columns: impl Iterator<Item = (usize, ColumnId)>) -> Vec<usize> {
        let memory = self.cache.memory.lock();
        if !memory.has_room(0) || !memory.shards.may_hold(key.shard, self.table) {
            return Vec::new();
        }
        let lacks = |column: &ColumnId| !memory.blocks.contains(&BlockKey { column: *column, ..key });
        columns.filter(|(_, column)| lacks(column)).map(|(position, _)| position).collect()
    }

    /// Keeps a block that nobody has asked for again in memory, where nothing has to go for it and the shard is wanted.
    fn put_where_room(&self, key: BlockKey, block: &Arc<ColumnBlock>) -> bool {
        let bytes = block.memory_bytes();
        let mut memory = self.cache.memory.lock();
        if !memory.has_room(bytes) || !memory.shards.may_hold(key.shard, self.table) {
            return false;
        }
        let refused = memory.blocks.put(key, self.table, self.pins(), Arc::clone(block), bytes);
        drop(memory);
        refused.is_empty()
    }

    /// Something of the shard may be held from now on.
    fn add_shard(&self, shard: ShardId) {
        self.cache.memory.lock().shards.add(shard);
    }

    /// Where a block lies that is not in memory.
    fn find(&self, key: &BlockKey) -> Option<Found> {
        self.cache.disk.as_ref()?.find(key, self.table)
    }

    /// Keeps a block that was made.
    fn put(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        if let Some(disk) = &self.cache.disk {
            disk.put(key, self.table, block);
        }
        self.put_found(key, block);
    }

    /// Keeps a block that is asked for the first time and was made all the same, where there is room.
    fn put_first(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        self.add_shard(key.shard);
        if self.put_where_room(key, block)
            && let Some(disk) = &self.cache.disk
        {
            disk.put(key, self.table, block);
        }
    }

    /// As [`TableCache::put_first`] for who has time; waits until it can be written to disk. `false` where it is not kept.
    fn put_later(&self, key: BlockKey, block: &Arc<ColumnBlock>) -> bool {
        let is_kept = self.put_where_room(key, block);
        if let Some(disk) = self.cache.disk.as_ref().filter(|_| is_kept) {
            disk.put_in_turn(key, self.table, block);
        }
        is_kept
    }

    /// Keeps a block that lies on disk already.
    fn put_found(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        let (value, bytes) = (Arc::clone(block), block.memory_bytes());
        let mut memory = self.cache.memory.lock();
        memory.shards.add(key.shard);
        let evicted = memory.blocks.put(key, self.table, self.pins(), value, bytes);
        drop(memory);
        // Freed without the lock.
        drop(evicted);
    }
}

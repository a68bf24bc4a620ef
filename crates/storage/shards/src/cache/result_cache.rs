//! Cache of results computed from shards, with the same eviction and retention as the column cache.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use types::{Oid, ShardId};

use super::eviction::{EvictionQueues, Retention};
use super::retention::CachedShards;
use super::{CacheStats, RetentionPolicy, TierStats};

/// Largest number of remembered computations whose results are too large.
const TOO_LARGE_MAX: usize = 4_096;

/// Key of a result: a computation over rows of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResultKey {
    pub shard: ShardId,
    /// Digest of the computation and of the shard's rows that it reads: equal digests mean equal results.
    pub digest: [u8; 32],
}

/// Byte-bounded cache of results computed from shards, shared by all queries.
#[derive(Debug)]
pub struct ShardResultCache<V> {
    state: Mutex<ResultCacheState<V>>,
    bytes_max: u64,
}

#[derive(Debug)]
/// State of the cache behind its lock.
struct ResultCacheState<V> {
    results: EvictionQueues<ResultKey, Arc<V>>,
    shards: CachedShards,
    /// Computations whose results are too large to be cached; the oldest is forgotten first.
    too_large: HashSet<[u8; 32]>,
    too_large_order: VecDeque<[u8; 32]>,
}

impl<V> ShardResultCache<V> {
    /// Returns an empty cache of at most `bytes_max` bytes; 0 caches nothing.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        let (results, shards) = (EvictionQueues::new(bytes_max), CachedShards::default());
        let kept = ResultCacheState { results, shards, too_large: HashSet::new(), too_large_order: VecDeque::new() };
        Self { state: Mutex::new(kept), bytes_max }
    }

    /// Returns the capacity in bytes.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Looks up the result of each key, for a query over `table`.
    #[must_use]
    pub fn find(&self, table: Oid, keys: impl Iterator<Item = ResultKey>) -> Vec<Option<Arc<V>>> {
        let mut kept = self.state.lock();
        keys.map(|key| kept.results.get(&key, table, false).map(Arc::clone)).collect()
    }

    /// Inserts a result of `bytes` bytes.
    pub fn put(&self, table: Oid, key: ResultKey, value: &Arc<V>, bytes: u64) {
        let mut kept = self.state.lock();
        kept.shards.add(key.shard);
        let gone = kept.results.put(key, table, false, Arc::clone(value), bytes);
        // Freed without the lock.
        drop(kept);
        drop(gone);
    }

    /// Remembers that a computation's results are too large to be cached.
    pub fn mark_too_large(&self, computation: [u8; 32]) {
        let mut kept = self.state.lock();
        if kept.too_large.insert(computation) {
            kept.too_large_order.push_back(computation);
        }
        if TOO_LARGE_MAX < kept.too_large.len()
            && let Some(first) = kept.too_large_order.pop_front()
        {
            kept.too_large.remove(&first);
        }
    }

    /// Returns true if [`ShardResultCache::mark_too_large`] was called for the computation recently.
    #[must_use]
    pub fn is_too_large(&self, computation: &[u8; 32]) -> bool {
        self.state.lock().too_large.contains(computation)
    }

    /// Drops results of shards that no table references, and of tables whose policy is never.
    pub fn apply_retention(&self, wishes: &Arc<RetentionPolicy>) {
        let mut kept = self.state.lock();
        if !kept.shards.set_policy(wishes) {
            return;
        }
        let gone = kept.results.apply_retention(|key, table| match wishes.decide(key.shard, table) {
            Retention::Remove => Retention::Remove,
            Retention::Evictable | Retention::Unchanged => Retention::Unchanged,
        });
        // Freed without the lock.
        drop(kept);
        drop(gone);
    }

    /// Returns the statistics, summed over all tables.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.state.lock().results.counts().sum()
    }

    /// Returns the statistics by table, as a tier of this name.
    #[must_use]
    pub fn tier_stats(&self, tier: &'static str) -> TierStats {
        TierStats { tier, bytes_max: self.bytes_max, tables: self.state.lock().results.counts().by_table() }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const TABLE: Oid = Oid(7);

    fn key(shard: u128, computation: u8) -> ResultKey {
        ResultKey { shard: ShardId(Uuid::from_u128(shard)), digest: [computation; 32] }
    }

    fn put(results: &ShardResultCache<u32>, key: ResultKey, bytes: u64) {
        results.put(TABLE, key, &Arc::new(1), bytes);
    }

    fn has(results: &ShardResultCache<u32>, key: ResultKey) -> bool {
        results.find(TABLE, [key].into_iter())[0].is_some()
    }

    #[test]
    fn results_are_found_by_shard_and_computation_and_counted() {
        let results = ShardResultCache::new(1_000);
        put(&results, key(1, 1), 100);
        assert!(has(&results, key(1, 1)) && !has(&results, key(1, 2)) && !has(&results, key(2, 1)));
        let expected = CacheStats { blocks: 1, bytes: 100, hits: 1, misses: 2, evictions: 0 };
        assert_eq!(results.stats(), expected);
        assert_eq!(results.tier_stats("fragment").tables, [(TABLE, expected)]);
    }

    #[test]
    fn what_is_used_stays_when_there_is_no_room_for_all() {
        let results = ShardResultCache::new(1_000);
        (0..5).for_each(|shard| put(&results, key(shard, 0), 100));
        for other in 100..200 {
            assert!((0..5).all(|shard| has(&results, key(shard, 0))), "{other}");
            put(&results, key(other, 0), 100);
        }
        let usage = results.stats();
        assert!(usage.bytes <= 1_000 && 90 <= usage.evictions, "{usage:?}");
        put(&results, key(1_000, 0), 1_001);
        assert!(!has(&results, key(1_000, 0)), "larger than all the room");
        let none = ShardResultCache::new(0);
        put(&none, key(1, 1), 1);
        assert!(!has(&none, key(1, 1)));
    }

    #[test]
    fn shards_that_no_table_has_any_more_are_forgotten() {
        let results = ShardResultCache::new(1_000);
        (0..5).for_each(|shard| put(&results, key(shard, 0), 100));
        let shards = (1..3).map(|shard| key(shard, 0).shard).collect();
        results.apply_retention(&Arc::new(RetentionPolicy { live_shards: shards, ..RetentionPolicy::default() }));
        let left: Vec<bool> = (0..5).map(|shard| has(&results, key(shard, 0))).collect();
        assert_eq!(left, [false, true, true, false, false]);
        assert_eq!((results.stats().blocks, results.stats().bytes), (2, 200));
    }

    #[test]
    fn the_last_refusals_are_remembered() {
        let results: ShardResultCache<u32> = ShardResultCache::new(1_000);
        let computation = |number: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
            bytes
        };
        for number in 0..TOO_LARGE_MAX * 2 {
            results.mark_too_large(computation(number));
            results.mark_too_large(computation(number));
        }
        assert!(!results.is_too_large(&computation(TOO_LARGE_MAX - 1)));
        assert!((TOO_LARGE_MAX..TOO_LARGE_MAX * 2).all(|number| results.is_too_large(&computation(number))));
    }
}

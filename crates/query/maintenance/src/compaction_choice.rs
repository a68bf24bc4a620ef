//! Selects the shards to compact; pure functions.

use bulk_load::BUCKET_SHARD_BYTES_MIN;
use catalog::TableShards;
use shards::BucketKeys;
use types::ShardId;

/// Size, in bytes, below which a shard counts as small and is worth merging with others.
const SMALL_BYTES: u64 = 25 << 20;
/// Number of small shards of a table that is tolerated; with more they are compacted.
const SMALL_SHARDS_TOLERATED: usize = 8;
/// Reciprocal of the fraction of deleted rows that a shard tolerates: with more than one in five it is compacted.
const DELETED_DIVISOR: u64 = 5;
/// Maximum bytes that one compaction reads.
const READ_BYTES_MAX: u64 = 512 << 20;

/// Returns the shards that the next compaction merges: those with many deleted rows, and small ones if there are many.
pub(crate) fn select_for_compaction(shards: &TableShards, have_buckets: bool) -> Vec<ShardId> {
    let small_bytes = if have_buckets { BUCKET_SHARD_BYTES_MIN } else { SMALL_BYTES };
    let deleted = |id: ShardId| shards.deleted.get(&id).map_or(0, |deleted| deleted.positions.len());
    let small = shards.shards.sizes().filter(|shard| shard.bytes < small_bytes).count();
    let mut bytes = 0;
    let mut chosen = Vec::new();
    for shard in shards.shards.sizes() {
        let is_worn = shard.rows < deleted(shard.id) * DELETED_DIVISOR;
        let is_small = SMALL_SHARDS_TOLERATED < small && shard.bytes < small_bytes;
        if (is_worn || is_small) && (bytes + shard.bytes <= READ_BYTES_MAX || chosen.is_empty()) {
            bytes += shard.bytes;
            chosen.push(shard.id);
        }
    }
    chosen
}

/// Returns the next shards whose rows are not in buckets by `keys`: they were written before the table was distributed
/// on these keys.
pub(crate) fn select_unbucketed(shards: &TableShards, keys: &BucketKeys) -> Vec<ShardId> {
    let mut bytes = 0;
    let mut chosen = Vec::new();
    for shard in shards.shards.iter().filter(|shard| shard.buckets_for_keys(keys).is_none()) {
        if !chosen.is_empty() && READ_BYTES_MAX < bytes + shard.bytes {
            break;
        }
        bytes += shard.bytes;
        chosen.push(shard.id);
    }
    chosen
}

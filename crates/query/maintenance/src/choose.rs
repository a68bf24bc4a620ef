//! Which shards are worth writing anew. Pure.

use bulk_load::SMALL_BUCKET_BYTES;
use catalog::TableShards;
use shards::BucketKeys;
use types::ShardId;

/// A smaller shard is better off together with others.
const SMALL_BYTES: u64 = 25 << 20;
/// So many small shards are left alone.
const SMALL_COUNT: usize = 8;
/// Of so many rows one may be deleted before a shard is written anew.
const DELETED_PART: u64 = 5;
/// What one compaction reads at most.
const READ_BYTES_MAX: u64 = 512 << 20;

/// The shards that one compaction puts together: those with many deleted rows, and small ones once there are many.
pub(crate) fn shards(shards: &TableShards, have_buckets: bool) -> Vec<ShardId> {
    let small_bytes = if have_buckets { SMALL_BUCKET_BYTES } else { SMALL_BYTES };
    let deleted = |id: ShardId| shards.deleted.get(&id).map_or(0, |deleted| deleted.places.len());
    let small = shards.shards.sizes().filter(|shard| shard.bytes < small_bytes).count();
    let mut bytes = 0;
    let mut chosen = Vec::new();
    for shard in shards.shards.sizes() {
        let is_worn = shard.rows < deleted(shard.id) * DELETED_PART;
        let is_small = SMALL_COUNT < small && shard.bytes < small_bytes;
        if (is_worn || is_small) && (bytes + shard.bytes <= READ_BYTES_MAX || chosen.is_empty()) {
            bytes += shard.bytes;
            chosen.push(shard.id);
        }
    }
    chosen
}

/// The next shards whose rows have no buckets by `keys`: they were written before the table was distributed on them.
pub(crate) fn unbucketed(shards: &TableShards, keys: &BucketKeys) -> Vec<ShardId> {
    let mut bytes = 0;
    let mut chosen = Vec::new();
    for shard in shards.shards.iter().filter(|shard| shard.buckets_by(keys).is_none()) {
        if !chosen.is_empty() && READ_BYTES_MAX < bytes + shard.bytes {
            break;
        }
        bytes += shard.bytes;
        chosen.push(shard.id);
    }
    chosen
}

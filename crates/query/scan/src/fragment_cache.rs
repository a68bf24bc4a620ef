//! Fragment cache: groups that a pipeline aggregated from one shard, reused by later queries that aggregate the same.
//! Used by `compile/reuse`.

use engine::aggregate::CompactGroups;
use shards::ShardResultCache;

/// Cache of groups by shard, by fingerprint of the computation, and by the rows that were visible.
pub type FragmentCache = ShardResultCache<CompactGroups>;

/// Name of this cache in the list of cache tiers.
pub(crate) const FRAGMENT_TIER: &str = "fragment";

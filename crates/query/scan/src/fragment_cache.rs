//! The cache of fragments: groups that a pipeline made of one shard's rows, for the next query that makes the same of it. `compile/reuse` uses it.

use engine::aggregate::CompactGroups;
use shards::ShardResults;

/// Groups by the shard, by what was computed of it, and by its rows that were there.
pub type FragmentCache = ShardResults<CompactGroups>;

/// What it is called beside the tiers of the cache of columns.
pub(crate) const FRAGMENT_TIER: &str = "fragment";

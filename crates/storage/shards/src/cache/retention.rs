//! Retention policy of the cache: which shards' blocks it may hold, as catalogs and table settings say.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use types::{CachePolicy, Oid, ShardId};

use super::eviction::Retention;
use crate::external::table_of_cache_id;

/// Retention policy: the shards that tables reference, and each table's cache policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Shards that tables reference, and files of external tables as last listed.
    pub live_shards: HashSet<ShardId>,
    /// External tables whose files were not listed since the start; blocks of their files from an earlier run are
    /// retained until then.
    pub unlisted_tables: HashSet<Oid>,
    /// Cache policies other than normal, by table.
    pub policies: HashMap<Oid, CachePolicy>,
}

impl RetentionPolicy {
    /// Decides about a cached block of the shard that the table's scans brought in.
    pub(super) fn decide(&self, shard: ShardId, table: Oid) -> Retention {
        if !self.is_live(shard) {
            return Retention::Remove;
        }
        match self.policies.get(&table) {
            Some(CachePolicy::Never) => Retention::Remove,
            Some(CachePolicy::Pin) => Retention::Unchanged,
            Some(CachePolicy::Normal) | None => Retention::Evictable,
        }
    }

    /// Returns true if a table references the shard, or may do so.
    fn is_live(&self, shard: ShardId) -> bool {
        self.live_shards.contains(&shard)
            || table_of_cache_id(shard).is_some_and(|table| self.unlisted_tables.contains(&table))
    }
}

/// Shards that may have blocks in a tier, so that the tier is swept only when a policy change affects it.
#[derive(Debug, Default)]
pub(super) struct CachedShards {
    shards: HashSet<ShardId>,
    /// Latest policy; `None` until one is set.
    policy: Option<Arc<RetentionPolicy>>,
}

impl CachedShards {
    /// Registers a shard as one with blocks in the tier.
    pub(super) fn add(&mut self, shard: ShardId) {
        self.shards.insert(shard);
    }

    /// Returns true if the latest policy retains a block of the shard that the table's scans brought in.
    pub(super) fn retains(&self, shard: ShardId, table: Oid) -> bool {
        self.policy.as_ref().is_none_or(|policy| policy.decide(shard, table) != Retention::Remove)
    }

    /// Returns true if blocks of the shard may be inserted for the table: the shard is registered and the table's
    /// policy is not never.
    pub(super) fn admits(&self, shard: ShardId, table: Oid) -> bool {
        let never = |policy: &Arc<RetentionPolicy>| policy.policies.get(&table) == Some(&CachePolicy::Never);
        self.shards.contains(&shard) && !self.policy.as_ref().is_some_and(never)
    }

    /// Adopts a new policy; returns true if the tier may hold blocks that it does not retain.
    pub(super) fn set_policy(&mut self, policy: &Arc<RetentionPolicy>) -> bool {
        let before = self.shards.len();
        self.shards.retain(|shard| policy.is_live(*shard));
        let last = self.policy.replace(Arc::clone(policy));
        self.shards.len() < before || last.is_none_or(|last| last.policies != policy.policies)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_tier_is_looked_through_where_it_may_hold_what_is_not_wanted() {
        let shard = |number| ShardId(Uuid::from_u128(number));
        let of = |shards: &[u128], pinned: &[u32]| {
            Arc::new(RetentionPolicy {
                live_shards: shards.iter().map(|number| shard(*number)).collect(),
                policies: pinned.iter().map(|table| (Oid(*table), CachePolicy::Pin)).collect(),
                ..RetentionPolicy::default()
            })
        };
        let mut held = CachedShards::default();
        assert!(held.set_policy(&of(&[1], &[7])), "what was wanted before is not known");
        held.add(shard(1));
        assert!(!held.set_policy(&of(&[1, 2], &[7])));
        assert!(!held.set_policy(&of(&[1, 3], &[7])), "nothing of the second was held");
        assert!(held.set_policy(&of(&[1, 3], &[])));
        held.add(shard(4));
        assert!(held.set_policy(&of(&[1, 3], &[])), "it came and went between two looks");
        assert!(!held.set_policy(&of(&[1], &[])));
        assert!(held.set_policy(&of(&[], &[])));
        let table = Oid(7);
        held.add(shard(5));
        assert!(held.admits(shard(5), table), "it may be younger than the policy");
        let mut never = RetentionPolicy::clone(&of(&[5], &[]));
        held.set_policy(&Arc::new(never.clone()));
        assert!(held.admits(shard(5), table) && !held.admits(shard(1), table));
        never.policies.insert(table, CachePolicy::Never);
        held.set_policy(&Arc::new(never));
        assert!(!held.admits(shard(5), table) && held.admits(shard(5), Oid(8)));
        held.set_policy(&of(&[1], &[]));
        assert!(!held.admits(shard(5), Oid(8)), "it is gone");
    }
    #[test]
    fn files_of_others_are_wanted_until_their_table_is_listed() {
        let file = |table: u32, number: u128| {
            let bytes = (u128::from(table) << 96 | number).to_be_bytes();
            ShardId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
        };
        let mut policy = RetentionPolicy { unlisted_tables: [Oid(7)].into(), ..RetentionPolicy::default() };
        assert_eq!(policy.decide(file(7, 1), Oid(7)), Retention::Evictable);
        assert_eq!(policy.decide(file(8, 1), Oid(8)), Retention::Remove);
        assert_eq!(policy.decide(ShardId(Uuid::from_u128(7 << 96)), Oid(7)), Retention::Remove, "a shard");
        let mut held = CachedShards::default();
        held.add(file(7, 1));
        held.add(file(7, 2));
        held.set_policy(&Arc::new(policy.clone()));
        assert!(held.retains(file(7, 1), Oid(7)) && held.retains(file(7, 3), Oid(7)));
        policy = RetentionPolicy { live_shards: [file(7, 1)].into(), ..RetentionPolicy::default() };
        assert!(held.set_policy(&Arc::new(policy)), "one is not among those that were listed");
        assert!(held.retains(file(7, 1), Oid(7)) && !held.retains(file(7, 2), Oid(7)));
    }
}

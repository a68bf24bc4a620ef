//! Retention policy of the cache: which shards' blocks it may hold, as catalogs and table settings say.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use types::{CachePolicy, Oid, ShardId};

use super::queues::Fate;
use crate::foreign::table_of;

/// Retention policy: the shards that tables reference, and each table's cache policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheWishes {
    /// Shards that tables reference, and files of external tables as last listed.
    pub shards: HashSet<ShardId>,
    /// External tables whose files were not listed since the start; blocks of their files from an earlier run are
    /// retained until then.
    pub unlisted: HashSet<Oid>,
    /// Cache policies other than normal, by table.
    pub policies: HashMap<Oid, CachePolicy>,
}

impl CacheWishes {
    /// Decides about a cached block of the shard that the table's scans brought in.
    pub(super) fn fate(&self, shard: ShardId, table: Oid) -> Fate {
        if !self.has(shard) {
            return Fate::Gone;
        }
        match self.policies.get(&table) {
            Some(CachePolicy::Never) => Fate::Gone,
            Some(CachePolicy::Pin) => Fate::AsItIs,
            Some(CachePolicy::Normal) | None => Fate::Loose,
        }
    }

    /// Returns true if a table references the shard, or may do so.
    fn has(&self, shard: ShardId) -> bool {
        self.shards.contains(&shard) || table_of(shard).is_some_and(|table| self.unlisted.contains(&table))
    }
}

/// Shards that may have blocks in a tier, so that the tier is swept only when a policy change affects it.
#[derive(Debug, Default)]
pub(super) struct HeldShards {
    shards: HashSet<ShardId>,
    /// Latest policy; `None` until one is set.
    wishes: Option<Arc<CacheWishes>>,
}

impl HeldShards {
    /// Registers a shard as one with blocks in the tier.
    pub(super) fn add(&mut self, shard: ShardId) {
        self.shards.insert(shard);
    }

    /// Returns true if the latest policy retains a block of the shard that the table's scans brought in.
    pub(super) fn wants(&self, shard: ShardId, table: Oid) -> bool {
        self.wishes.as_ref().is_none_or(|wishes| wishes.fate(shard, table) != Fate::Gone)
    }

    /// Returns true if blocks of the shard may be inserted for the table: the shard is registered and the table's
    /// policy is not never.
    pub(super) fn may_hold(&self, shard: ShardId, table: Oid) -> bool {
        let never = |wishes: &Arc<CacheWishes>| wishes.policies.get(&table) == Some(&CachePolicy::Never);
        self.shards.contains(&shard) && !self.wishes.as_ref().is_some_and(never)
    }

    /// Adopts a new policy; returns true if the tier may hold blocks that it does not retain.
    pub(super) fn note(&mut self, wishes: &Arc<CacheWishes>) -> bool {
        let before = self.shards.len();
        self.shards.retain(|shard| wishes.has(*shard));
        let last = self.wishes.replace(Arc::clone(wishes));
        self.shards.len() < before || last.is_none_or(|last| last.policies != wishes.policies)
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
            Arc::new(CacheWishes {
                shards: shards.iter().map(|number| shard(*number)).collect(),
                policies: pinned.iter().map(|table| (Oid(*table), CachePolicy::Pin)).collect(),
                ..CacheWishes::default()
            })
        };
        let mut held = HeldShards::default();
        assert!(held.note(&of(&[1], &[7])), "what was wanted before is not known");
        held.add(shard(1));
        assert!(!held.note(&of(&[1, 2], &[7])));
        assert!(!held.note(&of(&[1, 3], &[7])), "nothing of the second was held");
        assert!(held.note(&of(&[1, 3], &[])));
        held.add(shard(4));
        assert!(held.note(&of(&[1, 3], &[])), "it came and went between two looks");
        assert!(!held.note(&of(&[1], &[])));
        assert!(held.note(&of(&[], &[])));
        let table = Oid(7);
        held.add(shard(5));
        assert!(held.may_hold(shard(5), table), "it may be younger than the wishes");
        let mut never = CacheWishes::clone(&of(&[5], &[]));
        held.note(&Arc::new(never.clone()));
        assert!(held.may_hold(shard(5), table) && !held.may_hold(shard(1), table));
        never.policies.insert(table, CachePolicy::Never);
        held.note(&Arc::new(never));
        assert!(!held.may_hold(shard(5), table) && held.may_hold(shard(5), Oid(8)));
        held.note(&of(&[1], &[]));
        assert!(!held.may_hold(shard(5), Oid(8)), "it is gone");
    }
    #[test]
    fn files_of_others_are_wanted_until_their_table_is_listed() {
        let file = |table: u32, number: u128| {
            let bytes = (u128::from(table) << 96 | number).to_be_bytes();
            ShardId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
        };
        let mut wishes = CacheWishes { unlisted: [Oid(7)].into(), ..CacheWishes::default() };
        assert_eq!(wishes.fate(file(7, 1), Oid(7)), Fate::Loose);
        assert_eq!(wishes.fate(file(8, 1), Oid(8)), Fate::Gone);
        assert_eq!(wishes.fate(ShardId(Uuid::from_u128(7 << 96)), Oid(7)), Fate::Gone, "a shard");
        let mut held = HeldShards::default();
        held.add(file(7, 1));
        held.add(file(7, 2));
        held.note(&Arc::new(wishes.clone()));
        assert!(held.wants(file(7, 1), Oid(7)) && held.wants(file(7, 3), Oid(7)));
        wishes = CacheWishes { shards: [file(7, 1)].into(), ..CacheWishes::default() };
        assert!(held.note(&Arc::new(wishes)), "one is not among those that were listed");
        assert!(held.wants(file(7, 1), Oid(7)) && !held.wants(file(7, 2), Oid(7)));
    }
}

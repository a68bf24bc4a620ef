//! Cache of pruning results, valid as long as a table's shards are the same.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use shards::{ColumnDef, Predicate, Pruner, ShardMeta};

use super::ShardList;

/// Shards that may contain rows which a query needs, with their positions in the table, ascending.
pub type PrunedShards = Arc<[(usize, Arc<ShardMeta>)]>;

/// Maximum number of cached results.
const CACHED_RESULTS_MAX: usize = 32;
/// Maximum number of shards in all cached results.
const CACHED_SHARDS_MAX: usize = 16_384;
/// Number of shards up to which pruning is too cheap to be cached.
const UNCACHED_SHARDS_MAX: usize = 64;

/// Cache of recent pruning results for one list of shards, newest first.
#[derive(Debug, Default)]
pub(super) struct PruneCache {
    results: Mutex<VecDeque<CachedResult>>,
}

#[derive(Debug)]
struct CachedResult {
    predicates: Vec<Predicate>,
    /// Definitions of the predicates' columns: they determine the values of rows older than a column.
    columns: Vec<ColumnDef>,
    shards: PrunedShards,
}

impl PruneCache {
    /// Returns the shards of `list`, which must be the same in each call, that may contain rows which pass.
    pub(super) fn get(&self, list: &ShardList, predicates: &[Predicate], columns: &[ColumnDef]) -> PrunedShards {
        if predicates.is_empty() || list.len() <= UNCACHED_SHARDS_MAX {
            return prune(list, predicates, columns);
        }
        let is_asked = |column: &&ColumnDef| predicates.iter().any(|predicate| predicate.column == column.id);
        let asked: Vec<ColumnDef> = columns.iter().filter(is_asked).cloned().collect();
        if let Some(shards) = self.find(predicates, &asked) {
            return shards;
        }
        let shards = prune(list, predicates, columns);
        self.insert(CachedResult { predicates: predicates.to_vec(), columns: asked, shards: Arc::clone(&shards) });
        shards
    }

    fn find(&self, predicates: &[Predicate], columns: &[ColumnDef]) -> Option<PrunedShards> {
        let mut known = self.results.lock();
        let is_it = |known: &CachedResult| known.predicates == predicates && known.columns == columns;
        let place = known.iter().position(is_it)?;
        let found = known.remove(place)?;
        let shards = Arc::clone(&found.shards);
        known.push_front(found);
        Some(shards)
    }

    fn insert(&self, new: CachedResult) {
        if CACHED_SHARDS_MAX < new.shards.len() {
            return;
        }
        let mut known = self.results.lock();
        known.push_front(new);
        known.truncate(CACHED_RESULTS_MAX);
        let count = |known: &VecDeque<CachedResult>| known.iter().map(|known| known.shards.len()).sum::<usize>();
        while CACHED_SHARDS_MAX < count(&known) {
            known.pop_back();
        }
    }
}

fn prune(list: &ShardList, predicates: &[Predicate], columns: &[ColumnDef]) -> PrunedShards {
    let found = list.matching(&Pruner::new(predicates, columns));
    found.into_iter().filter_map(|number| Some((number, list.get(number)?))).collect()
}

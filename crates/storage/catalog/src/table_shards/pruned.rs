//! Which shards queries were left with, kept for as long as the shards are the same.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use shards::{ColumnDef, Predicate, Pruner, ShardMeta};

use super::ShardList;

/// Shards that may have rows which a query wants, with their positions among the table's, ascending.
pub type PrunedShards = Arc<[(usize, Arc<ShardMeta>)]>;

/// So many answers are kept.
const LISTS_MAX: usize = 32;
/// With so many shards altogether.
const SHARDS_MAX: usize = 16_384;
/// To look through so few shards is no work.
const FEW: usize = 64;

/// The last answers about one list of shards, newest first.
#[derive(Debug, Default)]
pub(super) struct PrunedLists {
    known: Mutex<VecDeque<Known>>,
}

#[derive(Debug)]
struct Known {
    predicates: Vec<Predicate>,
    /// The columns that the predicates are of, as the table had them: rows that are older have the values that these say.
    columns: Vec<ColumnDef>,
    shards: PrunedShards,
}

impl PrunedLists {
    /// The shards of `list`, which is always the same, that may have rows which pass.
    pub(super) fn get(&self, list: &ShardList, predicates: &[Predicate], columns: &[ColumnDef]) -> PrunedShards {
        if predicates.is_empty() || list.len() <= FEW {
            return pruned(list, predicates, columns);
        }
        let is_asked = |column: &&ColumnDef| predicates.iter().any(|predicate| predicate.column == column.id);
        let asked: Vec<ColumnDef> = columns.iter().filter(is_asked).cloned().collect();
        if let Some(shards) = self.known(predicates, &asked) {
            return shards;
        }
        let shards = pruned(list, predicates, columns);
        self.keep(Known { predicates: predicates.to_vec(), columns: asked, shards: Arc::clone(&shards) });
        shards
    }

    fn known(&self, predicates: &[Predicate], columns: &[ColumnDef]) -> Option<PrunedShards> {
        let mut known = self.known.lock();
        let is_it = |known: &Known| known.predicates == predicates && known.columns == columns;
        let place = known.iter().position(is_it)?;
        let found = known.remove(place)?;
        let shards = Arc::clone(&found.shards);
        known.push_front(found);
        Some(shards)
    }

    fn keep(&self, new: Known) {
        if SHARDS_MAX < new.shards.len() {
            return;
        }
        let mut known = self.known.lock();
        known.push_front(new);
        known.truncate(LISTS_MAX);
        let count = |known: &VecDeque<Known>| known.iter().map(|known| known.shards.len()).sum::<usize>();
        while SHARDS_MAX < count(&known) {
            known.pop_back();
        }
    }
}

fn pruned(list: &ShardList, predicates: &[Predicate], columns: &[ColumnDef]) -> PrunedShards {
    let found = list.matching(&Pruner::new(predicates, columns));
    found.into_iter().filter_map(|number| Some((number, list.get(number)?))).collect()
}

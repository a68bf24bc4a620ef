//! Binds a transaction's own rows to newer committed rows than those they were written over. Pure.

use std::sync::Arc;

use catalog::TableRows;
use rowstore::OwnRows;
use types::RowId;

use crate::moves::TableMoves;

/// Returns `own` with its hidden and deleted rows located in `base`, a newer version of the table's committed rows.
/// None of them was changed or deleted by another transaction meanwhile: they are locked.
pub(crate) fn bind(own: &OwnRows, base: &TableRows, moves: &TableMoves) -> OwnRows {
    let mut bound = own.clone();
    let settled: Vec<RowId> = own.layer.gone().filter(|id| base.fresh.get(*id).is_none()).collect();
    for id in settled {
        bound.layer.unhide(id);
        if let Some((shard, ordinal)) = moves.of_row(base, id) {
            bound.delete_from_shard(shard, ordinal);
        }
    }
    for (shard, deleted) in &own.deleted {
        if base.shards.shards.position(*shard).is_some() {
            continue;
        }
        let deleted = Arc::clone(deleted);
        bound.deleted.remove(shard);
        for (shard, ordinal) in deleted.iter().filter_map(|ordinal| moves.of_place(base, *shard, ordinal)) {
            bound.delete_from_shard(shard, ordinal);
        }
    }
    bound
}

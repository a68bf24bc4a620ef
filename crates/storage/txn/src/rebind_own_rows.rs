//! Binds a transaction's own rows to newer committed rows than those they were written over. Pure.

use std::sync::Arc;

use catalog::TableRows;
use rowstore::UncommittedRows;
use types::RowId;

use crate::row_moves::TableMoves;

/// Returns `own` with its hidden and deleted rows located in `base`, a newer version of the table's committed rows.
/// None of them was changed or deleted by another transaction meanwhile: they are locked.
pub(crate) fn rebind_rows(own: &UncommittedRows, base: &TableRows, moves: &TableMoves) -> UncommittedRows {
    let mut bound = own.clone();
    let flushed: Vec<RowId> = own.layer.hidden().filter(|id| base.fresh.get(*id).is_none()).collect();
    for id in flushed {
        bound.layer.unhide(id);
        if let Some((shard, ordinal)) = moves.position_of_row(base, id) {
            bound.delete_from_shard(shard, ordinal);
        }
    }
    for (shard, deleted) in &own.deleted_in_shards {
        if base.shards.shards.position(*shard).is_some() {
            continue;
        }
        let deleted = Arc::clone(deleted);
        bound.deleted_in_shards.remove(shard);
        for (shard, ordinal) in deleted.iter().filter_map(|ordinal| moves.current_position(base, *shard, ordinal)) {
            bound.delete_from_shard(shard, ordinal);
        }
    }
    bound
}

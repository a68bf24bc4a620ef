//! A transaction's own rows on top of other committed rows than it wrote them over. Pure.

use std::sync::Arc;

use catalog::TableRows;
use rowstore::OwnRows;
use types::RowId;

use crate::moves::TableMoves;

/// `own`, made over some earlier rows of the table, over `base`: what it hides and deletes is found where it lies now. Rows that were
/// changed or deleted by others meanwhile cannot be among them, for they are locked.
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

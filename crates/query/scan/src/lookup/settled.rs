//! Rows of shards that were read one by one lately, as rows are stored: pieces of a shard, kept while there is memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rowstore::Tuple;
use types::ShardId;

/// Rows of one piece: what is read for one of them.
pub(super) const PIECE_ROWS: u32 = 1024;
/// Memory that pieces may take.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// Pieces of shards; those used least lately go first.
#[derive(Debug, Default)]
pub(crate) struct SettledRows {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    pieces: HashMap<(ShardId, u32), Piece>,
    /// Counts uses.
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Piece {
    rows: Arc<Vec<Tuple>>,
    used: u64,
    bytes: usize,
}

impl SettledRows {
    /// The rows of a piece if they are kept. They may lack columns that the table got since: such a row is one from before the column.
    pub(super) fn get(&self, shard: ShardId, piece: u32) -> Option<Arc<Vec<Tuple>>> {
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let now = inner.clock;
        let piece = inner.pieces.get_mut(&(shard, piece))?;
        piece.used = now;
        Some(Arc::clone(&piece.rows))
    }

    pub(super) fn put(&self, shard: ShardId, piece: u32, rows: &Arc<Vec<Tuple>>) {
        let bytes = rows.iter().map(|row| row.as_bytes().len() + size_of::<Tuple>()).sum();
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let used = inner.clock;
        let old = inner.pieces.insert((shard, piece), Piece { rows: Arc::clone(rows), used, bytes });
        inner.bytes = inner.bytes + bytes - old.map_or(0, |old| old.bytes);
        if MEMORY_BYTES_MAX < inner.bytes {
            inner.make_room();
        }
    }
}

impl Inner {
    /// Forgets an eighth of what there is, so that not every new piece looks for the oldest.
    fn make_room(&mut self) {
        let mut by_use: Vec<(u64, (ShardId, u32))> =
            self.pieces.iter().map(|(key, piece)| (piece.used, *key)).collect();
        by_use.sort_unstable();
        for (_, key) in by_use {
            if self.bytes <= MEMORY_BYTES_MAX / 8 * 7 {
                return;
            }
            self.bytes -= self.pieces.remove(&key).map_or(0, |piece| piece.bytes);
        }
    }
}

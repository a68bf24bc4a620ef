//! Cache of open shards: their footers are read once.

use std::collections::HashMap;
use std::sync::Arc;

use objects::Objects;
use parking_lot::Mutex;
use shards::{ShardMeta, ShardReader};
use tokio::sync::OnceCell;
use types::ShardId;

/// Maximum memory of open shards, in bytes.
const MEMORY_BYTES_MAX: usize = 128 << 20;

/// LRU cache of open shards.
#[derive(Debug, Default)]
pub struct OpenShardCache {
    inner: Mutex<OpenShardCacheState>,
}

/// State of the cache.
#[derive(Debug, Default)]
struct OpenShardCacheState {
    shards: HashMap<ShardId, Entry>,
    /// Number of uses so far, as the time of the last use.
    clock: u64,
    bytes: usize,
}

/// Open shard, or one that is being opened.
#[derive(Debug)]
struct Entry {
    reader: Arc<OnceCell<ShardReader>>,
    last_use: u64,
    /// Memory of the reader; 0 until the shard is open.
    bytes: usize,
}

impl OpenShardCache {
    /// Returns the shard, and opens it on first use; concurrent callers wait for the same read.
    pub async fn get_or_open(&self, objects: &Objects, meta: &Arc<ShardMeta>) -> shards::Result<ShardReader> {
        let cell = self.inner.lock().touch(meta.id);
        if let Some(reader) = cell.get() {
            return Ok(reader.clone());
        }
        let reader = cell.get_or_try_init(|| ShardReader::open(objects, meta)).await?.clone();
        self.inner.lock().record_opened(meta.id, reader.memory_bytes());
        Ok(reader)
    }
}

impl OpenShardCacheState {
    fn touch(&mut self, id: ShardId) -> Arc<OnceCell<ShardReader>> {
        self.clock += 1;
        let fresh = || Entry { reader: Arc::default(), last_use: 0, bytes: 0 };
        let entry = self.shards.entry(id).or_insert_with(fresh);
        entry.last_use = self.clock;
        Arc::clone(&entry.reader)
    }

    fn record_opened(&mut self, id: ShardId, bytes: usize) {
        let Some(entry) = self.shards.get_mut(&id).filter(|entry| entry.bytes == 0) else { return };
        entry.bytes = bytes;
        self.bytes += bytes;
        while MEMORY_BYTES_MAX < self.bytes {
            let oldest =
                self.shards.iter().filter(|(_, entry)| 0 < entry.bytes).min_by_key(|(_, entry)| entry.last_use);
            let Some(oldest) = oldest.map(|(id, _)| *id) else { return };
            let gone = self.shards.remove(&oldest).expect("the oldest entry was found in the map");
            self.bytes -= gone.bytes;
        }
    }
}

//! Files of external tables that were opened lately: what their footers say is read again only when they have changed.

use std::collections::HashMap;

use objects::Objects;
use parking_lot::Mutex;
use shards::{ForeignPlace, ShardReader};
use types::{Oid, ShardId, SqlResult};

/// Memory that opened files may take.
const MEMORY_BYTES_MAX: usize = 128 << 20;

/// Opened files, by their tables and names; those used least lately go first.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    files: Mutex<Files>,
    buckets: Mutex<HashMap<String, Objects>>,
}

#[derive(Debug, Default)]
struct Files {
    entries: HashMap<(Oid, String), Entry>,
    /// Counts uses.
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// What the file was when it was opened.
    place: ForeignPlace,
    reader: ShardReader,
    used: u64,
    bytes: usize,
}

impl KnownFiles {
    /// The opened file, if it is still what it was.
    pub(super) fn get(&self, table: Oid, place: &ForeignPlace) -> Option<ShardReader> {
        let mut files = self.files.lock();
        files.clock += 1;
        let clock = files.clock;
        let entry = files.entries.get_mut(&(table, place.name())).filter(|entry| entry.place.is_same(place))?;
        entry.used = clock;
        Some(entry.reader.clone())
    }

    /// Keeps a file that was opened, unless somebody else has opened it meanwhile: all are to share the blocks of one.
    pub(super) fn put(&self, table: Oid, place: ForeignPlace, reader: ShardReader) -> ShardReader {
        if let Some(known) = self.get(table, &place) {
            return known;
        }
        let mut files = self.files.lock();
        let (used, bytes) = (files.clock, reader.memory_bytes());
        let entry = Entry { reader: reader.clone(), used, bytes, place };
        let replaced = files.entries.insert((table, entry.place.name()), entry);
        files.bytes += bytes;
        files.bytes -= replaced.map_or(0, |replaced| replaced.bytes);
        files.shrink(MEMORY_BYTES_MAX);
        reader
    }

    /// Under which ids columns of the files that are known are cached.
    pub(crate) fn ids(&self) -> Vec<ShardId> {
        self.files.lock().entries.values().map(|entry| entry.reader.meta().id).collect()
    }

    /// The storage at a URL, opened once.
    pub(super) fn bucket(&self, url: &str, open: impl FnOnce() -> SqlResult<Objects>) -> SqlResult<Objects> {
        if let Some(known) = self.buckets.lock().get(url) {
            return Ok(known.clone());
        }
        let opened = open()?;
        self.buckets.lock().insert(url.to_owned(), opened.clone());
        Ok(opened)
    }
}

impl Files {
    fn shrink(&mut self, bytes_max: usize) {
        while bytes_max < self.bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(gone) = oldest.and_then(|oldest| self.entries.remove(&oldest)) else { return };
            self.bytes -= gone.bytes;
        }
    }
}

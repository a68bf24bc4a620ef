//! Cache of opened files of external tables, whose footers are read again only after a change.
//!
//! It also records the files of each table at the last listing: their cached blocks are retained, even if the files are
//! no longer in this cache.

use std::collections::{HashMap, HashSet};

use objects::Objects;
use parking_lot::Mutex;
use shards::{ExternalFileLocation, RetentionPolicy, ShardReader};
use types::{Oid, ShardId, SqlResult};

/// Maximum memory of opened files.
const MEMORY_BYTES_MAX: usize = 128 << 20;

/// LRU cache of opened files by table and name, and of the buckets they are in.
#[derive(Debug, Default)]
pub struct FileCache {
    files: Mutex<OpenedFiles>,
    listed: Mutex<ListedIds>,
    buckets: Mutex<HashMap<String, Objects>>,
}

#[derive(Debug, Default)]
struct OpenedFiles {
    entries: HashMap<(Oid, String), CachedFile>,
    /// Number of lookups so far, the clock of the LRU order.
    clock: u64,
    bytes: usize,
}

/// Ids of the files of each table at the last listing; blocks of files are cached under these ids.
#[derive(Debug, Default)]
struct ListedIds {
    tables: HashMap<Oid, HashSet<ShardId>>,
    /// Number of listings that differed from the one before.
    changes: u64,
}

#[derive(Debug)]
struct CachedFile {
    /// Identity and version of the file when it was opened.
    location: ExternalFileLocation,
    reader: ShardReader,
    /// Value of the clock at the last use.
    last_use: u64,
    bytes: usize,
}

impl FileCache {
    /// Returns the opened file, if it is unchanged.
    pub(crate) fn get(&self, table: Oid, place: &ExternalFileLocation) -> Option<ShardReader> {
        let mut files = self.files.lock();
        files.clock += 1;
        let clock = files.clock;
        let entry = files.entries.get_mut(&(table, place.name())).filter(|entry| entry.location.is_same(place))?;
        entry.last_use = clock;
        Some(entry.reader.clone())
    }

    /// Caches an opened file and returns it, or the one that another statement has cached meanwhile, so that all share
    /// its blocks.
    pub(crate) fn put(&self, table: Oid, place: ExternalFileLocation, reader: ShardReader) -> ShardReader {
        if let Some(known) = self.get(table, &place) {
            return known;
        }
        let mut files = self.files.lock();
        let (used, bytes) = (files.clock, reader.memory_bytes());
        let entry = CachedFile { reader: reader.clone(), last_use: used, bytes, location: place };
        let replaced = files.entries.insert((table, entry.location.name()), entry);
        files.bytes += bytes;
        files.bytes -= replaced.map_or(0, |replaced| replaced.bytes);
        files.evict_to(MEMORY_BYTES_MAX);
        reader
    }

    /// Records the ids of a table's present files.
    pub(crate) fn record_listing(&self, table: Oid, ids: HashSet<ShardId>) {
        let mut listed = self.listed.lock();
        if listed.tables.get(&table) != Some(&ids) {
            listed.tables.insert(table, ids);
            listed.changes += 1;
        }
    }

    /// Returns how often a listing differed from the one before.
    #[must_use]
    pub fn listing_changes(&self) -> u64 {
        self.listed.lock().changes
    }

    /// Adds the file ids of `tables` to the shards that caches retain, and the tables whose files were not listed yet
    /// to the unlisted ones; removes the records of all other tables.
    pub fn add_retained_shards(&self, retention: &mut RetentionPolicy, tables: &HashSet<Oid>) {
        let mut listed = self.listed.lock();
        listed.tables.retain(|table, _| tables.contains(table));
        retention.live_shards.extend(listed.tables.values().flatten());
        retention.unlisted_tables.extend(tables.iter().filter(|table| !listed.tables.contains_key(table)));
    }

    /// Returns the object storage at a URL, which is opened on first use.
    pub(crate) fn bucket_or_open(&self, url: &str, open: impl FnOnce() -> SqlResult<Objects>) -> SqlResult<Objects> {
        if let Some(known) = self.buckets.lock().get(url) {
            return Ok(known.clone());
        }
        let opened = open()?;
        self.buckets.lock().insert(url.to_owned(), opened.clone());
        Ok(opened)
    }
}

impl OpenedFiles {
    /// Evicts the least recently used files until at most `bytes_max` are left.
    fn evict_to(&mut self, bytes_max: usize) {
        while bytes_max < self.bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use).map(|(key, _)| key.clone());
            let Some(gone) = oldest.and_then(|oldest| self.entries.remove(&oldest)) else { return };
            self.bytes -= gone.bytes;
        }
    }
}

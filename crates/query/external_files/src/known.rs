//! Files of external tables that were opened lately: what their footers say is read again only when they have changed. And which files tables
//! had when they were listed last: what is cached of those stays, whether they are still open or not.

use std::collections::{HashMap, HashSet};

use objects::Objects;
use parking_lot::Mutex;
use shards::{CacheWishes, ForeignPlace, ShardReader};
use types::{Oid, ShardId, SqlResult};

/// Memory that opened files may take.
const MEMORY_BYTES_MAX: usize = 128 << 20;

/// Opened files, by their tables and names; those used least lately go first.
#[derive(Debug, Default)]
pub struct KnownFiles {
    files: Mutex<Files>,
    listed: Mutex<Listed>,
    buckets: Mutex<HashMap<String, Objects>>,
}

#[derive(Debug, Default)]
struct Files {
    entries: HashMap<(Oid, String), Entry>,
    /// Counts uses.
    clock: u64,
    bytes: usize,
}

/// Under which ids columns of files are cached, by the tables that have them.
#[derive(Debug, Default)]
struct Listed {
    tables: HashMap<Oid, HashSet<ShardId>>,
    /// Counts listings that were not as the one before.
    changes: u64,
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
    pub(crate) fn get(&self, table: Oid, place: &ForeignPlace) -> Option<ShardReader> {
        let mut files = self.files.lock();
        files.clock += 1;
        let clock = files.clock;
        let entry = files.entries.get_mut(&(table, place.name())).filter(|entry| entry.place.is_same(place))?;
        entry.used = clock;
        Some(entry.reader.clone())
    }

    /// Keeps a file that was opened, unless somebody else has opened it meanwhile: all are to share the blocks of one.
    pub(crate) fn put(&self, table: Oid, place: ForeignPlace, reader: ShardReader) -> ShardReader {
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

    /// Notes which files a table has now, by the ids under which their columns are cached.
    pub(crate) fn note(&self, table: Oid, ids: HashSet<ShardId>) {
        let mut listed = self.listed.lock();
        if listed.tables.get(&table) != Some(&ids) {
            listed.tables.insert(table, ids);
            listed.changes += 1;
        }
    }

    /// How often a table was found to have other files than before.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.listed.lock().changes
    }

    /// Adds what is known of the files of external tables: the ids of those that were listed, or that a table's were not yet. Of other tables
    /// nothing is known from now on.
    pub fn add_to(&self, wishes: &mut CacheWishes, tables: &HashSet<Oid>) {
        let mut listed = self.listed.lock();
        listed.tables.retain(|table, _| tables.contains(table));
        wishes.shards.extend(listed.tables.values().flatten());
        wishes.unlisted.extend(tables.iter().filter(|table| !listed.tables.contains_key(table)));
    }

    /// The storage at a URL, opened once.
    pub(crate) fn bucket(&self, url: &str, open: impl FnOnce() -> SqlResult<Objects>) -> SqlResult<Objects> {
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

//! Background thread that caches pages while no scan reads: pages that scans read without caching, and pages of new
//! shards.
//!
//! It never evicts anything, and skips pages that are unwanted by then.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};
use types::{CachePolicy, Oid};

use super::load_pages::{PageLoad, WantedPage, neighbouring_runs};
use super::{BlockCache, BlockKey, TableCache};
use crate::Result;
use crate::reader::{BatchAssembler, RowGroupRead, ShardReader};

/// Row groups that may wait, each with its file's metadata; pages of further ones are cached on their third read only.
const QUEUED_REQUESTS_MAX: usize = 1024;
/// The cache counts as idle after no scan has read for this long.
const IDLE_AFTER: Duration = Duration::from_millis(100);
/// Nice value of the thread: about a tenth of a query thread's CPU weight, since queries may compute without reading
/// for a while. Not higher, because the thread takes the cache's locks.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Handle to the background thread that caches pages.
#[derive(Debug)]
pub(super) struct IdlePrefetcher {
    /// Queue to the thread.
    requests: SyncSender<PrefetchRequest>,
    readers: Arc<ReaderTracker>,
}

/// Request to cache pages of a row group that a scan read without caching, or that no scan has read yet.
#[derive(Debug)]
pub(super) struct PrefetchRequest {
    cache: Weak<BlockCache>,
    table: Oid,
    policy: CachePolicy,
    reader: ShardReader,
    read: RowGroupRead,
    pages: Vec<UncachedColumns>,
    /// True if no scan has asked for the pages.
    is_prefetch: bool,
}

/// Columns of a page to be cached.
#[derive(Debug)]
pub(super) struct UncachedColumns {
    /// Rows of the page, counted from the start of the row group.
    pub(super) rows: Range<usize>,
    /// Key of the page; its column is replaced for each position.
    pub(super) key: BlockKey,
    /// Positions of the columns in the read.
    pub(super) positions: Vec<usize>,
}

#[derive(Debug, Default)]
/// Readers of the cache, which the background thread waits for.
struct ReaderTracker {
    counts: Mutex<ReaderCounts>,
    /// Notified when the last reader leaves.
    no_readers: Condvar,
}

#[derive(Debug, Default)]
/// Numbers of readers.
struct ReaderCounts {
    /// Number of readers at present.
    reading: usize,
    /// Number of readers so far.
    started: u64,
}

/// Guard of a read in progress; the cache is not idle while it lives.
#[derive(Debug)]
pub(super) struct ReadGuard(Arc<ReaderTracker>);

impl IdlePrefetcher {
    /// Starts the background thread.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start() -> io::Result<Self> {
        let (passed, taken) = sync_channel(QUEUED_REQUESTS_MAX);
        let readers = Arc::<ReaderTracker>::default();
        let own = Arc::clone(&readers);
        let fill = move || match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => run(&taken, &own, &runtime),
            Err(error) => tracing::warn!(%error, "cache filler could not start; pages are cached on third read only"),
        };
        std::thread::Builder::new().name("cache-filler".to_owned()).spawn(fill)?;
        Ok(Self { requests: passed, readers })
    }

    /// Marks the cache as being read until the guard is dropped.
    pub(super) fn begin_read(&self) -> ReadGuard {
        let mut counts = self.readers.counts.lock();
        counts.reading += 1;
        counts.started += 1;
        drop(counts);
        ReadGuard(Arc::clone(&self.readers))
    }

    /// Queues pages of a finished read to be cached; drops them if the queue is full.
    pub(super) fn enqueue(
        &self,
        cache: &TableCache,
        reader: &ShardReader,
        read: &RowGroupRead,
        pages: Vec<UncachedColumns>,
    ) {
        let read = RowGroupRead {
            predicates: Vec::new(),
            deleted: None,
            fetched_bytes: Arc::default(),
            removed_rows: Arc::default(),
            predicate_order: Arc::default(),
            ..read.clone()
        };
        self.send(cache, reader, read, pages, false);
    }

    /// Queues pages that no scan has asked for; returns false if the queue is full.
    pub(super) fn enqueue_prefetch(
        &self,
        cache: &TableCache,
        reader: &ShardReader,
        read: &RowGroupRead,
        pages: Vec<UncachedColumns>,
    ) -> bool {
        self.send(cache, reader, read.clone(), pages, true)
    }

    fn send(
        &self,
        cache: &TableCache,
        reader: &ShardReader,
        read: RowGroupRead,
        pages: Vec<UncachedColumns>,
        is_ahead: bool,
    ) -> bool {
        let (table, policy, reader) = (cache.table, cache.policy, reader.clone());
        let passed = PrefetchRequest {
            cache: Arc::downgrade(&cache.cache),
            table,
            policy,
            reader,
            read,
            pages,
            is_prefetch: is_ahead,
        };
        match self.requests.try_send(passed) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Disconnected(_)) => {
                tracing::debug!("cache filler has ended; pages are cached on their third read only");
                false
            }
        }
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        let mut counts = self.0.counts.lock();
        counts.reading -= 1;
        if counts.reading == 0 {
            self.0.no_readers.notify_all();
        }
    }
}

impl ReaderTracker {
    /// Waits until no scan has read for [`IDLE_AFTER`]. Returns at once if no read has started since the last wait,
    /// whose number of started reads is in `quiet_since`.
    fn wait_until_idle(&self, idle_at: &mut Option<u64>) {
        let mut counts = self.counts.lock();
        while counts.reading != 0 || *idle_at != Some(counts.started) {
            while counts.reading != 0 {
                self.no_readers.wait(&mut counts);
            }
            let begun = counts.started;
            let is_over = self.no_readers.wait_for(&mut counts, IDLE_AFTER).timed_out();
            *idle_at = (is_over && counts.started == begun).then_some(begun);
        }
    }
}

/// Caches pages until the cache is dropped.
fn run(requests: &Receiver<PrefetchRequest>, readers: &ReaderTracker, runtime: &Runtime) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "could not lower the priority of the cache filler; it runs at normal priority");
    }
    let mut quiet_since = None;
    while let Ok(passed) = requests.recv() {
        let keep = AssertUnwindSafe(|| runtime.block_on(passed.cache_missing_pages(readers, &mut quiet_since)));
        match catch_unwind(keep) {
            Ok(Ok(())) => {}
            // Not an error: the shard's file may have been compacted away since.
            Ok(Err(error)) => tracing::debug!(%error, "cache filler could not read pages; they stay uncached"),
            Err(_) => tracing::error!("cache filler panicked while packing pages; they stay uncached"),
        }
    }
}

impl PrefetchRequest {
    /// Caches the pages that are still missing; continues after errors and returns the first one.
    async fn cache_missing_pages(self, readers: &ReaderTracker, quiet_since: &mut Option<u64>) -> Result<()> {
        readers.wait_until_idle(quiet_since);
        let Some(cache) = self.cache.upgrade() else { return Ok(()) };
        let cache = cache.for_table(self.table, self.policy);
        let assembly = BatchAssembler::new(self.reader.file(), &self.read.columns)?;
        let column = |position: &usize| (*position, self.read.columns[*position].id);
        let lacking = |page: &UncachedColumns| cache.missing_columns(page.key, page.positions.iter().map(column));
        let pages: Vec<(&UncachedColumns, Vec<usize>)> =
            self.pages.iter().map(|page| (page, lacking(page))).filter(|(_, lacking)| !lacking.is_empty()).collect();
        let mut keys = pages.iter().map(|(page, _)| page.key);
        let wanted = pages.iter().map(|(page, lacking)| (page.rows.clone(), lacking.as_slice()));
        let mut failed = Ok(());
        for stretch in neighbouring_runs(wanted) {
            let keys: Vec<BlockKey> = keys.by_ref().take(stretch.len()).collect();
            let kept = self.cache_run_of_pages(&cache, &assembly, &stretch, &keys, readers, quiet_since).await;
            failed = failed.and(kept);
        }
        failed
    }

    /// Caches neighbouring pages, which are read together; stops when there is no room left.
    async fn cache_run_of_pages(
        &self,
        cache: &TableCache,
        assembly: &BatchAssembler,
        stretch: &[WantedPage<'_>],
        keys: &[BlockKey],
        readers: &ReaderTracker,
        quiet_since: &mut Option<u64>,
    ) -> Result<()> {
        let mut load = PageLoad::begin(&self.reader, &self.read, assembly, stretch)?;
        for ((rows, positions), key) in stretch.iter().zip(keys) {
            readers.wait_until_idle(quiet_since);
            for (position, block) in load.next(rows, positions, positions).await? {
                let key = BlockKey { column: self.read.columns[position].id, ..*key };
                let Some(block) = block.map(Arc::new) else { continue };
                if !cache.insert_from_background(key, &block) {
                    return Ok(());
                }
                if self.is_prefetch {
                    cache.cache.prefetch_counters.count(block.memory_bytes());
                }
            }
        }
        Ok(())
    }
}

//! What passed through is kept after all once nobody reads, so that whoever asks again finds it packed. Nothing has to go for it.

use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};
use types::{CachePolicy, Oid};

use super::load::{Load, stretches};
use super::{BlockCache, BlockKey, TableCache};
use crate::Result;
use crate::reader::{Assembly, RowGroupRead, ShardReader};

/// Row groups that may wait; of those beyond, pages are kept when they are read again.
const WAITING_MAX: usize = 4096;
/// It is quiet when nobody has read for so long.
const PAUSE: Duration = Duration::from_millis(100);
/// The thread's weight to Linux is the least there is: a query that computes and does not read keeps its cores.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 19;

/// Has pages read again.
#[derive(Debug)]
pub(super) struct Filler {
    passed: SyncSender<Passed>,
    readers: Arc<Readers>,
}

/// Pages of a row group that were read and not kept.
#[derive(Debug)]
pub(super) struct Passed {
    cache: Weak<BlockCache>,
    table: Oid,
    policy: CachePolicy,
    reader: ShardReader,
    read: RowGroupRead,
    pages: Vec<PassedPage>,
}

/// Columns of a page, by their positions in the read.
#[derive(Debug)]
pub(super) struct PassedPage {
    pub(super) rows: Range<usize>,
    pub(super) key: BlockKey,
    pub(super) positions: Vec<usize>,
}

#[derive(Debug, Default)]
struct Readers {
    counts: Mutex<Counts>,
    none: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// How many read at present.
    reading: usize,
    /// How many have begun to.
    begun: u64,
}

/// One who reads.
#[derive(Debug)]
pub(super) struct Reading(Arc<Readers>);

impl Filler {
    /// # Errors
    /// Where no thread can be started.
    pub(super) fn start() -> io::Result<Self> {
        let (passed, taken) = sync_channel(WAITING_MAX);
        let readers = Arc::<Readers>::default();
        let own = Arc::clone(&readers);
        let fill = move || match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => run(&taken, &own, &runtime),
            Err(error) => tracing::warn!(%error, "columns are kept only when they are read again"),
        };
        std::thread::Builder::new().name("cache-filler".to_owned()).spawn(fill)?;
        Ok(Self { passed, readers })
    }

    /// It is not quiet as long as the guard lives.
    pub(super) fn reading(&self) -> Reading {
        let mut counts = self.readers.counts.lock();
        counts.reading += 1;
        counts.begun += 1;
        drop(counts);
        Reading(Arc::clone(&self.readers))
    }

    /// Has the pages of a read kept, unless too many others wait.
    pub(super) fn take(&self, cache: &TableCache, reader: &ShardReader, read: &RowGroupRead, pages: Vec<PassedPage>) {
        let read = RowGroupRead {
            predicates: Vec::new(),
            deleted: None,
            fetched_bytes: Arc::default(),
            removed_rows: Arc::default(),
            ..read.clone()
        };
        let (table, policy) = (cache.table, cache.policy);
        let passed = Passed { cache: Arc::downgrade(&cache.cache), table, policy, reader: reader.clone(), read, pages };
        // One that finds no place is kept when it is read again.
        let _ = self.passed.try_send(passed);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut counts = self.0.counts.lock();
        counts.reading -= 1;
        if counts.reading == 0 {
            self.0.none.notify_all();
        }
    }
}

impl Readers {
    /// Waits until nobody has read for a while, unless nobody has begun to since it was `quiet_since`: after how many that was.
    fn wait_until_quiet(&self, quiet_since: &mut Option<u64>) {
        let mut counts = self.counts.lock();
        while counts.reading != 0 || *quiet_since != Some(counts.begun) {
            while counts.reading != 0 {
                self.none.wait(&mut counts);
            }
            let begun = counts.begun;
            let is_over = self.none.wait_for(&mut counts, PAUSE).timed_out();
            *quiet_since = (is_over && counts.begun == begun).then_some(begun);
        }
    }
}

/// Keeps what has passed until nobody is left to send more.
fn run(taken: &Receiver<Passed>, readers: &Readers, runtime: &Runtime) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the thread that fills the cache keeps its priority");
    }
    let mut quiet_since = None;
    while let Ok(passed) = taken.recv() {
        if let Err(error) = runtime.block_on(passed.keep(readers, &mut quiet_since)) {
            // A shard may have been written anew since.
            tracing::debug!(%error, "pages that were read are not kept");
        }
    }
}

impl Passed {
    async fn keep(self, readers: &Readers, quiet_since: &mut Option<u64>) -> Result<()> {
        let assembly = Assembly::new(self.reader.file(), &self.read.columns)?;
        let pages = self.pages.iter().map(|page| (page.rows.clone(), page.positions.as_slice()));
        let mut keys = self.pages.iter().map(|page| page.key);
        for stretch in stretches(pages) {
            let mut load = Load::begin(&self.reader, &self.read, &assembly, &stretch)?;
            for ((rows, positions), key) in stretch.iter().zip(keys.by_ref()) {
                readers.wait_until_quiet(quiet_since);
                let Some(cache) = self.cache.upgrade() else { return Ok(()) };
                let cache = cache.of(self.table, self.policy);
                if !cache.has_room() {
                    return Ok(());
                }
                for (position, block) in load.next(rows, positions, positions).await? {
                    if let Some(block) = block {
                        let key = BlockKey { column: self.read.columns[position].id, ..key };
                        cache.put(key, &Arc::new(block));
                    }
                }
            }
        }
        Ok(())
    }
}

//! What passed through is kept after all once nobody reads, so that whoever asks again finds it packed; and so is what is expected to be asked for.
//! Nothing has to go for it, and what is not wanted any more by then is left out.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};
use types::{CachePolicy, Oid};

use super::load::{Load, WantedPage, stretches};
use super::{BlockCache, BlockKey, TableCache};
use crate::Result;
use crate::reader::{Assembly, RowGroupRead, ShardReader};

/// Row groups that may wait, each with what is known of its file; of those beyond, pages are kept when they are read for the third time.
const WAITING_MAX: usize = 1024;
/// It is quiet when nobody has read for so long.
const PAUSE: Duration = Duration::from_millis(100);
/// The thread's weight to Linux is a tenth of a query's, which may compute and not read for a while. Not less: it takes the cache's locks.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Has pages read again.
#[derive(Debug)]
pub(super) struct Filler {
    passed: SyncSender<Passed>,
    readers: Arc<Readers>,
}

/// Pages of a row group that were read and not kept, or not read at all.
#[derive(Debug)]
pub(super) struct Passed {
    cache: Weak<BlockCache>,
    table: Oid,
    policy: CachePolicy,
    reader: ShardReader,
    read: RowGroupRead,
    pages: Vec<PassedPage>,
    /// Nobody has asked for them.
    is_ahead: bool,
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
            Err(error) => tracing::warn!(%error, "columns are kept only when they are read for the third time"),
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
            order: Arc::default(),
            ..read.clone()
        };
        self.send(cache, reader, read, pages, false);
    }

    /// Has pages read that nobody has asked for; whether they wait for that, or too many others do.
    pub(super) fn take_ahead(
        &self,
        cache: &TableCache,
        reader: &ShardReader,
        read: &RowGroupRead,
        pages: Vec<PassedPage>,
    ) -> bool {
        self.send(cache, reader, read.clone(), pages, true)
    }

    fn send(
        &self,
        cache: &TableCache,
        reader: &ShardReader,
        read: RowGroupRead,
        pages: Vec<PassedPage>,
        is_ahead: bool,
    ) -> bool {
        let (table, policy, reader) = (cache.table, cache.policy, reader.clone());
        let passed = Passed { cache: Arc::downgrade(&cache.cache), table, policy, reader, read, pages, is_ahead };
        match self.passed.try_send(passed) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Disconnected(_)) => {
                tracing::debug!("the thread that fills the cache has ended");
                false
            }
        }
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
        let keep = AssertUnwindSafe(|| runtime.block_on(passed.keep(readers, &mut quiet_since)));
        match catch_unwind(keep) {
            Ok(Ok(())) => {}
            // A shard may have been written anew since.
            Ok(Err(error)) => tracing::debug!(%error, "pages that were read are not kept"),
            Err(_) => tracing::error!("pages that were read cannot be packed"),
        }
    }
}

impl Passed {
    /// Keeps what is still lacking; what fails is left out.
    async fn keep(self, readers: &Readers, quiet_since: &mut Option<u64>) -> Result<()> {
        readers.wait_until_quiet(quiet_since);
        let Some(cache) = self.cache.upgrade() else { return Ok(()) };
        let cache = cache.of(self.table, self.policy);
        let assembly = Assembly::new(self.reader.file(), &self.read.columns)?;
        let column = |position: &usize| (*position, self.read.columns[*position].id);
        let lacking = |page: &PassedPage| cache.lacking(page.key, page.positions.iter().map(column));
        let pages: Vec<(&PassedPage, Vec<usize>)> =
            self.pages.iter().map(|page| (page, lacking(page))).filter(|(_, lacking)| !lacking.is_empty()).collect();
        let mut keys = pages.iter().map(|(page, _)| page.key);
        let wanted = pages.iter().map(|(page, lacking)| (page.rows.clone(), lacking.as_slice()));
        let mut failed = Ok(());
        for stretch in stretches(wanted) {
            let keys: Vec<BlockKey> = keys.by_ref().take(stretch.len()).collect();
            let kept = self.keep_stretch(&cache, &assembly, &stretch, &keys, readers, quiet_since).await;
            failed = failed.and(kept);
        }
        failed
    }

    async fn keep_stretch(
        &self,
        cache: &TableCache,
        assembly: &Assembly,
        stretch: &[WantedPage<'_>],
        keys: &[BlockKey],
        readers: &Readers,
        quiet_since: &mut Option<u64>,
    ) -> Result<()> {
        let mut load = Load::begin(&self.reader, &self.read, assembly, stretch)?;
        for ((rows, positions), key) in stretch.iter().zip(keys) {
            readers.wait_until_quiet(quiet_since);
            for (position, block) in load.next(rows, positions, positions).await? {
                let key = BlockKey { column: self.read.columns[position].id, ..*key };
                let Some(block) = block.map(Arc::new) else { continue };
                if !cache.put_later(key, &block) {
                    return Ok(());
                }
                if self.is_ahead {
                    cache.cache.ahead.count(block.memory_bytes());
                }
            }
        }
        Ok(())
    }
}

//! Groups of shards that earlier queries have made, in the place of their rows; and groups of the others, kept for later ones.
//!
//! What takes part is a pipeline from a scan to groups that nothing from outside narrows. `form.rs` says what it computes, as a number; `unit.rs` of
//! which rows of which shard. A worker that goes on from one shard to the next gives away what it has of the first; once all parts of a
//! shard have come together its groups are kept. Where groups are many nothing more is given away, and the cache remembers that.

mod foreign;
mod form;
mod unit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::execution::memory_pool::MemoryReservation;
use engine::Digest;
use engine::aggregate::{AggregateSpec, CompactGroups, Groups};
use engine::pipeline::{Pipeline, Sink, Source};
use parking_lot::Mutex;
use plan::NoFragmentCache;
use scan::{FragmentCache, ShardScanExec};
use scheduler::pause;
use shards::ResultKey;
use types::{CachePolicy, Oid};

use crate::ended::Ended;
use crate::memory;
use crate::pipelines::Run;
use crate::plan::Input;
use crate::workers::Member;
use unit::{Unit, few_of_clustered, is_worth, units};

pub(super) use foreign::digest as foreign_digest;

/// A result takes at most this part of the cache.
const RESULT_PART: u64 = 16;

/// The shards of a scan whose rows a pipeline groups.
pub(super) struct Reuse {
    results: Arc<FragmentCache>,
    table: Oid,
    /// What the pipeline computes.
    fragment: Digest,
    /// By the shard's position among those of the scan.
    shards: Vec<OfShard>,
    /// Groups are many: workers keep what they have.
    has_given_up: AtomicBool,
    /// For what workers have given away.
    held: MemoryReservation,
    stop: Arc<AtomicBool>,
}

struct OfShard {
    unit: Unit,
    key: ResultKey,
    /// What an earlier query has made of it.
    known: Option<Arc<CompactGroups>>,
    made: Mutex<Made>,
}

/// What this query has made of a shard.
#[derive(Default)]
struct Made {
    /// Parts whose rows are among the groups.
    parts: usize,
    groups: Option<Groups>,
    /// All of them, once they are.
    whole: Option<Arc<CompactGroups>>,
    bytes: usize,
}

/// What one worker does with the shards that it reads.
pub(super) struct Collecting {
    reuse: Arc<Reuse>,
    /// The shard whose rows it has groups of; `None` before the first, and of fresh rows.
    shard: Option<usize>,
    /// Parts of the shard that it has begun.
    parts: usize,
    /// Fresh rows are among its groups.
    has_fresh: bool,
}

impl Run {
    /// What is known of the shards that a pipeline reads; `None` where it takes no part.
    pub(super) fn reuse(&self, number: usize, pipeline: &Pipeline) -> Option<Arc<Reuse>> {
        let (Source::Input(input), Sink::Groups(spec)) = (pipeline.source, &pipeline.sink) else { return None };
        let Input::Scan(input) = &self.lowered.inputs[input] else { return None };
        let before = number.checked_sub(1).map(|before| &self.lowered.program.pipelines[before]);
        let is_alone = !pipeline.goes_on && !before.is_some_and(|before| before.goes_on) && !pipeline.in_order;
        // Groups that keys of joins leave few of are of this query alone.
        if !is_alone || !input.keys.is_empty() || !spec.carried.is_empty() {
            return None;
        }
        let scan = input.scan.downcast_ref::<ShardScanExec>()?;
        let results = &scan.scan.fragments;
        let is_off = results.bytes_max() == 0
            || scan.scan.table.cache == CachePolicy::Never
            || self.context.session_config().get_extension::<NoFragmentCache>().is_some();
        if is_off || !is_worth(scan) || !few_of_clustered(scan, spec, &pipeline.steps) {
            return None;
        }
        let fragment = form::digest(scan, &input.filters, &pipeline.steps, spec)?;
        if results.is_refused(fragment.bytes()) {
            return None;
        }
        let table = scan.scan.table.oid;
        let units = units(scan);
        let keys: Vec<ResultKey> = units.iter().map(|unit| unit.key(&fragment)).collect();
        let known = results.find(table, keys.iter().copied());
        let shards = units.into_iter().zip(keys).zip(known);
        let shards = shards.map(|((unit, key), known)| OfShard { unit, key, known, made: Mutex::default() });
        Some(Arc::new(Reuse {
            results: Arc::clone(results),
            table,
            fragment,
            shards: shards.collect(),
            has_given_up: AtomicBool::new(false),
            held: memory::reservation(&self.memory_of_sink(number)),
            stop: Arc::clone(&self.stop),
        }))
    }
}

/// The pipeline with groups that stay until all rows are there: those of a shard are one result.
pub(super) fn unclustered(pipeline: &Pipeline) -> Pipeline {
    let sink = match &pipeline.sink {
        Sink::Groups(spec) => Sink::Groups(Arc::new(AggregateSpec { clustered: None, ..(**spec).clone() })),
        other => other.clone(),
    };
    Pipeline { sink, ..pipeline.clone() }
}

impl Reuse {
    /// Whether the groups of a shard are known, so that it need not be read.
    pub(super) fn is_known(&self, shard: usize) -> bool {
        self.shards.get(shard).is_some_and(|shard| shard.known.is_some())
    }

    /// Gives a worker the groups of all shards, those of each after those of the shards before it.
    pub(super) async fn give_to(&self, member: &mut Member) -> Result<(), Ended> {
        for shard in &self.shards {
            let made = std::mem::take(&mut *shard.made.lock());
            if let Some(whole) = shard.known.as_ref().or(made.whole.as_ref()) {
                member.worker.add_compact(whole)?;
            }
            if let Some(groups) = made.groups {
                member.worker.add_groups(groups)?;
            }
            pause().await;
        }
        self.held.free();
        Ok(())
    }

    fn has_given_up(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    /// From now on workers keep what they have.
    fn give_up(&self) {
        self.has_given_up.store(true, Ordering::Relaxed);
    }

    /// And later queries do not begin.
    fn refuse(&self) {
        self.give_up();
        self.results.refuse(*self.fragment.bytes());
    }

    /// Adds what a worker has grouped of so many parts of a shard.
    fn add(&self, shard: usize, groups: Option<Groups>, parts: usize) -> engine::Result<()> {
        let of_shard = &self.shards[shard];
        let mut made = of_shard.made.lock();
        made.parts += parts;
        match (&mut made.groups, groups) {
            (Some(all), Some(groups)) => all.merge(groups, &self.stop)?,
            (none, Some(groups)) => *none = Some(groups),
            (_, None) => {}
        }
        if made.groups.as_ref().is_some_and(|groups| of_shard.unit.are_many(groups)) {
            self.refuse();
        } else if made.parts == of_shard.unit.parts {
            self.keep(of_shard, &mut made)?;
        }
        let groups_bytes = made.groups.as_ref().map_or(0, Groups::memory_bytes);
        let bytes = groups_bytes + made.whole.as_ref().map_or(0, |whole| whole.memory_bytes());
        let before = std::mem::replace(&mut made.bytes, bytes);
        self.held.shrink(before.saturating_sub(bytes));
        let more = bytes.saturating_sub(before);
        if self.held.try_grow(more).is_err() {
            // They are the query's all the same.
            self.held.grow(more);
            self.give_up();
        }
        Ok(())
    }

    /// Keeps the groups of a shard all of whose parts are there.
    fn keep(&self, of_shard: &OfShard, made: &mut Made) -> engine::Result<()> {
        let whole = match made.groups.take() {
            Some(groups) => groups.compact()?.ok_or(engine::Error::Form("groups that are aside"))?,
            None => CompactGroups::default(),
        };
        let (bytes, whole) = (whole.memory_bytes() as u64, Arc::new(whole));
        if self.results.bytes_max() / RESULT_PART < bytes {
            self.refuse();
        } else {
            self.results.put(self.table, of_shard.key, &whole, bytes);
        }
        made.whole = Some(whole);
        Ok(())
    }
}

impl Collecting {
    pub(super) fn new(reuse: &Arc<Reuse>) -> Self {
        Self { reuse: Arc::clone(reuse), shard: None, parts: 0, has_fresh: false }
    }

    /// The rows that come from here on are of a part of a shard, or fresh.
    pub(super) fn begin(&mut self, shard: Option<usize>, member: &mut Member) -> engine::Result<()> {
        self.look(member);
        self.has_fresh |= shard.is_none();
        if self.has_fresh && shard.is_some() {
            // They come last; if they do not, nobody can tell them from the shard's.
            self.reuse.give_up();
        }
        if shard != self.shard {
            self.give_away(member)?;
            self.shard = shard;
        }
        self.parts += 1;
        Ok(())
    }

    /// A part of a shard has no rows for anyone.
    pub(super) fn pass(&self, shard: usize) -> engine::Result<()> {
        self.reuse.add(shard, None, 1)
    }

    /// All rows have come.
    pub(super) fn end(mut self, member: &mut Member) -> engine::Result<()> {
        self.look(member);
        self.give_away(member)
    }

    /// Gives up where groups are many, or are not all where they can be given away.
    fn look(&self, member: &Member) {
        let Some(shard) = self.shard else { return };
        if member.has_spilled() {
            // What is left is not all, and memory may be there next time.
            self.reuse.give_up();
        } else if member.groups().is_none_or(|groups| self.reuse.shards[shard].unit.are_many(groups)) {
            self.reuse.refuse();
        }
    }

    fn give_away(&mut self, member: &mut Member) -> engine::Result<()> {
        let (shard, parts) = (self.shard.take(), std::mem::take(&mut self.parts));
        let Some(shard) = shard.filter(|_| !self.reuse.has_given_up()) else { return Ok(()) };
        let groups = member.worker.take_groups()?;
        self.reuse.add(shard, groups, parts)
    }
}

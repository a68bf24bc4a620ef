//! Merges the sinks of a pipeline's workers, in memory or partition by partition on disk.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use engine::aggregate::{AggregateSpec, Aside, Common, Divided, GroupRows, Groups, Levels, PartOfSet, Sorted};
use engine::join::{Build, JoinTable};
use engine::pipeline::{Collected, Sink};
use parking_lot::Mutex;
use scheduler::{at_length, place};

use crate::ended::Ended;
use crate::memory;
use crate::pipelines::{Built, Run};
use crate::plan::Input;
use crate::spill::Parts;
use crate::workers::{self, Member};

/// Fraction of all memory that the key filter of a scan may take, as a divisor.
const FILTER_SHARE: usize = 64;

/// Bytes from which building a hash table or merging groups is a long task for the scheduler.
const LONG_BYTES: usize = 16 << 20;

/// Groups from which merging one partition is a long task.
const LONG_GROUPS: usize = 1 << 17;

/// Groups from which partitions are merged in parallel, if pre-aggregation reduced the rows.
const DIVIDED_MIN: usize = 1 << 16;

/// Workers from which that pays. With two, the smaller half is merged into the larger one; building new hash tables
/// from both halves took 0.54 s instead of 0.29 s in TPC-H q16.
const DIVIDED_WORKERS_MIN: usize = 4;

impl Run {
    /// Merges the sinks of the workers, in memory if there is room, else in partitions on disk.
    pub(super) async fn finish(
        self: &Arc<Self>,
        number: usize,
        sink: &Sink,
        members: Vec<Member>,
    ) -> Result<(Option<Built>, Option<MemoryReservation>), Ended> {
        let whole = memory::reservation(&self.memory_of_sink(number));
        let bytes = match sink {
            Sink::Rows => return Ok((None, None)),
            Sink::Build(_) => {
                let builds = || members.iter().filter_map(Member::build);
                let can_be = JoinTable::can_have(builds().map(Build::rows).sum());
                can_be.then(|| JoinTable::room_bytes(builds()))
            }
            Sink::Groups(spec) => {
                // The largest hash table takes in the others, with a copy of their keys, all of which may be new.
                let sizes = members.iter().filter_map(Member::groups).map(Groups::memory_bytes);
                let (all, largest) = sizes.fold((0, 0), |(all, largest), size| (all + size, size.max(largest)));
                // A partitioned merge holds all rows at once, in addition to its input and the hash tables of some
                // partitions; coarser grouping sets come on top.
                Some(match is_aside(&members) {
                    true if spec.sets.is_empty() => all + all / 4,
                    true => all * 2,
                    false => (all - largest) * 2 + largest,
                })
            }
            Sink::Sort(spec) => return self.in_order(number, spec, members).await,
        };
        let has_spilled = members.iter().any(Member::has_spilled);
        let has_room = !has_spilled && bytes.is_some_and(|bytes| whole.try_resize(bytes).is_ok());
        let can_spill = members.iter().all(|member| member.own.spiller.is_some());
        if !has_room && can_spill {
            let members = self.spilled(members).await?;
            let parts = Arc::new(Parts::of(members.iter().filter_map(Member::spilled))?);
            let (bytes, count) = parts.size();
            tracing::debug!(bytes, parts = count, "no room in memory: a sink was spilled to files");
            let built = match sink {
                Sink::Rows => None,
                Sink::Build(spec) => Some(Built::BuildParts(Arc::clone(spec), parts)),
                Sink::Groups(spec) => Some(Built::GroupParts(Arc::clone(spec), parts)),
                Sink::Sort(_) => None,
            };
            return Ok((built, None));
        }
        if let Sink::Groups(spec) = sink {
            if is_aside(&members) {
                return self.side_by_side(spec, members, whole).await;
            }
            let groups: usize = members.iter().filter_map(Member::groups).map(Groups::len).sum();
            let all = members.iter().filter_map(Member::groups).map(Groups::memory_bytes).sum::<usize>();
            if spec.sets.is_empty()
                && DIVIDED_WORKERS_MIN <= members.len()
                && DIVIDED_MIN <= groups
                && whole.try_resize(all * 2).is_ok()
            {
                return self.side_by_side(spec, members, whole).await;
            }
        }
        let is_long = LONG_BYTES <= whole.size();
        let _place = if is_long { place().await } else { None };
        let finish = || self.whole(number, sink, members, whole);
        let (built, held) = if is_long { at_length(finish) } else { finish() }?;
        Ok((Some(built), Some(held)))
    }

    /// Spills what the workers still have in memory.
    pub(super) async fn spilled(&self, members: Vec<Member>) -> Result<Vec<Member>, Ended> {
        let spill = |mut member: Member| async move {
            member.worker.spill()?;
            Ok(member)
        };
        workers::each(members, &self.stop, spill).await
    }

    /// Merges the groups of all workers partition by partition, in parallel.
    async fn side_by_side(
        &self,
        spec: &Arc<AggregateSpec>,
        members: Vec<Member>,
        whole: MemoryReservation,
    ) -> Result<(Option<Built>, Option<MemoryReservation>), Ended> {
        let _place = place().await;
        let (mut groups, mut held) = (Vec::with_capacity(members.len()), Vec::with_capacity(members.len()));
        for member in members {
            if let Collected::Groups(part) = member.worker.finish() {
                groups.push(Mutex::new(Some(*part)));
            }
            held.push(member.own);
        }
        let count = groups.len();
        let put_aside = move |number: usize| {
            let part = groups[number].lock().take().ok_or(engine::Error::Form("groups taken twice"))?;
            at_length(|| Ok(part.put_aside()?.into_iter().map(Aside::sorted).collect::<Vec<_>>()))
        };
        let aside = workers::all(count, count, &self.stop, put_aside).await?;
        let aside = aside.into_iter().collect::<engine::Result<Vec<_>>>()?.into_iter().flatten().collect();
        let divided = self.in_common(spec, aside, count).await?;
        let rows = if spec.sets.is_empty() {
            self.of_parts(&divided, count, Divided::rows).await?
        } else {
            self.of_sets(spec, divided, count).await?
        };
        let rows = GroupRows::of_parts(rows);
        drop(held);
        whole.try_resize(rows.memory_bytes()).map_err(|_| engine::Error::Memory("groups"))?;
        Ok((Some(Built::Groups(Arc::new(rows))), Some(whole)))
    }

    /// Returns the flushed groups of all workers with one common numbering of their strings.
    async fn in_common(
        &self,
        spec: &Arc<AggregateSpec>,
        aside: Vec<Sorted>,
        tasks: usize,
    ) -> Result<Arc<Divided>, Ended> {
        let common = Arc::new(Common::of(spec, aside)?);
        let shard = {
            let common = Arc::clone(&common);
            move |number: usize| common.shard(number)
        };
        let shards = workers::all(common.shards(), tasks, &self.stop, shard).await?;
        let shards = shards.into_iter().collect::<engine::Result<_>>()?;
        let common = Arc::into_inner(common).ok_or(engine::Error::Form("the string numbering is in use"))?;
        Ok(Arc::new(at_length(|| common.divided(shards))?))
    }

    /// Calls `make` for each partition in parallel tasks.
    async fn of_parts<T: Send + 'static>(
        &self,
        divided: &Arc<Divided>,
        tasks: usize,
        make: fn(&Divided, usize, &AtomicBool) -> engine::Result<T>,
    ) -> Result<Vec<T>, Ended> {
        let is_long = LONG_GROUPS <= divided.groups() / divided.parts();
        let (divided, stop) = (Arc::clone(divided), Arc::clone(&self.stop));
        let (parts, of_part) = (divided.parts(), move |part: usize| {
            let make = || make(&divided, part, &stop);
            if is_long { at_length(make) } else { make() }
        });
        let made = workers::all(parts, tasks, &self.stop, of_part).await?;
        Ok(made.into_iter().collect::<engine::Result<_>>()?)
    }

    /// Evaluates all grouping sets partition by partition, each coarser one from a finer one.
    async fn of_sets(
        &self,
        spec: &Arc<AggregateSpec>,
        finest: Arc<Divided>,
        tasks: usize,
    ) -> Result<Vec<GroupRows>, Ended> {
        let together = self.of_parts(&finest, tasks, Divided::together).await?;
        let mut levels = Levels::new(spec, &finest, together)?;
        drop(finest);
        while let Some(coarser) = levels.next_set()? {
            let coarser = Arc::new(coarser);
            let (parts, of_part) = (coarser.parts(), Arc::clone(&coarser));
            let pieces = workers::all(parts, tasks, &self.stop, move |part| of_part.pieces(part)).await?;
            let divided = Arc::new(coarser.divided(pieces.into_iter().collect::<engine::Result<_>>()?));
            let made = self.of_parts(&divided, tasks, Divided::together).await?;
            levels.add(&coarser, made);
        }
        let parts: Vec<_> = levels.finish()?.into_iter().map(|part| Mutex::new(Some(part))).collect();
        let count = parts.len();
        let rows = move |number: usize| {
            let part: Option<PartOfSet> = parts[number].lock().take();
            part.ok_or(engine::Error::Form("groups taken twice"))?.rows()
        };
        let rows = workers::all(count, tasks, &self.stop, rows).await?;
        Ok(rows.into_iter().collect::<engine::Result<_>>()?)
    }

    /// Merges the sinks of the workers into one hash table or one set of groups.
    fn whole(
        &self,
        number: usize,
        sink: &Sink,
        members: Vec<Member>,
        whole: MemoryReservation,
    ) -> Result<(Built, MemoryReservation), Ended> {
        let (mut groups, mut builds): (Vec<Groups>, Vec<_>) = (Vec::new(), Vec::new());
        // Each worker's memory stays accounted until the result's memory is.
        let mut held = Vec::with_capacity(members.len());
        for member in members {
            match member.worker.finish() {
                Collected::Groups(part) => groups.push(*part),
                Collected::Build(part) => builds.push(*part),
                Collected::Sorting(_) | Collected::Rows(_) => {}
            }
            held.push(member.own);
        }
        let reserve = |bytes| whole.try_resize(bytes).map_err(|_| engine::Error::Memory("a hash table or groups"));
        let built = match sink {
            Sink::Rows | Sink::Sort(_) => return Err(engine::Error::Form("rows are not merged").into()),
            Sink::Build(spec) => {
                let table = JoinTable::finish(Arc::clone(spec), builds, self.filter_bytes_max(number), &self.stop)?;
                drop(held);
                reserve(table.memory_bytes())?;
                Built::Table(Arc::new(table))
            }
            Sink::Groups(_) => {
                groups.sort_by_key(Groups::len);
                let mut all = groups.pop().ok_or(engine::Error::Form("a pipeline that groups rows has no worker"))?;
                groups.into_iter().try_for_each(|part| all.merge(part, &self.stop))?;
                reserve(all.memory_bytes())?;
                let rows = all.finish()?;
                drop(held);
                reserve(rows.memory_bytes())?;
                Built::Groups(Arc::new(rows))
            }
        };
        Ok((built, whole))
    }

    /// Returns how much memory the key filters of a pipeline's hash table may take: a small fraction, and nothing if no
    /// scan uses them.
    fn filter_bytes_max(&self, number: usize) -> usize {
        let asks = |input: &Input| matches!(input, Input::Scan(scan) if scan.keys.iter().any(|(_, built_by, _)| *built_by == number));
        if !self.lowered.inputs.iter().any(asks) {
            return 0;
        }
        match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / FILTER_SHARE,
            _ => usize::MAX / 8,
        }
    }
}

/// Returns whether a worker flushed its groups to radix partitions, because pre-aggregation did not reduce rows.
fn is_aside(members: &[Member]) -> bool {
    members.iter().filter_map(Member::groups).any(Groups::is_aside)
}

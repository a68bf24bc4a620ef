//! What is to be done so that the workers become what they should be: a pure look at what should be and what is.
//!
//! It remembers nothing: each pass looks at everything again, so that a lost action is asked for again and a new instance goes on where the
//! old one ended. Workers that are gone stay observed for a while, and from them it knows how often a slot has failed.
//!
//! A slot is the place of one worker in its cluster. Workers that should run get slots 0 to NODE_COUNT - 1, of which `slot.rs` decides one by
//! one; `backoff.rs` says when a slot that failed is tried again, `shares.rs` what each worker gets of the machine, `idle.rs` who
//! falls asleep. What comes of many passes is tested in `control_plane`, which has the hosts of workers.

mod backoff;
mod idle;
mod shares;
mod slot;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::desired::{ClusterId, DesiredState};
use crate::stop_reason::StopReason;
use crate::worker::{Resources, Worker, WorkerId, WorkerSpec};

pub use idle::suspend_idle;
pub use shares::share;

use slot::Slot;

/// How patient reconciliation is, and for what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The instance's version: workers of another get no work and are replaced.
    pub version: String,
    /// What workers have together: the machine, without what the instance keeps for itself.
    pub machine: Resources,
    /// A worker that has not answered for so long is hung: it gets no work.
    pub hung_after: Duration,
    /// A worker that has not answered for so long is stopped and replaced.
    pub replace_hung_after: Duration,
    /// A worker that has not joined after so long is stopped and replaced.
    pub start_timeout: Duration,
    /// What still runs on a draining worker after so long is ended with it.
    pub drain_grace: Duration,
    /// How long a slot waits after its worker failed once; after each further failure twice as long.
    pub backoff_first: Duration,
    /// How long it waits at most.
    pub backoff_max: Duration,
    /// A worker that has been ready for so long makes its slot's failures forgotten.
    pub stable_after: Duration,
    /// How long a worker stays visible that went when it was told to.
    pub keep_gone: Duration,
    /// In how many slots of a cluster a worker on new hardware may come up beside the old one at a time, at least 1.
    pub surge: usize,
}

impl Settings {
    /// The usual patience.
    #[must_use]
    pub fn new(version: impl Into<String>, machine: Resources) -> Settings {
        Settings {
            version: version.into(),
            machine,
            hung_after: Duration::from_secs(5),
            replace_hung_after: Duration::from_secs(20),
            start_timeout: Duration::from_secs(60),
            drain_grace: Duration::from_secs(300),
            backoff_first: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            keep_gone: Duration::from_secs(60),
            surge: 1,
        }
    }

    /// The patience of who has not looked for so long: where that is longer than workers may be silent, it may have been this process that stood still, and
    /// heard nobody. So workers get that time once more.
    #[must_use]
    pub fn after_pause(&self, paused: Duration) -> Settings {
        if paused < self.hung_after {
            return self.clone();
        }
        Settings {
            hung_after: self.hung_after + paused,
            replace_hung_after: self.replace_hung_after + paused,
            start_timeout: self.start_timeout + paused,
            ..self.clone()
        }
    }
}

/// Something to be done about one worker. Each may be asked for again until its effect is observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Start {
        cluster: ClusterId,
        slot: u32,
        spec: WorkerSpec,
    },
    /// Tell it what it has now.
    Configure {
        worker: WorkerId,
        spec: WorkerSpec,
    },
    /// Give it no more work.
    Drain {
        worker: WorkerId,
    },
    /// End it, with all that runs on it.
    Stop {
        worker: WorkerId,
        reason: StopReason,
    },
    /// It does not answer: give it no work until it does.
    MarkHung {
        worker: WorkerId,
    },
    /// It is gone and nobody needs to know of it any more.
    Forget {
        worker: WorkerId,
    },
}

/// What is to be done now; nothing where everything is as it should be. `now` is of the clock of the workers' times.
///
/// Of a cluster first the slots that should be empty, the highest first, then the others from the lowest.
#[must_use]
pub fn reconcile(desired: &DesiredState, workers: &[Worker], now: Duration, settings: &Settings) -> Vec<Action> {
    let mut by_cluster: BTreeMap<ClusterId, BTreeMap<u32, Vec<&Worker>>> = BTreeMap::new();
    for cluster in desired.clusters() {
        by_cluster.insert(cluster.id, BTreeMap::new());
    }
    for worker in workers {
        by_cluster.entry(worker.cluster).or_default().entry(worker.slot).or_default().push(worker);
    }
    let all = desired.awake_workers();
    let mut actions = Vec::new();
    for (id, slots) in by_cluster {
        let (wanted, spec) = desired.cluster(id).map_or((0, None), |cluster| {
            let spec = WorkerSpec {
                hardware_instance: cluster.spec.hardware_instance.clone(),
                share: share(settings.machine, cluster.spec.node_count, all),
                max_spill_pct: cluster.spec.max_spill_pct,
                max_cache_pct: cluster.spec.max_cache_pct,
            };
            (cluster.wanted_workers(), Some(spec))
        });
        for (_, workers) in slots.range(wanted..).rev() {
            Slot::new(workers, now, settings).empty(&mut actions);
        }
        let Some(spec) = spec else { continue };
        let is_doubled = |workers: &[&Worker]| Slot::new(workers, now, settings).is_doubled(&spec);
        let doubled = slots.range(..wanted).filter(|(_, workers)| is_doubled(workers)).count();
        let mut surge = settings.surge.saturating_sub(doubled);
        for slot in 0..wanted {
            let workers = slots.get(&slot).map_or(&[][..], Vec::as_slice);
            let is_to_start = Slot::new(workers, now, settings).fill(&spec, &mut surge, &mut actions);
            if is_to_start {
                actions.push(Action::Start { cluster: id, slot, spec: spec.clone() });
            }
        }
    }
    actions
}

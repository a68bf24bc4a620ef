//! The clusters of a server: which one a statement runs on, its admission there, and its worker.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use catalog::Role;
use cluster_model::desired::DEFAULT;
use cluster_model::{
    Actor, Candidate, Choice, ClusterId, HardwareInstance, HardwareKind, Inventory, Settings, Unavailable, WlmProfile,
    balance,
};
use control_plane::{ControlPlane, LocalControlPlane, PlaneError, StateStore, WorkerHost};
use exchange::Channels;
use executor::Executor;
use fleet::Processes;
use local_workers::{EmbeddedWorkers, StateFile};
use parking_lot::Mutex;
use scheduler::Lease;
use types::{Clock, Condition, Oid, Random, SqlError, SqlResult};
use workload::admission::Mode;
use workload::{Admission, Limits};

use crate::change::from_cluster;
use crate::owners::Owners;
use crate::whole::WholeQueries;

#[cfg(test)]
mod tests;

/// What an operator may choose about clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Statements that run at a time on a cluster under the profile `default`.
    pub max_running: u32,
    /// What still runs on a worker that is to go is ended with it after so long.
    pub drain_grace: Duration,
    /// How long a place whose workers fail again and again waits for the next one at most.
    pub backoff_max: Duration,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            max_running: WlmProfile::RUNNING,
            drain_grace: Duration::from_secs(300),
            backoff_max: Duration::from_secs(60),
        }
    }
}

/// What a control plane is made of that is not of this machine alone.
#[derive(Debug)]
pub struct PlaneParts {
    /// In the data folder.
    pub store: Box<dyn StateStore>,
    /// Of the server's own process.
    pub embedded: Arc<dyn WorkerHost>,
    pub profiles: Vec<WlmProfile>,
    pub patience: Settings,
    /// Who owns the cluster that every instance has.
    pub owner: Oid,
}

/// The clusters of a server, whose workers are in its own process, in others on its machine, or wherever its control plane makes them.
#[derive(Debug)]
pub struct Clusters {
    pub(crate) plane: Box<dyn ControlPlane>,
    pub(crate) workers: Arc<EmbeddedWorkers>,
    /// `None` where there are no workers in other processes.
    pub(crate) processes: Option<Arc<Processes>>,
    /// To these.
    pub(crate) channels: Option<Channels>,
    pub(crate) gates: Mutex<BTreeMap<ClusterId, Gate>>,
    /// Of clusters of processes.
    pub(crate) owners: Mutex<BTreeMap<ClusterId, Owners>>,
    pub(crate) whole_queries: WholeQueries,
    /// The state for which folders of workers were last cleaned.
    pub(crate) cleaned: AtomicU64,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// The admission to one cluster, and what it was last told.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) admission: Arc<Admission>,
    pub(crate) limits: Limits,
    pub(crate) mode: Mode,
}

impl Clusters {
    /// The clusters that the data folder tells of, with those workers that there should be. In a fresh folder it is `default` alone. With
    /// `processes` workers can be processes of their own too, and those of new clusters are where nothing else is said.
    ///
    /// # Errors
    /// What tells of them cannot be read, or is not what was written.
    pub fn open(
        executor: &Executor,
        folder: &Path,
        settings: ClusterSettings,
        processes: Option<Arc<Processes>>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Clusters>, PlaneError> {
        let local = processes.as_ref().map(|processes| Arc::clone(processes) as Arc<dyn WorkerHost>);
        let planes_clock = Arc::clone(&clock);
        Self::open_with(executor, folder, settings, processes, clock, random, |parts| {
            let inventory = inventory(parts.profiles, local.is_some());
            let hosts = [(HardwareKind::Embedded, Some(parts.embedded)), (HardwareKind::Local, local)];
            let hosts = hosts.into_iter().filter_map(|(kind, host)| Some((kind, host?))).collect();
            let plane =
                LocalControlPlane::open(parts.store, hosts, inventory, parts.patience, planes_clock, parts.owner)?;
            Ok(Box::new(plane))
        })
    }

    /// The clusters that a control plane keeps, which `make` makes. Workers that come by themselves come to `processes`.
    ///
    /// # Errors
    /// What `make` says.
    pub fn open_with(
        executor: &Executor,
        folder: &Path,
        settings: ClusterSettings,
        processes: Option<Arc<Processes>>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        make: impl FnOnce(PlaneParts) -> Result<Box<dyn ControlPlane>, PlaneError>,
    ) -> Result<Arc<Clusters>, PlaneError> {
        let workers = EmbeddedWorkers::new(
            Arc::clone(executor.threads()),
            executor.cores(),
            Arc::clone(&executor.runtime().memory_pool),
            executor.memory_bytes() as u64,
            Arc::clone(&clock),
            Arc::clone(&random),
        );
        let usual = Settings::new(workers.version(), workers.machine());
        let patience = Settings {
            drain_grace: settings.drain_grace,
            backoff_first: usual.backoff_first.min(settings.backoff_max),
            backoff_max: settings.backoff_max,
            ..usual
        };
        let plane = make(PlaneParts {
            store: Box::new(StateFile::in_folder(folder)),
            embedded: Arc::clone(&workers) as Arc<dyn WorkerHost>,
            profiles: vec![WlmProfile { name: DEFAULT.to_owned(), max_running: settings.max_running }],
            patience,
            owner: Role::BOOTSTRAP,
        })?;
        let channels = processes.as_ref().map(|processes| Channels::new(processes.dial()));
        let clusters = Arc::new(Clusters {
            plane,
            workers,
            processes,
            channels,
            gates: Mutex::default(),
            owners: Mutex::default(),
            whole_queries: WholeQueries::default(),
            cleaned: AtomicU64::new(u64::MAX),
            clock,
            random,
        });
        clusters.pass();
        Ok(clusters)
    }

    /// Where a statement runs: on the cluster that its session has chosen, else the best of its role's. It stays where its transaction has
    /// written, and where its session has a statement open.
    ///
    /// # Errors
    /// `42704`, `42501`, and `55000` where no cluster can take it.
    pub fn choose(
        &self,
        actor: &Actor,
        chosen: Option<&Chosen>,
        written: Option<ClusterId>,
        open: Option<ClusterId>,
    ) -> SqlResult<Choice> {
        let desired = self.plane.desired();
        let name = chosen.map(|chosen| {
            desired.cluster(chosen.id).map_or_else(|| chosen.name.clone(), |cluster| cluster.spec.name.clone())
        });
        let usable = desired.usable(actor, name.as_deref()).map_err(|error| from_cluster(&error))?;
        let candidates: Vec<Candidate> = usable
            .iter()
            .map(|cluster| {
                let activity = self.gate(cluster.id).map(|gate| gate.activity()).unwrap_or_default();
                Candidate::new(cluster, self.plane.serving(cluster.id).len(), &activity)
            })
            .collect();
        let is_awake = |id| candidates.iter().any(|candidate| candidate.cluster == id && !candidate.suspended);
        let open = open.filter(|open| is_awake(*open));
        balance::choose(&candidates, written.or(open)).map_err(|unavailable| {
            let name = |id| desired.cluster(id).map_or_else(String::new, |cluster| cluster.spec.name.clone());
            match unavailable {
                Unavailable::Suspended { first } => {
                    from_cluster(&cluster_model::Error::Suspended { name: name(first) })
                }
                Unavailable::WrittenOn { .. } | Unavailable::None => {
                    SqlError::new(Condition::ObjectNotInPrerequisiteState, unavailable.to_string())
                }
            }
        })
    }

    /// The admission to a cluster; `None` where there is no such cluster any more.
    #[must_use]
    pub fn gate(&self, cluster: ClusterId) -> Option<Arc<Admission>> {
        self.gates.lock().get(&cluster).map(|gate| Arc::clone(&gate.admission))
    }

    /// The least busy worker of a cluster, or all of them where they are processes of their own, for whom this one runs the statement; `None` where
    /// none of them takes statements at the moment.
    #[must_use]
    pub fn lease(&self, cluster: ClusterId) -> Option<Arc<Lease>> {
        self.workers.lease(&self.plane.serving(cluster)).or_else(|| {
            let hold = self.processes.as_ref()?.hold(&self.owning(cluster))?;
            Some(self.workers.lease_for(hold))
        })
    }

    /// The name of a cluster.
    #[must_use]
    pub fn name(&self, cluster: ClusterId) -> Option<Arc<str>> {
        self.plane.desired().cluster(cluster).map(|cluster| cluster.spec.name.as_str().into())
    }

    /// The cluster of this name, for USE CLUSTER.
    ///
    /// # Errors
    /// `42704` where there is none, `42501` where the role may not use it.
    pub fn chosen(&self, actor: &Actor, name: &str) -> SqlResult<Chosen> {
        let desired = self.plane.desired();
        let usable = desired.usable(actor, Some(name)).map_err(|error| from_cluster(&error))?;
        let cluster = usable.first().ok_or_else(|| SqlError::internal("the cluster that was named is usable"))?;
        Ok(Chosen { id: cluster.id, name: name.to_owned() })
    }

    /// Names of the clusters that a role owns.
    #[must_use]
    pub fn owned_by(&self, role: Oid) -> Vec<String> {
        let desired = self.plane.desired();
        let owned = desired.clusters().filter(|cluster| cluster.spec.owner == role);
        owned.map(|cluster| cluster.spec.name.clone()).collect()
    }

    /// A number that grows with each change of what is said here.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.plane.revisions().current()
    }

    /// Completes once something has changed since.
    pub async fn changed_since(&self, revision: u64) {
        self.plane.revisions().after(revision).await;
    }

    /// Completes when a cluster is suspended or dropped.
    pub async fn leaves(&self, cluster: ClusterId) {
        loop {
            let seen = self.revision();
            if self.plane.desired().cluster(cluster).is_none_or(|cluster| cluster.suspended) {
                return;
            }
            self.changed_since(seen).await;
        }
    }

    /// Opens the gates of clusters that have workers, holds those that wait for theirs, closes those that are not to be woken.
    pub(crate) fn move_gates(&self) {
        let desired = self.plane.desired();
        let inventory = self.plane.inventory();
        let mut gates = self.gates.lock();
        gates.retain(|id, gate| {
            let is_there = desired.cluster(*id).is_some();
            if !is_there {
                gate.admission.set_mode(Mode::Closed);
            }
            is_there
        });
        for cluster in desired.clusters() {
            let profile = inventory.profile(&cluster.spec.wlm_profile);
            // One that an earlier version offered is as the usual one.
            let running = profile.map_or(WlmProfile::RUNNING, |profile| profile.max_running);
            let limits = Limits { running, queued: u32::MAX };
            let mode = match (self.plane.serving(cluster.id).is_empty(), cluster.suspended, cluster.spec.auto_resume) {
                (false, _, _) => Mode::Open,
                (true, true, false) => Mode::Closed,
                (true, _, _) => Mode::Holding,
            };
            let gate = gates.entry(cluster.id).or_insert_with(|| {
                let admission = Admission::new(limits, mode, Arc::clone(&self.clock));
                Gate { admission, limits, mode }
            });
            if gate.limits != limits {
                gate.limits = limits;
                gate.admission.set_limits(limits);
            }
            if gate.mode != mode {
                gate.mode = mode;
                gate.admission.set_mode(mode);
            }
        }
    }
}

/// The cluster that USE CLUSTER named: it stays the same when it is renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    id: ClusterId,
    name: String,
}

/// What clusters can be made of here: where there can be processes, that is what new ones are.
fn inventory(profiles: Vec<WlmProfile>, has_processes: bool) -> Inventory {
    let (local, embedded) = (HardwareInstance::local(), HardwareInstance::embedded());
    if has_processes { Inventory::new([local, embedded], profiles) } else { Inventory::new([embedded], profiles) }
}

//! The clusters of a server: choice of a cluster for a statement, admission to it, and a lease on its workers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use catalog::Role;
use cluster_model::desired_state::DEFAULT_CLUSTER_NAME;
use cluster_model::{
    Actor, Candidate, Choice, ClusterId, HardwareInstance, HardwareKind, Inventory, NoClusterAvailable,
    ReconcileSettings, WlmProfile, choose_cluster,
};
use control_plane::{ControlPlane, ControlPlaneError, LocalControlPlane, StateStore, WorkerHost};
use exchange::Channels;
use executor::Executor;
use fleet::WorkerProcesses;
use local_workers::{DesiredStateFile, EmbeddedWorkers};
use parking_lot::Mutex;
use scheduler::Lease;
use types::{Clock, Condition, Oid, Random, SqlError, SqlResult};
use workload::admission::AdmissionMode;
use workload::{Admission, Limits};

use crate::change_clusters::cluster_error;
use crate::single_worker_queries::SingleWorkerQueries;
use crate::slot_ownership::SlotOwnership;

#[cfg(test)]
mod tests;

/// Server settings for clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Number of statements that run at a time on a cluster with the profile `default`.
    pub max_running: u32,
    /// Time after which a draining worker is stopped, with the statements that still run on it.
    pub drain_grace: Duration,
    /// Longest pause of a slot whose workers fail repeatedly.
    pub backoff_max: Duration,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            max_running: WlmProfile::DEFAULT_MAX_RUNNING,
            drain_grace: Duration::from_secs(300),
            backoff_max: Duration::from_secs(60),
        }
    }
}

/// Building blocks for a control plane, passed to the constructor in [`Clusters::open_with`].
#[derive(Debug)]
pub struct ControlPlaneParts {
    /// Store of the desired state in the data folder.
    pub store: Box<dyn StateStore>,
    /// Host of the workers in the server's process.
    pub embedded: Arc<dyn WorkerHost>,
    /// Workload management profiles.
    pub profiles: Vec<WlmProfile>,
    /// Settings of reconciliation.
    pub settings: ReconcileSettings,
    /// Owner of the cluster `default` of a new instance.
    pub owner: Oid,
}

/// The clusters of a server, with workers in its own process, in child processes, or wherever its control plane starts
/// them.
#[derive(Debug)]
pub struct Clusters {
    pub(crate) plane: Box<dyn ControlPlane>,
    /// Workers in the server's process.
    pub(crate) workers: Arc<EmbeddedWorkers>,
    /// Worker processes; `None` if there are none.
    pub(crate) processes: Option<Arc<WorkerProcesses>>,
    /// Connections to the worker processes.
    pub(crate) channels: Option<Channels>,
    /// Admission gate of each cluster.
    pub(crate) admissions: Mutex<BTreeMap<ClusterId, ClusterAdmission>>,
    /// Ownership of parts in each cluster of worker processes.
    pub(crate) slot_ownership: Mutex<BTreeMap<ClusterId, SlotOwnership>>,
    /// Counts of queries that workers run alone.
    pub(crate) single_worker_queries: SingleWorkerQueries,
    /// Generation of the desired state for which the folders of workers were last cleaned.
    pub(crate) cleaned_generation: AtomicU64,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// Admission to one cluster, with the limits and the mode that were last set.
#[derive(Debug)]
pub(crate) struct ClusterAdmission {
    pub(crate) admission: Arc<Admission>,
    pub(crate) limits: Limits,
    pub(crate) mode: AdmissionMode,
}

impl Clusters {
    /// Opens the clusters stored in the data folder, or only `default` in an empty one, and starts their workers. With
    /// `processes`, workers can be processes, and those of new clusters are by default.
    ///
    /// # Errors
    /// The stored state cannot be read, or is damaged.
    pub fn open(
        executor: &Executor,
        folder: &Path,
        settings: ClusterSettings,
        processes: Option<Arc<WorkerProcesses>>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Clusters>, ControlPlaneError> {
        let local = processes.as_ref().map(|processes| Arc::clone(processes) as Arc<dyn WorkerHost>);
        let planes_clock = Arc::clone(&clock);
        Self::open_with(executor, folder, settings, processes, clock, random, |parts| {
            let inventory = local_inventory(parts.profiles, local.is_some());
            let hosts = [(HardwareKind::Embedded, Some(parts.embedded)), (HardwareKind::Local, local)];
            let hosts = hosts.into_iter().filter_map(|(kind, host)| Some((kind, host?))).collect();
            let plane =
                LocalControlPlane::open(parts.store, hosts, inventory, parts.settings, planes_clock, parts.owner)?;
            Ok(Box::new(plane))
        })
    }

    /// Opens the clusters of the control plane that `make` creates. Workers that the server has not started join at
    /// `processes`.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn open_with(
        executor: &Executor,
        folder: &Path,
        settings: ClusterSettings,
        processes: Option<Arc<WorkerProcesses>>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        make: impl FnOnce(ControlPlaneParts) -> Result<Box<dyn ControlPlane>, ControlPlaneError>,
    ) -> Result<Arc<Clusters>, ControlPlaneError> {
        let workers = EmbeddedWorkers::new(
            Arc::clone(executor.query_threads()),
            executor.cores(),
            Arc::clone(&executor.runtime().memory_pool),
            executor.memory_bytes() as u64,
            Arc::clone(&clock),
            Arc::clone(&random),
        );
        let usual = ReconcileSettings::new(workers.version(), workers.machine());
        let patience = ReconcileSettings {
            drain_grace: settings.drain_grace,
            backoff_initial: usual.backoff_initial.min(settings.backoff_max),
            backoff_max: settings.backoff_max,
            ..usual
        };
        let plane = make(ControlPlaneParts {
            store: Box::new(DesiredStateFile::in_folder(folder)),
            embedded: Arc::clone(&workers) as Arc<dyn WorkerHost>,
            profiles: vec![WlmProfile { name: DEFAULT_CLUSTER_NAME.to_owned(), max_running: settings.max_running }],
            settings: patience,
            owner: Role::BOOTSTRAP,
        })?;
        let channels = processes.as_ref().map(|processes| Channels::new(processes.dialer()));
        let clusters = Arc::new(Clusters {
            plane,
            workers,
            processes,
            channels,
            admissions: Mutex::default(),
            slot_ownership: Mutex::default(),
            single_worker_queries: SingleWorkerQueries::default(),
            cleaned_generation: AtomicU64::new(u64::MAX),
            clock,
            random,
        });
        clusters.reconcile();
        Ok(clusters)
    }

    /// Chooses the cluster for a statement: the one that its session has chosen with USE CLUSTER, otherwise the best of
    /// its role's. A statement stays on the cluster that its transaction has written on or that its session has an open
    /// statement on.
    ///
    /// # Errors
    /// `42704` if the chosen cluster does not exist, `42501` without USAGE, `55000` if no cluster can run the
    /// statement.
    pub fn choose(
        &self,
        actor: &Actor,
        chosen: Option<&ChosenCluster>,
        written: Option<ClusterId>,
        open: Option<ClusterId>,
    ) -> SqlResult<Choice> {
        let desired = self.plane.desired();
        let name = chosen.map(|chosen| {
            desired.cluster(chosen.id).map_or_else(|| chosen.name.clone(), |cluster| cluster.spec.name.clone())
        });
        let usable = desired.usable_clusters(actor, name.as_deref()).map_err(|error| cluster_error(&error))?;
        let candidates: Vec<Candidate> = usable
            .iter()
            .map(|cluster| {
                let activity = self.admission(cluster.id).map(|gate| gate.activity()).unwrap_or_default();
                Candidate::new(cluster, self.plane.serving(cluster.id).len(), &activity)
            })
            .collect();
        let is_awake = |id| candidates.iter().any(|candidate| candidate.cluster == id && !candidate.suspended);
        let open = open.filter(|open| is_awake(*open));
        choose_cluster::choose_cluster(&candidates, written.or(open)).map_err(|unavailable| {
            let name = |id| desired.cluster(id).map_or_else(String::new, |cluster| cluster.spec.name.clone());
            match unavailable {
                NoClusterAvailable::Suspended { preferred } => {
                    cluster_error(&cluster_model::Error::Suspended { name: name(preferred) })
                }
                NoClusterAvailable::WrittenClusterGone { .. } | NoClusterAvailable::NoCandidates => {
                    SqlError::new(Condition::ObjectNotInPrerequisiteState, unavailable.to_string())
                }
            }
        })
    }

    /// Returns the admission to a cluster; `None` if the cluster does not exist any more.
    #[must_use]
    pub fn admission(&self, cluster: ClusterId) -> Option<Arc<Admission>> {
        self.admissions.lock().get(&cluster).map(|gate| Arc::clone(&gate.admission))
    }

    /// Returns a lease for a statement: on the least busy worker of a cluster, or, for worker processes, on all of
    /// them, with this process running what is not distributed. `None` if no worker is ready at the moment.
    #[must_use]
    pub fn lease(&self, cluster: ClusterId) -> Option<Arc<Lease>> {
        self.workers.lease(&self.plane.serving(cluster)).or_else(|| {
            let hold = self.processes.as_ref()?.register_statement(&self.owning_workers(cluster))?;
            Some(self.workers.lease_for_processes(hold))
        })
    }

    /// Returns the name of a cluster.
    #[must_use]
    pub fn name(&self, cluster: ClusterId) -> Option<Arc<str>> {
        self.plane.desired().cluster(cluster).map(|cluster| cluster.spec.name.as_str().into())
    }

    /// Returns the cluster of this name, for USE CLUSTER.
    ///
    /// # Errors
    /// `42704` if it does not exist, `42501` if the role may not use it.
    pub fn find_usable_cluster(&self, actor: &Actor, name: &str) -> SqlResult<ChosenCluster> {
        let desired = self.plane.desired();
        let usable = desired.usable_clusters(actor, Some(name)).map_err(|error| cluster_error(&error))?;
        let cluster = usable
            .first()
            .ok_or_else(|| SqlError::internal("USE CLUSTER found no cluster of this name, and no reason why"))?;
        Ok(ChosenCluster { id: cluster.id, name: name.to_owned() })
    }

    /// Returns the names of the clusters that a role owns.
    #[must_use]
    pub fn owned_by(&self, role: Oid) -> Vec<String> {
        let desired = self.plane.desired();
        let owned = desired.clusters().filter(|cluster| cluster.spec.owner == role);
        owned.map(|cluster| cluster.spec.name.clone()).collect()
    }

    /// Returns a number that grows with each change of the clusters or their workers.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.plane.revisions().current()
    }

    /// Waits until the revision is above this one.
    pub async fn wait_for_change(&self, revision: u64) {
        self.plane.revisions().wait_for_newer(revision).await;
    }

    /// Waits until a cluster is suspended or dropped.
    pub async fn wait_until_unavailable(&self, cluster: ClusterId) {
        loop {
            let seen = self.revision();
            if self.plane.desired().cluster(cluster).is_none_or(|cluster| cluster.suspended) {
                return;
            }
            self.wait_for_change(seen).await;
        }
    }

    /// Updates the admission modes: open for clusters with workers, holding for those whose workers are to come, closed
    /// for suspended ones without AUTO_RESUME.
    pub(crate) fn update_admission(&self) {
        let desired = self.plane.desired();
        let inventory = self.plane.inventory();
        let mut admissions = self.admissions.lock();
        admissions.retain(|id, gate| {
            let is_there = desired.cluster(*id).is_some();
            if !is_there {
                gate.admission.set_mode(AdmissionMode::Closed);
            }
            is_there
        });
        for cluster in desired.clusters() {
            let profile = inventory.profile(&cluster.spec.wlm_profile);
            // A profile that only an earlier version offered counts as the default one.
            let running = profile.map_or(WlmProfile::DEFAULT_MAX_RUNNING, |profile| profile.max_running);
            let limits = Limits { running, queued: u32::MAX };
            let mode = match (self.plane.serving(cluster.id).is_empty(), cluster.suspended, cluster.spec.auto_resume) {
                (false, _, _) => AdmissionMode::Open,
                (true, true, false) => AdmissionMode::Closed,
                (true, _, _) => AdmissionMode::Holding,
            };
            let gate = admissions.entry(cluster.id).or_insert_with(|| {
                let admission = Admission::new(limits, mode, Arc::clone(&self.clock));
                ClusterAdmission { admission, limits, mode }
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

/// Cluster chosen with USE CLUSTER, which stays the same when it is renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenCluster {
    id: ClusterId,
    name: String,
}

/// Returns the inventory of one machine, with processes as the default hardware if they are available.
fn local_inventory(profiles: Vec<WlmProfile>, has_processes: bool) -> Inventory {
    let (local, embedded) = (HardwareInstance::local(), HardwareInstance::embedded());
    if has_processes { Inventory::new([local, embedded], profiles) } else { Inventory::new([embedded], profiles) }
}

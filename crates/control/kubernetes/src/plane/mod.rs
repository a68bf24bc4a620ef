//! Control plane of an instance in Kubernetes, which stores its clusters as `ComputeCluster`s for the operator.
//!
//! A SQL statement changes the ComputeCluster first, and changes that others make to it are adopted. The desired state,
//! with what only SQL knows and the event history, is also stored in the instance's data folder, so that the instance
//! knows its clusters while the API server does not respond; clusters then cannot be changed, but queries run. The
//! cluster `default` runs in the instance's own process until it is given other hardware.
//!
//! - `cluster_conversion.rs`: conversion between clusters of SQL and `ComputeCluster`s.
//! - `change_requests.rs`: the API requests that carry out a change.
//! - `api_server.rs`: watches of the API server, and requests to it.
//! - `object_mirror.rs`: an in-memory copy of the objects of a kind.
//! - `worker_pods.rs`: workers in pods: their observed state, and the actions that they need.
//! - `token_review.rs`: authentication of workers by their pod's token.
//! - `hardware_inventory.rs`: hardware from `HardwareProfile`s.

mod api_server;
mod change_requests;
mod cluster_conversion;
mod hardware_inventory;
mod object_mirror;
mod token_review;
mod worker_pods;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_server::ApiServerClient;
use change_requests::ApiRequest;
use cluster_model::desired_state::stored_encoding::encode;
use cluster_model::reconcile::suspend_idle;
use cluster_model::{
    Action, Author, Change, ClusterActivity, ClusterEvent, ClusterId, DesiredState, HardwareInstance, Inventory,
    ReconcileSettings, WlmProfile, Worker, reconcile,
};
use control_plane::{
    CachedState, ControlPlane, ControlPlaneError, Revisions, StartRequest, StateStore, TokenVerifier, TokenWorkerHost,
    WorkerHost, load_or_create,
};
use futures::future::BoxFuture;
use kube::Client;
use parking_lot::Mutex;
use token_review::TokenReviewer;
use types::{Clock, Oid};
use worker_pods::{DesiredWorkers, JoinedWorker, WorkerAction, observe};

pub use api_server::ApiServerError;
pub use cluster_conversion::{MODIFIED_BY_ANNOTATION, SQL_MANAGER};

/// Connection of an instance to its clusters in Kubernetes. It exists before the control plane, because it
/// authenticates the workers.
#[derive(Debug, Clone)]
pub struct KubernetesConnection {
    api_server: Arc<ApiServerClient>,
}

impl KubernetesConnection {
    /// Starts watching the objects that concern the instance.
    #[must_use]
    pub fn watch(client: Client, namespace: String, instance: String, clock: Arc<dyn Clock>) -> KubernetesConnection {
        KubernetesConnection { api_server: Arc::new(ApiServerClient::new(client, namespace, instance, clock)) }
    }

    /// Returns the authenticator of worker tokens.
    #[must_use]
    pub fn token_authenticator(&self) -> Arc<dyn TokenVerifier> {
        Arc::new(TokenReviewer { api_server: Arc::clone(&self.api_server) })
    }

    /// Checks that the API server responds and lets the instance list clusters.
    ///
    /// # Errors
    /// Returns [`ApiServerError`] if it does not.
    pub fn check(&self) -> BoxFuture<'_, Result<(), ApiServerError>> {
        Box::pin(async { Ok(self.api_server.check().await?) })
    }

    /// Publishes the certificate, as PEM, by which workers verify the instance.
    ///
    /// # Errors
    /// Returns [`ApiServerError`] if the config map cannot be written.
    pub fn publish_authority<'a>(&'a self, pem: &'a str) -> BoxFuture<'a, Result<(), ApiServerError>> {
        Box::pin(self.api_server.publish_authority(pem))
    }
}

/// Worker hosts of the control plane.
#[derive(Debug, Clone)]
pub struct WorkerHosts {
    /// Workers in pods, which Kubernetes starts.
    pub pods: Arc<dyn TokenWorkerHost>,
    /// Workers in the instance's own process.
    pub embedded: Arc<dyn WorkerHost>,
}

/// Control plane of an instance in Kubernetes.
#[derive(Debug)]
pub struct KubernetesControlPlane {
    api_server: Arc<ApiServerClient>,
    store: Box<dyn StateStore>,
    hosts: WorkerHosts,
    profiles: Vec<WlmProfile>,
    clock: Arc<dyn Clock>,
    /// Lock that serializes changes by statements and the adoption of changes by others.
    change_lock: Mutex<()>,
    /// Start time of the last pass. The lock is held during a pass.
    last_pass: Mutex<Duration>,
    /// Revision of the observed objects at the last pass that adopted them.
    adopted_revision: Mutex<u64>,
    /// Cached inventory, and the revision of the observed objects from which it was built.
    inventory: Mutex<(u64, Arc<Inventory>)>,
    /// Owner of clusters that no statement has created.
    default_owner: Oid,
    cached_state: CachedState,
}

impl KubernetesControlPlane {
    /// Opens a control plane with the desired state in the store. An empty store means only the cluster `default`.
    /// `owner` owns that cluster and those that no statement has created. `profiles` must contain one called `default`.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read or its content is not valid.
    pub fn open(
        warehouse: &KubernetesConnection,
        store: Box<dyn StateStore>,
        hosts: WorkerHosts,
        profiles: Vec<WlmProfile>,
        settings: ReconcileSettings,
        clock: Arc<dyn Clock>,
        owner: Oid,
    ) -> Result<KubernetesControlPlane, ControlPlaneError> {
        let desired = load_or_create(&*store, &*clock, owner)?;
        let api_server = Arc::clone(&warehouse.api_server);
        let inventory = Mutex::new((0, Arc::new(hardware_inventory::build_inventory(&[], &profiles))));
        Ok(KubernetesControlPlane {
            api_server,
            store,
            hosts,
            profiles,
            change_lock: Mutex::default(),
            last_pass: Mutex::new(clock.monotonic()),
            adopted_revision: Mutex::default(),
            inventory,
            default_owner: owner,
            cached_state: CachedState::new(desired, settings, Arc::clone(&clock)),
            clock,
        })
    }

    /// Returns the revision counter of the observed objects. When it grows, a pass is due.
    #[must_use]
    pub fn revisions(&self) -> &Revisions {
        self.api_server.changes()
    }

    /// Adopts the changes that others have made to ComputeClusters, and annotates new ones with their cluster id.
    fn adopt(&self) -> Result<(), ControlPlaneError> {
        let _one = self.change_lock.lock();
        let (desired, now) = (self.cached_state.desired(), self.clock.now_us());
        let (is_complete, objects) =
            self.api_server.read(|content| (content.clusters.is_complete(), content.clusters.values()));
        if !is_complete {
            return Ok(());
        }
        let found: Vec<_> =
            objects.iter().map(|object| cluster_conversion::to_cluster(object, self.default_owner)).collect();
        let (state, events) = desired.adopt(&found, runs_in_pods, now);
        if !events.is_empty() {
            self.save(state)?;
        }
        let desired = self.cached_state.desired();
        for (object, found) in objects.iter().zip(&found).filter(|(_, found)| found.id.is_none()) {
            let Some(cluster) = desired.matching_cluster(None, &found.spec.name) else { continue };
            let name = object.metadata.name.as_deref().expect("an observed object has a name");
            let claimed = self
                .api_server
                .block_on(self.api_server.patch_for_instance(name, &cluster_conversion::id_patch(cluster.id)));
            claimed.map_err(|error| ControlPlaneError::ExternalStore(Box::new(error)))?;
        }
        Ok(())
    }

    /// Saves a desired state and puts it in force.
    fn save(&self, state: DesiredState) -> Result<(), ControlPlaneError> {
        self.store.save(&encode(&state)).map_err(|source| ControlPlaneError::Store { action: "write", source })?;
        self.cached_state.set_desired(state);
        Ok(())
    }

    /// Sends one request to the API server.
    async fn send(&self, step: &ApiRequest) -> Result<(), ApiServerError> {
        match step {
            ApiRequest::Create(object) => self.api_server.create(object).await,
            ApiRequest::Patch { name, patch } => self.api_server.patch_for_statement(name, patch).await,
            ApiRequest::Delete { name } => self.api_server.delete(name).await,
        }
    }

    /// Reconciles the workers in the instance's own process, and returns the actions taken.
    fn reconcile_embedded(&self, settings: &ReconcileSettings) -> Vec<Action> {
        let host = &*self.hosts.embedded;
        let own = self.cached_state.desired().filtered(|spec| !runs_in_pods(spec));
        let actions = reconcile(&own, &host.observe(), self.clock.monotonic(), settings);
        for action in &actions {
            match action {
                Action::Start { cluster, slot, spec } => {
                    host.start(&StartRequest { cluster: *cluster, slot: *slot, spec: spec.clone() });
                }
                Action::Configure { worker, spec } => host.configure(*worker, spec),
                Action::Drain { worker } => host.drain(*worker),
                Action::Stop { worker, reason } => host.stop(*worker, *reason),
                Action::MarkHung { worker } => host.mark_hung(*worker),
                Action::Forget { worker } => host.forget(*worker),
            }
        }
        actions
    }

    /// Carries out the actions that workers in pods need, and returns those that concern workers themselves.
    fn reconcile_pods(&self, settings: &ReconcileSettings) -> Vec<Action> {
        let pod_host = &*self.hosts.pods;
        let worker_actions = self.observe_pods(settings).actions;
        let mut actions = Vec::new();
        for worker_action in worker_actions {
            match worker_action {
                WorkerAction::Configure { worker, spec } => {
                    pod_host.configure(worker, &spec);
                    actions.push(Action::Configure { worker, spec });
                }
                WorkerAction::Drain { worker } => {
                    pod_host.drain(worker);
                    actions.push(Action::Drain { worker });
                }
                WorkerAction::Stop { worker, reason } => {
                    pod_host.stop(worker, reason);
                    actions.push(Action::Stop { worker, reason });
                }
                WorkerAction::MarkHung { worker } => {
                    pod_host.mark_hung(worker);
                    actions.push(Action::MarkHung { worker });
                }
                WorkerAction::Forget { worker } => {
                    pod_host.forget(worker);
                    actions.push(Action::Forget { worker });
                }
                WorkerAction::MarkLost { worker, detail } => pod_host.mark_lost(worker, &detail),
                WorkerAction::DeletePod { name, uid } => {
                    if let Err(error) = self.api_server.block_on(self.api_server.delete_pod(&name, &uid)) {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(name, error, "could not delete the pod of a hung worker; it is not replaced");
                    }
                }
            }
        }
        actions
    }

    /// Observes the workers in pods, and decides which actions they need.
    fn observe_pods(&self, settings: &ReconcileSettings) -> worker_pods::PodObservation {
        let joined = self.hosts.pods.observe().into_iter().map(|worker| {
            let life = self.hosts.pods.host_uid(worker.id);
            JoinedWorker { worker, pod_uid: life }
        });
        let joined = joined.collect();
        let plans = self.api_server.desired_workers();
        let (pods, are_all) = self.api_server.read(|content| (content.pods.values(), content.pods.is_complete()));
        observe(&pods, are_all, joined, &plans, self.clock.monotonic(), settings)
    }

    /// Publishes all observed workers.
    fn publish_workers(&self) {
        let mut workers: Vec<Worker> = self.hosts.embedded.observe();
        workers.extend(self.observe_pods(self.cached_state.settings()).workers);
        self.cached_state.set_workers(workers);
    }
}

impl ApiServerClient {
    /// Returns the desired workers of each cluster, by the name of its ComputeCluster. Clusters without a known id or
    /// hardware profile are left out.
    fn desired_workers(&self) -> HashMap<String, DesiredWorkers> {
        self.read(|content| {
            let planned = content.clusters.values().into_iter().filter_map(|object| {
                let found = cluster_conversion::to_cluster(&object, Oid(0));
                let profile = content.hardware.get(&found.spec.hardware_instance)?;
                let plan = DesiredWorkers {
                    id: found.id?,
                    spec: found.spec.worker_spec(hardware_inventory::worker_resources(profile)?),
                    slots: found.spec.node_count,
                };
                Some((object.metadata.name.clone()?, plan))
            });
            planned.collect()
        })
    }
}

/// Returns whether the workers of a cluster run in pods, so that it has a ComputeCluster.
fn runs_in_pods(spec: &cluster_model::ClusterSpec) -> bool {
    spec.hardware_instance != HardwareInstance::EMBEDDED
}

impl ControlPlane for KubernetesControlPlane {
    fn apply(&self, change: &Change, author: &Author) -> Result<Vec<ClusterEvent>, ControlPlaneError> {
        let _one = self.change_lock.lock();
        let before = self.cached_state.desired();
        let (after, events) = before.change(&self.inventory(), change, author, self.clock.now_us())?;
        if events.is_empty() {
            return Ok(events);
        }
        let names: BTreeMap<ClusterId, String> = self.api_server.read(|content| {
            let known = content.clusters.values();
            let named = known
                .iter()
                .filter_map(|object| Some((cluster_conversion::cluster_id(object)?, object.metadata.name.clone()?)));
            named.collect()
        });
        let steps = change_requests::plan_requests(&before, &after, &names, &self.api_server.instance, author);
        let taken = self.api_server.block_on(async {
            for step in &steps {
                self.send(step).await?;
            }
            Ok(())
        });
        taken.map_err(|error| ControlPlaneError::ExternalStore(Box::new(error)))?;
        self.save(after)?;
        Ok(events)
    }

    fn cached_state(&self) -> &CachedState {
        &self.cached_state
    }

    fn inventory(&self) -> Arc<Inventory> {
        let news = self.api_server.changes().current();
        let mut inventory = self.inventory.lock();
        if inventory.0 != news {
            let profiles = self.api_server.read(|content| content.hardware.values());
            *inventory = (news, Arc::new(hardware_inventory::build_inventory(&profiles, &self.profiles)));
        }
        Arc::clone(&inventory.1)
    }

    fn reconcile(&self, activity: &BTreeMap<ClusterId, ClusterActivity>) -> Vec<Action> {
        let mut last = self.last_pass.lock();
        for change in suspend_idle(&self.desired(), activity, self.clock.now_us()) {
            if let Err(error) = self.apply(&change, &Author::Instance) {
                tracing::warn!(%error, "could not suspend an idle cluster; it stays awake");
            }
        }
        let news = self.revisions().current();
        let is_news = std::mem::replace(&mut *self.adopted_revision.lock(), news) != news;
        if is_news && let Err(error) = self.adopt() {
            // Have the next pass try again.
            *self.adopted_revision.lock() = 0;
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "could not adopt changes of ComputeClusters; trying again in the next pass");
        }
        // If this process itself was paused since the last pass, workers must not count as silent for that time.
        let now = self.clock.monotonic();
        let paused = now.saturating_sub(std::mem::replace(&mut *last, now));
        let settings = self.cached_state.settings().after_pause(paused);
        let mut actions = self.reconcile_embedded(&settings);
        actions.extend(self.reconcile_pods(&settings));
        self.publish_workers();
        actions
    }
}

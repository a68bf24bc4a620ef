//! Control plane of an instance in Kubernetes, which stores its clusters as `ComputeCluster`s for the operator.
//!
//! A SQL statement changes the ComputeCluster first, and changes that others make to it are adopted. The desired state,
//! with what only SQL knows and the event history, is also stored in the instance's data folder, so that the instance
//! knows its clusters while the API server does not respond; clusters then cannot be changed, but queries run. The
//! cluster `default` runs in the instance's own process until it is given other hardware.
//!
//! - `resource.rs`: conversion between clusters of SQL and `ComputeCluster`s.
//! - `steps.rs`: the API requests that carry out a change.
//! - `keeper.rs`: watches of the API server, and requests to it.
//! - `mirror.rs`: an in-memory copy of the objects of a kind.
//! - `pods.rs`: workers in pods: their observed state, and the actions that they need.
//! - `vouch.rs`: authentication of workers by their pod's token.
//! - `hardware.rs`: hardware from `HardwareProfile`s.

mod hardware;
mod keeper;
mod mirror;
mod pods;
mod resource;
mod steps;
mod vouch;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cluster_model::desired::stored::encode;
use cluster_model::reconcile::suspend_idle;
use cluster_model::{
    Action, Activity, Author, Change, ClusterEvent, ClusterId, DesiredState, HardwareInstance, Inventory, Settings,
    WlmProfile, Worker, reconcile,
};
use control_plane::{
    ControlPlane, Guests, Known, PlaneError, Revisions, StartWorker, StateStore, Vouch, WorkerHost, go_on,
};
use futures::future::BoxFuture;
use keeper::Keeper;
use kube::Client;
use parking_lot::Mutex;
use pods::{Deed, Guest, Plan, look, worker_spec};
use steps::Step;
use types::{Clock, Oid};
use vouch::Reviewer;

pub use keeper::KeeperError;
pub use resource::{MODIFIED_BY, SQL_MANAGER};

/// Connection of an instance to its clusters in Kubernetes. It exists before the control plane, because it
/// authenticates the workers.
#[derive(Debug, Clone)]
pub struct Warehouse {
    keeper: Arc<Keeper>,
}

impl Warehouse {
    /// Starts watching the objects that concern the instance.
    #[must_use]
    pub fn watch(client: Client, namespace: String, instance: String, clock: Arc<dyn Clock>) -> Warehouse {
        Warehouse { keeper: Arc::new(Keeper::new(client, namespace, instance, clock)) }
    }

    /// Returns the authenticator of worker tokens.
    #[must_use]
    pub fn vouch(&self) -> Arc<dyn Vouch> {
        Arc::new(Reviewer { keeper: Arc::clone(&self.keeper) })
    }

    /// Checks that the API server responds and lets the instance list clusters.
    ///
    /// # Errors
    /// Returns [`KeeperError`] if it does not.
    pub fn check(&self) -> BoxFuture<'_, Result<(), KeeperError>> {
        Box::pin(async { Ok(self.keeper.check().await?) })
    }

    /// Publishes the certificate, as PEM, by which workers verify the instance.
    ///
    /// # Errors
    /// Returns [`KeeperError`] if the config map cannot be written.
    pub fn say_authority<'a>(&'a self, pem: &'a str) -> BoxFuture<'a, Result<(), KeeperError>> {
        Box::pin(self.keeper.say_authority(pem))
    }
}

/// Worker hosts of the control plane.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// Workers in pods, which Kubernetes starts.
    pub guests: Arc<dyn Guests>,
    /// Workers in the instance's own process.
    pub embedded: Arc<dyn WorkerHost>,
}

/// Control plane of an instance in Kubernetes.
#[derive(Debug)]
pub struct KubernetesControlPlane {
    keeper: Arc<Keeper>,
    store: Box<dyn StateStore>,
    hosts: Hosts,
    profiles: Vec<WlmProfile>,
    clock: Arc<dyn Clock>,
    /// Lock that serializes changes by statements and the adoption of changes by others.
    changing: Mutex<()>,
    /// Start time of the last pass. The lock is held during a pass.
    passing: Mutex<Duration>,
    /// Revision of the observed objects at the last pass that adopted them.
    seen: Mutex<u64>,
    /// Cached inventory, and the revision of the observed objects from which it was built.
    inventory: Mutex<(u64, Arc<Inventory>)>,
    /// Owner of clusters that no statement has created.
    owner: Oid,
    known: Known,
}

impl KubernetesControlPlane {
    /// Opens a control plane with the desired state in the store. An empty store means only the cluster `default`.
    /// `owner` owns that cluster and those that no statement has created. `profiles` must contain one called `default`.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read or its content is not valid.
    pub fn open(
        warehouse: &Warehouse,
        store: Box<dyn StateStore>,
        hosts: Hosts,
        profiles: Vec<WlmProfile>,
        settings: Settings,
        clock: Arc<dyn Clock>,
        owner: Oid,
    ) -> Result<KubernetesControlPlane, PlaneError> {
        let desired = go_on(&*store, &*clock, owner)?;
        let keeper = Arc::clone(&warehouse.keeper);
        let inventory = Mutex::new((0, Arc::new(hardware::inventory(&[], &profiles))));
        Ok(KubernetesControlPlane {
            keeper,
            store,
            hosts,
            profiles,
            changing: Mutex::default(),
            passing: Mutex::new(clock.monotonic()),
            seen: Mutex::default(),
            inventory,
            owner,
            known: Known::new(desired, settings, Arc::clone(&clock)),
            clock,
        })
    }

    /// Returns the revision counter of the observed objects. When it grows, a pass is due.
    #[must_use]
    pub fn news(&self) -> &Revisions {
        self.keeper.changes()
    }

    /// Adopts the changes that others have made to ComputeClusters, and annotates new ones with their cluster id.
    fn adopt(&self) -> Result<(), PlaneError> {
        let _one = self.changing.lock();
        let (desired, now) = (self.known.desired(), self.clock.now_us());
        let (is_complete, objects) =
            self.keeper.with(|content| (content.clusters.is_complete(), content.clusters.all()));
        if !is_complete {
            return Ok(());
        }
        let found: Vec<_> = objects.iter().map(|object| resource::found(object, self.owner)).collect();
        let (state, events) = desired.adopt(&found, is_kept, now);
        if !events.is_empty() {
            self.keep(state)?;
        }
        let desired = self.known.desired();
        for (object, found) in objects.iter().zip(&found).filter(|(_, found)| found.id.is_none()) {
            let Some(cluster) = desired.found(None, &found.spec.name) else { continue };
            let name = object.metadata.name.as_deref().expect("an observed object has a name");
            let claimed = self.keeper.wait(self.keeper.claim(name, &resource::claimed(cluster.id)));
            claimed.map_err(|error| PlaneError::Keeper(Box::new(error)))?;
        }
        Ok(())
    }

    /// Saves a desired state and puts it in force.
    fn keep(&self, state: DesiredState) -> Result<(), PlaneError> {
        self.store.save(&encode(&state)).map_err(|source| PlaneError::Store { action: "keep", source })?;
        self.known.should_be(state);
        Ok(())
    }

    /// Sends one request to the API server.
    async fn take(&self, step: &Step) -> Result<(), KeeperError> {
        match step {
            Step::Create(object) => self.keeper.create(object).await,
            Step::Change { name, patch } => self.keeper.change(name, patch).await,
            Step::Delete { name } => self.keeper.delete(name).await,
        }
    }

    /// Reconciles the workers in the instance's own process, and returns the actions taken.
    fn pass_embedded(&self, settings: &Settings) -> Vec<Action> {
        let host = &*self.hosts.embedded;
        let own = self.known.desired().only(|spec| !is_kept(spec));
        let actions = reconcile(&own, &host.observe(), self.clock.monotonic(), settings);
        for action in &actions {
            match action {
                Action::Start { cluster, slot, spec } => {
                    host.start(&StartWorker { cluster: *cluster, slot: *slot, spec: spec.clone() });
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
    fn pass_guests(&self, settings: &Settings) -> Vec<Action> {
        let guests = &*self.hosts.guests;
        let deeds = self.look_at_guests(settings).deeds;
        let mut actions = Vec::new();
        for deed in deeds {
            match deed {
                Deed::Configure { worker, spec } => {
                    guests.configure(worker, &spec);
                    actions.push(Action::Configure { worker, spec });
                }
                Deed::Drain { worker } => {
                    guests.drain(worker);
                    actions.push(Action::Drain { worker });
                }
                Deed::Stop { worker, reason } => {
                    guests.stop(worker, reason);
                    actions.push(Action::Stop { worker, reason });
                }
                Deed::MarkHung { worker } => {
                    guests.mark_hung(worker);
                    actions.push(Action::MarkHung { worker });
                }
                Deed::Forget { worker } => {
                    guests.forget(worker);
                    actions.push(Action::Forget { worker });
                }
                Deed::Lost { worker, how } => guests.lost(worker, &how),
                Deed::DeletePod { name, uid } => {
                    if let Err(error) = self.keeper.wait(self.keeper.delete_pod(&name, &uid)) {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(name, error, "could not delete the pod of a hung worker; it is not replaced");
                    }
                }
            }
        }
        actions
    }

    /// Observes the workers in pods, and decides which actions they need.
    fn look_at_guests(&self, settings: &Settings) -> pods::Look {
        let guests = self.hosts.guests.observe().into_iter().map(|worker| {
            let life = self.hosts.guests.life(worker.id);
            Guest { worker, life }
        });
        let guests = guests.collect();
        let plans = self.keeper.plans();
        let (pods, are_all) = self.keeper.with(|content| (content.pods.all(), content.pods.is_complete()));
        look(&pods, are_all, guests, &plans, self.clock.monotonic(), settings)
    }

    /// Publishes all observed workers.
    fn observe(&self) {
        let mut workers: Vec<Worker> = self.hosts.embedded.observe();
        workers.extend(self.look_at_guests(self.known.settings()).workers);
        self.known.are_there(workers);
    }
}

impl Keeper {
    /// Returns the desired workers of each cluster, by the name of its ComputeCluster. Clusters without a known id or
    /// hardware profile are left out.
    fn plans(&self) -> HashMap<String, Plan> {
        self.with(|content| {
            let planned = content.clusters.all().into_iter().filter_map(|object| {
                let found = resource::found(&object, Oid(0));
                let profile = content.hardware.get(&found.spec.hardware_instance)?;
                let plan = Plan {
                    id: found.id?,
                    spec: worker_spec(&found.spec, hardware::share(profile)?),
                    slots: found.spec.node_count,
                };
                Some((object.metadata.name.clone()?, plan))
            });
            planned.collect()
        })
    }
}

/// Returns whether the workers of a cluster run in pods, so that it has a ComputeCluster.
fn is_kept(spec: &cluster_model::ClusterSpec) -> bool {
    spec.hardware_instance != HardwareInstance::EMBEDDED
}

impl ControlPlane for KubernetesControlPlane {
    fn apply(&self, change: &Change, author: &Author) -> Result<Vec<ClusterEvent>, PlaneError> {
        let _one = self.changing.lock();
        let before = self.known.desired();
        let (after, events) = before.change(&self.inventory(), change, author, self.clock.now_us())?;
        if events.is_empty() {
            return Ok(events);
        }
        let names: BTreeMap<ClusterId, String> = self.keeper.with(|content| {
            let known = content.clusters.all();
            let named = known.iter().filter_map(|object| Some((resource::id(object)?, object.metadata.name.clone()?)));
            named.collect()
        });
        let steps = steps::steps(&before, &after, &names, &self.keeper.instance, author);
        let taken = self.keeper.wait(async {
            for step in &steps {
                self.take(step).await?;
            }
            Ok(())
        });
        taken.map_err(|error| PlaneError::Keeper(Box::new(error)))?;
        self.keep(after)?;
        Ok(events)
    }

    fn known(&self) -> &Known {
        &self.known
    }

    fn inventory(&self) -> Arc<Inventory> {
        let news = self.keeper.changes().current();
        let mut inventory = self.inventory.lock();
        if inventory.0 != news {
            let profiles = self.keeper.with(|content| content.hardware.all());
            *inventory = (news, Arc::new(hardware::inventory(&profiles, &self.profiles)));
        }
        Arc::clone(&inventory.1)
    }

    fn pass(&self, activity: &BTreeMap<ClusterId, Activity>) -> Vec<Action> {
        let mut last = self.passing.lock();
        for change in suspend_idle(&self.desired(), activity, self.clock.now_us()) {
            if let Err(error) = self.apply(&change, &Author::Instance) {
                tracing::warn!(%error, "could not suspend an idle cluster; it stays awake");
            }
        }
        let news = self.news().current();
        let is_news = std::mem::replace(&mut *self.seen.lock(), news) != news;
        if is_news && let Err(error) = self.adopt() {
            // Have the next pass try again.
            *self.seen.lock() = 0;
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "could not adopt changes of ComputeClusters; trying again in the next pass");
        }
        // If this process itself was paused since the last pass, workers must not count as silent for that time.
        let now = self.clock.monotonic();
        let paused = now.saturating_sub(std::mem::replace(&mut *last, now));
        let settings = self.known.settings().after_pause(paused);
        let mut actions = self.pass_embedded(&settings);
        actions.extend(self.pass_guests(&settings));
        self.observe();
        actions
    }
}

//! The control plane of an instance in Kubernetes: clusters of pods are `ComputeCluster`s, which the operator makes pods of.
//!
//! What a statement changes is changed there first, and what a person changes there is taken over from there (`resource.rs` says how the one is the other,
//! `steps.rs` which changes are to be made). What only SQL knows, with the history of all that happened, lies in the instance's own folder too, so that
//! an instance knows its clusters while the API server does not answer; then nothing is changed, and queries run. The cluster `default` is the instance's own
//! process until somebody gives it other hardware.
//!
//! `keeper.rs` is what the API server has and is told, `mirror.rs` a part of that in memory, `pods.rs` who works and what is to be done about them, `vouch.rs`
//! who may be a worker, `hardware.rs` what they can run on.

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

/// An instance's way to its clusters in Kubernetes, before it has workers: these are vouched for by it.
#[derive(Debug, Clone)]
pub struct Warehouse {
    keeper: Arc<Keeper>,
}

impl Warehouse {
    /// Begins to watch what concerns the instance.
    #[must_use]
    pub fn watch(client: Client, namespace: String, instance: String, clock: Arc<dyn Clock>) -> Warehouse {
        Warehouse { keeper: Arc::new(Keeper::new(client, namespace, instance, clock)) }
    }

    /// Says whose a token is.
    #[must_use]
    pub fn vouch(&self) -> Arc<dyn Vouch> {
        Arc::new(Reviewer { keeper: Arc::clone(&self.keeper) })
    }

    /// Whether the API server answers and lets the instance see its clusters.
    ///
    /// # Errors
    /// [`KeeperError`].
    pub fn check(&self) -> BoxFuture<'_, Result<(), KeeperError>> {
        Box::pin(async { Ok(self.keeper.check().await?) })
    }

    /// Says by which certificate, as PEM, workers know the instance.
    ///
    /// # Errors
    /// [`KeeperError`].
    pub fn say_authority<'a>(&'a self, pem: &'a str) -> BoxFuture<'a, Result<(), KeeperError>> {
        Box::pin(self.keeper.say_authority(pem))
    }
}

/// Who works in pods, and who in the instance's own process.
#[derive(Debug, Clone)]
pub struct Hosts {
    pub guests: Arc<dyn Guests>,
    pub embedded: Arc<dyn WorkerHost>,
}

/// The control plane of an instance in Kubernetes.
#[derive(Debug)]
pub struct KubernetesControlPlane {
    keeper: Arc<Keeper>,
    store: Box<dyn StateStore>,
    hosts: Hosts,
    profiles: Vec<WlmProfile>,
    clock: Arc<dyn Clock>,
    /// Held while a change is made or taken over.
    changing: Mutex<()>,
    /// When the last pass began. Held during a pass.
    passing: Mutex<Duration>,
    /// The last news that a pass has seen.
    seen: Mutex<u64>,
    inventory: Mutex<(u64, Arc<Inventory>)>,
    owner: Oid,
    known: Known,
}

impl KubernetesControlPlane {
    /// A control plane that goes on with what the store has; where it has nothing, with the cluster `default`, which `owner` owns then, as it does clusters
    /// that nobody made by a statement. The `profiles` have to have one called `default`.
    ///
    /// # Errors
    /// The store cannot be read, or has what was not written.
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

    /// Grows when Kubernetes has told something: then a pass is worth it.
    #[must_use]
    pub fn news(&self) -> &Revisions {
        self.keeper.changes()
    }

    /// Takes over what others have done to the clusters.
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
            let name = object.metadata.name.as_deref().expect("objects have names");
            let claimed = self.keeper.wait(self.keeper.claim(name, &resource::claimed(cluster.id)));
            claimed.map_err(|error| PlaneError::Keeper(Box::new(error)))?;
        }
        Ok(())
    }

    fn keep(&self, state: DesiredState) -> Result<(), PlaneError> {
        self.store.save(&encode(&state)).map_err(|source| PlaneError::Store { action: "keep", source })?;
        self.known.should_be(state);
        Ok(())
    }

    async fn take(&self, step: &Step) -> Result<(), KeeperError> {
        match step {
            Step::Create(object) => self.keeper.create(object).await,
            Step::Change { name, patch } => self.keeper.change(name, patch).await,
            Step::Delete { name } => self.keeper.delete(name).await,
        }
    }

    /// Makes the workers of the instance's own process what they should be.
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

    /// Does what is to be done about those in pods.
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
                        tracing::warn!(name, error, "a worker that does not answer cannot be replaced");
                    }
                }
            }
        }
        actions
    }

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

    fn observe(&self) {
        let mut workers: Vec<Worker> = self.hosts.embedded.observe();
        workers.extend(self.look_at_guests(self.known.settings()).workers);
        self.known.are_there(workers);
    }
}

impl Keeper {
    /// What the workers of each cluster are to be, by the name of its object.
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

/// Whether a cluster is one of pods.
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
                tracing::warn!(%error, "an idle cluster stays awake");
            }
        }
        let news = self.news().current();
        let is_news = std::mem::replace(&mut *self.seen.lock(), news) != news;
        if is_news && let Err(error) = self.adopt() {
            // Looked at again at the next pass.
            *self.seen.lock() = 0;
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "what others have done to the clusters is not taken over yet");
        }
        // Read before: where this process itself stands still in between, nobody was silent meanwhile.
        let now = self.clock.monotonic();
        let paused = now.saturating_sub(std::mem::replace(&mut *last, now));
        let settings = self.known.settings().after_pause(paused);
        let mut actions = self.pass_embedded(&settings);
        actions.extend(self.pass_guests(&settings));
        self.observe();
        actions
    }
}

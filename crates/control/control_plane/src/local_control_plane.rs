//! The control plane of one machine, with the desired state in a local store and a worker host for each kind of
//! hardware.
//!
//! It has no thread of its own; its owner calls [`ControlPlane::reconcile`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::ClusterActivity;
use cluster_model::cluster_events::ClusterEvent;
use cluster_model::desired_state::stored_encoding::{decode, encode};
use cluster_model::desired_state::{Author, Change, ClusterId, DesiredState, HardwareKind, Inventory};
use cluster_model::reconcile::{Action, ReconcileSettings, reconcile, suspend_idle};
use cluster_model::worker::WorkerId;
use parking_lot::Mutex;
use types::{Clock, Oid};

use super::{CachedState, ControlPlane, ControlPlaneError, StartRequest, WorkerHost};

/// Store of the desired state: a single value that is replaced atomically.
pub trait StateStore: Send + Sync + fmt::Debug {
    /// Returns the last saved bytes; `None` if there are none.
    fn load(&self) -> io::Result<Option<Vec<u8>>>;
    /// Saves the bytes durably and atomically: after a failure or a crash, either the old or the new value is stored.
    fn save(&self, bytes: &[u8]) -> io::Result<()>;
}

/// Loads the desired state from the store. If the store is empty, saves and returns a new state with the cluster
/// `default`, owned by `owner`.
///
/// # Errors
/// The store cannot be read or written, or its content is damaged.
pub fn load_or_create(
    store: &dyn StateStore,
    clock: &dyn Clock,
    owner: Oid,
) -> Result<DesiredState, ControlPlaneError> {
    let kept = store.load().map_err(|source| ControlPlaneError::Store { action: "read", source })?;
    if let Some(bytes) = kept {
        return Ok(decode(&bytes)?);
    }
    let fresh = DesiredState::initial(owner, clock.now_us());
    store.save(&encode(&fresh)).map_err(|source| ControlPlaneError::Store { action: "write", source })?;
    Ok(fresh)
}

/// Control plane of one machine.
#[derive(Debug)]
pub struct LocalControlPlane {
    store: Box<dyn StateStore>,
    hosts: BTreeMap<HardwareKind, Arc<dyn WorkerHost>>,
    inventory: Arc<Inventory>,
    clock: Arc<dyn Clock>,
    /// Lock around the computation and storing of a change, so that readers do not wait for the store.
    change_lock: Mutex<()>,
    /// Start time of the last pass. Locked during a pass, because concurrent passes would start every worker twice.
    last_pass: Mutex<Duration>,
    cached_state: CachedState,
}

impl LocalControlPlane {
    /// Opens the control plane with the stored state, or a new one with the cluster `default`, owned by `owner`.
    ///
    /// # Errors
    /// The store cannot be read or written, or its content is damaged.
    ///
    /// # Panics
    /// If the inventory has a kind of hardware without a host.
    pub fn open(
        store: Box<dyn StateStore>,
        hosts: BTreeMap<HardwareKind, Arc<dyn WorkerHost>>,
        inventory: Inventory,
        settings: ReconcileSettings,
        clock: Arc<dyn Clock>,
        owner: Oid,
    ) -> Result<LocalControlPlane, ControlPlaneError> {
        for hardware in inventory.all_hardware() {
            assert!(hosts.contains_key(&hardware.kind), "no worker host for hardware \"{}\"", hardware.name);
        }
        let desired = load_or_create(&*store, &*clock, owner)?;
        let began = clock.monotonic();
        Ok(LocalControlPlane {
            store,
            hosts,
            inventory: Arc::new(inventory),
            cached_state: CachedState::new(desired, settings, Arc::clone(&clock)),
            clock,
            change_lock: Mutex::default(),
            last_pass: Mutex::new(began),
        })
    }

    /// Returns the settings of reconciliation.
    #[must_use]
    pub fn settings(&self) -> &ReconcileSettings {
        self.cached_state.settings()
    }

    /// Observes all workers and returns the kind of host of each.
    fn observe(&self) -> HashMap<WorkerId, HardwareKind> {
        let mut workers = Vec::new();
        let mut found = HashMap::new();
        for (kind, host) in &self.hosts {
            let hosted = host.observe();
            found.extend(hosted.iter().map(|worker| (worker.id, *kind)));
            workers.extend(hosted);
        }
        self.cached_state.set_workers(workers);
        found
    }

    /// Executes an action.
    fn execute(&self, action: &Action, found: &HashMap<WorkerId, HardwareKind>) {
        let host = |worker: &WorkerId| &self.hosts[&found[worker]];
        match action {
            Action::Start { cluster, slot, spec } => match self.inventory.hardware(&spec.hardware_instance) {
                Ok(hardware) => {
                    self.hosts[&hardware.kind].start(&StartRequest {
                        cluster: *cluster,
                        slot: *slot,
                        spec: spec.clone(),
                    });
                }
                // Hardware that only an earlier version offered.
                Err(error) => tracing::warn!(%error, %cluster, slot, "could not start a worker"),
            },
            Action::Configure { worker, spec } => host(worker).configure(*worker, spec),
            Action::Drain { worker } => host(worker).drain(*worker),
            Action::Stop { worker, reason } => host(worker).stop(*worker, *reason),
            Action::MarkHung { worker } => host(worker).mark_hung(*worker),
            Action::Forget { worker } => host(worker).forget(*worker),
        }
    }
}

impl ControlPlane for LocalControlPlane {
    fn apply(&self, change: &Change, author: &Author) -> Result<Vec<ClusterEvent>, ControlPlaneError> {
        let _one = self.change_lock.lock();
        let desired = self.desired();
        let (state, events) = desired.change(&self.inventory, change, author, self.clock.now_us())?;
        if events.is_empty() {
            return Ok(events);
        }
        self.store.save(&encode(&state)).map_err(|source| ControlPlaneError::Store { action: "write", source })?;
        self.cached_state.set_desired(state);
        Ok(events)
    }

    fn cached_state(&self) -> &CachedState {
        &self.cached_state
    }

    fn inventory(&self) -> Arc<Inventory> {
        Arc::clone(&self.inventory)
    }

    fn reconcile(&self, activity: &BTreeMap<ClusterId, ClusterActivity>) -> Vec<Action> {
        let mut last = self.last_pass.lock();
        for change in suspend_idle(&self.desired(), activity, self.clock.now_us()) {
            if let Err(error) = self.apply(&change, &Author::Instance) {
                tracing::warn!(%error, "could not suspend an idle cluster");
            }
        }
        // Read the clock before observing: if this process is stopped in between, workers must not appear silent.
        let now = self.clock.monotonic();
        let paused = now.saturating_sub(std::mem::replace(&mut *last, now));
        let found = self.observe();
        let actions =
            reconcile(&self.desired(), &self.workers(), now, &self.cached_state.settings().after_pause(paused));
        for action in &actions {
            self.execute(action, &found);
        }
        if !actions.is_empty() {
            // Publish workers that drain or start now before the next pass.
            self.observe();
        }
        actions
    }
}

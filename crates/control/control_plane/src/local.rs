//! The control plane of one machine: the desired state in a store of its own, workers by hosts of each kind, and passes that make the one
//! true of the other.
//!
//! It has no thread: whoever owns it has it look.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::Activity;
use cluster_model::desired::stored::{decode, encode};
use cluster_model::desired::{Author, Change, ClusterId, DesiredState, HardwareKind, Inventory};
use cluster_model::events::ClusterEvent;
use cluster_model::reconcile::{Action, Settings, reconcile, suspend_idle};
use cluster_model::worker::WorkerId;
use parking_lot::Mutex;
use types::{Clock, Oid};

use super::{ControlPlane, Known, PlaneError, StartWorker, WorkerHost};

/// Where the desired state is kept: one value, replaced as a whole.
pub trait StateStore: Send + Sync + fmt::Debug {
    /// What was last kept; `None` where nothing was.
    fn load(&self) -> io::Result<Option<Vec<u8>>>;
    /// Keeps the bytes, durably and as a whole: after a failure or a crash there is what was kept before, or all of these.
    fn save(&self, bytes: &[u8]) -> io::Result<()>;
}

/// The state that the store has; where it has nothing, one with the cluster `default`, which `owner` owns, and which is kept there.
///
/// # Errors
/// The store cannot be read or written, or has what was not written.
pub fn go_on(store: &dyn StateStore, clock: &dyn Clock, owner: Oid) -> Result<DesiredState, PlaneError> {
    let kept = store.load().map_err(|source| PlaneError::Store { action: "read", source })?;
    if let Some(bytes) = kept {
        return Ok(decode(&bytes)?);
    }
    let fresh = DesiredState::fresh(owner, clock.now_us());
    store.save(&encode(&fresh)).map_err(|source| PlaneError::Store { action: "keep", source })?;
    Ok(fresh)
}

/// The control plane of one machine.
#[derive(Debug)]
pub struct LocalControlPlane {
    store: Box<dyn StateStore>,
    hosts: BTreeMap<HardwareKind, Arc<dyn WorkerHost>>,
    inventory: Arc<Inventory>,
    clock: Arc<dyn Clock>,
    /// Held while a change is made and kept: readers do not wait for the store.
    changing: Mutex<()>,
    /// When the last pass began. Held during a pass: two at a time would start everything twice.
    passing: Mutex<Duration>,
    known: Known,
}

impl LocalControlPlane {
    /// A control plane that goes on with what the store has; where it has nothing, with the cluster `default`, which `owner` owns then.
    ///
    /// # Errors
    /// The store cannot be read, or has what was not written.
    ///
    /// # Panics
    /// Where the inventory has hardware of a kind without a host.
    pub fn open(
        store: Box<dyn StateStore>,
        hosts: BTreeMap<HardwareKind, Arc<dyn WorkerHost>>,
        inventory: Inventory,
        settings: Settings,
        clock: Arc<dyn Clock>,
        owner: Oid,
    ) -> Result<LocalControlPlane, PlaneError> {
        for hardware in inventory.all_hardware() {
            assert!(hosts.contains_key(&hardware.kind), "hardware \"{}\" has a host", hardware.name);
        }
        let desired = go_on(&*store, &*clock, owner)?;
        let began = clock.monotonic();
        Ok(LocalControlPlane {
            store,
            hosts,
            inventory: Arc::new(inventory),
            known: Known::new(desired, settings, Arc::clone(&clock)),
            clock,
            changing: Mutex::default(),
            passing: Mutex::new(began),
        })
    }

    /// How patient this one is.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.known.settings()
    }

    /// Looks at all workers, and says which host has each.
    fn observe(&self) -> HashMap<WorkerId, HardwareKind> {
        let mut workers = Vec::new();
        let mut found = HashMap::new();
        for (kind, host) in &self.hosts {
            let hosted = host.observe();
            found.extend(hosted.iter().map(|worker| (worker.id, *kind)));
            workers.extend(hosted);
        }
        self.known.are_there(workers);
        found
    }

    fn act(&self, action: &Action, found: &HashMap<WorkerId, HardwareKind>) {
        let host = |worker: &WorkerId| &self.hosts[&found[worker]];
        match action {
            Action::Start { cluster, slot, spec } => match self.inventory.hardware(&spec.hardware_instance) {
                Ok(hardware) => {
                    self.hosts[&hardware.kind].start(&StartWorker {
                        cluster: *cluster,
                        slot: *slot,
                        spec: spec.clone(),
                    });
                }
                // An earlier version offered it.
                Err(error) => tracing::warn!(%error, %cluster, slot, "a worker cannot be started"),
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
    fn apply(&self, change: &Change, author: &Author) -> Result<Vec<ClusterEvent>, PlaneError> {
        let _one = self.changing.lock();
        let desired = self.desired();
        let (state, events) = desired.change(&self.inventory, change, author, self.clock.now_us())?;
        if events.is_empty() {
            return Ok(events);
        }
        self.store.save(&encode(&state)).map_err(|source| PlaneError::Store { action: "keep", source })?;
        self.known.should_be(state);
        Ok(events)
    }

    fn known(&self) -> &Known {
        &self.known
    }

    fn inventory(&self) -> Arc<Inventory> {
        Arc::clone(&self.inventory)
    }

    fn pass(&self, activity: &BTreeMap<ClusterId, Activity>) -> Vec<Action> {
        let mut last = self.passing.lock();
        for change in suspend_idle(&self.desired(), activity, self.clock.now_us()) {
            if let Err(error) = self.apply(&change, &Author::Instance) {
                tracing::warn!(%error, "an idle cluster stays awake");
            }
        }
        // Read before: where this process itself stands still in between, nobody was silent meanwhile.
        let now = self.clock.monotonic();
        let paused = now.saturating_sub(std::mem::replace(&mut *last, now));
        let found = self.observe();
        let actions = reconcile(&self.desired(), &self.workers(), now, &self.known.settings().after_pause(paused));
        for action in &actions {
            self.act(action, &found);
        }
        if !actions.is_empty() {
            // Who drains or has begun to start is known before the next pass.
            self.observe();
        }
        actions
    }
}

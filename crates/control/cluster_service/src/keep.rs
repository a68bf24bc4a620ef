//! What keeps the workers as they should be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use catalog::Definitions;
use cluster_model::{Activity, Author, Change, ClusterId};
use futures::future::BoxFuture;
use txn::Transactions;
use types::Health;

use crate::clusters::Clusters;

/// Workers are looked at so often where nothing is known to have changed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What was looked at when the roles were last compared.
#[derive(Default)]
struct Compared {
    generation: u64,
    definitions: Option<Arc<Definitions>>,
}

impl Clusters {
    /// Makes the workers what they should be for as long as the server runs, and lets clusters that are idle sleep.
    pub fn keep<'a>(self: &'a Arc<Self>, transactions: &'a Transactions, health: &'a Health) -> BoxFuture<'a, ()> {
        Box::pin(self.keep_unboxed(transactions, health))
    }

    async fn keep_unboxed(self: &Arc<Self>, transactions: &Transactions, health: &Health) {
        let mut compared = Compared::default();
        loop {
            let seen = self.revision();
            let seen_processes = self.processes.as_ref().map_or(0, |processes| processes.changes().current());
            // Threads are started, and a change is written to disk.
            let pass = tokio::task::spawn_blocking({
                let clusters = Arc::clone(self);
                move || clusters.pass()
            });
            match pass.await {
                Ok(()) => health.report_success(),
                Err(error) => {
                    tracing::error!(%error, "the workers could not be looked at");
                    health.report_failure(error);
                }
            }
            self.forget_gone_roles(transactions, &mut compared).await;
            tokio::select! {
                () = self.changed_since(seen) => {}
                () = self.processes_changed_since(seen_processes) => {}
                () = self.clock.sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Completes when a look at the workers in other processes is worth it.
    async fn processes_changed_since(&self, seen: u64) {
        match &self.processes {
            Some(processes) => drop(processes.changes().after(seen).await),
            None => std::future::pending().await,
        }
    }

    /// One look at the workers, and what it leads to.
    pub(crate) fn pass(self: &Arc<Self>) {
        let activity: BTreeMap<ClusterId, Activity> =
            self.gates.lock().iter().map(|(id, gate)| (*id, gate.admission.activity())).collect();
        // Before a worker begins that may want one of them.
        self.clean_folders();
        // Before somebody is let go of whom others take over.
        self.note_owners();
        for action in self.plane.pass(&activity) {
            tracing::debug!(?action, "workers change");
        }
        self.note_owners();
        self.begin_hand_overs();
        self.move_gates();
    }

    /// Takes away what workers of slots have left on the disk that are not there any more.
    fn clean_folders(&self) {
        let Some(processes) = &self.processes else { return };
        let desired = self.plane.desired();
        let generation = desired.generation();
        if self.cleaned.swap(generation, Ordering::Relaxed) == generation {
            return;
        }
        processes.clean_folders(|cluster, slot| {
            desired.cluster(cluster).is_some_and(|cluster| slot < cluster.spec.node_count)
        });
    }

    /// Takes back what roles have on clusters that are not there any more: DROP ROLE is a transaction's, clusters are not.
    async fn forget_gone_roles(self: &Arc<Self>, transactions: &Transactions, compared: &mut Compared) {
        // In this order: who is named here was there before.
        let desired = self.plane.desired();
        let state = transactions.current().state;
        let definitions = state.definitions();
        let is_same = compared.generation == desired.generation()
            && compared.definitions.as_ref().is_some_and(|known| Arc::ptr_eq(known, definitions));
        if is_same {
            return;
        }
        let gone: Vec<Change> = desired
            .roles()
            .into_iter()
            .filter(|role| state.role(*role).is_none())
            .map(|role| Change::ForgetRole { role })
            .collect();
        for change in gone {
            if let Err(error) = self.apply(vec![change], Author::Instance).await {
                tracing::warn!(error = error.message, "a dropped role keeps what it has on clusters");
            }
        }
        *compared = Compared { generation: desired.generation(), definitions: Some(Arc::clone(definitions)) };
    }
}

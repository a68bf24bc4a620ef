//! The reconciliation loop: calls the control plane periodically and when something has changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use catalog::Definitions;
use cluster_model::{Author, Change, ClusterActivity, ClusterId};
use futures::future::BoxFuture;
use txn::Transactions;
use types::ServiceHealth;

use crate::clusters::Clusters;

/// Interval of reconciliation passes if no change is reported.
const RECONCILE_INTERVAL: Duration = Duration::from_millis(500);

/// State of clusters and catalog for which dropped roles were last looked for.
#[derive(Default)]
struct CheckedRoles {
    generation: u64,
    definitions: Option<Arc<Definitions>>,
}

impl Clusters {
    /// Runs the reconciliation loop, which also suspends idle clusters, for as long as the server runs.
    pub fn run_reconciliation<'a>(
        self: &'a Arc<Self>,
        transactions: &'a Transactions,
        health: &'a ServiceHealth,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.run_reconciliation_unboxed(transactions, health))
    }

    async fn run_reconciliation_unboxed(self: &Arc<Self>, transactions: &Transactions, health: &ServiceHealth) {
        let mut compared = CheckedRoles::default();
        loop {
            let seen = self.revision();
            let seen_processes = self.processes.as_ref().map_or(0, |processes| processes.changes().current());
            // A pass starts threads and writes changes to disk.
            let pass = tokio::task::spawn_blocking({
                let clusters = Arc::clone(self);
                move || clusters.reconcile()
            });
            match pass.await {
                Ok(()) => health.report_success(),
                Err(error) => {
                    tracing::error!(%error, "reconciliation of workers panicked");
                    health.report_failure(error);
                }
            }
            self.revoke_from_dropped_roles(transactions, &mut compared).await;
            tokio::select! {
                () = self.wait_for_change(seen) => {}
                () = self.processes_changed_since(seen_processes) => {}
                () = self.clock.sleep(RECONCILE_INTERVAL) => {}
            }
        }
    }

    /// Waits until the state of a worker process has changed.
    async fn processes_changed_since(&self, seen: u64) {
        match &self.processes {
            Some(processes) => drop(processes.changes().wait_for_newer(seen).await),
            None => std::future::pending().await,
        }
    }

    /// Runs one reconciliation pass and updates folders, ownership and admission.
    pub(crate) fn reconcile(self: &Arc<Self>) {
        let activity: BTreeMap<ClusterId, ClusterActivity> =
            self.admissions.lock().iter().map(|(id, gate)| (*id, gate.admission.activity())).collect();
        // Before the pass, which may start a worker in one of the folders.
        self.clean_folders();
        // Before the pass, which may stop a worker whose cache others should fetch.
        self.update_ownership();
        for action in self.plane.reconcile(&activity) {
            tracing::debug!(?action, "did a reconciliation action on a worker");
        }
        self.update_ownership();
        self.start_handovers();
        self.update_admission();
    }

    /// Deletes the folders of slots that do not exist any more, once for each generation of the desired state.
    fn clean_folders(&self) {
        let Some(processes) = &self.processes else { return };
        let desired = self.plane.desired();
        let generation = desired.generation();
        if self.cleaned_generation.swap(generation, Ordering::Relaxed) == generation {
            return;
        }
        processes.clean_folders(|cluster, slot| {
            desired.cluster(cluster).is_some_and(|cluster| slot < cluster.spec.node_count)
        });
    }

    /// Revokes the grants of dropped roles. DROP ROLE is transactional and changes of clusters are not, so this happens
    /// afterwards.
    async fn revoke_from_dropped_roles(self: &Arc<Self>, transactions: &Transactions, compared: &mut CheckedRoles) {
        // In this order: each role that the desired state names existed before, so one missing in the later catalog is
        // dropped.
        let desired = self.plane.desired();
        let state = transactions.current().state;
        let definitions = state.definitions();
        let is_same = compared.generation == desired.generation()
            && compared.definitions.as_ref().is_some_and(|known| Arc::ptr_eq(known, definitions));
        if is_same {
            return;
        }
        let gone: Vec<Change> = desired
            .referenced_roles()
            .into_iter()
            .filter(|role| state.role(*role).is_none())
            .map(|role| Change::RemoveRole { role })
            .collect();
        for change in gone {
            if let Err(error) = self.apply(vec![change], Author::Instance).await {
                tracing::warn!(error = error.message, "could not revoke the cluster privileges of a dropped role");
            }
        }
        *compared = CheckedRoles { generation: desired.generation(), definitions: Some(Arc::clone(definitions)) };
    }
}

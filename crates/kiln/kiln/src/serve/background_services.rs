//! Background services of a server, with the names by which `sys.service` shows them.

use std::sync::Arc;

use kubernetes::KubernetesConnection;
use maintenance::FlushSettings;
use session::instance::Instance;
use supervisor::Supervisor;
use txn::CleanSettings;
use types::{Clock, DiskReserve};

use crate::kubernetes_clusters;

/// Name of the service that copies the log of commits to the storage.
const ARCHIVER_SERVICE: &str = "archiver";
/// Name of the service that writes checkpoints to the storage.
const CHECKPOINTER_SERVICE: &str = "checkpointer";

/// Returns whether a service archives the history. Those stop last, because commits are still copied while all else
/// shuts down.
pub(super) fn archives_history(name: &str) -> bool {
    matches!(name, ARCHIVER_SERVICE | CHECKPOINTER_SERVICE)
}

/// Starts the services of a server. `reserve` is the space that they keep free on the data folder's disk.
pub(super) fn start(instance: &Arc<Instance>, settle: FlushSettings, reserve: Option<DiskReserve>) {
    // The first four end by themselves when the server can no longer write; it then stops.
    let (services, transactions, execution) = (&instance.services, &instance.transactions, &instance.execution);
    services.start_until_done(ARCHIVER_SERVICE, transactions, |transactions, health| async move {
        transactions.run_log_archiver(&health).await;
    });
    services.start_until_done(CHECKPOINTER_SERVICE, transactions, |transactions, health| async move {
        transactions.run_checkpointer(&health).await;
    });
    services.start_until_done("cleaner", transactions, |transactions, health| async move {
        transactions.run_cleaner(CleanSettings::default(), &health).await;
    });
    services.start_until_done("settler", execution.maintenance(), move |maintenance, health| async move {
        maintenance.run_flush_loop(settle, &health).await;
    });
    services.start("cache keeper", execution.cache_retention(), |keeper, _| async move { keeper.run().await });
    if let Some(reserve) = reserve {
        let parts = (Arc::clone(execution.executor()), reserve);
        services.start("spill keeper", &parts, |(executor, reserve), health| async move {
            executor.maintain_spill_reserve(&reserve, &health).await;
        });
    }
    services.start("cluster keeper", instance, |instance, health| async move {
        instance.reconcile_clusters(&health).await;
    });
    services.start("thread watchdog", instance, |instance, _| async move { instance.watch_threads().await });
    let credentials = &instance.credentials;
    if credentials.certificate().is_some() {
        services.start("certificate keeper", credentials, |credentials, health| async move {
            credentials.watch_certificate(&health).await;
        });
    }
    if credentials.superuser_password().is_some() {
        services.start("password keeper", credentials, |credentials, health| async move {
            credentials.watch_superuser_password(&health).await;
        });
    }
}

/// Starts the service that publishes the certificate by which workers in Kubernetes verify the warehouse.
pub(super) fn start_authority_publisher(
    services: &Supervisor,
    warehouse: KubernetesConnection,
    certificate: String,
    clock: Arc<dyn Clock>,
) {
    let parts = Arc::new((warehouse, certificate, clock));
    services.start_until_done("authority keeper", &parts, |parts, health| async move {
        let (warehouse, certificate, clock) = &*parts;
        kubernetes_clusters::publish_authority(warehouse, certificate, &**clock, &health).await;
    });
}

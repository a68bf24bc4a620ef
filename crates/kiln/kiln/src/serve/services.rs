//! The background services of a server: what each runs, and under which name `sys.service` shows it.

use std::sync::Arc;

use kubernetes::Warehouse;
use maintenance::SettleSettings;
use session::instance::Instance;
use supervisor::Supervisor;
use txn::CleanSettings;
use types::{Clock, Reserve};

use crate::pods;

/// Copies the log of commits to the storage.
const ARCHIVER: &str = "archiver";
/// Writes checkpoints to the storage.
const CHECKPOINTER: &str = "checkpointer";

/// True for the services that keep the history. They stop last, because commits are copied while everything else is taken down.
pub(super) fn keeps_history(name: &str) -> bool {
    matches!(name, ARCHIVER | CHECKPOINTER)
}

/// Starts the services of every server, `reserve` being what they leave free of the data folder's disk.
pub(super) fn start(instance: &Arc<Instance>, settle: SettleSettings, reserve: Option<Reserve>) {
    // The first four end by themselves where the server may write no more: it stops then.
    let (services, transactions, execution) = (&instance.services, &instance.transactions, &instance.execution);
    services.start_until_done(ARCHIVER, transactions, |transactions, health| async move {
        transactions.keep_log_copied(&health).await;
    });
    services.start_until_done(CHECKPOINTER, transactions, |transactions, health| async move {
        transactions.keep_checkpoints(&health).await;
    });
    services.start_until_done("cleaner", transactions, |transactions, health| async move {
        transactions.keep_clean(CleanSettings::default(), &health).await;
    });
    services.start_until_done("settler", execution.maintenance(), move |maintenance, health| async move {
        maintenance.keep_settled(settle, &health).await;
    });
    services.start("cache keeper", execution.cache_keeper(), |keeper, _| async move { keeper.keep().await });
    if let Some(reserve) = reserve {
        let parts = (Arc::clone(execution.executor()), reserve);
        services.start("spill keeper", &parts, |(executor, reserve), health| async move {
            executor.keep_spill_room(&reserve, &health).await;
        });
    }
    services.start("cluster keeper", instance, |instance, health| async move {
        instance.keep_clusters(&health).await;
    });
    services.start("thread watchdog", instance, |instance, _| async move { instance.watch_threads().await });
    let credentials = &instance.credentials;
    if credentials.certificate().is_some() {
        services.start("certificate keeper", credentials, |credentials, health| async move {
            credentials.keep_certificate(&health).await;
        });
    }
    if credentials.superuser_password().is_some() {
        services.start("password keeper", credentials, |credentials, health| async move {
            credentials.keep_superuser_password(&health).await;
        });
    }
}

/// Starts what says by which certificate the workers of a warehouse in Kubernetes know it.
pub(super) fn start_authority(services: &Supervisor, warehouse: Warehouse, certificate: String, clock: Arc<dyn Clock>) {
    let parts = Arc::new((warehouse, certificate, clock));
    services.start_until_done("authority keeper", &parts, |parts, health| async move {
        let (warehouse, certificate, clock) = &*parts;
        pods::say_authority(warehouse, certificate, &**clock, &health).await;
    });
}

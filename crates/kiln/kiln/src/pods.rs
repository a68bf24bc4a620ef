//! A warehouse whose clusters are pods: its way to the API server, and what its control plane is put together of.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cluster_service::{ClusterSettings, Clusters};
use control_plane::{ControlPlane, Guests, PlaneError};
use executor::Executor;
use fleet::Processes;
use kubernetes::{Hosts, KubernetesControlPlane, Warehouse};
use types::{Clock, Health, Random, with_causes};

/// Between tries to say by which certificate workers know the warehouse.
const SAY_AGAIN: Duration = Duration::from_secs(5);

/// The way to the clusters of the Instance of this name, in the namespace of this pod or of the kubeconfig. The API server need not answer yet: a warehouse
/// goes on with what it knows.
pub(crate) async fn find(instance: &str, clock: &Arc<dyn Clock>) -> anyhow::Result<Warehouse> {
    let (client, namespace) = kubernetes::connect().await.context("cannot have clusters in Kubernetes")?;
    Ok(Warehouse::watch(client, namespace, instance.to_owned(), Arc::clone(clock)))
}

/// Its clusters.
pub(crate) fn clusters(
    warehouse: &Warehouse,
    executor: &Executor,
    data: &Path,
    settings: ClusterSettings,
    processes: Arc<Processes>,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
) -> Result<Arc<Clusters>, PlaneError> {
    let guests = Arc::clone(&processes) as Arc<dyn Guests>;
    let planes_clock = Arc::clone(clock);
    Clusters::open_with(executor, data, settings, Some(processes), Arc::clone(clock), Arc::clone(random), |parts| {
        let hosts = Hosts { guests, embedded: parts.embedded };
        let plane = KubernetesControlPlane::open(
            warehouse,
            parts.store,
            hosts,
            parts.profiles,
            parts.patience,
            planes_clock,
            parts.owner,
        )?;
        Ok(Box::new(plane) as Box<dyn ControlPlane>)
    })
}

/// Says by which certificate workers know the warehouse, until the API server has heard it.
pub(crate) async fn say_authority(warehouse: &Warehouse, certificate: &str, clock: &dyn Clock, health: &Health) {
    while let Err(error) = warehouse.say_authority(certificate).await {
        health.report_failure(with_causes(&error));
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "workers cannot be told yet by which certificate they know the warehouse"
        );
        clock.sleep(SAY_AGAIN).await;
    }
}

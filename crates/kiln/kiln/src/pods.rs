//! Clusters of a warehouse in Kubernetes: the connection to the API server, and the control plane.

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

/// Time between attempts to publish the authority's certificate.
const SAY_AGAIN: Duration = Duration::from_secs(5);

/// Connects to the clusters of an Instance in the namespace of this pod or of the kubeconfig. The API server need not
/// respond yet: a warehouse starts with the clusters in its data folder.
pub(crate) async fn find(instance: &str, clock: &Arc<dyn Clock>) -> anyhow::Result<Warehouse> {
    let (client, namespace) = kubernetes::connect().await.context("cannot use Kubernetes for clusters")?;
    Ok(Warehouse::watch(client, namespace, instance.to_owned(), Arc::clone(clock)))
}

/// Opens the clusters of a warehouse with the control plane of Kubernetes.
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

/// Publishes the certificate by which workers verify the warehouse, and retries until the API server has accepted it.
pub(crate) async fn say_authority(warehouse: &Warehouse, certificate: &str, clock: &dyn Clock, health: &Health) {
    while let Err(error) = warehouse.say_authority(certificate).await {
        health.report_failure(with_causes(&error));
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "could not publish the certificate for workers; none can join until that succeeds"
        );
        clock.sleep(SAY_AGAIN).await;
    }
}

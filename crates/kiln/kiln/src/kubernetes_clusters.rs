//! Clusters of a warehouse in Kubernetes: the connection to the API server, and the control plane.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cluster_service::{ClusterSettings, Clusters};
use control_plane::{ControlPlane, ControlPlaneError, TokenWorkerHost};
use executor::Executor;
use fleet::WorkerProcesses;
use kubernetes::{KubernetesConnection, KubernetesControlPlane, WorkerHosts};
use types::{Clock, Random, ServiceHealth, with_causes};

/// Time between attempts to publish the authority's certificate.
const PUBLISH_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Connects to the clusters of an Instance in the namespace of this pod or of the kubeconfig. The API server need not
/// respond yet: a warehouse starts with the clusters in its data folder.
pub(crate) async fn connect(instance: &str, clock: &Arc<dyn Clock>) -> anyhow::Result<KubernetesConnection> {
    let (client, namespace) = kubernetes::connect().await.context("cannot use Kubernetes for clusters")?;
    Ok(KubernetesConnection::watch(client, namespace, instance.to_owned(), Arc::clone(clock)))
}

/// Opens the clusters of a warehouse with the control plane of Kubernetes.
pub(crate) fn open_clusters(
    warehouse: &KubernetesConnection,
    executor: &Executor,
    data: &Path,
    settings: ClusterSettings,
    processes: Arc<WorkerProcesses>,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
) -> Result<Arc<Clusters>, ControlPlaneError> {
    let guests = Arc::clone(&processes) as Arc<dyn TokenWorkerHost>;
    let planes_clock = Arc::clone(clock);
    Clusters::open_with(executor, data, settings, Some(processes), Arc::clone(clock), Arc::clone(random), |parts| {
        let hosts = WorkerHosts { pods: guests, embedded: parts.embedded };
        let plane = KubernetesControlPlane::open(
            warehouse,
            parts.store,
            hosts,
            parts.profiles,
            parts.settings,
            planes_clock,
            parts.owner,
        )?;
        Ok(Box::new(plane) as Box<dyn ControlPlane>)
    })
}

/// Publishes the certificate by which workers verify the warehouse, and retries until the API server has accepted it.
pub(crate) async fn publish_authority(
    warehouse: &KubernetesConnection,
    certificate: &str,
    clock: &dyn Clock,
    health: &ServiceHealth,
) {
    while let Err(error) = warehouse.publish_authority(certificate).await {
        health.report_failure(with_causes(&error));
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "could not publish the certificate by which Kubernetes workers verify this warehouse; no worker can join until that succeeds"
        );
        clock.sleep(PUBLISH_RETRY_INTERVAL).await;
    }
}

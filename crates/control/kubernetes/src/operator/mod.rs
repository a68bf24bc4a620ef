//! `kiln operator`: watches Instances and ComputeClusters and reconciles each of them.
//!
//! Two controllers call the pure functions of `instance` and `compute`. Several operators may run; one of them leads by
//! a lease, the others wait. An operator has no state besides the objects in Kubernetes, so a restarted one finds
//! everything as the previous one left it and writes nothing.
//!
//! - `lease_decision.rs`: decides who leads, from the lease as it was read.
//! - `leadership.rs`: acquires, renews and releases the lease.
//! - `instance_reconciler.rs`: reconciles one Instance.
//! - `cluster_reconciler.rs`: reconciles one ComputeCluster.
//! - `watch_cache.rs`: watches objects and caches them.
//! - `apply_objects.rs`: applies desired objects and deletes orphans.
//! - `authority_provider.rs`: loads or creates the certificate authority of the namespace.
//! - `status_writer.rs`: writes the status of a resource.
//! - `reconcile_error.rs`: errors of a reconciliation.

mod apply_objects;
mod authority_provider;
mod cluster_reconciler;
mod instance_reconciler;
mod leadership;
mod lease_decision;
mod reconcile_error;
mod status_writer;
mod watch_cache;

use std::sync::Arc;
use std::time::Duration;

use authority_provider::AuthorityProvider;
use futures::StreamExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::runtime::controller::{Config as LoopConfig, Error as ControllerError};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, ResourceExt};
use leadership::Leadership;
use types::{Clock, Random};
use watch_cache::{finder_by_label, watch};

use crate::compute_cluster::CLUSTER_LABEL;
use crate::connect_api_server::{ConnectError, connect};
use crate::instance::INSTANCE_LABEL;
use crate::resources::{ComputeCluster, HardwareProfile, Instance};

/// Field manager of the operator's server-side apply.
pub const FIELD_MANAGER: &str = "kiln-operator";
/// Name of the lease by which one operator leads in a namespace.
pub const LEASE_NAME: &str = "kiln-operator";

/// Debounce of changes to a cluster: each pod that becomes ready changes the StatefulSet, and one reconciliation after
/// the last of several changes suffices.
const RECONCILE_DEBOUNCE: Duration = Duration::from_millis(300);
/// Concurrent reconciliations of each controller.
const CONCURRENCY_MAX: u16 = 8;

/// Settings of an operator.
#[derive(Debug, Clone)]
pub struct OperatorSettings {
    /// Namespace of the instances, or `None` for the namespace in which the operator runs.
    pub namespace: Option<String>,
    /// Name of this operator in the lease, unique among those that run.
    pub identity: String,
    /// Duration of the lease: time after the leader's last renewal in which no other operator takes over.
    pub lease: Duration,
}

/// Reason why an operator ends with a failure.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Instances cannot be listed and therefore not be watched: Kiln is not installed in the Kubernetes cluster, or the
    /// operator lacks permission.
    #[error("could not list the Instances of the namespace {namespace}")]
    ListInstances { namespace: String, source: kube::Error },
    #[error("lost the leadership: {reason}")]
    LeadershipLost { reason: String },
}

/// Runs the operator until `told` completes, with a client configured by the kubeconfig or the pod's service account.
///
/// # Errors
/// Returns [`OperatorError`] if the API server cannot be used or another operator has taken over.
pub fn run(
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    shutdown: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<(), OperatorError>> {
    Box::pin(async {
        let (client, usual) = connect().await?;
        let namespace = settings.namespace.clone().unwrap_or(usual);
        run_with(client, namespace, settings, clock, random, shutdown).await
    })
}

/// Runs the operator until `told` completes, with an existing client.
///
/// # Errors
/// Returns [`OperatorError`] if the Instances cannot be listed or another operator has taken over.
pub fn run_with(
    client: Client,
    namespace: String,
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    shutdown: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<(), OperatorError>> {
    Box::pin(run_as_leader(client, namespace, settings, clock, random, shutdown))
}

async fn run_as_leader(
    client: Client,
    namespace: String,
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    mut shutdown: BoxFuture<'_, ()>,
) -> Result<(), OperatorError> {
    let instances: Api<Instance> = Api::namespaced(client.clone(), &namespace);
    let one = kube::api::ListParams::default().limit(1);
    instances
        .list(&one)
        .await
        .map_err(|source| OperatorError::ListInstances { namespace: namespace.clone(), source })?;
    let leadership = Leadership::new(client.clone(), &namespace, &settings, Arc::clone(&clock));
    tokio::select! {
        () = &mut shutdown => return Ok(()),
        () = leadership.acquire() => {}
    }
    tracing::info!(namespace, identity = settings.identity, "acquired the lease; this operator leads");
    let ended = tokio::select! {
        () = &mut shutdown => Ok(()),
        reason = leadership.renew_until_lost() => Err(OperatorError::LeadershipLost { reason }),
        () = run_instance_controller(&client, &namespace, &clock, random) => Ok(()),
        () = run_cluster_controller(&client, &namespace, &clock) => Ok(()),
    };
    if ended.is_ok() {
        // The next operator can then lead at once and need not wait for the lease to expire.
        leadership.release().await;
    }
    ended
}

/// Runs the controller that reconciles an Instance whenever it or one of its objects changes.
async fn run_instance_controller(client: &Client, namespace: &str, clock: &Arc<dyn Clock>, random: Arc<dyn Random>) {
    let label = Some(INSTANCE_LABEL);
    let (sets, seen_sets) = watch::<StatefulSet>(client, namespace, label);
    let (services, seen_services) = watch::<Service>(client, namespace, label);
    let (budgets, seen_budgets) = watch::<PodDisruptionBudget>(client, namespace, label);
    let (accounts, seen_accounts) = watch::<ServiceAccount>(client, namespace, label);
    let (bindings, seen_bindings) = watch::<RoleBinding>(client, namespace, label);
    let (secrets, seen_secrets) = watch::<Secret>(client, namespace, label);
    let reconciler = Arc::new(instance_reconciler::InstanceReconciler {
        client: client.clone(),
        clock: Arc::clone(clock),
        random,
        authorities: AuthorityProvider::new(client.clone()),
        stateful_sets: sets.clone(),
        finders: vec![
            finder_by_label(sets, INSTANCE_LABEL),
            finder_by_label(services, INSTANCE_LABEL),
            finder_by_label(budgets, INSTANCE_LABEL),
            finder_by_label(accounts, INSTANCE_LABEL),
            finder_by_label(bindings, INSTANCE_LABEL),
            finder_by_label(secrets, INSTANCE_LABEL),
        ],
    });
    let instances: Api<Instance> = Api::namespaced(client.clone(), namespace);
    Controller::new(instances, watcher::Config::default())
        .with_config(LoopConfig::default().concurrency(CONCURRENCY_MAX))
        .owns_stream(seen_sets)
        .owns_stream(seen_services)
        .owns_stream(seen_budgets)
        .owns_stream(seen_accounts)
        .owns_stream(seen_bindings)
        .owns_stream(seen_secrets)
        .run(
            |instance, reconciler| async move { reconciler.reconcile(&instance).await },
            instance_reconciler::retry_action,
            reconciler,
        )
        .for_each(async |ended| log_outcome("Instance", ended))
        .await;
}

/// Runs the controller that reconciles a ComputeCluster whenever it, one of its objects, its Instance or its
/// HardwareProfile changes.
async fn run_cluster_controller(client: &Client, namespace: &str, clock: &Arc<dyn Clock>) {
    let (sets, seen_sets) = watch::<StatefulSet>(client, namespace, Some(CLUSTER_LABEL));
    let (services, seen_services) = watch::<Service>(client, namespace, Some(CLUSTER_LABEL));
    let (budgets, seen_budgets) = watch::<PodDisruptionBudget>(client, namespace, Some(CLUSTER_LABEL));
    let (instances, seen_instances) = watch::<Instance>(client, namespace, None);
    let (instance_sets, seen_instance_sets) = watch::<StatefulSet>(client, namespace, Some(INSTANCE_LABEL));
    let (hardware, seen_hardware) = watch::<HardwareProfile>(client, namespace, None);
    let reconciler = Arc::new(cluster_reconciler::ClusterReconciler {
        client: client.clone(),
        clock: Arc::clone(clock),
        instances,
        hardware,
        instance_stateful_sets: instance_sets,
        stateful_sets: sets.clone(),
        finders: vec![
            finder_by_label(sets, CLUSTER_LABEL),
            finder_by_label(services, CLUSTER_LABEL),
            finder_by_label(budgets, CLUSTER_LABEL),
        ],
    });
    let clusters: Api<ComputeCluster> = Api::namespaced(client.clone(), namespace);
    let controller = Controller::new(clusters, watcher::Config::default());
    let known = controller.store();
    let concerned = move |is_concerned: &dyn Fn(&ComputeCluster) -> bool| -> Vec<ObjectRef<ComputeCluster>> {
        let concerned = known.state_filter(|cluster| is_concerned(cluster));
        concerned.iter().map(|cluster| ObjectRef::from_obj(&**cluster)).collect()
    };
    let of_instance = {
        let concerned = concerned.clone();
        move |name: String| concerned(&|cluster| cluster.spec.instance == name)
    };
    let of_pods = of_instance.clone();
    controller
        .with_config(LoopConfig::default().debounce(RECONCILE_DEBOUNCE).concurrency(CONCURRENCY_MAX))
        .owns_stream(seen_sets)
        .owns_stream(seen_services)
        .owns_stream(seen_budgets)
        .watches_stream(seen_instances, move |instance: Instance| of_instance(instance.name_any()))
        .watches_stream(seen_instance_sets, move |pods: StatefulSet| of_pods(pods.name_any()))
        .watches_stream(seen_hardware, move |hardware: HardwareProfile| {
            concerned(&|cluster| cluster.spec.hardware_instance == hardware.name_any())
        })
        .run(
            |cluster, reconciler| async move { reconciler.reconcile(&cluster).await },
            cluster_reconciler::retry_action,
            reconciler,
        )
        .for_each(async |ended| log_outcome("ComputeCluster", ended))
        .await;
}

/// Logs the outcome of a reconciliation; `what` is the kind of the object.
fn log_outcome<K: kube::Resource<DynamicType = ()>, A>(
    what: &str,
    ended: Result<(ObjectRef<K>, A), ControllerError<reconcile_error::ReconcileError, watcher::Error>>,
) {
    match ended {
        Ok((looked_at, _)) => tracing::debug!(what, name = looked_at.name, "reconciled a custom resource"),
        // The object was deleted while its reconciliation was queued.
        Err(ControllerError::ObjectNotFound(_)) => {}
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, what, "could not reconcile a custom resource");
        }
    }
}

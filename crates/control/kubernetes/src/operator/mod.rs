//! `kiln operator`: watches instances and clusters and makes of each what it should be, two thin loops around the functions of `instance` and `compute`.
//!
//! Several may run: one leads (`lease.rs` decides who, `leadership.rs` keeps it), the others wait. It remembers nothing that Kubernetes does not
//! know: a new one finds everything as the old one left it, and writes nothing. `reconcile.rs` is one look at one instance, `clusters.rs` at one cluster, `cache.rs`
//! what they look at, `apply.rs` what they write, `authority.rs` who signs the certificates of all instances.

mod apply;
mod authority;
mod cache;
mod clusters;
mod error;
mod leadership;
mod lease;
mod reconcile;
mod report;

use std::sync::Arc;
use std::time::Duration;

use authority::Authorities;
use cache::{finder, watch};
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

use crate::compute::CLUSTER_LABEL;
use crate::connect::{ConnectError, connect};
use crate::instance::INSTANCE_LABEL;
use crate::resources::{ComputeCluster, HardwareProfile, Instance};

/// Whose fields they are that the operator applies.
pub const FIELD_MANAGER: &str = "kiln-operator";
/// The name of the lease of those who lead in a namespace.
pub const LEASE: &str = "kiln-operator";

/// Pods that come up one after the other change their StatefulSet each: of changes that follow each other closely only the last is looked at, and only
/// so many looks are made at a time, however many clusters there are.
const QUIET: Duration = Duration::from_millis(300);
const LOOKS_MAX: u16 = 8;

/// What an operator is told.
#[derive(Debug, Clone)]
pub struct OperatorSettings {
    /// Whose instances it looks after; where `None`, those of the namespace that it runs in.
    pub namespace: Option<String>,
    /// Its name among operators, which no other has at the same time.
    pub identity: String,
    /// How long nobody else leads after the one who does was last heard.
    pub lease: Duration,
}

/// Why an operator cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Without it nothing can be watched: Kiln has not been installed in the cluster, or the operator has no right to see it.
    #[error("could not see the instances of the namespace {namespace}")]
    Instances { namespace: String, source: kube::Error },
    #[error("could not lead any more: {reason}")]
    Deposed { reason: String },
}

/// Looks after instances until `told` completes, where it was found by the usual ways of `kubectl`, or of the pod that it runs in.
///
/// # Errors
/// [`OperatorError`].
pub fn run(
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    told: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<(), OperatorError>> {
    Box::pin(async {
        let (client, usual) = connect().await?;
        let namespace = settings.namespace.clone().unwrap_or(usual);
        run_with(client, namespace, settings, clock, random, told).await
    })
}

/// The same, by a client that is there already.
///
/// # Errors
/// [`OperatorError`].
pub fn run_with(
    client: Client,
    namespace: String,
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    told: BoxFuture<'_, ()>,
) -> BoxFuture<'_, Result<(), OperatorError>> {
    Box::pin(lead(client, namespace, settings, clock, random, told))
}

async fn lead(
    client: Client,
    namespace: String,
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    mut told: BoxFuture<'_, ()>,
) -> Result<(), OperatorError> {
    let instances: Api<Instance> = Api::namespaced(client.clone(), &namespace);
    let one = kube::api::ListParams::default().limit(1);
    instances.list(&one).await.map_err(|source| OperatorError::Instances { namespace: namespace.clone(), source })?;
    let leadership = Leadership::new(client.clone(), &namespace, &settings, Arc::clone(&clock));
    tokio::select! {
        () = &mut told => return Ok(()),
        () = leadership.win() => {}
    }
    tracing::info!(namespace, identity = settings.identity, "leading");
    let ended = tokio::select! {
        () = &mut told => Ok(()),
        reason = leadership.keep() => Err(OperatorError::Deposed { reason }),
        () = look_after_instances(&client, &namespace, &clock, random) => Ok(()),
        () = look_after_clusters(&client, &namespace, &clock) => Ok(()),
    };
    if ended.is_ok() {
        // The next one need not wait until the lease has run out.
        leadership.give_back().await;
    }
    ended
}

/// Looks at each instance whenever it or anything of it changes.
async fn look_after_instances(client: &Client, namespace: &str, clock: &Arc<dyn Clock>, random: Arc<dyn Random>) {
    let label = Some(INSTANCE_LABEL);
    let (sets, seen_sets) = watch::<StatefulSet>(client, namespace, label);
    let (services, seen_services) = watch::<Service>(client, namespace, label);
    let (budgets, seen_budgets) = watch::<PodDisruptionBudget>(client, namespace, label);
    let (accounts, seen_accounts) = watch::<ServiceAccount>(client, namespace, label);
    let (bindings, seen_bindings) = watch::<RoleBinding>(client, namespace, label);
    let (secrets, seen_secrets) = watch::<Secret>(client, namespace, label);
    let reconciler = Arc::new(reconcile::Reconciler {
        client: client.clone(),
        clock: Arc::clone(clock),
        random,
        authorities: Authorities::new(client.clone()),
        sets: sets.clone(),
        finders: vec![
            finder(sets, INSTANCE_LABEL),
            finder(services, INSTANCE_LABEL),
            finder(budgets, INSTANCE_LABEL),
            finder(accounts, INSTANCE_LABEL),
            finder(bindings, INSTANCE_LABEL),
            finder(secrets, INSTANCE_LABEL),
        ],
    });
    let instances: Api<Instance> = Api::namespaced(client.clone(), namespace);
    Controller::new(instances, watcher::Config::default())
        .with_config(LoopConfig::default().concurrency(LOOKS_MAX))
        .owns_stream(seen_sets)
        .owns_stream(seen_services)
        .owns_stream(seen_budgets)
        .owns_stream(seen_accounts)
        .owns_stream(seen_bindings)
        .owns_stream(seen_secrets)
        .run(|instance, reconciler| async move { reconciler.reconcile(&instance).await }, reconcile::retry, reconciler)
        .for_each(async |ended| tell("an instance", ended))
        .await;
}

/// Looks at each cluster whenever it or anything of it, its instance or its hardware changes.
async fn look_after_clusters(client: &Client, namespace: &str, clock: &Arc<dyn Clock>) {
    let (sets, seen_sets) = watch::<StatefulSet>(client, namespace, Some(CLUSTER_LABEL));
    let (services, seen_services) = watch::<Service>(client, namespace, Some(CLUSTER_LABEL));
    let (budgets, seen_budgets) = watch::<PodDisruptionBudget>(client, namespace, Some(CLUSTER_LABEL));
    let (instances, seen_instances) = watch::<Instance>(client, namespace, None);
    let (instance_sets, seen_instance_sets) = watch::<StatefulSet>(client, namespace, Some(INSTANCE_LABEL));
    let (hardware, seen_hardware) = watch::<HardwareProfile>(client, namespace, None);
    let reconciler = Arc::new(clusters::Reconciler {
        client: client.clone(),
        clock: Arc::clone(clock),
        instances,
        hardware,
        instance_sets,
        sets: sets.clone(),
        finders: vec![finder(sets, CLUSTER_LABEL), finder(services, CLUSTER_LABEL), finder(budgets, CLUSTER_LABEL)],
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
        .with_config(LoopConfig::default().debounce(QUIET).concurrency(LOOKS_MAX))
        .owns_stream(seen_sets)
        .owns_stream(seen_services)
        .owns_stream(seen_budgets)
        .watches_stream(seen_instances, move |instance: Instance| of_instance(instance.name_any()))
        .watches_stream(seen_instance_sets, move |pods: StatefulSet| of_pods(pods.name_any()))
        .watches_stream(seen_hardware, move |hardware: HardwareProfile| {
            concerned(&|cluster| cluster.spec.hardware_instance == hardware.name_any())
        })
        .run(|cluster, reconciler| async move { reconciler.reconcile(&cluster).await }, clusters::retry, reconciler)
        .for_each(async |ended| tell("a cluster", ended))
        .await;
}

/// Says how a look ended.
fn tell<K: kube::Resource<DynamicType = ()>, A>(
    what: &str,
    ended: Result<(ObjectRef<K>, A), ControllerError<error::ReconcileError, watcher::Error>>,
) {
    match ended {
        Ok((looked_at, _)) => tracing::debug!(what, name = looked_at.name, "looked at"),
        // It went while it waited for its turn.
        Err(ControllerError::ObjectNotFound(_)) => {}
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, what, "something is not what it should be");
        }
    }
}

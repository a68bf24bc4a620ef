//! `kiln operator`: watches instances and makes of each what it should be, a thin loop around the functions of `instance`.
//!
//! Several may run: one leads (`lease.rs` decides who, `leadership.rs` keeps it), the others wait. It remembers nothing that Kubernetes does not
//! know: a new one finds everything as the old one left it, and writes nothing. `reconcile.rs` is one look at one instance, `apply.rs` what it writes.

mod apply;
mod error;
mod leadership;
mod lease;
mod reconcile;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::runtime::controller::Error as ControllerError;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client};
use types::Clock;

use crate::connect::{ConnectError, connect};
use crate::instance::INSTANCE_LABEL;
use crate::resources::Instance;

use leadership::Leadership;
use reconcile::{Reconciler, retry};

/// Whose fields they are that the operator applies.
pub const FIELD_MANAGER: &str = "kiln-operator";
/// The name of the lease of those who lead in a namespace.
pub const LEASE: &str = "kiln-operator";

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
pub async fn run(
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    told: impl Future<Output = ()>,
) -> Result<(), OperatorError> {
    let (client, usual) = connect().await?;
    let namespace = settings.namespace.clone().unwrap_or(usual);
    run_with(client, namespace, settings, clock, told).await
}

/// The same, by a client that is there already.
///
/// # Errors
/// [`OperatorError`].
pub async fn run_with(
    client: Client,
    namespace: String,
    settings: OperatorSettings,
    clock: Arc<dyn Clock>,
    told: impl Future<Output = ()>,
) -> Result<(), OperatorError> {
    let instances: Api<Instance> = Api::namespaced(client.clone(), &namespace);
    let one = kube::api::ListParams::default().limit(1);
    instances.list(&one).await.map_err(|source| OperatorError::Instances { namespace: namespace.clone(), source })?;
    let leadership = Leadership::new(client.clone(), &namespace, &settings, Arc::clone(&clock));
    tokio::pin!(told);
    tokio::select! {
        () = &mut told => return Ok(()),
        () = leadership.win() => {}
    }
    tracing::info!(namespace, identity = settings.identity, "leading");
    let ended = tokio::select! {
        () = &mut told => Ok(()),
        reason = leadership.keep() => Err(OperatorError::Deposed { reason }),
        () = look_after(client, &namespace, clock) => Ok(()),
    };
    if ended.is_ok() {
        // The next one need not wait until the lease has run out.
        leadership.give_back().await;
    }
    ended
}

/// Looks at each instance whenever it or anything of it changes.
async fn look_after(client: Client, namespace: &str, clock: Arc<dyn Clock>) {
    let all = watcher::Config::default();
    let owned = watcher::Config::default().labels(INSTANCE_LABEL);
    let instances: Api<Instance> = Api::namespaced(client.clone(), namespace);
    let reconciler = Arc::new(Reconciler::new(client.clone(), clock));
    Controller::new(instances, all)
        .owns(Api::<StatefulSet>::namespaced(client.clone(), namespace), owned.clone())
        .owns(Api::<Service>::namespaced(client.clone(), namespace), owned.clone())
        .owns(Api::<PodDisruptionBudget>::namespaced(client.clone(), namespace), owned.clone())
        .owns(Api::<ServiceAccount>::namespaced(client, namespace), owned)
        .run(|instance, reconciler| async move { reconciler.reconcile(&instance).await }, retry, reconciler)
        .for_each(async |ended| match ended {
            Ok((instance, _)) => tracing::debug!(instance = instance.name, "looked at"),
            // It went while it waited for its turn.
            Err(ControllerError::ObjectNotFound(_)) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "an instance is not what it should be");
            }
        })
        .await;
}

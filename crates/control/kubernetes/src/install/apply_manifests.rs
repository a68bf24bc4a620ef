//! Application of an installation, and waiting until it is ready.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::watch_object;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use types::Clock;

use super::{FIELD_MANAGER, InstallError, InstallProgress, Installation, ProgressSink};
use crate::resources::{Instance, InstancePhase, READY, RECONCILED};

/// Time limit for the API server to establish a CustomResourceDefinition.
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(60);

/// Applies all objects, and waits up to `patience` until the first instance, if there is one, accepts queries. Objects
/// that already match are left unchanged.
///
/// # Errors
/// Returns [`InstallError`] if an object cannot be applied or is not ready in time.
pub fn install<'a>(
    client: &'a Client,
    install: &'a Installation,
    patience: Duration,
    clock: &'a Arc<dyn Clock>,
    progress: impl FnMut(&InstallProgress) + Send + 'a,
) -> BoxFuture<'a, Result<(), InstallError>> {
    install_boxed(client, install, patience, clock, Box::new(progress))
}

/// Boxes the future, so that callers do not compile it again.
fn install_boxed<'a>(
    client: &'a Client,
    install: &'a Installation,
    patience: Duration,
    clock: &'a Arc<dyn Clock>,
    progress: ProgressSink<'a>,
) -> BoxFuture<'a, Result<(), InstallError>> {
    Box::pin(apply_all(client, install, patience, clock, progress))
}

async fn apply_all(
    client: &Client,
    install: &Installation,
    patience: Duration,
    clock: &Arc<dyn Clock>,
    mut progress: ProgressSink<'_>,
) -> Result<(), InstallError> {
    let force = PatchParams::apply(FIELD_MANAGER).force();
    for object in install.objects() {
        let (kind, name) = kind_and_name(&object);
        let failed = |source| InstallError::Apply { kind: kind.clone(), name: name.clone(), source: Box::new(source) };
        let api = dynamic_api(client, &object, &install.namespace);
        api.patch(&name, &force, &Patch::Apply(&object)).await.map_err(failed)?;
        if kind == "CustomResourceDefinition" {
            wait_until_established(client, &name, clock).await?;
        }
        progress(&InstallProgress::Applied { kind, name });
    }
    match &install.instance {
        Some(instance) => {
            let instances = Api::namespaced(client.clone(), &install.namespace);
            wait_until_ready(instances, &instance.name_any(), patience, clock, progress).await
        }
        None => Ok(()),
    }
}

async fn wait_until_established(client: &Client, name: &str, clock: &Arc<dyn Clock>) -> Result<(), InstallError> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let kind = "CustomResourceDefinition";
    tokio::select! {
        established = await_condition(definitions, name, conditions::is_crd_established()) => {
            let failed = |source| InstallError::Wait { kind, name: name.to_owned(), source: Box::new(source) };
            established.map(drop).map_err(failed)
        }
        () = clock.sleep(ESTABLISH_TIMEOUT) => Err(InstallError::NotReadyInTime {
            object: format!("the {kind} {name}"),
            timeout: ESTABLISH_TIMEOUT,
            status: "the API server does not serve it yet".to_owned(),
        }),
    }
}

/// Waits until the instance accepts queries, and reports changes of its status.
async fn wait_until_ready(
    instances: Api<Instance>,
    name: &str,
    patience: Duration,
    clock: &Arc<dyn Clock>,
    mut progress: ProgressSink<'_>,
) -> Result<(), InstallError> {
    let mut last_status = "no operator has seen it".to_owned();
    let waiting = async {
        let mut seen = std::pin::pin!(watch_object(instances, name).default_backoff());
        while let Some(instance) = seen.next().await {
            // A broken watch is restarted by its backoff.
            let Ok(Some(instance)) = instance else { continue };
            let Some(now) = describe_status(&instance) else { continue };
            if now != last_status {
                progress(&InstallProgress::InstanceStatus { name: name.to_owned(), status: now.clone() });
                last_status = now;
            }
            if is_ready(&instance) {
                return;
            }
        }
    };
    let is_late = tokio::select! {
        () = waiting => false,
        () = clock.sleep(patience) => true,
    };
    if is_late {
        Err(InstallError::NotReadyInTime {
            object: format!("the instance {name}"),
            timeout: patience,
            status: last_status,
        })
    } else {
        Ok(())
    }
}

/// Describes the status of an instance in words, or returns `None` if the operator has not processed the current
/// generation.
fn describe_status(instance: &Instance) -> Option<String> {
    let status =
        instance.status.as_ref().filter(|status| status.observed_generation == instance.metadata.generation)?;
    let phase = match status.phase {
        InstancePhase::Starting => "starting",
        InstancePhase::Running => "running",
        InstancePhase::Upgrading => "upgrading",
        InstancePhase::Stopping => "stopping",
    };
    let failed = status.conditions.iter().find(|condition| condition.type_ == RECONCILED && condition.status != "True");
    Some(failed.map_or_else(|| phase.to_owned(), |failed| format!("{phase}, but {}", failed.message)))
}

fn is_ready(instance: &Instance) -> bool {
    instance.status.as_ref().is_some_and(|status| {
        let is_current = status.observed_generation == instance.metadata.generation;
        let holds = |kind: &str| {
            status.conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
        };
        is_current && status.phase == InstancePhase::Running && holds(READY) && holds(RECONCILED)
    })
}

/// Returns the kind and the name of an object.
pub(super) fn kind_and_name(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().expect("a desired object has a kind and a name").to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Returns the API for an object: in the namespace, or without one if its kind is cluster-scoped.
pub(super) fn dynamic_api(client: &Client, object: &Value, namespace: &str) -> Api<DynamicObject> {
    let types: TypeMeta = serde_json::from_value(object.clone()).expect("a desired object has apiVersion and kind");
    let kind = GroupVersionKind::try_from(&types).expect("the apiVersion of a desired object is valid");
    let resource = ApiResource::from_gvk(&kind);
    match types.kind.as_str() {
        "ClusterRole" | "ClusterRoleBinding" | "CustomResourceDefinition" | "Namespace" => {
            Api::all_with(client.clone(), &resource)
        }
        _ => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::instance::{ReconcileOutcome, compute_status};

    fn instance() -> Instance {
        let mut instance: Instance = serde_json::from_value(json!({
            "apiVersion": "kiln.dev/v1alpha1",
            "kind": "Instance",
            "metadata": { "name": "dw", "namespace": "kiln" },
            "spec": {
                "image": "kiln",
                "resources": { "cpu": "1", "memory": "1Gi" },
                "volume": { "size": "1Gi" },
            },
        }))
        .expect("it is an instance");
        instance.metadata.generation = Some(1);
        instance
    }

    #[test]
    fn an_instance_is_described_as_it_is_now() {
        let mut instance = instance();
        assert_eq!(describe_status(&instance), None, "nobody has looked");
        let looked = |instance: &Instance, outcome: &ReconcileOutcome| {
            Some(compute_status(instance, None, outcome, Timestamp::UNIX_EPOCH))
        };
        instance.status = looked(&instance, &ReconcileOutcome::Applied);
        assert_eq!(describe_status(&instance).as_deref(), Some("starting"));
        instance.status = looked(&instance, &ReconcileOutcome::NotApplied("exceeded quota".to_owned()));
        assert_eq!(describe_status(&instance).as_deref(), Some("starting, but exceeded quota"));
        instance.metadata.generation = Some(2);
        assert_eq!(describe_status(&instance), None, "it says so of what was before");
        assert!(!is_ready(&instance));
    }
}

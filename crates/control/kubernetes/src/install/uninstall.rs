//! Removal of an installation: first the instances, which wait for their pods, then the operator. Data is kept unless
//! its deletion is requested.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use types::Clock;

use super::manifests::token_reviewer_name;
use super::{InstallError, InstallProgress, OPERATOR, ProgressSink};
use crate::credentials::AUTHORITY_NAME;
use crate::instance::{INSTANCE_LABEL, INSTANCE_ROLE};
use crate::operator::LEASE_NAME;
use crate::resources::{Instance, custom_resource_definitions};

/// Parameters of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub namespace: String,
    /// Whether the volumes of instances are deleted. Buckets are always kept.
    pub delete_volumes: bool,
    /// Whether the CustomResourceDefinitions, which are cluster-scoped, are deleted.
    pub delete_definitions: bool,
}

/// Removes the instances and the installation from the namespace, but keeps the namespace itself. Waits up to
/// `patience` for each instance.
///
/// # Errors
/// Returns [`InstallError`]. If definitions are to be deleted but other namespaces have instances, nothing is removed.
pub fn uninstall<'a>(
    client: &'a Client,
    remove: &'a Removal,
    patience: Duration,
    clock: &'a Arc<dyn Clock>,
    progress: impl FnMut(&InstallProgress) + Send + 'a,
) -> BoxFuture<'a, Result<(), InstallError>> {
    uninstall_boxed(client, remove, patience, clock, Box::new(progress))
}

/// Boxes the future, so that callers do not compile it again.
fn uninstall_boxed<'a>(
    client: &'a Client,
    remove: &'a Removal,
    patience: Duration,
    clock: &'a Arc<dyn Clock>,
    progress: ProgressSink<'a>,
) -> BoxFuture<'a, Result<(), InstallError>> {
    Box::pin(delete_all(client, remove, patience, clock, progress))
}

async fn delete_all(
    client: &Client,
    remove: &Removal,
    patience: Duration,
    clock: &Arc<dyn Clock>,
    mut progress: ProgressSink<'_>,
) -> Result<(), InstallError> {
    let look = |source| InstallError::List(Box::new(source));
    if remove.delete_definitions {
        let all: Api<Instance> = Api::all(client.clone());
        let others = all.list(&ListParams::default()).await.map_err(look)?;
        let mut namespaces: Vec<String> = others.into_iter().filter_map(|instance| instance.namespace()).collect();
        namespaces.retain(|namespace| *namespace != remove.namespace);
        namespaces.dedup();
        if !namespaces.is_empty() {
            return Err(InstallError::DefinitionsInUse { namespaces });
        }
    }
    let namespaced = NamespacedApis { client, namespace: &remove.namespace };
    let instances: Api<Instance> = namespaced.api();
    let names: Vec<String> = instances
        .list_metadata(&ListParams::default())
        .await
        .map_err(look)?
        .into_iter()
        .map(|one| one.name_any())
        .collect();
    for name in &names {
        delete(&instances, name, &mut progress).await?;
    }
    for name in &names {
        tokio::select! {
            gone = await_condition(instances.clone(), name, |instance: Option<&Instance>| instance.is_none()) => {
                let failed = |source| InstallError::Wait { kind: "Instance", name: name.clone(), source: Box::new(source) };
                gone.map_err(failed)?;
            }
            () = clock.sleep(patience) => return Err(InstallError::NotDeletedInTime { name: name.clone(), after: patience }),
        }
    }
    let claims: Api<PersistentVolumeClaim> = namespaced.api();
    let of_instances = ListParams::default().labels(INSTANCE_LABEL);
    for claim in claims.list_metadata(&of_instances).await.map_err(look)? {
        let name = claim.name_any();
        if remove.delete_volumes {
            delete(&claims, &name, &mut progress).await?;
        } else {
            let kind = "PersistentVolumeClaim".to_owned();
            progress(&InstallProgress::Retained { kind, name, reason: "a new instance of the same name uses it" });
        }
    }
    delete(&namespaced.api::<Deployment>(), OPERATOR, &mut progress).await?;
    delete(&namespaced.api::<Secret>(), AUTHORITY_NAME, &mut progress).await?;
    delete(&namespaced.api::<ConfigMap>(), AUTHORITY_NAME, &mut progress).await?;
    delete(&namespaced.api::<RoleBinding>(), OPERATOR, &mut progress).await?;
    delete(&namespaced.api::<Role>(), OPERATOR, &mut progress).await?;
    delete(&namespaced.api::<Role>(), INSTANCE_ROLE, &mut progress).await?;
    let reviewer = token_reviewer_name(&remove.namespace);
    delete(&Api::<ClusterRoleBinding>::all(client.clone()), &reviewer, &mut progress).await?;
    delete(&Api::<ClusterRole>::all(client.clone()), &reviewer, &mut progress).await?;
    delete(&namespaced.api::<ServiceAccount>(), OPERATOR, &mut progress).await?;
    delete(&namespaced.api::<Lease>(), LEASE_NAME, &mut progress).await?;
    if remove.delete_definitions {
        let defined: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in custom_resource_definitions() {
            delete(&defined, &definition.name_any(), &mut progress).await?;
        }
    }
    Ok(())
}

struct NamespacedApis<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl NamespacedApis<'_> {
    fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), self.namespace)
    }
}

/// Requests the deletion of an object. Does nothing if it does not exist.
async fn delete<K>(api: &Api<K>, name: &str, progress: &mut ProgressSink<'_>) -> Result<(), InstallError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let kind = K::kind(&()).into_owned();
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => {
            progress(&InstallProgress::Deleting { kind, name: name.to_owned() });
            Ok(())
        }
        Err(kube::Error::Api(error)) if error.is_not_found() => Ok(()),
        Err(source) => Err(InstallError::Delete { kind, name: name.to_owned(), source: Box::new(source) }),
    }
}

//! Writing the status of a resource.

use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::{NamespaceResourceScope, Resource};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use types::Clock;

use super::FIELD_MANAGER;

/// Writes the status of the resource `of`. Does nothing if the resource has been deleted in the meantime.
pub(super) async fn write_status<K>(client: &Client, resource: &K, status: &impl Serialize) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let said = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        // With the uid, so that the status of another object of the same name is not overwritten.
        "metadata": { "name": resource.name_any(), "uid": resource.uid() },
        "status": status,
    });
    let api: Api<K> = Api::namespaced(client.clone(), &resource.namespace().unwrap_or_default());
    let force = PatchParams::apply(FIELD_MANAGER).force();
    match api.patch_status(&resource.name_any(), &force, &Patch::Apply(&said)).await {
        // The resource was deleted, or another one has its name.
        Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => Ok(()),
        written => written.map(drop),
    }
}

/// Returns whether `owner` owns `object`. Objects of other owners, or created by hand, must be neither used nor
/// deleted.
pub(super) fn is_owned_by(object: &impl Resource, owner: &impl Resource) -> bool {
    let uid = owner.meta().uid.as_ref();
    object.owner_references().iter().any(|reference| Some(&reference.uid) == uid)
}

/// Returns the current time as a Kubernetes timestamp.
pub(super) fn timestamp(clock: &dyn Clock) -> Timestamp {
    Timestamp::from_microsecond(clock.now_us()).unwrap_or(Timestamp::UNIX_EPOCH)
}

//! Saying how something is.

use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::{NamespaceResourceScope, Resource};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use types::Clock;

use super::FIELD_MANAGER;

/// Writes the status of a resource.
pub(super) async fn report<K>(client: &Client, of: &K, status: &impl Serialize) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let said = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        // Of this one and no other of the name.
        "metadata": { "name": of.name_any(), "uid": of.uid() },
        "status": status,
    });
    let api: Api<K> = Api::namespaced(client.clone(), &of.namespace().unwrap_or_default());
    let force = PatchParams::apply(FIELD_MANAGER).force();
    match api.patch_status(&of.name_any(), &force, &Patch::Apply(&said)).await {
        // It went, or another one has its name: nobody needs to know how it was.
        Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => Ok(()),
        written => written.map(drop),
    }
}

/// Whether `object` was made for `owner`: another's, or one that somebody made by hand, is not its to ask or to delete.
pub(super) fn own(object: &impl Resource, owner: &impl Resource) -> bool {
    let uid = owner.meta().uid.as_ref();
    object.owner_references().iter().any(|reference| Some(&reference.uid) == uid)
}

/// The time of a clock as Kubernetes writes it.
pub(super) fn timestamp(clock: &dyn Clock) -> Timestamp {
    Timestamp::from_microsecond(clock.now_us()).unwrap_or(Timestamp::UNIX_EPOCH)
}

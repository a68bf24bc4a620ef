//! Application of desired objects, and deletion of those that are no longer desired.

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde_json::Value;

use super::FIELD_MANAGER;
use super::reconcile_error::ReconcileError;
use crate::desired_object::DesiredObject;

/// Owner of objects: an Instance or a ComputeCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectOwner {
    /// Word for its kind, for messages.
    pub(super) kind_word: &'static str,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Option<String>,
}

impl ObjectOwner {
    pub(super) fn new(what: &'static str, owner: &impl Resource) -> ObjectOwner {
        ObjectOwner {
            kind_word: what,
            namespace: owner.namespace().unwrap_or_default(),
            name: owner.name_any(),
            uid: owner.uid(),
        }
    }
}

/// Applies the `wanted` objects in their order, and deletes those of `observed` that the owner controls and that are
/// not wanted. Writes only objects that differ, and none that the owner does not control.
pub(super) async fn apply_objects(
    client: &Client,
    owner: &ObjectOwner,
    observed: &[ObservedObject],
    wanted: &[DesiredObject],
) -> Result<(), ReconcileError> {
    let force = PatchParams::apply(FIELD_MANAGER).force();
    for object in wanted {
        let observed_object = observed.iter().find(|there| there.is_same_object(object));
        if observed_object.is_some_and(|there| object.is_applied(&there.value)) {
            continue;
        }
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &owner.namespace, &object.resource);
        let controller = match observed_object {
            Some(there) => Some(there.controller.clone()),
            // An object without the owner's label, or a very new one, is not in `observed`.
            None => api.get_metadata_opt(&object.name).await?.map(|there| controller(&there)),
        };
        if controller.is_some_and(|controller| controller != owner.uid) {
            return Err(ReconcileError::NameConflict {
                kind: object.resource.kind.clone(),
                name: object.name.clone(),
                owner: owner.kind_word,
            });
        }
        tracing::info!(
            of = owner.kind_word,
            whose = owner.name,
            kind = object.resource.kind,
            name = object.name,
            "applying a Kubernetes object"
        );
        api.patch(&object.name, &force, &Patch::Apply(&object.value)).await?;
    }
    for there in orphans(observed, wanted, owner.uid.as_deref()) {
        tracing::info!(
            of = owner.kind_word,
            whose = owner.name,
            kind = there.kind,
            name = there.name,
            "deleting a Kubernetes object that is no longer desired"
        );
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &owner.namespace, &there.resource);
        let this = Preconditions { uid: there.uid.clone(), resource_version: None };
        match api.delete(&there.name, &DeleteParams::background().preconditions(this)).await {
            // It was deleted already, or another object has its name.
            Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => {}
            deleted => drop(deleted?),
        }
    }
    Ok(())
}

/// Observed object.
#[derive(Debug, Clone)]
pub(super) struct ObservedObject {
    resource: ApiResource,
    kind: String,
    name: String,
    uid: Option<String>,
    /// Uid of the owner that controls it.
    controller: Option<String>,
    is_deleting: bool,
    value: Value,
}

impl ObservedObject {
    pub(super) fn new<K: Resource + Serialize>(object: &K, resource: &ApiResource) -> ObservedObject {
        let mut value = serde_json::to_value(object).expect("a Kubernetes object serializes to JSON");
        // Typed objects and items of a list have no `apiVersion` and `kind`.
        value["apiVersion"] = Value::String(resource.api_version.clone());
        value["kind"] = Value::String(resource.kind.clone());
        ObservedObject {
            resource: resource.clone(),
            kind: resource.kind.clone(),
            name: object.name_any(),
            uid: object.uid(),
            controller: controller(object),
            is_deleting: object.meta().deletion_timestamp.is_some(),
            value,
        }
    }

    fn is_same_object(&self, object: &DesiredObject) -> bool {
        self.kind == object.resource.kind && self.name == object.name
    }
}

/// Returns the uid of the owner that controls an object.
fn controller(object: &impl Resource) -> Option<String> {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone())
}

/// Returns the observed objects that `owner` controls and that are not wanted, without those that are being deleted.
/// Objects that others own, or nobody, are left alone.
fn orphans<'a>(
    found: &'a [ObservedObject],
    wanted: &'a [DesiredObject],
    owner: Option<&'a str>,
) -> impl Iterator<Item = &'a ObservedObject> {
    found.iter().filter(move |there| {
        let is_own = owner.is_some() && there.controller.as_deref() == owner;
        is_own && !there.is_deleting && !wanted.iter().any(|object| there.is_same_object(object))
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use kube::core::ObjectMeta;
    use serde_json::json;

    use super::*;

    fn found(name: &str, controller: Option<&str>) -> ObservedObject {
        ObservedObject {
            resource: ApiResource::erase::<Service>(&()),
            kind: "Service".to_owned(),
            name: name.to_owned(),
            uid: Some(format!("uid of {name}")),
            controller: controller.map(str::to_owned),
            is_deleting: false,
            value: json!({}),
        }
    }

    #[test]
    fn only_its_own_objects_that_nobody_wants_are_orphans() {
        let metadata = ObjectMeta { name: Some("wanted".to_owned()), ..ObjectMeta::default() };
        let wanted = [DesiredObject::new(&Service { metadata, ..Service::default() })];
        let going = ObservedObject { is_deleting: true, ..found("going", Some("me")) };
        let all = [
            found("wanted", Some("me")),
            found("unwanted", Some("me")),
            found("another's", Some("another")),
            found("nobody's", None),
            going,
        ];
        let names: Vec<&str> = orphans(&all, &wanted, Some("me")).map(|there| there.name.as_str()).collect();
        assert_eq!(names, ["unwanted"]);
        assert_eq!(orphans(&all, &wanted, None).count(), 0, "who has no uid owns nothing");
    }
}

//! Writing objects, and deleting those that nobody wants any more.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::DynamicObject;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::Value;

use super::FIELD_MANAGER;
use super::error::ReconcileError;
use crate::instance::{INSTANCE_LABEL, kinds};
use crate::object::Object;
use crate::resources::Instance;

/// Makes the objects of an instance what they should be, in the order given, and deletes those that it had and should not have. Writes only
/// what is different, and nothing of what is not the instance's.
pub(super) async fn apply(client: &Client, instance: &Instance, wanted: &[Object]) -> Result<(), ReconcileError> {
    let namespace = instance.namespace().unwrap_or_default();
    let observed = observe(client, instance, &namespace).await?;
    let force = PatchParams::apply(FIELD_MANAGER).force();
    for object in wanted {
        let there = observed.iter().find(|there| there.is(object));
        if there.is_some_and(|there| object.is_applied(&there.value)) {
            continue;
        }
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &object.resource);
        let controller = match there {
            Some(there) => Some(there.controller.clone()),
            // Without the instance's label it was not looked for.
            None => api.get_metadata_opt(&object.name).await?.map(|there| controller(&there)),
        };
        if controller.is_some_and(|controller| controller != instance.uid()) {
            return Err(ReconcileError::Taken { kind: object.resource.kind.clone(), name: object.name.clone() });
        }
        tracing::info!(instance = instance.name_any(), kind = object.resource.kind, name = object.name, "applying");
        api.patch(&object.name, &force, &Patch::Apply(&object.value)).await?;
    }
    for there in orphans(&observed, wanted, instance.uid().as_deref()) {
        tracing::info!(instance = instance.name_any(), kind = there.kind, name = there.name, "deleting");
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &there.resource);
        let this = Preconditions { uid: there.uid.clone(), resource_version: None };
        match api.delete(&there.name, &DeleteParams::background().preconditions(this)).await {
            // Another one of the name is there, or none.
            Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => {}
            deleted => drop(deleted?),
        }
    }
    Ok(())
}

/// An object as it was found.
#[derive(Debug, Clone)]
struct Found {
    resource: kube::core::ApiResource,
    kind: String,
    name: String,
    uid: Option<String>,
    /// The uid of whoever controls it.
    controller: Option<String>,
    is_going: bool,
    value: Value,
}

impl Found {
    fn is(&self, object: &Object) -> bool {
        self.kind == object.resource.kind && self.name == object.name
    }
}

async fn observe(client: &Client, instance: &Instance, namespace: &str) -> Result<Vec<Found>, kube::Error> {
    let mine = ListParams::default().labels(&format!("{INSTANCE_LABEL}={}", instance.name_any()));
    let mut found = Vec::new();
    for resource in kinds() {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        for mut object in api.list(&mine).await? {
            // Items of a list do not say what they are.
            object.types =
                Some(kube::core::TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
            found.push(Found {
                resource: resource.clone(),
                kind: resource.kind.clone(),
                name: object.name_any(),
                uid: object.uid(),
                controller: controller(&object),
                is_going: object.meta().deletion_timestamp.is_some(),
                value: serde_json::to_value(&object).map_err(kube::Error::SerdeError)?,
            });
        }
    }
    Ok(found)
}

/// The uid of whoever controls an object.
fn controller(object: &impl Resource) -> Option<String> {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone())
}

/// Which of the objects that were found are the instance's and not wanted. What others own, or nobody, is left alone.
fn orphans<'a>(found: &'a [Found], wanted: &'a [Object], owner: Option<&'a str>) -> impl Iterator<Item = &'a Found> {
    found.iter().filter(move |there| {
        let is_own = owner.is_some() && there.controller.as_deref() == owner;
        is_own && !there.is_going && !wanted.iter().any(|object| there.is(object))
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use kube::core::{ApiResource, ObjectMeta};
    use serde_json::json;

    use super::*;

    fn found(name: &str, controller: Option<&str>) -> Found {
        Found {
            resource: ApiResource::erase::<Service>(&()),
            kind: "Service".to_owned(),
            name: name.to_owned(),
            uid: Some(format!("uid of {name}")),
            controller: controller.map(str::to_owned),
            is_going: false,
            value: json!({}),
        }
    }

    #[test]
    fn only_its_own_objects_that_nobody_wants_are_orphans() {
        let metadata = ObjectMeta { name: Some("wanted".to_owned()), ..ObjectMeta::default() };
        let wanted = [Object::new(&Service { metadata, ..Service::default() })];
        let going = Found { is_going: true, ..found("going", Some("me")) };
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

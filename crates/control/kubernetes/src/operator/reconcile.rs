//! Reconciliation of one Instance: determines its next step and executes it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use types::{Clock, Random};

use super::FIELD_MANAGER;
use super::apply::{Owner, apply};
use super::authority::Authorities;
use super::cache::Finder;
use super::error::ReconcileError;
use super::report::{own, report, timestamp};
use crate::credentials::{
    certificate, certificate_name, named, named_certificate, named_password, superuser, superuser_name, usable,
};
use crate::instance::{FINALIZER, Outcome, Step, objects, status, step};
use crate::object::Object;
use crate::resources::Instance;

/// Time from a failed reconciliation to the next one.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Time from a successful reconciliation to the next one, which notices changes that no watch reports.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// Reconciler of Instances.
pub(super) struct Reconciler {
    pub(super) client: Client,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) authorities: Authorities,
    /// StatefulSets of instances.
    pub(super) sets: Store<StatefulSet>,
    /// Finders for each kind of object that belongs to instances.
    pub(super) finders: Vec<Finder>,
}

/// Returns when to retry a failed reconciliation.
pub(super) fn retry(_: Arc<Instance>, _: &ReconcileError, _: Arc<Reconciler>) -> Action {
    Action::requeue(RETRY_AFTER)
}

impl Reconciler {
    /// Executes the next step of the instance.
    pub(super) async fn reconcile(&self, instance: &Instance) -> Result<Action, ReconcileError> {
        let namespace = instance.namespace().unwrap_or_default();
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), &namespace);
        let is_going = instance.metadata.deletion_timestamp.is_some();
        // The finalizer may only be removed when the pod is certainly gone, and the watch's cache may lag behind.
        let pods = if is_going { sets.get_opt(&instance.name_any()).await? } else { None };
        let pods = pods.filter(|pods| own(pods, instance));
        match step(instance, pods.as_ref()) {
            Step::Nothing => Ok(Action::await_change()),
            Step::Hold => {
                self.hold(instance, &[FINALIZER]).await?;
                Ok(Action::await_change())
            }
            Step::Release => {
                self.hold(instance, &[]).await?;
                Ok(Action::await_change())
            }
            Step::Wait => {
                self.report(instance, pods.as_ref(), &Outcome::Applied).await?;
                Ok(Action::requeue(LOOK_AGAIN_AFTER))
            }
            Step::End => {
                self.report(instance, pods.as_ref(), &Outcome::Applied).await?;
                // Foreground deletion: the StatefulSet exists until its pod has ended.
                match sets.delete(&instance.name_any(), &DeleteParams::foreground()).await {
                    Err(kube::Error::Api(error)) if error.is_not_found() => {}
                    deleted => drop(deleted?),
                }
                Ok(Action::requeue(LOOK_AGAIN_AFTER))
            }
            Step::Make => self.make(instance).await,
        }
    }

    async fn make(&self, instance: &Instance) -> Result<Action, ReconcileError> {
        self.sets.wait_until_ready().await?;
        let made = self.bring_about(instance).await;
        let outcome = match &made {
            Ok(()) => Outcome::Applied,
            Err(error) => Outcome::Failed(error.to_string()),
        };
        let pods = self.sets.find(|pods| pods.name_any() == instance.name_any() && own(pods, instance));
        self.report(instance, pods.as_deref(), &outcome).await?;
        made?;
        Ok(Action::requeue(LOOK_AGAIN_AFTER))
    }

    async fn bring_about(&self, instance: &Instance) -> Result<(), ReconcileError> {
        // Checked first: without these secrets a new pod would not start, but the running one would be stopped for it.
        let secrets = self.all_secrets(instance);
        for named in named(instance) {
            usable(&named, secrets.get_opt(named.name).await?.as_ref())?;
        }
        let mut wanted = self.secrets(instance).await?;
        wanted.extend(objects(instance)?);
        let name = instance.name_any();
        let observed: Vec<_> = self.finders.iter().flat_map(|find| find(&name)).collect();
        apply(&self.client, &Owner::new("instance", instance), &observed, &wanted).await
    }

    /// Returns the desired secrets that the operator creates for the instance. Existing ones are read from the API
    /// server, because a cache may lag behind the last write, and a password would then be generated a second time.
    async fn secrets(&self, instance: &Instance) -> Result<Vec<Object>, ReconcileError> {
        let secrets = self.all_secrets(instance);
        let found = async |name: &str| -> Result<Option<Secret>, kube::Error> {
            Ok(secrets.get_opt(name).await?.filter(|there| own(there, instance)))
        };
        let mut wanted = Vec::new();
        if named_password(instance).is_none() {
            let there = found(&superuser_name(instance)).await?;
            wanted.push(Object::new(&superuser(instance, there.as_ref(), &*self.random)));
        }
        if named_certificate(instance).is_none() {
            let now = timestamp(&*self.clock);
            let authority = self.authorities.of(&instance.namespace().unwrap_or_default(), now).await?;
            let there = found(&certificate_name(instance)).await?;
            wanted.push(Object::new(&certificate(instance, &authority, there.as_ref(), now)?));
        }
        Ok(wanted)
    }

    fn all_secrets(&self, instance: &Instance) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &instance.namespace().unwrap_or_default())
    }

    /// Writes the status of the instance if it has changed.
    async fn report(
        &self,
        instance: &Instance,
        pods: Option<&StatefulSet>,
        outcome: &Outcome,
    ) -> Result<(), kube::Error> {
        let status = status(instance, pods, outcome, timestamp(&*self.clock));
        if instance.status.as_ref() == Some(&status) {
            return Ok(());
        }
        report(&self.client, instance, &status).await
    }

    /// Sets the operator's finalizers on the instance, and leaves those of others unchanged.
    async fn hold(&self, instance: &Instance, finalizers: &[&str]) -> Result<(), kube::Error> {
        let said = json!({
            "apiVersion": Instance::api_version(&()),
            "kind": Instance::kind(&()),
            // With the uid, so that an instance that was deleted in the meantime is not created again.
            "metadata": { "name": instance.name_any(), "uid": instance.uid(), "finalizers": finalizers },
        });
        let force = PatchParams::apply(FIELD_MANAGER).force();
        let instances: Api<Instance> = Api::namespaced(self.client.clone(), &instance.namespace().unwrap_or_default());
        match instances.patch(&instance.name_any(), &force, &Patch::Apply(&said)).await {
            Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => Ok(()),
            held => held.map(drop),
        }
    }
}

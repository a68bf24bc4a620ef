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
use super::apply_objects::{ObjectOwner, apply_objects};
use super::authority_provider::AuthorityProvider;
use super::reconcile_error::ReconcileError;
use super::status_writer::{is_owned_by, timestamp, write_status};
use super::watch_cache::Finder;
use crate::credentials::{
    certificate_secret, certificate_secret_name, check_secret, referenced_secrets, superuser_secret,
    superuser_secret_name, user_certificate_secret, user_password_secret,
};
use crate::desired_object::DesiredObject;
use crate::instance::{FINALIZER, InstanceStep, ReconcileOutcome, compute_status, desired_objects, next_step};
use crate::resources::Instance;

/// Time from a failed reconciliation to the next one.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Time from a successful reconciliation to the next one, which notices changes that no watch reports.
pub(super) const RESYNC_AFTER: Duration = Duration::from_secs(300);

/// Reconciler of Instances.
pub(super) struct InstanceReconciler {
    pub(super) client: Client,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) authorities: AuthorityProvider,
    /// StatefulSets of instances.
    pub(super) stateful_sets: Store<StatefulSet>,
    /// Finders for each kind of object that belongs to instances.
    pub(super) finders: Vec<Finder>,
}

/// Returns when to retry a failed reconciliation.
pub(super) fn retry_action(_: Arc<Instance>, _: &ReconcileError, _: Arc<InstanceReconciler>) -> Action {
    Action::requeue(RETRY_AFTER)
}

impl InstanceReconciler {
    /// Executes the next step of the instance.
    pub(super) async fn reconcile(&self, instance: &Instance) -> Result<Action, ReconcileError> {
        let namespace = instance.namespace().unwrap_or_default();
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), &namespace);
        let is_going = instance.metadata.deletion_timestamp.is_some();
        // The finalizer may only be removed when the pod is certainly gone, and the watch's cache may lag behind.
        let pods = if is_going { sets.get_opt(&instance.name_any()).await? } else { None };
        let pods = pods.filter(|pods| is_owned_by(pods, instance));
        match next_step(instance, pods.as_ref()) {
            InstanceStep::Nothing => Ok(Action::await_change()),
            InstanceStep::AddFinalizer => {
                self.set_finalizers(instance, &[FINALIZER]).await?;
                Ok(Action::await_change())
            }
            InstanceStep::RemoveFinalizer => {
                self.set_finalizers(instance, &[]).await?;
                Ok(Action::await_change())
            }
            InstanceStep::AwaitPodEnd => {
                self.write_status(instance, pods.as_ref(), &ReconcileOutcome::Applied).await?;
                Ok(Action::requeue(RESYNC_AFTER))
            }
            InstanceStep::DeleteStatefulSet => {
                self.write_status(instance, pods.as_ref(), &ReconcileOutcome::Applied).await?;
                // Foreground deletion: the StatefulSet exists until its pod has ended.
                match sets.delete(&instance.name_any(), &DeleteParams::foreground()).await {
                    Err(kube::Error::Api(error)) if error.is_not_found() => {}
                    deleted => drop(deleted?),
                }
                Ok(Action::requeue(RESYNC_AFTER))
            }
            InstanceStep::Apply => self.apply_and_report(instance).await,
        }
    }

    async fn apply_and_report(&self, instance: &Instance) -> Result<Action, ReconcileError> {
        self.stateful_sets.wait_until_ready().await?;
        let made = self.apply_objects(instance).await;
        let outcome = match &made {
            Ok(()) => ReconcileOutcome::Applied,
            Err(error) => ReconcileOutcome::NotApplied(error.to_string()),
        };
        let pods =
            self.stateful_sets.find(|pods| pods.name_any() == instance.name_any() && is_owned_by(pods, instance));
        self.write_status(instance, pods.as_deref(), &outcome).await?;
        made?;
        Ok(Action::requeue(RESYNC_AFTER))
    }

    async fn apply_objects(&self, instance: &Instance) -> Result<(), ReconcileError> {
        // Checked first: without these secrets a new pod would not start, but the running one would be stopped for it.
        let secrets = self.secrets_api(instance);
        for named in referenced_secrets(instance) {
            check_secret(&named, secrets.get_opt(named.name).await?.as_ref())?;
        }
        let mut wanted = self.desired_secrets(instance).await?;
        wanted.extend(desired_objects(instance)?);
        let name = instance.name_any();
        let observed: Vec<_> = self.finders.iter().flat_map(|find| find(&name)).collect();
        apply_objects(&self.client, &ObjectOwner::new("instance", instance), &observed, &wanted).await
    }

    /// Returns the desired secrets that the operator creates for the instance. Existing ones are read from the API
    /// server, because a cache may lag behind the last write, and a password would then be generated a second time.
    async fn desired_secrets(&self, instance: &Instance) -> Result<Vec<DesiredObject>, ReconcileError> {
        let secrets = self.secrets_api(instance);
        let found = async |name: &str| -> Result<Option<Secret>, kube::Error> {
            Ok(secrets.get_opt(name).await?.filter(|there| is_owned_by(there, instance)))
        };
        let mut wanted = Vec::new();
        if user_password_secret(instance).is_none() {
            let there = found(&superuser_secret_name(instance)).await?;
            wanted.push(DesiredObject::new(&superuser_secret(instance, there.as_ref(), &*self.random)));
        }
        if user_certificate_secret(instance).is_none() {
            let now = timestamp(&*self.clock);
            let authority = self.authorities.load_or_create(&instance.namespace().unwrap_or_default(), now).await?;
            let there = found(&certificate_secret_name(instance)).await?;
            wanted.push(DesiredObject::new(&certificate_secret(instance, &authority, there.as_ref(), now)?));
        }
        Ok(wanted)
    }

    fn secrets_api(&self, instance: &Instance) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &instance.namespace().unwrap_or_default())
    }

    /// Writes the status of the instance if it has changed.
    async fn write_status(
        &self,
        instance: &Instance,
        pods: Option<&StatefulSet>,
        outcome: &ReconcileOutcome,
    ) -> Result<(), kube::Error> {
        let status = compute_status(instance, pods, outcome, timestamp(&*self.clock));
        if instance.status.as_ref() == Some(&status) {
            return Ok(());
        }
        write_status(&self.client, instance, &status).await
    }

    /// Sets the operator's finalizers on the instance, and leaves those of others unchanged.
    async fn set_finalizers(&self, instance: &Instance, finalizers: &[&str]) -> Result<(), kube::Error> {
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

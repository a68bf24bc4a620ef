//! One look at one instance: what is the next step, and doing it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use types::Clock;

use super::FIELD_MANAGER;
use super::apply::apply;
use super::error::ReconcileError;
use crate::instance::{FINALIZER, Outcome, Step, objects, status, step};
use crate::resources::Instance;

/// After a look that failed.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// After one that did not: whatever no watch tells is seen then.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(300);

pub(super) struct Reconciler {
    client: Client,
    clock: Arc<dyn Clock>,
}

/// When to look again where a look failed.
pub(super) fn retry(_: Arc<Instance>, _: &ReconcileError, _: Arc<Reconciler>) -> Action {
    Action::requeue(RETRY_AFTER)
}

impl Reconciler {
    pub(super) fn new(client: Client, clock: Arc<dyn Clock>) -> Self {
        Self { client, clock }
    }

    pub(super) async fn reconcile(&self, instance: &Instance) -> Result<Action, ReconcileError> {
        let namespace = instance.namespace().unwrap_or_default();
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), &namespace);
        let pods = own(&sets, instance).await?;
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
                // In the foreground: it is there until its pod is not.
                match sets.delete(&instance.name_any(), &DeleteParams::foreground()).await {
                    Err(kube::Error::Api(error)) if error.is_not_found() => {}
                    deleted => drop(deleted?),
                }
                Ok(Action::requeue(LOOK_AGAIN_AFTER))
            }
            Step::Make => self.make(instance, &sets).await,
        }
    }

    async fn make(&self, instance: &Instance, sets: &Api<StatefulSet>) -> Result<Action, ReconcileError> {
        let made = match objects(instance) {
            Ok(wanted) => apply(&self.client, instance, &wanted).await,
            Err(invalid) => Err(invalid.into()),
        };
        let outcome = match &made {
            Ok(()) => Outcome::Applied,
            Err(error) => Outcome::Failed(error.to_string()),
        };
        let pods = own(sets, instance).await?;
        self.report(instance, pods.as_ref(), &outcome).await?;
        made?;
        Ok(Action::requeue(LOOK_AGAIN_AFTER))
    }

    /// Says how the instance is, where that is not said already.
    async fn report(
        &self,
        instance: &Instance,
        pods: Option<&StatefulSet>,
        outcome: &Outcome,
    ) -> Result<(), kube::Error> {
        let now = Timestamp::from_microsecond(self.clock.now_us()).unwrap_or(Timestamp::UNIX_EPOCH);
        let status = status(instance, pods, outcome, now);
        if instance.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let said = json!({
            "apiVersion": Instance::api_version(&()),
            "kind": Instance::kind(&()),
            "metadata": { "name": instance.name_any(), "uid": instance.uid() },
            "status": status,
        });
        let force = PatchParams::apply(FIELD_MANAGER).force();
        self.instances(instance).patch_status(&instance.name_any(), &force, &Patch::Apply(&said)).await?;
        Ok(())
    }

    /// Says which finalizers of the operator's the instance has; those of others are left alone.
    async fn hold(&self, instance: &Instance, finalizers: &[&str]) -> Result<(), kube::Error> {
        let said = json!({
            "apiVersion": Instance::api_version(&()),
            "kind": Instance::kind(&()),
            // Of this instance and no other: one that has gone in between is not made again.
            "metadata": { "name": instance.name_any(), "uid": instance.uid(), "finalizers": finalizers },
        });
        let force = PatchParams::apply(FIELD_MANAGER).force();
        match self.instances(instance).patch(&instance.name_any(), &force, &Patch::Apply(&said)).await {
            Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => Ok(()),
            held => held.map(drop),
        }
    }

    fn instances(&self, instance: &Instance) -> Api<Instance> {
        Api::namespaced(self.client.clone(), &instance.namespace().unwrap_or_default())
    }
}

/// The StatefulSet that the instance has made: another's, or one that somebody made by hand, is not its to ask or to delete.
async fn own(sets: &Api<StatefulSet>, instance: &Instance) -> Result<Option<StatefulSet>, kube::Error> {
    let found = sets.get_opt(&instance.name_any()).await?;
    let is_own = |pods: &StatefulSet| {
        pods.owner_references().iter().any(|owner| Some(&owner.uid) == instance.metadata.uid.as_ref())
    };
    Ok(found.filter(is_own))
}

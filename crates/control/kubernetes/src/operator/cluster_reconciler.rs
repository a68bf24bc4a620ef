//! Reconciliation of one ComputeCluster.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use types::Clock;

use super::FIELD_MANAGER;
use super::apply_objects::{ObjectOwner, apply_objects};
use super::instance_reconciler::{RESYNC_AFTER, RETRY_AFTER};
use super::reconcile_error::ReconcileError;
use super::status_writer::{is_owned_by, timestamp, write_status};
use super::watch_cache::Finder;
use crate::compute_cluster::{
    CLUSTER_LABEL, ClusterDependencies, compute_status, desired_objects, stateful_set_name, surplus_volumes,
};
use crate::instance::ReconcileOutcome;
use crate::resources::{ComputeCluster, HardwareProfile, Instance};

/// Reconciler of ComputeClusters.
pub(super) struct ClusterReconciler {
    pub(super) client: Client,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) instances: Store<Instance>,
    pub(super) hardware: Store<HardwareProfile>,
    /// StatefulSets of instances.
    pub(super) instance_stateful_sets: Store<StatefulSet>,
    /// StatefulSets of workers.
    pub(super) stateful_sets: Store<StatefulSet>,
    /// Finders for each kind of object that belongs to clusters.
    pub(super) finders: Vec<Finder>,
}

/// Returns when to retry a failed reconciliation.
pub(super) fn retry_action(_: Arc<ComputeCluster>, _: &ReconcileError, _: Arc<ClusterReconciler>) -> Action {
    Action::requeue(RETRY_AFTER)
}

impl ClusterReconciler {
    /// Reconciles the cluster: makes the instance its owner, applies its objects, deletes surplus volumes and writes
    /// its status.
    pub(super) async fn reconcile(&self, cluster: &ComputeCluster) -> Result<Action, ReconcileError> {
        // Kubernetes garbage-collects the cluster's objects, and each worker drains as its pod terminates.
        if cluster.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        self.instances.wait_until_ready().await?;
        self.hardware.wait_until_ready().await?;
        self.instance_stateful_sets.wait_until_ready().await?;
        self.stateful_sets.wait_until_ready().await?;
        let spec = &cluster.spec;
        let instance = self.instances.find(|instance| instance.name_any() == spec.instance);
        if let Some(instance) = instance.as_deref().filter(|instance| !is_owned_by(cluster, *instance)) {
            self.set_instance_owner(cluster, instance).await?;
        }
        let hardware = self.hardware.find(|hardware| hardware.name_any() == spec.hardware_instance);
        let instance_pods = instance.as_deref().and_then(|instance| {
            self.instance_stateful_sets
                .find(|pods| pods.name_any() == instance.name_any() && is_owned_by(pods, instance))
        });
        let around =
            ClusterDependencies::new(cluster, instance.as_deref(), hardware.as_deref(), instance_pods.as_deref());
        let made = match &around {
            Ok(around) => self.apply_objects(cluster, around).await,
            Err(impossible) => Err(impossible.clone().into()),
        };
        let outcome = match &made {
            Ok(()) => ReconcileOutcome::Applied,
            Err(error) => ReconcileOutcome::NotApplied(error.to_string()),
        };
        let present = self.stateful_set(cluster);
        let status = compute_status(cluster, present.as_deref(), &outcome, timestamp(&*self.clock));
        if cluster.status.as_ref() != Some(&status) {
            write_status(&self.client, cluster, &status).await?;
        }
        match made {
            // A watch triggers a reconciliation when the missing object appears.
            Err(ReconcileError::UnmetDependency(_)) => Ok(Action::requeue(RESYNC_AFTER)),
            made => made.map(|()| Action::requeue(RESYNC_AFTER)),
        }
    }

    async fn apply_objects(
        &self,
        cluster: &ComputeCluster,
        around: &ClusterDependencies<'_>,
    ) -> Result<(), ReconcileError> {
        let name = cluster.name_any();
        let present = self.stateful_set(cluster);
        let wanted = desired_objects(cluster, around, present.as_deref());
        let observed: Vec<_> = self.finders.iter().flat_map(|find| find(&name)).collect();
        apply_objects(&self.client, &ObjectOwner::new("cluster", cluster), &observed, &wanted).await?;
        if present.is_some_and(|present| has_desired_replicas(&present)) {
            self.delete_surplus_volumes(cluster).await?;
        }
        Ok(())
    }

    fn stateful_set(&self, cluster: &ComputeCluster) -> Option<Arc<StatefulSet>> {
        let name = stateful_set_name(&cluster.name_any());
        self.stateful_sets.find(|pods| pods.name_any() == name && is_owned_by(pods, cluster))
    }

    /// Makes the instance an owner of the cluster, so that the cluster is garbage-collected with it.
    async fn set_instance_owner(&self, cluster: &ComputeCluster, instance: &Instance) -> Result<(), kube::Error> {
        let said = json!({
            "apiVersion": ComputeCluster::api_version(&()),
            "kind": ComputeCluster::kind(&()),
            "metadata": {
                "name": cluster.name_any(),
                "uid": cluster.uid(),
                "ownerReferences": instance.owner_ref(&()).map(|owner| vec![owner]),
            },
        });
        let force = PatchParams::apply(FIELD_MANAGER).force();
        let clusters: Api<ComputeCluster> =
            Api::namespaced(self.client.clone(), &cluster.namespace().unwrap_or_default());
        match clusters.patch(&cluster.name_any(), &force, &Patch::Apply(&said)).await {
            Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => Ok(()),
            given => given.map(drop),
        }
    }

    /// Deletes the cache volumes of slots that the cluster no longer has.
    async fn delete_surplus_volumes(&self, cluster: &ComputeCluster) -> Result<(), kube::Error> {
        let namespace = cluster.namespace().unwrap_or_default();
        let own = ListParams::default().labels(&format!("{CLUSTER_LABEL}={}", cluster.name_any()));
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
        let names = |list: kube::core::ObjectList<_>| -> Vec<String> {
            list.into_iter().map(|one: kube::core::PartialObjectMeta<_>| one.name_any()).collect()
        };
        let there: Vec<String> = names(claims.list_metadata(&own).await?);
        let there = there.iter().map(String::as_str);
        if surplus_volumes(cluster, there.clone(), |_| false).is_empty() {
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let pods: Vec<String> = pods.list_metadata(&own).await?.into_iter().map(|pod| pod.name_any()).collect();
        for name in surplus_volumes(cluster, there, |pod| pods.iter().any(|there| there == pod)) {
            tracing::info!(cluster = cluster.name_any(), name, "deleting the cache volume of a removed slot");
            match claims.delete(name, &DeleteParams::background()).await {
                Err(kube::Error::Api(error)) if error.is_not_found() => {}
                deleted => drop(deleted?),
            }
        }
        Ok(())
    }
}

/// Returns whether the StatefulSet has as many pods as it should, so that volumes of other slots are not in use.
fn has_desired_replicas(pods: &StatefulSet) -> bool {
    let wanted = pods.spec.as_ref().and_then(|spec| spec.replicas);
    pods.status
        .as_ref()
        .is_some_and(|status| status.observed_generation == pods.metadata.generation && Some(status.replicas) == wanted)
}

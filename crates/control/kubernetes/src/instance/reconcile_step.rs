//! Next step in the reconciliation of an instance.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;

use crate::resources::Instance;

/// Finalizer that delays the deletion of an instance until its pod has ended, because the pod may still be uploading
/// its last commits to the storage.
pub const FINALIZER: &str = "kiln.dev/pod";

/// Step in the reconciliation of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceStep {
    /// Add the finalizer, so that the instance is not deleted before its pod has ended.
    AddFinalizer,
    /// Create or update its objects.
    Apply,
    /// Delete its StatefulSet, so that the pod ends.
    DeleteStatefulSet,
    /// Wait until its pod has ended.
    AwaitPodEnd,
    /// Remove the finalizer, so that the instance is deleted.
    RemoveFinalizer,
    /// Do nothing: the instance is being deleted and the operator's finalizer is already removed.
    Nothing,
}

/// Returns the next step for an instance, given its observed StatefulSet.
#[must_use]
pub fn next_step(instance: &Instance, pods: Option<&StatefulSet>) -> InstanceStep {
    let has_finalizer = instance.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    if instance.metadata.deletion_timestamp.is_none() {
        return if has_finalizer { InstanceStep::Apply } else { InstanceStep::AddFinalizer };
    }
    if !has_finalizer {
        return InstanceStep::Nothing;
    }
    match pods {
        None => InstanceStep::RemoveFinalizer,
        Some(pods) if pods.metadata.deletion_timestamp.is_some() => InstanceStep::AwaitPodEnd,
        Some(_) => InstanceStep::DeleteStatefulSet,
    }
}

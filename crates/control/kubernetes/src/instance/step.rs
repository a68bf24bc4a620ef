//! Next step in the reconciliation of an instance.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;

use crate::resources::Instance;

/// Finalizer that delays the deletion of an instance until its pod has ended, because the pod may still be uploading
/// its last commits to the storage.
pub const FINALIZER: &str = "kiln.dev/pod";

/// Step in the reconciliation of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Add the finalizer, so that the instance is not deleted before its pod has ended.
    Hold,
    /// Create or update its objects.
    Make,
    /// Delete its StatefulSet, so that the pod ends.
    End,
    /// Wait until its pod has ended.
    Wait,
    /// Remove the finalizer, so that the instance is deleted.
    Release,
    /// Do nothing: the instance is being deleted and the operator's finalizer is already removed.
    Nothing,
}

/// Returns the next step for an instance, given its observed StatefulSet.
#[must_use]
pub fn step(instance: &Instance, pods: Option<&StatefulSet>) -> Step {
    let is_held = instance.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    if instance.metadata.deletion_timestamp.is_none() {
        return if is_held { Step::Make } else { Step::Hold };
    }
    if !is_held {
        return Step::Nothing;
    }
    match pods {
        None => Step::Release,
        Some(pods) if pods.metadata.deletion_timestamp.is_some() => Step::Wait,
        Some(_) => Step::End,
    }
}

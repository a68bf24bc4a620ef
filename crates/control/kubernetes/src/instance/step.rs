//! What is to be done next about an instance.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;

use crate::resources::Instance;

/// What keeps an instance there until its pod has ended: its last commits may be on their way to the storage.
pub const FINALIZER: &str = "kiln.dev/pod";

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// See that it does not vanish before its pod has ended.
    Hold,
    /// Make its objects what they should be.
    Make,
    /// Have its pod end.
    End,
    /// Its pod is ending.
    Wait,
    /// Let it go.
    Release,
    /// It is going, and nothing of it is the operator's any more.
    Nothing,
}

/// Decides about an instance and the StatefulSet of its pod, as they were observed.
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

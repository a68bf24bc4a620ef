//! Authentication of workers by their service-account tokens: the API server tells the pod of a token, and the
//! instance's clusters tell the slot of the pod.

use std::sync::Arc;

use control_plane::{TokenVerifier, VerifiedWorker, VerifyFuture};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, ResourceExt};

use super::api_server::ApiServerClient;
use super::worker_pods::{DesiredWorkers, WorkerPod};
use crate::compute_cluster::{stateful_set_name, token_audience};

/// Extra field of a token review with the name of the pod to which the token is bound.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
/// Extra field of a token review with the uid of the pod to which the token is bound.
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// Reason why a worker token is rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenRejection {
    #[error("the Kubernetes API server could not review the worker's token")]
    Api(#[from] kube::Error),
    #[error(
        "the worker's token is not valid for this instance{}",
        .reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"))
    )]
    InvalidToken { reason: Option<String> },
    #[error("the worker's token belongs to the account {user}, which is not in the namespace {namespace}")]
    OtherNamespace { user: String, namespace: String },
    #[error("the worker's token is not bound to a pod")]
    NotBoundToPod,
    #[error("the pod {name} of the worker's token is gone, is ending, or is not a worker")]
    PodGone { name: String },
    #[error("the pod {name} of the worker's token is not a worker of a cluster of this instance")]
    NotClusterPod { name: String },
}

/// Pod to which a token is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenPod {
    pub(super) name: String,
    pub(super) uid: String,
}

/// Returns the pod of a reviewed token.
///
/// # Errors
/// Returns [`TokenRejection`] if the token is not valid for this audience, not of this namespace, or not bound to a
/// pod.
pub(super) fn pod_of_token(review: &TokenReview, namespace: &str, audience: &str) -> Result<TokenPod, TokenRejection> {
    let status = review.status.as_ref().ok_or(TokenRejection::InvalidToken { reason: None })?;
    // An API server without support for audiences returns none, and the token could then be meant for anyone.
    let is_for_us = status.audiences.iter().flatten().any(|named| named == audience);
    if status.authenticated != Some(true) || !is_for_us {
        return Err(TokenRejection::InvalidToken { reason: status.error.clone() });
    }
    let UserInfo { username, extra, .. } = status.user.clone().unwrap_or_default();
    let user = username.unwrap_or_default();
    if !user.starts_with(&format!("system:serviceaccount:{namespace}:")) {
        return Err(TokenRejection::OtherNamespace { user, namespace: namespace.to_owned() });
    }
    let extra = extra.unwrap_or_default();
    let one = |name: &str| match extra.get(name).map(Vec::as_slice) {
        Some([value]) => Ok(value.clone()),
        _ => Err(TokenRejection::NotBoundToPod),
    };
    Ok(TokenPod { name: one(POD_NAME)?, uid: one(POD_UID)? })
}

/// Checks that the pod is the one of the token, is running or starting, and is controlled by its cluster's StatefulSet
/// rather than created by hand.
///
/// # Errors
/// Returns [`TokenRejection`] if it is not.
pub(super) fn check_pod(bound: &TokenPod, pod: Option<&(Pod, WorkerPod)>) -> Result<(), TokenRejection> {
    let Some((pod, seen)) = pod else { return Err(TokenRejection::PodGone { name: bound.name.clone() }) };
    if seen.uid != bound.uid || seen.is_deleting || seen.has_ended {
        return Err(TokenRejection::PodGone { name: bound.name.clone() });
    }
    let set = stateful_set_name(&seen.cluster);
    let mut owners = pod.owner_references().iter();
    let is_made =
        owners.any(|owner| owner.controller == Some(true) && owner.kind == "StatefulSet" && owner.name == set);
    if is_made { Ok(()) } else { Err(TokenRejection::NotClusterPod { name: bound.name.clone() }) }
}

/// Authenticator of workers in the pods of an instance's clusters.
#[derive(Debug)]
pub(super) struct TokenReviewer {
    pub(super) api_server: Arc<ApiServerClient>,
}

impl TokenReviewer {
    /// Authenticates a token, and returns the cluster and the slot of its worker.
    async fn review(&self, token: &str) -> Result<VerifiedWorker, TokenRejection> {
        let api_server = &*self.api_server;
        let audience = token_audience(&api_server.namespace, &api_server.instance);
        let reviews: Api<TokenReview> = Api::all(api_server.client.clone());
        let asked = TokenReview {
            spec: TokenReviewSpec { audiences: Some(vec![audience.clone()]), token: Some(token.to_owned()) },
            ..TokenReview::default()
        };
        let review = reviews.create(&PostParams::default(), &asked).await?;
        let bound = pod_of_token(&review, &api_server.namespace, &audience)?;
        let pod = api_server.pod(&bound.name).await?;
        check_pod(&bound, pod.as_ref())?;
        let (_, seen) = pod.expect("check rejects a missing pod");
        let plans = api_server.desired_workers();
        // A StatefulSet adopts a matching pod that was created by hand beyond the last slot before it deletes the pod.
        let Some(DesiredWorkers { id, spec, .. }) = plans.get(&seen.cluster).filter(|plan| seen.slot < plan.slots)
        else {
            return Err(TokenRejection::NotClusterPod { name: bound.name });
        };
        Ok(VerifiedWorker { cluster: *id, slot: seen.slot, spec: spec.clone(), host_uid: bound.uid })
    }
}

impl TokenVerifier for TokenReviewer {
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
        Box::pin(async move {
            self.review(token).await.map_err(|refused| {
                let error = &refused as &dyn std::error::Error;
                tracing::warn!(error, "worker token rejected");
                refused.to_string()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use types::SystemClock;

    use super::*;

    const AUDIENCE: &str = "dw.warehouses.instance.kiln.dev";

    /// Returns the outcome for the review of a valid token, in which `other` replaces the value at `path`.
    fn reviewed(path: &str, other: &Value) -> Result<TokenPod, TokenRejection> {
        let mut review = json!({ "spec": {}, "status": {
            "authenticated": true,
            "audiences": [AUDIENCE],
            "user": {
                "username": "system:serviceaccount:warehouses:dw",
                "extra": { POD_NAME: ["etl-workers-1"], POD_UID: ["u"] },
            },
        } });
        if !path.is_empty() {
            *review.pointer_mut(path).expect("it is there") = other.clone();
        }
        pod_of_token(&serde_json::from_value(review).expect("it is a review"), "warehouses", AUDIENCE)
    }

    #[test]
    fn only_a_pods_own_token_for_this_instance_is_taken() {
        let good = reviewed("", &Value::Null).expect("all is well");
        assert_eq!(good, TokenPod { name: "etl-workers-1".to_owned(), uid: "u".to_owned() });
        for (path, other) in [
            ("/status/authenticated", json!(false)),
            ("/status/audiences", json!([])),
            ("/status/audiences", json!(["https://kubernetes.default.svc"])),
            ("/status/audiences", Value::Null),
            ("/status/user/username", json!("system:serviceaccount:others:dw")),
            ("/status/user/username", json!("ana")),
            ("/status/user/extra", json!({})),
            ("/status/user/extra", json!({ POD_NAME: ["etl-workers-1"] })),
            ("/status/user/extra", json!({ POD_NAME: ["a", "b"], POD_UID: ["u"] })),
            ("/status", Value::Null),
        ] {
            reviewed(path, &other).expect_err(&format!("{path} {other}"));
        }
    }

    #[test]
    fn only_pods_that_a_cluster_has_made_are_workers() {
        let bound = TokenPod { name: "etl-workers-1".to_owned(), uid: "u".to_owned() };
        let pod = |path: &str, other: Value| {
            let mut object = json!({
                "metadata": {
                    "name": "etl-workers-1",
                    "uid": "u",
                    "labels": { "kiln.dev/cluster": "etl" },
                    "deletionTimestamp": null,
                    "ownerReferences": [
                        { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "etl-workers", "uid": "s", "controller": true },
                    ],
                },
                "status": { "phase": "Running" },
            });
            if !path.is_empty() {
                *object.pointer_mut(path).expect("it is there") = other;
            }
            let pod: Pod = serde_json::from_value(object).expect("it is a pod");
            let seen = WorkerPod::from_pod(&pod, &SystemClock::new()).expect("it is named like one");
            (pod, seen)
        };
        check_pod(&bound, Some(&pod("", Value::Null))).expect("all is well");
        check_pod(&bound, None).expect_err("it is gone");
        for (path, other) in [
            ("/metadata/uid", json!("another life")),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("/status/phase", json!("Failed")),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/ownerReferences/0/name", json!("other-workers")),
            ("/metadata/ownerReferences/0/controller", json!(false)),
        ] {
            let wrong = pod(path, other.clone());
            check_pod(&bound, Some(&wrong)).expect_err(&format!("{path} {other}"));
        }
    }
}

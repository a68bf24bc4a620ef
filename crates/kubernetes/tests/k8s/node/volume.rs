//! Volumes as folders: those that pods claim, which outlive them, and those that come and go with a pod.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount, Volume, VolumeProjection,
};
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::Shared;

/// Makes a volume for each claim of the namespace.
pub(super) async fn provide(node: Arc<Shared>) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(node.client.clone(), &node.namespace);
    let mut events = watcher(claims, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let (Event::Apply(claim) | Event::InitApply(claim)) = event.expect("the API server can be watched") else {
            continue;
        };
        let uid = claim.uid().expect("it is there");
        let folder = node.folder.path().join(&uid);
        if folder.exists() {
            continue;
        }
        std::fs::create_dir(&folder).expect("the node's folder can be written");
        let spec = claim.spec.as_ref().expect("a claim has a spec");
        let size = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()).expect("it says its size");
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": { "name": format!("volume-{uid}") },
            "spec": {
                "capacity": size,
                "accessModes": spec.access_modes,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": { "path": folder },
                "claimRef": { "namespace": node.namespace, "name": claim.name_any(), "uid": uid },
            },
        }))
        .expect("it is a volume");
        let volumes: Api<PersistentVolume> = Api::all(node.client.clone());
        volumes.create(&PostParams::default(), &volume).await.expect("an administrator may");
    }
}

/// The folder of a pod's volume, for the pod's group where it has one.
pub(super) async fn folder(node: &Shared, pod: &Pod, volume: &Volume) -> PathBuf {
    let of_pod = node.folder.path().join(pod.uid().expect("it is there")).join(&volume.name);
    let folder = if let Some(claim) = &volume.persistent_volume_claim {
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(node.client.clone(), &pod.namespace().expect("a pod is in a namespace"));
        let claim = claims.get(&claim.claim_name).await.expect("the scheduler has seen it");
        node.folder.path().join(claim.uid().expect("it is there"))
    } else if let Some(projected) = &volume.projected {
        std::fs::create_dir_all(&of_pod).expect("the node's folder can be written");
        for source in projected.sources.iter().flatten() {
            project(node, pod, source, &of_pod).await;
        }
        of_pod
    } else {
        assert!(volume.empty_dir.is_some(), "volumes of this kind are not known here: {volume:?}");
        std::fs::create_dir_all(&of_pod).expect("the node's folder can be written");
        of_pod
    };
    let group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.fs_group);
    if let Some(group) = group {
        give(&folder, u32::try_from(group).expect("a group's number is small"));
    }
    folder
}

/// Writes what a source says into the folder. What is not there yet is waited for, as a node does.
async fn project(node: &Shared, pod: &Pod, source: &VolumeProjection, folder: &Path) {
    let write = |path: &str, content: &str| {
        std::fs::write(folder.join(path), content).expect("the node's folder can be written");
    };
    let name = pod.name_any();
    if let Some(asked) = &source.service_account_token {
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).expect("a pod has one");
        let request: TokenRequest = serde_json::from_value(json!({ "metadata": {}, "spec": {
            "audiences": asked.audience.iter().collect::<Vec<_>>(),
            "expirationSeconds": asked.expiration_seconds,
            "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod.uid() },
        } }))
        .expect("it is a request");
        let accounts: Api<ServiceAccount> = Api::namespaced(node.client.clone(), &node.namespace);
        let given: TokenRequest = accounts
            .create_subresource("token", &account, &PostParams::default(), &request)
            .await
            .expect("the service account is there");
        write(&asked.path, &given.status.expect("a token is given").token);
    }
    if let Some(asked) = &source.config_map {
        let maps: Api<ConfigMap> = Api::namespaced(node.client.clone(), &node.namespace);
        let there = await_condition(maps, &asked.name, |map: Option<&ConfigMap>| map.is_some());
        let map = there.await.expect("the API server can be watched").expect("it was waited for");
        for item in asked.items.iter().flatten() {
            write(&item.path, &map.data.as_ref().expect("it says something")[&item.key]);
        }
    }
    for item in source.downward_api.iter().flat_map(|asked| asked.items.iter().flatten()) {
        let field = item.field_ref.as_ref().map(|field| field.field_path.as_str());
        assert_eq!(field, Some("metadata.namespace"), "other fields are not known here");
        write(&item.path, &node.namespace);
    }
}

fn give(folder: &Path, group: u32) {
    chown(folder, None, Some(group)).expect("root may");
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o2775)).expect("root may");
}

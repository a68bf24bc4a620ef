//! Volumes of pods as folders: claimed volumes, which outlive pods and nodes, and volumes of a single pod. A claimed
//! volume of less than 1 GiB is a file system of that size and can be filled.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, SecretVolumeSource, ServiceAccount, Volume,
    VolumeProjection,
};
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event, watch_object, watcher};
use kube::{Api, ResourceExt};
use kubernetes::quantity;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use types::Clock;

use super::site::Ground;

/// Volumes smaller than this are a tmpfs of their size; the size of larger ones is not enforced.
const SMALL_BYTES: u64 = 1 << 30;
/// Name of the file that fills a disk.
const OTHERS: &str = "others";
const CHUNK_BYTES: usize = 64 << 10;
/// Delay before a token is requested again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Claimed volume.
pub(crate) struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Fills the disk with a foreign file until only `free` bytes are free.
    pub(crate) fn fill(&self, free: u64) {
        let mut file = File::options().create(true).append(true).open(self.folder.join(OTHERS)).expect("root may");
        while free < self.free() {
            match file.write_all(&[1; CHUNK_BYTES]) {
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return,
                written => written.expect("root may"),
            }
        }
    }

    /// Deletes the file that fills the disk.
    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.folder.join(OTHERS)).expect("it was filled");
    }

    /// Returns the number of free bytes.
    pub(crate) fn free(&self) -> u64 {
        let room = rustix::fs::statvfs(&self.folder).expect("it is there");
        room.f_bavail * room.f_frsize
    }
}

/// Creates a volume for each claim of the namespace.
pub(super) async fn provide(ground: Arc<Ground>) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(ground.client.clone(), &ground.namespace);
    let mut events = watcher(claims, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let (Event::Apply(claim) | Event::InitApply(claim)) = event.expect("the API server can be watched") else {
            continue;
        };
        let uid = claim.uid().expect("it is there");
        let folder = ground.folder().join(&uid);
        if folder.exists() {
            continue;
        }
        std::fs::create_dir(&folder).expect("the site's folder can be written");
        let spec = claim.spec.as_ref().expect("a claim has a spec");
        let size = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()).expect("it says its size");
        let bytes = quantity::parse_bytes(&size["storage"].0).expect("its size is one");
        if bytes < SMALL_BYTES {
            let size = format!("size={bytes}");
            let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).status();
            assert!(mounted.is_ok_and(|status| status.success()), "root may mount a disk");
        }
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": { "name": format!("volume-{uid}") },
            "spec": {
                "capacity": size,
                "accessModes": spec.access_modes,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": { "path": folder },
                "claimRef": { "namespace": ground.namespace, "name": claim.name_any(), "uid": uid },
            },
        }))
        .expect("it is a volume");
        let volumes: Api<PersistentVolume> = Api::all(ground.client.clone());
        volumes.create(&PostParams::default(), &volume).await.expect("an administrator may");
    }
}

/// Returns the disk of a claim, which must exist.
pub(super) async fn disk(ground: &Ground, claim: &str) -> Disk {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(ground.client.clone(), &ground.namespace);
    let claim = claims.get(claim).await.expect("it is there");
    Disk { folder: ground.folder().join(claim.uid().expect("it is there")) }
}

/// Creates the folder of a pod's volume, writable for the pod's group if it has one, and returns its path.
pub(super) async fn folder(ground: &Ground, pod: &Pod, volume: &Volume, keepers: &mut JoinSet<()>) -> PathBuf {
    let of_pod = ground.folder().join(pod.uid().expect("it is there")).join(&volume.name);
    let folder = if let Some(claim) = &volume.persistent_volume_claim {
        disk(ground, &claim.claim_name).await.folder
    } else if let Some(projected) = &volume.projected {
        std::fs::create_dir_all(&of_pod).expect("the site's folder can be written");
        for source in projected.sources.iter().flatten() {
            project(ground, pod, source, &of_pod).await;
        }
        of_pod
    } else if let Some(secret) = &volume.secret {
        std::fs::create_dir_all(&of_pod).expect("the site's folder can be written");
        keep_secret(ground, pod, secret, &of_pod, keepers).await;
        of_pod
    } else {
        assert!(volume.empty_dir.is_some(), "volumes of this kind are not known here: {volume:?}");
        std::fs::create_dir_all(&of_pod).expect("the site's folder can be written");
        of_pod
    };
    let group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.fs_group);
    if let Some(group) = group {
        give(&folder, u32::try_from(group).expect("a group's number is small"));
    }
    folder
}

/// Writes the content of a projected source into the folder. Waits, like a node, until the source exists.
async fn project(ground: &Ground, pod: &Pod, source: &VolumeProjection, folder: &Path) {
    let write = |path: &str, content: &str| {
        std::fs::write(folder.join(path), content).expect("the site's folder can be written");
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
        let accounts: Api<ServiceAccount> = Api::namespaced(ground.client.clone(), &ground.namespace);
        let given: TokenRequest = loop {
            match accounts.create_subresource("token", &account, &PostParams::default(), &request).await {
                Ok(given) => break given,
                Err(error) => eprintln!("{name} has no token yet: {error}"),
            }
            ground.clock.sleep(TRY_AGAIN_AFTER).await;
        };
        write(&asked.path, &given.status.expect("a token is given").token);
    }
    if let Some(asked) = &source.config_map {
        let maps: Api<ConfigMap> = Api::namespaced(ground.client.clone(), &ground.namespace);
        let there = await_condition(maps, &asked.name, |map: Option<&ConfigMap>| map.is_some());
        let map = there.await.expect("the API server can be watched").expect("it was waited for");
        for item in asked.items.iter().flatten() {
            write(&item.path, &map.data.as_ref().expect("it says something")[&item.key]);
        }
    }
    for item in source.downward_api.iter().flat_map(|asked| asked.items.iter().flatten()) {
        let field = item.field_ref.as_ref().map(|field| field.field_path.as_str());
        assert_eq!(field, Some("metadata.namespace"), "other fields are not known here");
        write(&item.path, &ground.namespace);
    }
}

/// Writes the keys of a secret into the folder as soon as it exists, and updates them as long as `keepers` run. An
/// update switches all files at once by a symbolic link.
async fn keep_secret(
    ground: &Ground,
    pod: &Pod,
    volume: &SecretVolumeSource,
    folder: &Path,
    keepers: &mut JoinSet<()>,
) {
    let name = volume.secret_name.clone().expect("it says which");
    let secrets: Api<Secret> = Api::namespaced(ground.client.clone(), &ground.namespace);
    let group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.fs_group);
    let group = group.map(|group| u32::try_from(group).expect("a group's number is small"));
    let (volume, folder) = (volume.clone(), folder.to_owned());
    let (tell, is_there) = oneshot::channel();
    keepers.spawn(async move {
        let (mut tell, mut seen) = (Some(tell), None);
        let mut events = watch_object(secrets, &name).boxed();
        while let Some(event) = events.next().await {
            let Ok(Some(secret)) = event else { continue };
            let version = secret.resource_version();
            if seen != version {
                publish(&volume, &secret, version.as_deref().unwrap_or("0"), group, &folder);
                seen = version;
            }
            if let Some(tell) = tell.take() {
                // Nobody waits if the pod is being deleted.
                let _ = tell.send(());
            }
        }
    });
    is_there.await.expect("its keeper lives as long");
}

fn publish(volume: &SecretVolumeSource, secret: &Secret, version: &str, group: Option<u32>, folder: &Path) {
    const NOW: &str = "..data";
    let data = secret.data.as_ref().expect("it says something");
    let of_version = folder.join(format!("..{version}"));
    if of_version.exists() {
        return;
    }
    std::fs::create_dir(&of_version).expect("the site's folder can be written");
    let items = volume.items.as_ref().expect("others are not known here");
    for item in items {
        let file = of_version.join(&item.path);
        let mode = u32::try_from(volume.default_mode.expect("it says it")).expect("modes are small");
        std::fs::write(&file, &data[&item.key].0).expect("the site's folder can be written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("root may");
        chown(&file, Some(0), group).expect("root may");
    }
    let (draft, now) = (folder.join("..draft"), folder.join(NOW));
    let before = std::fs::read_link(&now);
    symlink(of_version.file_name().expect("it has a name"), &draft).expect("the site's folder can be written");
    std::fs::rename(&draft, &now).expect("the site's folder can be written");
    match before {
        Ok(before) => std::fs::remove_dir_all(folder.join(before)).expect("root may"),
        Err(_) => {
            for item in items {
                symlink(Path::new(NOW).join(&item.path), folder.join(&item.path)).expect("the folder can be written");
            }
        }
    }
}

fn give(folder: &Path, group: u32) {
    chown(folder, None, Some(group)).expect("root may");
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o2775)).expect("root may");
}

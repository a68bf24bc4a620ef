//! Parts that the pods of instances and workers share: security contexts, resources, volumes and ports.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, ContainerPort, EnvFromSource, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodSecurityContext,
    ResourceRequirements, SeccompProfile, SecretEnvSource, SecurityContext, VolumeMount, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::ObjectMeta;

/// User and group of the processes: `nonroot`, as in images without a root user.
const NONROOT_USER: i64 = 65_532;

/// Returns the security context of a pod: no root user, and volumes that are writable for its group.
pub(crate) fn pod_security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(NONROOT_USER),
        run_as_group: Some(NONROOT_USER),
        fs_group: Some(NONROOT_USER),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }),
        ..PodSecurityContext::default()
    }
}

/// Returns the security context of a container: read-only root file system, no capabilities, no privilege escalation.
pub(crate) fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() }),
        ..SecurityContext::default()
    }
}

/// Returns CPU and memory, with limits equal to requests.
pub(crate) fn resource_requirements(cpu: &str, memory: &str) -> ResourceRequirements {
    let amounts = [("cpu", cpu), ("memory", memory)];
    let amounts: BTreeMap<String, Quantity> =
        amounts.into_iter().map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).collect();
    ResourceRequirements { requests: Some(amounts.clone()), limits: Some(amounts), ..ResourceRequirements::default() }
}

/// Returns the environment source that sets each key of a secret as a variable.
pub(crate) fn env_from_secret(secret: &str) -> EnvFromSource {
    EnvFromSource {
        secret_ref: Some(SecretEnvSource { name: secret.to_owned(), optional: None }),
        ..EnvFromSource::default()
    }
}

/// Returns the claim template of a StatefulSet for a ReadWriteOnce volume per pod.
pub(crate) fn volume_claim(
    name: &str,
    size: &str,
    class: Option<&String>,
    labels: BTreeMap<String, String>,
) -> PersistentVolumeClaim {
    let size = [("storage".to_owned(), Quantity(size.to_owned()))];
    PersistentVolumeClaim {
        metadata: ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: class.cloned(),
            resources: Some(VolumeResourceRequirements {
                requests: Some(size.into()),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

/// Returns a TCP port of a container.
pub(crate) fn container_port(name: &str, port: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: port,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// Returns the mount of a volume at a path of a container.
pub(crate) fn volume_mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

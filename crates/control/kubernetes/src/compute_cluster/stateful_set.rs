//! StatefulSet and pods of a cluster's workers. Every change to the pod template restarts the workers one by one, so
//! the template does not contain the node count, cache and spill limits or suspension.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    ConfigMapProjection, Container, EmptyDirVolumeSource, EnvVar, KeyToPath, PodSpec, PodTemplateSpec, Probe,
    ProjectedVolumeSource, ServiceAccountTokenProjection, TCPSocketAction, TopologySpreadConstraint, Volume,
    VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::ObjectMeta;

use super::{
    AUTHORITY_MAP_KEY, CACHE_VOLUME, ClusterDependencies, TASK_PORT, authority_config_map_name, desired_workers,
    metadata, pod_labels, selector, stateful_set_name, token_audience,
};
use crate::instance::{service_account_name, worker_join_address};
use crate::pod_parts::{
    container_port, container_security, env_from_secret, pod_security, resource_requirements, volume_claim,
    volume_mount,
};
use crate::resources::{ComputeCluster, Instance};

/// Name of the port on which workers accept tasks.
pub(super) const TASK_PORT_NAME: &str = "tasks";
const CONTAINER_NAME: &str = "worker";
const CACHE_MOUNT: &str = "/var/lib/kiln";
/// Folder of the worker, below the mount point, because the root of a volume may hold entries of the file system.
const CACHE_FOLDER: &str = "/var/lib/kiln/workers";
const TEMPORARY_VOLUME: &str = "tmp";
const TEMPORARY_MOUNT: &str = "/tmp";
/// Name of the volume with the worker's token and the certificate of the instance's authority.
const IDENTITY_VOLUME: &str = "identity";
const IDENTITY_MOUNT: &str = "/var/run/kiln";
const TOKEN_FILE: &str = "token";
/// Lifetime of worker tokens. The kubelet renews them well before they expire; the API server's minimum is 10 minutes.
const TOKEN_SECONDS: i64 = 3_600;
/// Default of the setting `drain_grace`: seconds that statements get to finish on a draining worker.
const DRAIN_GRACE_SECONDS: i64 = 300;
/// Seconds for the other work of a worker's shutdown.
const DRAIN_MARGIN_SECONDS: i64 = 30;
/// Seconds for which a worker tries to reach a lost instance, unless the setting `worker_patience` is set. Long,
/// because ending earlier gains nothing: Kubernetes would restart the container.
const RECONNECT_TIMEOUT_SECONDS: &str = "3600";
/// Settings of an instance that its workers use too.
const SHARED_SETTINGS: [&str; 2] = ["log", "log_format"];

/// Returns the StatefulSet with the worker pods, their volume claims and the retention policy of the claims.
pub(super) fn stateful_set(
    cluster: &ComputeCluster,
    around: &ClusterDependencies<'_>,
    present: Option<&StatefulSet>,
) -> StatefulSet {
    let volume = &around.hardware.spec.cache_volume;
    let class = volume.storage_class_name.as_ref();
    StatefulSet {
        metadata: metadata(cluster),
        spec: Some(StatefulSetSpec {
            replicas: Some(desired_workers(cluster)),
            service_name: Some(stateful_set_name(&cluster.name_any())),
            selector: LabelSelector { match_labels: Some(selector(cluster)), ..LabelSelector::default() },
            pod_management_policy: Some("Parallel".to_owned()),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                ..StatefulSetUpdateStrategy::default()
            }),
            // Workers of a resumed cluster reuse their caches. The operator deletes surplus volumes of a smaller
            // cluster.
            persistent_volume_claim_retention_policy: Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: Some("Delete".to_owned()),
                when_scaled: Some("Retain".to_owned()),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(pod_labels(cluster)), ..ObjectMeta::default() }),
                spec: Some(pod_spec(cluster, around, &worker_image(around, present))),
            },
            volume_claim_templates: Some(vec![
                // The claim templates of a StatefulSet are immutable, so those of an existing one are repeated.
                present
                    .and_then(|present| present.spec.as_ref()?.volume_claim_templates.as_ref()?.first())
                    .map_or_else(
                        || volume_claim(CACHE_VOLUME, &volume.size, class, selector(cluster)),
                        |there| repeat_claim_template(there, cluster),
                    ),
            ]),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

/// Returns the desired claim template with the size and the storage class of `there`, an existing one.
fn repeat_claim_template(
    existing: &k8s_openapi::api::core::v1::PersistentVolumeClaim,
    cluster: &ComputeCluster,
) -> k8s_openapi::api::core::v1::PersistentVolumeClaim {
    let spec = existing.spec.as_ref();
    let requests = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage")).map_or("", |size| &size.0);
    volume_claim(CACHE_VOLUME, size, spec.and_then(|spec| spec.storage_class_name.as_ref()), selector(cluster))
}

/// Returns the image of the workers: a new image is used only once the instance's own pod runs it. An instance assigns
/// no work to workers of another version, and an instance that is still draining needs workers of the old version.
fn worker_image(around: &ClusterDependencies<'_>, present: Option<&StatefulSet>) -> String {
    let wanted = &around.instance.spec.image;
    let instance_has_image = around.instance_stateful_set.is_none_or(|pods| {
        let in_template = pods.spec.as_ref().and_then(|spec| container_image(&spec.template));
        let is_seen = pods.status.as_ref().is_some_and(|status| {
            status.observed_generation == pods.metadata.generation && status.current_revision == status.update_revision
        });
        in_template == Some(wanted.as_str()) && is_seen
    });
    let present = present.and_then(|present| container_image(&present.spec.as_ref()?.template));
    present.filter(|_| !instance_has_image).unwrap_or(wanted).to_owned()
}

fn container_image(template: &PodTemplateSpec) -> Option<&str> {
    template.spec.as_ref()?.containers.first()?.image.as_deref()
}

fn pod_spec(cluster: &ComputeCluster, around: &ClusterDependencies<'_>, image: &str) -> PodSpec {
    let hardware = &around.hardware.spec;
    let selectors = (!hardware.node_selector.is_empty()).then(|| hardware.node_selector.clone());
    let tolerations = (!hardware.tolerations.is_empty()).then(|| hardware.tolerations.clone());
    PodSpec {
        service_account_name: Some(service_account_name(around.instance)),
        // Workers do not call the API server. The token in the identity volume is for the instance only.
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(termination_grace(around.instance)),
        security_context: Some(pod_security()),
        node_selector: selectors,
        tolerations,
        // Spread over nodes, so that the loss of a node costs a cluster as few workers as possible.
        topology_spread_constraints: Some(vec![TopologySpreadConstraint {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".to_owned(),
            when_unsatisfiable: "ScheduleAnyway".to_owned(),
            label_selector: Some(LabelSelector { match_labels: Some(selector(cluster)), ..LabelSelector::default() }),
            ..TopologySpreadConstraint::default()
        }]),
        containers: vec![worker_container(around, image)],
        volumes: Some(vec![
            Volume {
                name: TEMPORARY_VOLUME.to_owned(),
                empty_dir: Some(EmptyDirVolumeSource::default()),
                ..Volume::default()
            },
            identity_volume(around.instance),
        ]),
        ..PodSpec::default()
    }
}

fn worker_container(around: &ClusterDependencies<'_>, image: &str) -> Container {
    let hardware = &around.hardware.spec;
    let arguments = [
        ("--join", format!("kiln://{}", worker_join_address(around.instance))),
        ("--token", format!("{IDENTITY_MOUNT}/{TOKEN_FILE}")),
        ("--authority", format!("{IDENTITY_MOUNT}/{AUTHORITY_MAP_KEY}")),
        ("--listen", format!("0.0.0.0:{TASK_PORT}")),
        ("--folder", CACHE_FOLDER.to_owned()),
        ("--patience", around.instance.setting("worker_patience").unwrap_or(RECONNECT_TIMEOUT_SECONDS).to_owned()),
    ];
    let arguments = arguments.into_iter().flat_map(|(option, value)| [option.to_owned(), value]);
    let secret = around.instance.spec.storage.secret_name.as_deref().map(env_from_secret);
    Container {
        name: CONTAINER_NAME.to_owned(),
        image: Some(image.to_owned()),
        command: Some(vec!["kiln".to_owned()]),
        args: Some(std::iter::once("worker".to_owned()).chain(arguments).collect()),
        env: Some(environment(around.instance)),
        env_from: secret.map(|secret| vec![secret]),
        ports: Some(vec![container_port(TASK_PORT_NAME, TASK_PORT)]),
        resources: Some(resource_requirements(&hardware.cpu, &hardware.memory)),
        volume_mounts: Some(vec![
            volume_mount(CACHE_VOLUME, CACHE_MOUNT),
            volume_mount(TEMPORARY_VOLUME, TEMPORARY_MOUNT),
            VolumeMount { read_only: Some(true), ..volume_mount(IDENTITY_VOLUME, IDENTITY_MOUNT) },
        ]),
        security_context: Some(container_security()),
        // The port is open once the worker has joined. There is no liveness probe: the instance gets a heartbeat each
        // second and has the pod of a hung worker replaced.
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction { port: IntOrString::String(TASK_PORT_NAME.to_owned()), host: None }),
            period_seconds: Some(2),
            timeout_seconds: Some(2),
            failure_threshold: Some(2),
            ..Probe::default()
        }),
        ..Container::default()
    }
}

/// Returns the volume with the token that identifies the pod to the instance, and the authority's certificate by which
/// the worker verifies the instance before it sends the token.
fn identity_volume(instance: &Instance) -> Volume {
    let name = instance.name_any();
    let token = ServiceAccountTokenProjection {
        audience: Some(token_audience(&instance.namespace().unwrap_or_default(), &name)),
        expiration_seconds: Some(TOKEN_SECONDS),
        path: TOKEN_FILE.to_owned(),
    };
    let authority = ConfigMapProjection {
        name: authority_config_map_name(&name),
        items: Some(vec![KeyToPath {
            key: AUTHORITY_MAP_KEY.to_owned(),
            path: AUTHORITY_MAP_KEY.to_owned(),
            mode: None,
        }]),
        optional: None,
    };
    Volume {
        name: IDENTITY_VOLUME.to_owned(),
        projected: Some(ProjectedVolumeSource {
            // Readable for the group, which is the pod's `fsGroup`.
            default_mode: Some(0o440),
            sources: Some(vec![
                VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() },
                VolumeProjection { config_map: Some(authority), ..VolumeProjection::default() },
            ]),
        }),
        ..Volume::default()
    }
}

fn environment(instance: &Instance) -> Vec<EnvVar> {
    let usual = BTreeMap::from([("log_format", "json")]);
    let said = SHARED_SETTINGS.into_iter().filter_map(|name| {
        let value = instance.setting(name).or_else(|| usual.get(name).copied())?;
        Some(EnvVar { name: format!("KILN_{}", name.to_uppercase()), value: Some(value.to_owned()), value_from: None })
    });
    said.collect()
}

/// Returns the seconds after which Kubernetes kills a terminating pod; a drained worker ends by itself before.
fn termination_grace(instance: &Instance) -> i64 {
    let grace = instance.setting("drain_grace").and_then(|seconds| seconds.parse().ok());
    grace.unwrap_or(DRAIN_GRACE_SECONDS).clamp(0, i64::from(i32::MAX)) + DRAIN_MARGIN_SECONDS
}

//! A cluster's pods, and the StatefulSet that keeps as many as there should be. Whatever changes here in their template ends and starts them, one after the
//! other; how many there are, what they may cache and when they sleep is not in it.

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
    AUTHORITY_KEY, Around, CACHE_VOLUME, TASK_PORT, audience, authority_name, metadata, pod_labels, selector, wanted,
    workers_name,
};
use crate::instance::{account_name, door};
use crate::pod::{claim, container_security, mount, port, resources, security, variables_of};
use crate::resources::{ComputeCluster, Instance};

/// The name of the port where tasks are taken.
pub(super) const TASKS: &str = "tasks";
const CONTAINER: &str = "worker";
const CACHE_MOUNT: &str = "/var/lib/kiln";
/// Below it: the root of a volume may hold what its file system needs.
const CACHE_FOLDER: &str = "/var/lib/kiln/workers";
const TEMPORARY_VOLUME: &str = "tmp";
const TEMPORARY_MOUNT: &str = "/tmp";
/// By what a worker shows who it is, and by what it knows its instance.
const IDENTITY_VOLUME: &str = "identity";
const IDENTITY_MOUNT: &str = "/var/run/kiln";
const TOKEN: &str = "token";
/// Nodes exchange tokens long before; ten minutes are the least that the API server gives.
const TOKEN_SECONDS: i64 = 3_600;
/// What an instance gives statements on a worker that is to go, unless a setting says otherwise, and what the rest of its end may take.
const DRAIN_GRACE_SECONDS: i64 = 300;
const DRAIN_REST_SECONDS: i64 = 30;
/// How long a worker looks for an instance that is gone, unless a setting says otherwise: a pod that ends is only started again.
const PATIENCE_SECONDS: &str = "3600";
/// Settings of an instance that are its workers' too.
const SHARED_SETTINGS: [&str; 2] = ["log", "log_format"];

/// The pods, their volumes, and what becomes of them.
pub(super) fn stateful_set(
    cluster: &ComputeCluster,
    around: &Around<'_>,
    present: Option<&StatefulSet>,
) -> StatefulSet {
    let volume = &around.hardware.spec.cache_volume;
    let class = volume.storage_class_name.as_ref();
    StatefulSet {
        metadata: metadata(cluster),
        spec: Some(StatefulSetSpec {
            replicas: Some(wanted(cluster)),
            service_name: Some(workers_name(&cluster.name_any())),
            selector: LabelSelector { match_labels: Some(selector(cluster)), ..LabelSelector::default() },
            pod_management_policy: Some("Parallel".to_owned()),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                ..StatefulSetUpdateStrategy::default()
            }),
            // Who sleeps finds its cache again; what a smaller cluster has left over the operator takes away.
            persistent_volume_claim_retention_policy: Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: Some("Delete".to_owned()),
                when_scaled: Some("Retain".to_owned()),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(pod_labels(cluster)), ..ObjectMeta::default() }),
                spec: Some(pod(cluster, around, &image(around, present))),
            },
            volume_claim_templates: Some(vec![
                // Templates of claims are never changed, as they cannot be in a StatefulSet.
                present
                    .and_then(|present| present.spec.as_ref()?.volume_claim_templates.as_ref()?.first())
                    .map_or_else(
                        || claim(CACHE_VOLUME, &volume.size, class, selector(cluster)),
                        |there| kept_claim(there, cluster),
                    ),
            ]),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

/// The claim of a StatefulSet that is there, as it would be said.
fn kept_claim(
    there: &k8s_openapi::api::core::v1::PersistentVolumeClaim,
    cluster: &ComputeCluster,
) -> k8s_openapi::api::core::v1::PersistentVolumeClaim {
    let spec = there.spec.as_ref();
    let requests = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage")).map_or("", |size| &size.0);
    claim(CACHE_VOLUME, size, spec.and_then(|spec| spec.storage_class_name.as_ref()), selector(cluster))
}

/// Workers get a new image when the instance's own pod has it: an instance gives no work to workers of another version, and while it waits for its
/// own end those of the old one still have some.
fn image(around: &Around<'_>, present: Option<&StatefulSet>) -> String {
    let wanted = &around.instance.spec.image;
    let has_it = around.instance_pods.is_none_or(|pods| {
        let in_template = pods.spec.as_ref().and_then(|spec| container_image(&spec.template));
        let is_seen = pods.status.as_ref().is_some_and(|status| {
            status.observed_generation == pods.metadata.generation && status.current_revision == status.update_revision
        });
        in_template == Some(wanted.as_str()) && is_seen
    });
    let present = present.and_then(|present| container_image(&present.spec.as_ref()?.template));
    present.filter(|_| !has_it).unwrap_or(wanted).to_owned()
}

fn container_image(template: &PodTemplateSpec) -> Option<&str> {
    template.spec.as_ref()?.containers.first()?.image.as_deref()
}

fn pod(cluster: &ComputeCluster, around: &Around<'_>, image: &str) -> PodSpec {
    let hardware = &around.hardware.spec;
    let selectors = (!hardware.node_selector.is_empty()).then(|| hardware.node_selector.clone());
    let tolerations = (!hardware.tolerations.is_empty()).then(|| hardware.tolerations.clone());
    PodSpec {
        service_account_name: Some(account_name(around.instance)),
        // It shows the instance who it is, and the API server nothing.
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(termination_grace(around.instance)),
        security_context: Some(security()),
        node_selector: selectors,
        tolerations,
        // A node that goes takes as few workers of a cluster with it as can be.
        topology_spread_constraints: Some(vec![TopologySpreadConstraint {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".to_owned(),
            when_unsatisfiable: "ScheduleAnyway".to_owned(),
            label_selector: Some(LabelSelector { match_labels: Some(selector(cluster)), ..LabelSelector::default() }),
            ..TopologySpreadConstraint::default()
        }]),
        containers: vec![container(around, image)],
        volumes: Some(vec![
            Volume {
                name: TEMPORARY_VOLUME.to_owned(),
                empty_dir: Some(EmptyDirVolumeSource::default()),
                ..Volume::default()
            },
            identity(around.instance),
        ]),
        ..PodSpec::default()
    }
}

fn container(around: &Around<'_>, image: &str) -> Container {
    let hardware = &around.hardware.spec;
    let arguments = [
        ("--join", format!("kiln://{}", door(around.instance))),
        ("--token", format!("{IDENTITY_MOUNT}/{TOKEN}")),
        ("--authority", format!("{IDENTITY_MOUNT}/{AUTHORITY_KEY}")),
        ("--listen", format!("0.0.0.0:{TASK_PORT}")),
        ("--folder", CACHE_FOLDER.to_owned()),
        ("--patience", around.instance.setting("worker_patience").unwrap_or(PATIENCE_SECONDS).to_owned()),
    ];
    let arguments = arguments.into_iter().flat_map(|(option, value)| [option.to_owned(), value]);
    let secret = around.instance.spec.storage.secret_name.as_deref().map(variables_of);
    Container {
        name: CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        command: Some(vec!["kiln".to_owned()]),
        args: Some(std::iter::once("worker".to_owned()).chain(arguments).collect()),
        env: Some(variables(around.instance)),
        env_from: secret.map(|secret| vec![secret]),
        ports: Some(vec![port(TASKS, TASK_PORT)]),
        resources: Some(resources(&hardware.cpu, &hardware.memory)),
        volume_mounts: Some(vec![
            mount(CACHE_VOLUME, CACHE_MOUNT),
            mount(TEMPORARY_VOLUME, TEMPORARY_MOUNT),
            VolumeMount { read_only: Some(true), ..mount(IDENTITY_VOLUME, IDENTITY_MOUNT) },
        ]),
        security_context: Some(container_security()),
        // Tasks are taken once it has joined. Whether it lives is for its instance to say, which hears it each second and has a pod that hangs replaced.
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction { port: IntOrString::String(TASKS.to_owned()), host: None }),
            period_seconds: Some(2),
            timeout_seconds: Some(2),
            failure_threshold: Some(2),
            ..Probe::default()
        }),
        ..Container::default()
    }
}

/// A token that says to the instance which pod this is, and the authority by which the pod knows the instance before it shows that.
fn identity(instance: &Instance) -> Volume {
    let name = instance.name_any();
    let token = ServiceAccountTokenProjection {
        audience: Some(audience(&instance.namespace().unwrap_or_default(), &name)),
        expiration_seconds: Some(TOKEN_SECONDS),
        path: TOKEN.to_owned(),
    };
    let authority = ConfigMapProjection {
        name: authority_name(&name),
        items: Some(vec![KeyToPath { key: AUTHORITY_KEY.to_owned(), path: AUTHORITY_KEY.to_owned(), mode: None }]),
        optional: None,
    };
    Volume {
        name: IDENTITY_VOLUME.to_owned(),
        projected: Some(ProjectedVolumeSource {
            // For its group, which the pod is in.
            default_mode: Some(0o440),
            sources: Some(vec![
                VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() },
                VolumeProjection { config_map: Some(authority), ..VolumeProjection::default() },
            ]),
        }),
        ..Volume::default()
    }
}

fn variables(instance: &Instance) -> Vec<EnvVar> {
    let usual = BTreeMap::from([("log_format", "json")]);
    let said = SHARED_SETTINGS.into_iter().filter_map(|name| {
        let value = instance.setting(name).or_else(|| usual.get(name).copied())?;
        Some(EnvVar { name: format!("KILN_{}", name.to_uppercase()), value: Some(value.to_owned()), value_from: None })
    });
    said.collect()
}

/// Until a pod that is to go is killed: its instance has let it end before.
fn termination_grace(instance: &Instance) -> i64 {
    let grace = instance.setting("drain_grace").and_then(|seconds| seconds.parse().ok());
    grace.unwrap_or(DRAIN_GRACE_SECONDS).clamp(0, i64::from(i32::MAX)) + DRAIN_REST_SECONDS
}

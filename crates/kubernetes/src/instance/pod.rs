//! An instance's pod, and the StatefulSet that keeps one of it. Whatever changes here in a pod's template ends and starts the pod.

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::Volume as PodVolume;
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, HTTPGetAction, PersistentVolumeClaim, PodSpec, PodTemplateSpec, Probe,
    SecretVolumeSource, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::ObjectMeta;

use super::{DOOR_PORT, Invalid, account_name, main_name, metadata, pods_name, selector};
use crate::pod::{claim, container_security, mount, port, resources, security, variables_of};
use crate::quantity;
use crate::resources::{Instance, VolumeRetention};

/// The pod's ports and their names.
pub(super) const POSTGRES: &str = "postgres";
pub(super) const POSTGRES_PORT: i32 = 5_433;
pub(super) const HTTP: &str = "http";
pub(super) const HTTP_PORT: i32 = 8_433;
/// Where its workers come in.
pub(super) const WORKERS: &str = "workers";

/// The volume, and where it is in the pod. The data folder is below: the root of a volume may hold what its file system needs.
const DATA_VOLUME: &str = "data";
const DATA_MOUNT: &str = "/var/lib/kiln";
const DATA_FOLDER: &str = "/var/lib/kiln/data";
const TLS_VOLUME: &str = "tls";
const TLS_MOUNT: &str = "/etc/kiln/tls";
const TEMPORARY_VOLUME: &str = "tmp";
const TEMPORARY_MOUNT: &str = "/tmp";
/// Percent of the pod's memory that queries share, as of a machine's.
const QUERY_MEMORY_PCT: u64 = 60;
/// What `kiln serve` gives running statements at its end, unless a setting says otherwise, and what the rest of its end may take: 30 seconds
/// for the last upload, and some more for its workers.
const SHUTDOWN_GRACE_SECONDS: i64 = 10;
const SHUTDOWN_REST_SECONDS: i64 = 50;
const STARTUP_SECONDS_MAX: i32 = 3_600;
const STARTUP_EVERY_SECONDS: i32 = 2;

/// One pod, its volume, and what becomes of them.
pub(super) fn stateful_set(instance: &Instance) -> Result<StatefulSet, Invalid> {
    let spec = &instance.spec;
    let retention = match spec.volume.when_deleted {
        VolumeRetention::Retain => "Retain",
        VolumeRetention::Delete => "Delete",
    };
    Ok(StatefulSet {
        metadata: metadata(instance, main_name(instance)),
        spec: Some(StatefulSetSpec {
            replicas: Some(1),
            service_name: Some(pods_name(instance)),
            selector: LabelSelector { match_labels: Some(selector(instance)), ..LabelSelector::default() },
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                ..StatefulSetUpdateStrategy::default()
            }),
            persistent_volume_claim_retention_policy: Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: Some(retention.to_owned()),
                when_scaled: Some("Retain".to_owned()),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(selector(instance)), ..ObjectMeta::default() }),
                spec: Some(pod(instance)?),
            },
            volume_claim_templates: Some(vec![data_claim(instance)]),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    })
}

fn pod(instance: &Instance) -> Result<PodSpec, Invalid> {
    let spec = &instance.spec;
    let mut volumes = vec![PodVolume {
        name: TEMPORARY_VOLUME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..PodVolume::default()
    }];
    if let Some(tls) = &spec.tls {
        volumes.push(PodVolume {
            name: TLS_VOLUME.to_owned(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(tls.secret_name.clone()),
                // For its group, which the pod is in.
                default_mode: Some(0o440),
                ..SecretVolumeSource::default()
            }),
            ..PodVolume::default()
        });
    }
    Ok(PodSpec {
        service_account_name: Some(account_name(instance)),
        // It makes clusters, and asks who its workers are.
        automount_service_account_token: Some(true),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(termination_grace(instance)),
        security_context: Some(security()),
        containers: vec![container(instance)?],
        volumes: Some(volumes),
        ..PodSpec::default()
    })
}

fn container(instance: &Instance) -> Result<Container, Invalid> {
    let spec = &instance.spec;
    let mut mounts = vec![mount(DATA_VOLUME, DATA_MOUNT), mount(TEMPORARY_VOLUME, TEMPORARY_MOUNT)];
    if spec.tls.is_some() {
        mounts.push(VolumeMount { read_only: Some(true), ..mount(TLS_VOLUME, TLS_MOUNT) });
    }
    let secret = spec.storage.secret_name.as_deref().map(variables_of);
    Ok(Container {
        name: "kiln".to_owned(),
        image: Some(spec.image.clone()),
        command: Some(vec!["kiln".to_owned()]),
        args: Some(arguments(instance)?),
        env: Some(variables(instance)),
        env_from: secret.map(|secret| vec![secret]),
        ports: Some(vec![port(POSTGRES, POSTGRES_PORT), port(HTTP, HTTP_PORT), port(WORKERS, DOOR_PORT)]),
        resources: Some(resources(&spec.resources.cpu, &spec.resources.memory)),
        volume_mounts: Some(mounts),
        security_context: Some(container_security()),
        // A start reads the write-ahead log first, and whoever is killed at that begins anew.
        startup_probe: Some(Probe {
            period_seconds: Some(STARTUP_EVERY_SECONDS),
            failure_threshold: Some(STARTUP_SECONDS_MAX / STARTUP_EVERY_SECONDS),
            ..probe("/healthz")
        }),
        liveness_probe: Some(Probe { period_seconds: Some(10), failure_threshold: Some(6), ..probe("/healthz") }),
        readiness_probe: Some(Probe { period_seconds: Some(2), failure_threshold: Some(2), ..probe("/readyz") }),
        ..Container::default()
    })
}

/// What follows from the instance's fields. The command line counts before variables, so that no setting changes it.
fn arguments(instance: &Instance) -> Result<Vec<String>, Invalid> {
    let spec = &instance.spec;
    let invalid = |field, value: &str| Invalid::Quantity { field, value: value.to_owned() };
    let cpu = &spec.resources.cpu;
    let threads = quantity::millicores(cpu).filter(|cores| 0 < *cores).ok_or_else(|| invalid("resources.cpu", cpu))?;
    let memory = &spec.resources.memory;
    let bytes = quantity::bytes(memory).ok_or_else(|| invalid("resources.memory", memory))?;
    let mebibytes = (bytes / 100 * QUERY_MEMORY_PCT) >> 20;
    let mut arguments: Vec<String> = ["serve", "--data", DATA_FOLDER].map(str::to_owned).to_vec();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    add("--listen", format!("0.0.0.0:{POSTGRES_PORT}"));
    add("--http", format!("0.0.0.0:{HTTP_PORT}"));
    add("--kubernetes", instance.name_any());
    add("--worker-door", format!("0.0.0.0:{DOOR_PORT}"));
    add("--threads", threads.div_ceil(1_000).to_string());
    add("--memory-mb", mebibytes.to_string());
    if let Some(url) = &spec.storage.url {
        add("--storage", url.clone());
    }
    if spec.tls.is_some() {
        add("--tls-cert", format!("{TLS_MOUNT}/tls.crt"));
        add("--tls-key", format!("{TLS_MOUNT}/tls.key"));
    }
    Ok(arguments)
}

/// Settings as `kiln serve` takes them of its environment. Log lines are JSON unless one says otherwise: here programs read them.
fn variables(instance: &Instance) -> Vec<EnvVar> {
    let usual = ("log_format", "json");
    let said = instance.spec.settings.iter().map(|setting| (setting.name.as_str(), setting.value.as_str()));
    let unsaid = instance.setting(usual.0).is_none().then_some(usual);
    let variables = said.chain(unsaid).map(|(name, value)| EnvVar {
        name: format!("KILN_{}", name.to_uppercase()),
        value: Some(value.to_owned()),
        value_from: None,
    });
    variables.collect()
}

/// Until the pod is killed: `kiln serve` has ended by itself before.
fn termination_grace(instance: &Instance) -> i64 {
    let grace = instance.setting("shutdown_grace").and_then(|seconds| seconds.parse().ok());
    grace.unwrap_or(SHUTDOWN_GRACE_SECONDS).clamp(0, i64::from(i32::MAX)) + SHUTDOWN_REST_SECONDS
}

fn data_claim(instance: &Instance) -> PersistentVolumeClaim {
    let volume = &instance.spec.volume;
    claim(DATA_VOLUME, &volume.size, volume.storage_class_name.as_ref(), selector(instance))
}

fn probe(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(HTTP.to_owned()),
            ..HTTPGetAction::default()
        }),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}

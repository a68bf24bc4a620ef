//! StatefulSet and pod of an instance. Every change to the pod template restarts the pod.

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::Volume as PodVolume;
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, HTTPGetAction, KeyToPath, PersistentVolumeClaim, PodSpec, PodTemplateSpec,
    Probe, SecretVolumeSource, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::ObjectMeta;

use super::{
    InvalidInstance, WORKER_JOIN_PORT, headless_service_name, metadata, selector, service_account_name,
    shared_object_name,
};
use crate::credentials::{CERTIFICATE_KEY, PASSWORD_KEY, PRIVATE_KEY, certificate_secret_name, superuser_secret_name};
use crate::pod_parts::{
    container_port, container_security, env_from_secret, pod_security, resource_requirements, volume_claim,
    volume_mount,
};
use crate::quantity;
use crate::resources::{Instance, VolumeRetention};

/// Name of the pod's port for clients; the constants below are its other ports and their names.
pub(super) const POSTGRES_PORT_NAME: &str = "postgres";
pub(super) const POD_POSTGRES_PORT: i32 = 5_433;
pub(super) const HTTP_PORT_NAME: &str = "http";
pub(super) const HTTP_PORT: i32 = 8_433;
/// Name of the port on which workers join.
pub(super) const WORKERS_PORT_NAME: &str = "workers";

/// Name of the data volume. The data folder lies below its mount point, because the root of a volume may hold entries
/// of the file system, such as `lost+found`.
const DATA_VOLUME: &str = "data";
const DATA_MOUNT: &str = "/var/lib/kiln";
const DATA_FOLDER: &str = "/var/lib/kiln/data";
const TLS_VOLUME: &str = "tls";
const TLS_MOUNT: &str = "/etc/kiln/tls";
const SUPERUSER_VOLUME: &str = "superuser";
const SUPERUSER_MOUNT: &str = "/etc/kiln/superuser";
/// Environment variables with the path of the superuser's password file: one for the server, one for `kiln sql` in the
/// pod.
const PASSWORD_VARIABLES: [&str; 2] = ["KILN_SUPERUSER_PASSWORD_FILE", "KILN_PASSWORD_FILE"];
const TEMPORARY_VOLUME: &str = "tmp";
const TEMPORARY_MOUNT: &str = "/tmp";
/// Percentage of the pod's memory that queries share, the same as the default on a machine.
const QUERY_MEMORY_PCT: u64 = 60;
/// Default of the setting `shutdown_grace`: seconds that running statements get to finish at shutdown.
const SHUTDOWN_GRACE_SECONDS: i64 = 10;
/// Seconds for the other work of a shutdown: 30 for the last upload, the others for the workers.
const SHUTDOWN_MARGIN_SECONDS: i64 = 50;
const STARTUP_SECONDS_MAX: i32 = 3_600;
const STARTUP_EVERY_SECONDS: i32 = 2;

/// Returns the StatefulSet with one pod, its volume claim and the retention policy of the claim.
///
/// # Errors
/// Returns [`InvalidInstance`] if the CPU or memory quantity cannot be used.
pub(super) fn stateful_set(instance: &Instance) -> Result<StatefulSet, InvalidInstance> {
    let spec = &instance.spec;
    let retention = match spec.volume.when_deleted {
        VolumeRetention::Retain => "Retain",
        VolumeRetention::Delete => "Delete",
    };
    Ok(StatefulSet {
        metadata: metadata(instance, shared_object_name(instance)),
        spec: Some(StatefulSetSpec {
            replicas: Some(1),
            service_name: Some(headless_service_name(instance)),
            selector: LabelSelector { match_labels: Some(selector(instance)), ..LabelSelector::default() },
            // With `OrderedReady`, a pod that never becomes ready would block the rollout of a corrected template.
            pod_management_policy: Some("Parallel".to_owned()),
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
                spec: Some(pod_spec(instance)?),
            },
            volume_claim_templates: Some(vec![data_volume_claim(instance)]),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    })
}

fn pod_spec(instance: &Instance) -> Result<PodSpec, InvalidInstance> {
    let spec = &instance.spec;
    let temporary = PodVolume {
        name: TEMPORARY_VOLUME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..PodVolume::default()
    };
    let tls = spec.tls.secret_name.clone().unwrap_or_else(|| certificate_secret_name(instance));
    let superuser = spec.auth.secret_name.clone().unwrap_or_else(|| superuser_secret_name(instance));
    let volumes = vec![
        temporary,
        secret_volume(TLS_VOLUME, tls, &[CERTIFICATE_KEY, PRIVATE_KEY]),
        secret_volume(SUPERUSER_VOLUME, superuser, &[PASSWORD_KEY]),
    ];
    Ok(PodSpec {
        service_account_name: Some(service_account_name(instance)),
        // The instance calls the API server to manage clusters and to review the tokens of its workers.
        automount_service_account_token: Some(true),
        enable_service_links: Some(false),
        termination_grace_period_seconds: Some(termination_grace(instance)),
        security_context: Some(pod_security()),
        init_containers: restore_container(instance).map(|restore| vec![restore]),
        containers: vec![server_container(instance)?],
        volumes: Some(volumes),
        ..PodSpec::default()
    })
}

fn server_container(instance: &Instance) -> Result<Container, InvalidInstance> {
    let spec = &instance.spec;
    let mounts = vec![
        volume_mount(DATA_VOLUME, DATA_MOUNT),
        volume_mount(TEMPORARY_VOLUME, TEMPORARY_MOUNT),
        VolumeMount { read_only: Some(true), ..volume_mount(TLS_VOLUME, TLS_MOUNT) },
        VolumeMount { read_only: Some(true), ..volume_mount(SUPERUSER_VOLUME, SUPERUSER_MOUNT) },
    ];
    let secret = spec.storage.secret_name.as_deref().map(env_from_secret);
    Ok(Container {
        name: "kiln".to_owned(),
        image: Some(spec.image.clone()),
        command: Some(vec!["kiln".to_owned()]),
        args: Some(arguments(instance)?),
        env: Some(environment(instance)),
        env_from: secret.map(|secret| vec![secret]),
        ports: Some(vec![
            container_port(POSTGRES_PORT_NAME, POD_POSTGRES_PORT),
            container_port(HTTP_PORT_NAME, HTTP_PORT),
            container_port(WORKERS_PORT_NAME, WORKER_JOIN_PORT),
        ]),
        resources: Some(resource_requirements(&spec.resources.cpu, &spec.resources.memory)),
        volume_mounts: Some(mounts),
        security_context: Some(container_security()),
        // A start replays the write-ahead log first; a pod killed during that would have to start over.
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

/// Returns the command-line arguments that follow from the instance's fields. They take precedence over environment
/// variables, so that no entry of `settings` overrides them.
fn arguments(instance: &Instance) -> Result<Vec<String>, InvalidInstance> {
    let spec = &instance.spec;
    let invalid = |field, value: &str| InvalidInstance::Quantity { field, value: value.to_owned() };
    let cpu = &spec.resources.cpu;
    let threads =
        quantity::parse_millicores(cpu).filter(|cores| 0 < *cores).ok_or_else(|| invalid("resources.cpu", cpu))?;
    let memory = &spec.resources.memory;
    let bytes = quantity::parse_bytes(memory).ok_or_else(|| invalid("resources.memory", memory))?;
    let mebibytes = (bytes / 100 * QUERY_MEMORY_PCT) >> 20;
    let mut arguments: Vec<String> = ["serve", "--data", DATA_FOLDER].map(str::to_owned).to_vec();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    add("--listen", format!("0.0.0.0:{POD_POSTGRES_PORT}"));
    add("--http", format!("0.0.0.0:{HTTP_PORT}"));
    add("--kubernetes", instance.name_any());
    add("--worker-door", format!("0.0.0.0:{WORKER_JOIN_PORT}"));
    add("--threads", threads.div_ceil(1_000).to_string());
    add("--memory-mb", mebibytes.to_string());
    if let Some(url) = &spec.storage.url {
        add("--storage", url.clone());
    }
    add("--tls-cert", format!("{TLS_MOUNT}/{CERTIFICATE_KEY}"));
    add("--tls-key", format!("{TLS_MOUNT}/{PRIVATE_KEY}"));
    Ok(arguments)
}

fn password_file() -> String {
    format!("{SUPERUSER_MOUNT}/{PASSWORD_KEY}")
}

/// Returns the init container that restores an empty volume from the storage, or `None` if the spec has no `restore`.
/// It leaves a volume that is not empty unchanged, and fails if the Instance's status says that it was restored before.
fn restore_container(instance: &Instance) -> Option<Container> {
    let spec = &instance.spec;
    let (restore, url) = (spec.restore.as_ref()?, spec.storage.url.as_ref()?);
    let name = instance.name_any();
    let mut arguments = vec!["restore", "--kubernetes", &name, "--data", DATA_FOLDER, "--storage", url];
    if let Some(moment) = &restore.to {
        arguments.extend(["--to", moment]);
    }
    Some(Container {
        name: "restore".to_owned(),
        image: Some(spec.image.clone()),
        command: Some(vec!["kiln".to_owned()]),
        args: Some(arguments.into_iter().map(str::to_owned).collect()),
        env_from: spec.storage.secret_name.as_deref().map(|secret| vec![env_from_secret(secret)]),
        resources: Some(resource_requirements(&spec.resources.cpu, &spec.resources.memory)),
        volume_mounts: Some(vec![
            volume_mount(DATA_VOLUME, DATA_MOUNT),
            volume_mount(TEMPORARY_VOLUME, TEMPORARY_MOUNT),
        ]),
        security_context: Some(container_security()),
        ..Container::default()
    })
}

/// Returns a volume with keys of a secret as files, which Kubernetes updates when the secret changes.
fn secret_volume(volume: &str, name: String, keys: &[&str]) -> PodVolume {
    let item = |key: &&str| KeyToPath { key: (*key).to_owned(), path: (*key).to_owned(), mode: None };
    PodVolume {
        name: volume.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(name),
            items: Some(keys.iter().map(item).collect()),
            // Readable for the group, which is the pod's `fsGroup`.
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        }),
        ..PodVolume::default()
    }
}

/// Returns the environment variables for the instance's `settings` and the password files. The log format defaults to
/// JSON, because programs collect the logs of pods.
fn environment(instance: &Instance) -> Vec<EnvVar> {
    let default_format = ("log_format", "json");
    let configured = instance.spec.settings.iter().map(|setting| (setting.name.as_str(), setting.value.as_str()));
    let unsaid = instance.setting(default_format.0).is_none().then_some(default_format);
    let variables = configured.chain(unsaid).map(|(name, value)| EnvVar {
        name: format!("KILN_{}", name.to_uppercase()),
        value: Some(value.to_owned()),
        value_from: None,
    });
    let passwords =
        PASSWORD_VARIABLES.map(|name| EnvVar { name: name.to_owned(), value: Some(password_file()), value_from: None });
    variables.chain(passwords).collect()
}

/// Returns the seconds after which Kubernetes kills a terminating pod; `kiln serve` ends by itself before.
fn termination_grace(instance: &Instance) -> i64 {
    let grace = instance.setting("shutdown_grace").and_then(|seconds| seconds.parse().ok());
    grace.unwrap_or(SHUTDOWN_GRACE_SECONDS).clamp(0, i64::from(i32::MAX)) + SHUTDOWN_MARGIN_SECONDS
}

fn data_volume_claim(instance: &Instance) -> PersistentVolumeClaim {
    let volume = &instance.spec.volume;
    volume_claim(DATA_VOLUME, &volume.size, volume.storage_class_name.as_ref(), selector(instance))
}

fn probe(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(HTTP_PORT_NAME.to_owned()),
            ..HTTPGetAction::default()
        }),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}

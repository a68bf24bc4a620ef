//! `kiln install kubernetes` and `kiln uninstall kubernetes`: installs Kiln in a namespace, and removes it.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use kubernetes::resources::{
    Auth, Instance, InstanceSpec, Resources, Restore, ServiceType, Storage, Tls, Volume, VolumeRetention,
};
use kubernetes::{InstallProgress, Installation, Removal};
use types::{Clock, SystemClock};

/// Target of an installation.
#[derive(Debug, Subcommand)]
pub(crate) enum InstallTarget {
    /// Install in a namespace of kubectl's current cluster: resource definitions, the operator with its permissions,
    /// and a first warehouse
    Kubernetes(Box<InstallArguments>),
}

/// Target of a removal.
#[derive(Debug, Subcommand)]
pub(crate) enum UninstallTarget {
    /// Remove from a namespace of kubectl's current cluster; volumes and buckets are kept
    Kubernetes(UninstallArguments),
}

/// Options of `kiln install kubernetes`.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// Container image with this program, as built by `make image`
    #[arg(long, value_name = "IMAGE")]
    image: String,

    /// Namespace; it is created if it does not exist
    #[arg(long, value_name = "NAMESPACE", default_value = "kiln")]
    namespace: String,

    /// Name of the first warehouse
    #[arg(long, value_name = "NAME", default_value = "dw")]
    name: String,

    /// Install the definitions and the operator, but no warehouse
    #[arg(long)]
    operator_only: bool,

    /// Storage of the warehouse's rows: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix [default: its
    /// volume]
    #[arg(long, value_name = "URL")]
    storage: Option<String>,

    /// Secret in the namespace with the cloud's environment variables for credentials, as AWS_ACCESS_KEY_ID
    #[arg(long, value_name = "SECRET")]
    storage_secret: Option<String>,

    /// Restore an empty volume from the storage, as of this time (2026-01-31 12:00:00+00) or snapshot number, or
    /// without a value as of the newest snapshot
    #[arg(long, value_name = "MOMENT", num_args = 0..=1, require_equals = true, default_missing_value = NEWEST_SNAPSHOT, requires = "storage")]
    restore: Option<String>,

    /// Secret in the namespace with the superuser's password in the key `password` [default: the operator creates one]
    #[arg(long, value_name = "SECRET")]
    auth_secret: Option<String>,

    /// Secret in the namespace with the server's TLS certificate [default: the operator creates one, signed by the
    /// authority in the config map kiln-ca]
    #[arg(long, value_name = "SECRET")]
    tls_secret: Option<String>,

    /// Additional name or address in that certificate, for clients outside the Kubernetes cluster; may be given several
    /// times
    #[arg(long, value_name = "NAME", conflicts_with = "tls_secret")]
    tls_name: Vec<String>,

    /// Cores of the warehouse
    #[arg(long, value_name = "CORES", default_value = "2")]
    cpu: String,

    /// Memory of the warehouse
    #[arg(long, value_name = "AMOUNT", default_value = "8Gi")]
    memory: String,

    /// Size of the volume
    #[arg(long, value_name = "AMOUNT", default_value = "50Gi")]
    volume: String,

    /// Storage class of the volume [default: the default class of the Kubernetes cluster]
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,

    /// Seconds to wait until the warehouse accepts queries
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,

    /// Change nothing; print the objects that would be applied as YAML, for example for GitOps
    #[arg(long)]
    dry_run: bool,
}

/// Value of `--restore` that stands for the newest snapshot.
const NEWEST_SNAPSHOT: &str = "newest";

/// Options of `kiln uninstall kubernetes`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    /// Namespace; it is not deleted
    #[arg(long, value_name = "NAMESPACE", default_value = "kiln")]
    namespace: String,

    /// Delete the volumes of warehouses too, with all data that is not in a bucket
    #[arg(long)]
    delete_volumes: bool,

    /// Delete the resource definitions too; refused if another namespace has warehouses
    #[arg(long)]
    definitions: bool,

    /// Seconds to wait until each warehouse has stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

/// Installs Kiln, and prints how to connect.
pub(crate) async fn install(to: InstallTarget) -> anyhow::Result<ExitCode> {
    let InstallTarget::Kubernetes(arguments) = to;
    let installation = arguments.installation();
    if arguments.dry_run {
        return print_to_stdout(&kubernetes::to_yaml(&installation.objects()));
    }
    let (client, _) = kubernetes::connect().await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    kubernetes::install(&client, &installation, Duration::from_secs(arguments.timeout), &clock, print_progress).await?;
    print_to_stdout(&arguments.connection_instructions())
}

/// Removes an installation.
pub(crate) async fn uninstall(from: UninstallTarget) -> anyhow::Result<ExitCode> {
    let UninstallTarget::Kubernetes(arguments) = from;
    let removal = Removal {
        namespace: arguments.namespace,
        delete_volumes: arguments.delete_volumes,
        delete_definitions: arguments.definitions,
    };
    let (client, _) = kubernetes::connect().await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    kubernetes::uninstall(&client, &removal, Duration::from_secs(arguments.timeout), &clock, print_progress).await?;
    Ok(ExitCode::SUCCESS)
}

impl InstallArguments {
    fn installation(&self) -> Installation {
        let instance = (!self.operator_only).then(|| Instance::new(&self.name, self.instance_spec()));
        Installation { namespace: self.namespace.clone(), image: self.image.clone(), instance }
    }

    fn instance_spec(&self) -> InstanceSpec {
        InstanceSpec {
            image: self.image.clone(),
            storage: Storage { url: self.storage.clone(), secret_name: self.storage_secret.clone() },
            resources: Resources { cpu: self.cpu.clone(), memory: self.memory.clone() },
            volume: Volume {
                size: self.volume.clone(),
                storage_class_name: self.storage_class.clone(),
                when_deleted: VolumeRetention::default(),
            },
            restore: self.restore.clone().map(|to| Restore { to: Some(to).filter(|to| to != NEWEST_SNAPSHOT) }),
            auth: Auth { secret_name: self.auth_secret.clone() },
            tls: Tls { secret_name: self.tls_secret.clone(), names: self.tls_name.clone() },
            service_type: ServiceType::default(),
            service_account_name: None,
            evictable: false,
            settings: Vec::new(),
        }
    }

    fn connection_instructions(&self) -> String {
        let (namespace, name) = (&self.namespace, &self.name);
        if self.operator_only {
            return format!("The operator manages every Instance in the namespace {namespace}.\n");
        }
        let secret = self.auth_secret.clone().unwrap_or_else(|| format!("{name}-superuser"));
        let (mode, trusted) = match &self.tls_secret {
            None => (
                "verify-full sslrootcert=kiln-ca.crt",
                format!(
                    "    kubectl -n {namespace} get secret {name}-tls -o 'jsonpath={{.data.ca\\.crt}}' | base64 -d > kiln-ca.crt\n"
                ),
            ),
            Some(_) => ("require", String::new()),
        };
        format!(
            "The warehouse {name} accepts queries. Connect from its own pod:\n\n    \
             kubectl -n {namespace} exec -it {name}-0 -- kiln sql\n\n\
             From inside the Kubernetes cluster, connect to {name}.{namespace}.svc:5432. From this machine:\n\n    \
             export PGPASSWORD=$(kubectl -n {namespace} get secret {secret} -o 'jsonpath={{.data.password}}' | base64 -d)\n\
             {trusted}    \
             kubectl -n {namespace} port-forward service/{name} 5433:5432 &     # wait until it prints Forwarding\n    \
             psql 'host=localhost port=5433 user=kiln dbname=kiln sslmode={mode}'\n"
        )
    }
}

#[expect(clippy::print_stderr, reason = "a program tells its user what it does")]
fn print_progress(progress: &InstallProgress) {
    eprintln!("{progress}");
}

fn print_to_stdout(text: &str) -> anyhow::Result<ExitCode> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print")?;
    Ok(ExitCode::SUCCESS)
}

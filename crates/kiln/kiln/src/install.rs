//! `kiln install kubernetes` and `kiln uninstall kubernetes`: Kiln in a namespace of a cluster, by one command, and away again.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use kubernetes::resources::{
    Auth, Instance, InstanceSpec, Resources, Restore, ServiceType, Storage, Tls, Volume, VolumeRetention,
};
use kubernetes::{Install, Progress, Remove};
use types::{Clock, SystemClock};

/// Where Kiln can be installed.
#[derive(Debug, Subcommand)]
pub(crate) enum InstallWhere {
    /// In a namespace of the cluster that kubectl talks to: the definitions, the operator with its rights, and a first warehouse
    Kubernetes(Box<InstallArguments>),
}

/// Where it can be taken away.
#[derive(Debug, Subcommand)]
pub(crate) enum UninstallWhere {
    /// From a namespace of the cluster that kubectl talks to; volumes and buckets stay
    Kubernetes(UninstallArguments),
}

/// The options of `kiln install kubernetes`.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// Image with this program, as `make image` makes it
    #[arg(long, value_name = "IMAGE")]
    image: String,

    /// Namespace, which is made where it is not there
    #[arg(long, value_name = "NAMESPACE", default_value = "kiln")]
    namespace: String,

    /// Name of the first warehouse
    #[arg(long, value_name = "NAME", default_value = "dw")]
    name: String,

    /// Install no warehouse, only what it takes to have one
    #[arg(long)]
    operator_only: bool,

    /// Where the warehouse keeps rows: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix [default: its volume]
    #[arg(long, value_name = "URL")]
    storage: Option<String>,

    /// Secret of the namespace with the cloud's usual variables, as AWS_ACCESS_KEY_ID
    #[arg(long, value_name = "SECRET")]
    storage_secret: Option<String>,

    /// What the warehouse begins with, where its volume is empty: what its storage had at this time (2026-01-31 12:00:00+00) or snapshot, or the newest that it has
    #[arg(long, value_name = "MOMENT", num_args = 0..=1, require_equals = true, default_missing_value = NEWEST, requires = "storage")]
    restore: Option<String>,

    /// Secret of the namespace with the superuser's password in the key `password` [default: one that the operator makes]
    #[arg(long, value_name = "SECRET")]
    auth_secret: Option<String>,

    /// Secret of the namespace with the certificate that clients are shown [default: one that the operator makes, of the authority in the config map kiln-ca]
    #[arg(long, value_name = "SECRET")]
    tls_secret: Option<String>,

    /// One more name or address for that certificate, by which clients outside of the cluster come; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with = "tls_secret")]
    tls_name: Vec<String>,

    /// Cores of the warehouse
    #[arg(long, value_name = "CORES", default_value = "2")]
    cpu: String,

    /// Memory of the warehouse
    #[arg(long, value_name = "AMOUNT", default_value = "8Gi")]
    memory: String,

    /// Size of its volume
    #[arg(long, value_name = "AMOUNT", default_value = "50Gi")]
    volume: String,

    /// Class of its volume [default: the cluster's usual one]
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,

    /// Seconds to wait until the warehouse takes queries
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,

    /// Change nothing, and print what would be applied, as YAML for GitOps
    #[arg(long)]
    dry_run: bool,
}

/// In the place of a moment.
const NEWEST: &str = "newest";

/// The options of `kiln uninstall kubernetes`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    /// Namespace, which stays
    #[arg(long, value_name = "NAMESPACE", default_value = "kiln")]
    namespace: String,

    /// Delete the volumes of warehouses too, with all that is not in a bucket
    #[arg(long)]
    delete_volumes: bool,

    /// Remove the definitions too, if no other namespace has warehouses
    #[arg(long)]
    definitions: bool,

    /// Seconds to wait until the warehouses have ended
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

/// Installs, and says how to connect.
pub(crate) async fn install(to: InstallWhere) -> anyhow::Result<ExitCode> {
    let InstallWhere::Kubernetes(arguments) = to;
    let what = arguments.what();
    if arguments.dry_run {
        return print(&kubernetes::yaml(&what.objects()));
    }
    let (client, _) = kubernetes::connect().await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    kubernetes::install(&client, &what, Duration::from_secs(arguments.timeout), &clock, tell).await?;
    print(&arguments.how_to_connect())
}

/// Takes away what an installation has made.
pub(crate) async fn uninstall(from: UninstallWhere) -> anyhow::Result<ExitCode> {
    let UninstallWhere::Kubernetes(arguments) = from;
    let what = Remove {
        namespace: arguments.namespace,
        volumes: arguments.delete_volumes,
        definitions: arguments.definitions,
    };
    let (client, _) = kubernetes::connect().await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    kubernetes::uninstall(&client, &what, Duration::from_secs(arguments.timeout), &clock, tell).await?;
    Ok(ExitCode::SUCCESS)
}

impl InstallArguments {
    fn what(&self) -> Install {
        let instance = (!self.operator_only).then(|| Instance::new(&self.name, self.spec()));
        Install { namespace: self.namespace.clone(), image: self.image.clone(), instance }
    }

    fn spec(&self) -> InstanceSpec {
        InstanceSpec {
            image: self.image.clone(),
            storage: Storage { url: self.storage.clone(), secret_name: self.storage_secret.clone() },
            resources: Resources { cpu: self.cpu.clone(), memory: self.memory.clone() },
            volume: Volume {
                size: self.volume.clone(),
                storage_class_name: self.storage_class.clone(),
                when_deleted: VolumeRetention::default(),
            },
            restore: self.restore.clone().map(|to| Restore { to: Some(to).filter(|to| to != NEWEST) }),
            auth: Auth { secret_name: self.auth_secret.clone() },
            tls: Tls { secret_name: self.tls_secret.clone(), names: self.tls_name.clone() },
            service_type: ServiceType::default(),
            service_account_name: None,
            evictable: false,
            settings: Vec::new(),
        }
    }

    fn how_to_connect(&self) -> String {
        let (namespace, name) = (&self.namespace, &self.name);
        if self.operator_only {
            return format!("The operator looks after every Instance that is applied to the namespace {namespace}.\n");
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
            "The warehouse {name} takes queries. From its own pod:\n\n    \
             kubectl -n {namespace} exec -it {name}-0 -- kiln sql\n\n\
             From the cluster at {name}.{namespace}.svc:5432, and from here:\n\n    \
             export PGPASSWORD=$(kubectl -n {namespace} get secret {secret} -o 'jsonpath={{.data.password}}' | base64 -d)\n\
             {trusted}    \
             kubectl -n {namespace} port-forward service/{name} 5433:5432 &     # once it says Forwarding:\n    \
             psql 'host=localhost port=5433 user=kiln dbname=kiln sslmode={mode}'\n"
        )
    }
}

#[expect(clippy::print_stderr, reason = "a program tells its user what it does")]
fn tell(progress: &Progress) {
    eprintln!("{progress}");
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print")?;
    Ok(ExitCode::SUCCESS)
}

//! `kiln operator`: looks after the warehouses of a Kubernetes namespace. `kiln operator manifests` prints what an administrator applies for it.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use kubernetes::install::{IDENTITY_VARIABLE, NAMESPACE_VARIABLE};
use kubernetes::{Install, OperatorSettings};
use tokio::signal::unix::{SignalKind, signal};
use types::{Clock, SystemClock};

use crate::logging;

/// Another operator leads when one was not heard of for so long.
const LEASE: Duration = Duration::from_secs(15);

/// The options of `kiln operator`.
#[derive(Debug, Args)]
pub(crate) struct OperatorArguments {
    #[command(subcommand)]
    instead: Option<Instead>,

    /// Namespace whose warehouses are looked after [default: the one of this pod, or of the kubeconfig's context]
    #[arg(long, env = NAMESPACE_VARIABLE, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// This operator's name among those that may lead, which no other may have [default: the machine's name]
    #[arg(long, env = IDENTITY_VARIABLE, value_name = "NAME")]
    identity: Option<String>,

    /// What is logged, as tracing filters
    #[arg(long, env = "KILN_LOG", value_name = "FILTER", default_value = "info")]
    log: String,

    /// Log lines as text or json
    #[arg(long, env = "KILN_LOG_FORMAT", value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    log_format: String,
}

#[derive(Debug, Subcommand)]
enum Instead {
    /// Print what an administrator applies to a cluster so that it has warehouses: `kiln operator manifests --image … | kubectl apply -f -`
    Manifests(ManifestsArguments),
}

#[derive(Debug, Args)]
struct ManifestsArguments {
    /// Namespace of the operator and of the warehouses that it looks after
    #[arg(long, value_name = "NAMESPACE", default_value = "kiln")]
    namespace: String,

    /// Image with this program
    #[arg(long, value_name = "IMAGE")]
    image: String,
}

/// Runs until SIGTERM or SIGINT, or until another operator leads.
pub(crate) async fn run(arguments: OperatorArguments) -> anyhow::Result<ExitCode> {
    if let Some(Instead::Manifests(manifests)) = arguments.instead {
        let install = Install { namespace: manifests.namespace, image: manifests.image };
        let text = kubernetes::yaml(&install.objects());
        std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print the manifests")?;
        return Ok(ExitCode::SUCCESS);
    }
    logging::start(&arguments.log, arguments.log_format == "json")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let identity = match arguments.identity {
        Some(identity) => identity,
        None => host_name().context("cannot tell this machine's name: give one by --identity")?,
    };
    let settings = OperatorSettings { namespace: arguments.namespace, identity, lease: LEASE };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    kubernetes::run(settings, clock, told).await?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

fn host_name() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned())
}

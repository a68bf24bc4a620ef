//! `kiln operator`: runs the operator for the warehouses of a Kubernetes namespace. `kiln install kubernetes` deploys
//! it in a pod.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use kubernetes::OperatorSettings;
use kubernetes::install::{IDENTITY_VARIABLE, NAMESPACE_VARIABLE};
use tokio::signal::unix::{SignalKind, signal};
use types::{Clock, Random, SystemClock, SystemRandom};

use crate::log_setup;

/// Duration of the leader's lease: another operator takes over when it was not renewed for that long.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// Options of `kiln operator`.
#[derive(Debug, Args)]
pub(crate) struct OperatorArguments {
    /// Namespace of the warehouses [default: the namespace of this pod, or of the kubeconfig's context]
    #[arg(long, env = NAMESPACE_VARIABLE, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Unique name of this operator in the leader election [default: the machine's name]
    #[arg(long, env = IDENTITY_VARIABLE, value_name = "NAME")]
    identity: Option<String>,

    /// Filter of log lines, as tracing directives
    #[arg(long, env = "KILN_LOG", value_name = "FILTER", default_value = "info")]
    log: String,

    /// Format of log lines, text or json
    #[arg(long, env = "KILN_LOG_FORMAT", value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    log_format: String,
}

/// Runs the operator until SIGTERM or SIGINT, or until another operator leads.
pub(crate) async fn run(arguments: OperatorArguments) -> anyhow::Result<ExitCode> {
    log_setup::init(&arguments.log, arguments.log_format == "json")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let shutdown = Box::pin(async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    });
    let identity = match arguments.identity {
        Some(identity) => identity,
        None => host_name().context("cannot read this machine's name: set --identity")?,
    };
    let settings = OperatorSettings { namespace: arguments.namespace, identity, lease: LEASE_DURATION };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random: Arc<dyn Random> = Arc::new(SystemRandom);
    kubernetes::run(settings, clock, random, shutdown).await?;
    tracing::info!("the operator has stopped");
    Ok(ExitCode::SUCCESS)
}

fn host_name() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned())
}

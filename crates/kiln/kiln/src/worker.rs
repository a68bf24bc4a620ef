//! `kiln worker`: a process that joins a warehouse and runs parts of its queries.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use fleet::{JoinCredential, TICKET_VARIABLE, Ticket, TokenFile, WorkerExit, WorkerSettings};
use tokio::signal::unix::{SignalKind, signal};
use tracing::Instrument;
use types::{Clock, SystemClock, SystemRandom};

use crate::log_setup;

/// Environment variable by which a test overrides the version that a worker reports.
const TEST_VERSION: &str = "KILN_TEST_WORKER_VERSION";

/// Options of `kiln worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// Address at which the warehouse accepts workers, kiln://host:port. The join ticket, a one-time secret, is passed
    /// in the variable `KILN_JOIN_TICKET` and never on the command line
    #[arg(long, env = "KILN_JOIN", value_name = "URL", value_parser = fleet::parse_instance_url)]
    join: String,

    /// Address on which the warehouse and other workers connect to this worker [default: the local address of the
    /// connection to the warehouse, with any free port]
    #[arg(long, env = "KILN_WORKER_LISTEN", value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// File with the Kubernetes token of this pod, which is used instead of a ticket
    #[arg(long, value_name = "FILE", requires = "authority")]
    token: Option<PathBuf>,

    /// File with the certificate by which the warehouse is verified before the token is sent
    #[arg(long, value_name = "FILE", requires = "token")]
    authority: Option<PathBuf>,

    /// Folder for the cache and for spill files [default: set by the warehouse]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Seconds for which the worker tries to reach a warehouse that no longer responds, before it ends
    #[arg(long, env = "KILN_WORKER_PATIENCE", value_name = "SECONDS", default_value_t = 60)]
    patience: u64,

    /// Filter of log lines, as tracing directives
    #[arg(long, env = "KILN_LOG", value_name = "FILTER", default_value = "info")]
    log: String,

    /// Format of log lines, text or json
    #[arg(long, env = "KILN_LOG_FORMAT", value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    log_format: String,
}

/// Runs the worker until the warehouse or a signal stops it, or until the warehouse is gone for good.
pub(crate) async fn run(arguments: WorkerArguments) -> anyhow::Result<ExitCode> {
    log_setup::init(&arguments.log, arguments.log_format == "json")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let patience = arguments.patience;
    let settings = WorkerSettings {
        instance_address: arguments.join,
        credential: join_credential(arguments.token, arguments.authority)?,
        folder: arguments.folder,
        listen: arguments.listen,
        reconnect_timeout: Duration::from_secs(patience),
        version: std::env::var(TEST_VERSION).unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned()),
    };
    let shutdown = Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    });
    let span = tracing::info_span!("worker", id = %settings.id());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let working = fleet::run(settings, clock, Arc::new(SystemRandom), shutdown);
    match working.instrument(span.clone()).await.context("the worker failed")? {
        WorkerExit::Stopped => {}
        WorkerExit::Refused(reason) => anyhow::bail!("the warehouse refused this worker: {reason}"),
        WorkerExit::InstanceUnreachable => {
            span.in_scope(|| tracing::info!("could not reach the warehouse for {patience} s; the worker stops"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn join_credential(token: Option<PathBuf>, authority: Option<PathBuf>) -> anyhow::Result<JoinCredential> {
    if let (Some(token), Some(authority)) = (token, authority) {
        let token = TokenFile::new(token, &authority, &SystemRandom)
            .with_context(|| format!("cannot read the warehouse's certificate in {}", authority.display()))?;
        return Ok(JoinCredential::Token(token));
    }
    let ticket = std::env::var(TICKET_VARIABLE).with_context(|| format!("there is no ticket in {TICKET_VARIABLE}"))?;
    Ok(JoinCredential::Ticket(Ticket::parse(&ticket)?))
}

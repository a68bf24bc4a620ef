//! `kiln`, the one binary: reads the command line, wires the crates together and shuts down cleanly.
//!
//! It holds no logic of the warehouse: the work of each subcommand lives in a crate below.
//!
//! - `serve.rs`: `kiln serve`, a server put together from its parts.
//! - `worker.rs`: `kiln worker`, a worker process.
//! - `kubernetes_clusters.rs`: the control plane of a server in Kubernetes.
//! - `restore.rs`: `kiln restore`, a data folder rebuilt from a storage.
//! - `operator.rs`, `install.rs`: `kiln operator`, `kiln install` and `kiln uninstall` for Kubernetes.
//! - `bench.rs`: `kiln bench`.
//! - `allocator.rs`, `log_setup.rs`: the global allocator and the log of all subcommands.

mod allocator;
mod bench;
mod install;
mod kubernetes_clusters;
mod log_setup;
mod operator;
mod restore;
mod serve;
mod worker;

use std::pin::Pin;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use types::stack_limit::PLAN_STACK_BYTES;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Kiln, an elastic SQL data warehouse: PostgreSQL outside, open Parquet at rest.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: KilnCommand,
}

#[derive(Subcommand)]
enum KilnCommand {
    /// Run a warehouse: PostgreSQL's protocol on one port, health and metrics on another
    Serve(Box<server_config::ServeArguments>),
    /// Run a worker, which executes parts of a warehouse's queries; usually the warehouse starts its workers itself
    Worker(worker::WorkerArguments),
    /// Rebuild the data folder of a warehouse from its storage, as of the newest or an earlier point in time
    Restore(restore::RestoreArguments),
    /// Run the operator for the warehouses of a Kubernetes namespace; `kiln install kubernetes` deploys it
    Operator(operator::OperatorArguments),
    /// Install Kiln on Kubernetes, with a first warehouse
    #[command(subcommand)]
    Install(install::InstallTarget),
    /// Remove Kiln from Kubernetes; volumes are kept unless --delete-volumes is given
    #[command(subcommand)]
    Uninstall(install::UninstallTarget),
    /// Connect to a warehouse and run SQL
    Sql(sql_client::SqlArguments),
    /// Run benchmarks, such as TPC-H and TPC-DS, alone or in comparison with other systems
    Bench(bench::BenchArguments),
}

fn main() -> ExitCode {
    allocator::Allocator::set_purge_delay();
    let arguments = Arguments::parse();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = match threads.enable_all().thread_stack_size(PLAN_STACK_BYTES).build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start the runtime: {error}")),
    };
    let outcome = runtime.block_on(run(arguments.command));
    // A statement stuck in a system call must not keep a stopped server alive.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    match outcome {
        Ok(code) => code,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Runs a subcommand. The future is boxed, so that the runtime is compiled for one future type and not for one per
/// subcommand.
fn run(command: KilnCommand) -> Pin<Box<dyn Future<Output = anyhow::Result<ExitCode>>>> {
    match command {
        KilnCommand::Serve(arguments) => Box::pin(serve::serve(*arguments)),
        KilnCommand::Worker(arguments) => Box::pin(worker::run(arguments)),
        KilnCommand::Restore(arguments) => Box::pin(restore::run(arguments)),
        KilnCommand::Operator(arguments) => Box::pin(operator::run(arguments)),
        KilnCommand::Install(to) => Box::pin(install::install(to)),
        KilnCommand::Uninstall(from) => Box::pin(install::uninstall(from)),
        KilnCommand::Sql(arguments) => sql_client::run(arguments),
        KilnCommand::Bench(arguments) => Box::pin(bench::bench(arguments)),
    }
}

#[expect(clippy::print_stderr, reason = "a program tells its user why it ends")]
fn fail(reason: &str) -> ExitCode {
    eprintln!("kiln: {reason}");
    ExitCode::FAILURE
}

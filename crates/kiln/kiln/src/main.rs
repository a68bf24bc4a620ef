//! `kiln`, the one binary: it reads the command line, wires the crates together and ends cleanly.
//!
//! Never holds logic of the warehouse: each role's work lives in a crate below.
//!
//! Start at `serve.rs` for how a server is put together, `worker.rs` for what runs beside it, `pods.rs` for how the two meet in Kubernetes, `restore.rs` for how one comes back, `install.rs` and `operator.rs` for Kubernetes, `bench.rs` for the benchmark.

mod allocator;
mod bench;
mod install;
mod logging;
mod operator;
mod pods;
mod restore;
mod serve;
mod worker;

use std::pin::Pin;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use types::stack::PLAN_STACK;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Kiln, an elastic SQL data warehouse: PostgreSQL outside, open Parquet at rest.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Run a warehouse: PostgreSQL's protocol on one port, health and metrics on another
    Serve(Box<server_config::ServeArguments>),
    /// Run parts of a warehouse's queries; the warehouse starts its workers by itself
    Worker(worker::WorkerArguments),
    /// Rebuild a warehouse whose data folder is gone, or as it was, from its storage alone
    Restore(restore::RestoreArguments),
    /// Look after the warehouses of a Kubernetes namespace; `kiln install kubernetes` has one run there
    Operator(operator::OperatorArguments),
    /// Have a warehouse in Kubernetes, by one command
    #[command(subcommand)]
    Install(install::InstallWhere),
    /// Take it away again; its data stays unless it is said to go
    #[command(subcommand)]
    Uninstall(install::UninstallWhere),
    /// Talk SQL to a warehouse
    Sql(sql_client::SqlArguments),
    /// Measure TPC-H or TPC-DS, alone or against peers
    Bench(bench::BenchArguments),
}

fn main() -> ExitCode {
    allocator::Allocator::keep_free_memory();
    let arguments = Arguments::parse();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = match threads.enable_all().thread_stack_size(PLAN_STACK).build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start the runtime: {error}")),
    };
    let outcome = runtime.block_on(run(arguments.role));
    // A statement stuck in a system call must not keep a stopped server alive.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    match outcome {
        Ok(code) => code,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Runs a role. Boxed, so that the runtime is compiled for one future and not for each role's.
fn run(role: Role) -> Pin<Box<dyn Future<Output = anyhow::Result<ExitCode>>>> {
    match role {
        Role::Serve(arguments) => Box::pin(serve::serve(*arguments)),
        Role::Worker(arguments) => Box::pin(worker::run(arguments)),
        Role::Restore(arguments) => Box::pin(restore::run(arguments)),
        Role::Operator(arguments) => Box::pin(operator::run(arguments)),
        Role::Install(to) => Box::pin(install::install(to)),
        Role::Uninstall(from) => Box::pin(install::uninstall(from)),
        Role::Sql(arguments) => sql_client::sql(arguments),
        Role::Bench(arguments) => Box::pin(bench::bench(arguments)),
    }
}

#[expect(clippy::print_stderr, reason = "a program tells its user why it ends")]
fn fail(reason: &str) -> ExitCode {
    eprintln!("kiln: {reason}");
    ExitCode::FAILURE
}

//! `kiln`, the one binary: it reads the command line, wires the crates together and ends cleanly.
//!
//! Never holds logic of the warehouse: each role's work lives in a crate below.
//!
//! Start at `serve.rs` for how a server is put together, `worker.rs` for what runs beside it, `pods.rs` for how the two meet in Kubernetes, `restore.rs` for how one comes back, `install.rs` and `operator.rs` for Kubernetes, `sql/` for the client, `bench.rs` for the benchmark.

mod allocator;
mod bench;
mod config;
mod install;
mod logging;
mod operator;
mod pods;
mod restore;
mod serve;
mod sql;
mod worker;

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
    Serve(Box<config::ServeArguments>),
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
    Sql(sql::SqlArguments),
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
    let outcome = match arguments.role {
        Role::Serve(arguments) => runtime.block_on(Box::pin(serve::serve(*arguments))),
        Role::Worker(arguments) => runtime.block_on(Box::pin(worker::run(arguments))),
        Role::Restore(arguments) => runtime.block_on(Box::pin(restore::run(arguments))),
        Role::Operator(arguments) => runtime.block_on(Box::pin(operator::run(arguments))),
        Role::Install(to) => runtime.block_on(Box::pin(install::install(to))),
        Role::Uninstall(from) => runtime.block_on(Box::pin(install::uninstall(from))),
        Role::Sql(arguments) => runtime.block_on(Box::pin(sql::sql(arguments))),
        Role::Bench(arguments) => runtime.block_on(Box::pin(bench::bench(arguments))),
    };
    // A statement stuck in a system call must not keep a stopped server alive.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    match outcome {
        Ok(code) => code,
        Err(error) => fail(&format!("{error:#}")),
    }
}

#[expect(clippy::print_stderr, reason = "a program tells its user why it ends")]
fn fail(reason: &str) -> ExitCode {
    eprintln!("kiln: {reason}");
    ExitCode::FAILURE
}

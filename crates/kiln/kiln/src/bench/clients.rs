//! The benchmarks with many clients: YCSB, TPC-C, ingestion.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bench::measure::server::{Server, Storage};
use bench::measure::{Report, Span};
use bench::ycsb::Workload;
use bench::{ingest, planning, tpcc, unsettled, ycsb};
use clap::{Args, ValueEnum};
use types::{Clock, SystemClock};

use super::{BenchArguments, SuiteName};

/// The options of benchmarks with many clients.
#[derive(Debug, Args)]
#[command(next_help_heading = "ycsb, tpcc, ingest and unsettled")]
pub(super) struct ClientArguments {
    /// Clients at once [default: 16]
    #[arg(long, value_name = "N")]
    clients: Option<usize>,

    /// Measured seconds, of each workload where there are several; with --streams, of the short query
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub(super) seconds: u64,

    /// Seconds before that in which clients run unmeasured
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(super) warm: u64,

    /// How Kiln keeps the tables' rows; nothing on other servers
    #[arg(long, value_enum, default_value = "default")]
    storage: StorageName,

    /// ycsb, unsettled: rows of each table
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    rows: u64,

    /// ycsb: only these workloads
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LETTERS")]
    workloads: Vec<WorkloadName>,

    /// tpcc: warehouses
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=10_000))]
    warehouses: i32,

    /// tpcc: isolation level of the transactions
    #[arg(long, default_value = "read committed", value_name = "LEVEL")]
    isolation: String,

    /// tpcc: the tables are there from an earlier run
    #[arg(long)]
    loaded: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StorageName {
    Default,
    Hybrid,
    Row,
    Column,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum WorkloadName {
    A,
    B,
    C,
    D,
    E,
    F,
}

/// Runs the benchmark on the server; fails when anything did.
#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
pub(super) async fn run(arguments: &BenchArguments, url: &str) -> anyhow::Result<ExitCode> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let server = Server::find(url).await?;
    println!("{}", server.version);
    let report = measure(arguments, &server, &clock, &mut |line| println!("{line}")).await?;
    arguments.write_json(&report.json())?;
    Ok(if report.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn measure(
    arguments: &BenchArguments,
    server: &Server,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<Report> {
    let given = &arguments.clients;
    let span = Span { warm: Duration::from_secs(given.warm), measured: Duration::from_secs(given.seconds.max(1)) };
    let clients = given.clients.unwrap_or(16).max(1);
    let storage = match given.storage {
        StorageName::Default => Storage::Default,
        StorageName::Hybrid => Storage::Hybrid,
        StorageName::Row => Storage::Row,
        StorageName::Column => Storage::Column,
    };
    Ok(match arguments.suite {
        SuiteName::Ycsb => {
            let workload = |name: &WorkloadName| match name {
                WorkloadName::A => Workload::A,
                WorkloadName::B => Workload::B,
                WorkloadName::C => Workload::C,
                WorkloadName::D => Workload::D,
                WorkloadName::E => Workload::E,
                WorkloadName::F => Workload::F,
            };
            let mut workloads: Vec<Workload> = given.workloads.iter().map(workload).collect();
            if workloads.is_empty() {
                workloads = Workload::ALL.to_vec();
            }
            let options = ycsb::Options { rows: given.rows.max(1), clients, span, workloads, storage };
            ycsb::run(server, &options, clock, say).await?
        }
        SuiteName::Ingest => {
            let options = ingest::Options { span, clients: given.clients.unwrap_or(1).max(1), storage };
            ingest::run(server, &options, clock, say).await?
        }
        SuiteName::Tpcc => {
            let options = tpcc::Options {
                warehouses: given.warehouses,
                clients,
                span,
                storage,
                isolation: given.isolation.clone(),
                loaded: given.loaded,
            };
            tpcc::run(server, &options, clock, say).await?
        }
        SuiteName::Unsettled => unsettled::run(server, given.rows.max(100), clock, say).await?,
        SuiteName::Planning => planning::run(server, clock, say).await?,
        SuiteName::Recovery => anyhow::bail!("recovery is measured with a server of its own"),
        SuiteName::Tpch | SuiteName::Tpcds | SuiteName::Dashboard => {
            anyhow::bail!("TPC-H, TPC-DS and the dashboard are measured query by query")
        }
    })
}

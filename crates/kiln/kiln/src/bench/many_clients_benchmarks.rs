//! Benchmarks with many clients: YCSB, TPC-C, ingestion, unflushed rows; and planning.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bench::measure::server_connection::{Server, Storage};
use bench::measure::{MeasurementReport, MeasurementTime};
use bench::ycsb::Workload;
use bench::{ingest_benchmark, planning_growth, tpcc, unflushed_scan, ycsb};
use clap::{Args, ValueEnum};
use types::{Clock, SystemClock};

use super::{BenchArguments, SuiteName};

/// Options of benchmarks with many clients.
#[derive(Debug, Args)]
#[command(next_help_heading = "ycsb, tpcc, ingest and unsettled")]
pub(super) struct ClientArguments {
    /// Number of concurrent clients [default: 16; for ingest 1]
    #[arg(long, value_name = "N")]
    clients: Option<usize>,

    /// Seconds of measurement, for each workload; with --streams, for the short query
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub(super) seconds: u64,

    /// Seconds of warm-up before the measurement
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(super) warm: u64,

    /// Storage format of the tables in Kiln; ignored on other servers
    #[arg(long, value_enum, default_value = "default")]
    storage: StorageName,

    /// ycsb, unsettled: number of rows of each table
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    rows: u64,

    /// ycsb: workloads to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LETTERS")]
    workloads: Vec<WorkloadName>,

    /// tpcc: number of warehouses
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=10_000))]
    warehouses: i32,

    /// tpcc: isolation level of the transactions
    #[arg(long, default_value = "read committed", value_name = "LEVEL")]
    isolation: String,

    /// tpcc: use the tables of an earlier run instead of loading
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

/// Runs the benchmark on the server. The exit code is a failure if anything failed.
#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
pub(super) async fn run(arguments: &BenchArguments, url: &str) -> anyhow::Result<ExitCode> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let server = Server::connect_to(url).await?;
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
) -> anyhow::Result<MeasurementReport> {
    let client_options = &arguments.clients;
    let span = MeasurementTime {
        warm_up: Duration::from_secs(client_options.warm),
        measured: Duration::from_secs(client_options.seconds.max(1)),
    };
    let clients = client_options.clients.unwrap_or(16).max(1);
    let storage = match client_options.storage {
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
            let mut workloads: Vec<Workload> = client_options.workloads.iter().map(workload).collect();
            if workloads.is_empty() {
                workloads = Workload::ALL.to_vec();
            }
            let options =
                ycsb::YcsbOptions { rows: client_options.rows.max(1), clients, duration: span, workloads, storage };
            ycsb::run(server, &options, clock, say).await?
        }
        SuiteName::Ingest => {
            let options = ingest_benchmark::IngestOptions {
                duration: span,
                clients: client_options.clients.unwrap_or(1).max(1),
                storage,
            };
            ingest_benchmark::run(server, &options, clock, say).await?
        }
        SuiteName::Tpcc => {
            let options = tpcc::TpccOptions {
                warehouses: client_options.warehouses,
                clients,
                duration: span,
                storage,
                isolation: client_options.isolation.clone(),
                loaded: client_options.loaded,
            };
            tpcc::run(server, &options, clock, say).await?
        }
        SuiteName::Unsettled => unflushed_scan::run(server, client_options.rows.max(100), clock, say).await?,
        SuiteName::Planning => planning_growth::run(server, clock, say).await?,
        SuiteName::Recovery => anyhow::bail!("the benchmark recovery starts its own server"),
        SuiteName::Tpch | SuiteName::Tpcds | SuiteName::Dashboard => {
            anyhow::bail!("TPC-H, TPC-DS and the dashboard are not benchmarks with many clients")
        }
    })
}

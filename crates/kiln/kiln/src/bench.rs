//! `kiln bench`: runs a benchmark on a server that it starts, or on a running one.
//!
//! - `bench/query_benchmarks.rs`: TPC-H, TPC-DS and the dashboard.
//! - `bench/many_clients_benchmarks.rs`: benchmarks with many clients.
//! - `bench/recovery_benchmark.rs`: the time to recover from a kill.
//! - `bench/server_process.rs`: a server process that can be killed.

mod many_clients_benchmarks;
mod query_benchmarks;
mod recovery_benchmark;
mod server_process;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use bench::Suite;
use clap::{Args, ValueEnum};
use many_clients_benchmarks::ClientArguments;
use server_config::{Config, ServeArguments};
use types::{Random, SystemRandom};

use crate::serve;

/// Options of `kiln bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Benchmark to run
    #[arg(value_enum)]
    suite: SuiteName,

    /// Scale factor, roughly in gigabytes
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    sf: f64,

    /// Number of timed runs of each query, after one full scan of every table
    #[arg(long, default_value_t = 3, value_name = "R")]
    runs: usize,

    /// Numbers of the queries to run [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    queries: Vec<usize>,

    /// Systems to compare with, run in turn with Kiln: duckdb, datafusion, clickhouse (installed from PyPI into a
    /// private environment)
    #[arg(long, value_delimiter = ',', value_name = "PEERS")]
    against: Vec<String>,

    /// File for all measured times, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Folder for the data of Kiln and the other systems; it is kept, so that a second run need not load again
    /// [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Running server to measure, as postgresql://user@host:port/database [default: a server is started]
    #[arg(long, value_name = "URL")]
    connect: Option<String>,

    /// Megabytes of memory for the server that is started, and for DuckDB [default: the default of each]
    #[arg(long, value_name = "MB")]
    memory_mb: Option<u64>,

    /// Print the first rows of each result
    #[arg(long)]
    show: bool,

    /// tpch, tpcds: run each query on a freshly started server, and on other systems directly over the Parquet files
    #[arg(long, conflicts_with_all = ["streams", "load", "plans"])]
    cold: bool,

    /// tpch, tpcds: run all queries in this many concurrent streams and compare with one stream, and measure a short
    /// query among heavy ones for --seconds. With several numbers, as 1,2,4,8: measure the throughput of each
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", conflicts_with_all = ["load", "plans"])]
    streams: Vec<usize>,

    /// tpch, tpcds: compare each query on a cluster of this many worker processes with the server alone; with
    /// --clusters, the workers of each cluster
    #[arg(long, value_name = "WORKERS", conflicts_with_all = ["cold", "load", "plans"])]
    cluster: Option<usize>,

    /// tpch, tpcds: run the streams on each of these numbers of clusters in turn
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", requires = "streams")]
    clusters: Vec<usize>,

    /// tpch, tpcds: distribute tables by their join keys [default: true with --cluster and without --streams]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", conflicts_with = "load")]
    distributed: Option<bool>,

    /// File for a plot of the throughput of several numbers of streams, as SVG
    #[arg(long, value_name = "FILE", requires = "streams")]
    plot: Option<PathBuf>,

    /// tpch, tpcds: measure only the time to load the tables from CSV and from Parquet files
    #[arg(long, conflicts_with = "plans")]
    load: bool,

    /// tpch, tpcds: measure only the planning time of queries, by their EXPLAIN
    #[arg(long)]
    plans: bool,

    #[command(flatten)]
    clients: ClientArguments,
}

impl BenchArguments {
    /// Returns whether tables are distributed by their join keys.
    fn is_distributed(&self) -> bool {
        self.distributed.unwrap_or_else(|| self.cluster.is_some() && self.streams.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SuiteName {
    Tpch,
    Tpcds,
    /// The same few queries over TPC-H's lineitem repeatedly, with and without the fragment cache
    Dashboard,
    /// YCSB: many clients that read and write rows by key; runs on any server that speaks PostgreSQL's protocol
    Ycsb,
    /// TPC-C: many clients that order, pay and deliver; runs on any server that speaks PostgreSQL's protocol
    Tpcc,
    /// Ingestion of rows in several ways; runs on any server that speaks PostgreSQL's protocol
    Ingest,
    /// Cost of unflushed rows in a scan, relative to a flushed table
    Unsettled,
    /// Time of long or deeply nested statements, by their size
    Planning,
    /// Time until a killed server answers again; `--sf` is the size of its data in gigabytes
    Recovery,
}

/// Runs the benchmark. The exit code is a failure if another system's result differs.
pub(crate) async fn bench(arguments: BenchArguments) -> anyhow::Result<ExitCode> {
    let temporary = std::env::temp_dir().join(format!("kiln-bench-{:08x}", SystemRandom.next_u64() as u32));
    let workspace = arguments.workspace.clone().unwrap_or_else(|| temporary.clone());
    std::fs::create_dir_all(&workspace).with_context(|| format!("cannot make {}", workspace.display()))?;

    let outcome = match arguments.suite {
        SuiteName::Tpch | SuiteName::Dashboard => query_benchmarks::run(&arguments, Suite::Tpch, workspace).await,
        SuiteName::Tpcds => query_benchmarks::run(&arguments, Suite::Tpcds, workspace).await,
        SuiteName::Recovery => recovery_benchmark::run(&workspace.join("kiln-recovery"), arguments.sf).await,
        SuiteName::Ycsb | SuiteName::Tpcc | SuiteName::Ingest | SuiteName::Unsettled | SuiteName::Planning => {
            run_client_benchmark(&arguments, &workspace).await
        }
    };
    remove_temporary(&arguments, &temporary)?;
    outcome
}

/// Runs a benchmark with many clients, on the server of `--connect` or on one that is started.
async fn run_client_benchmark(arguments: &BenchArguments, workspace: &Path) -> anyhow::Result<ExitCode> {
    if let Some(url) = &arguments.connect {
        return many_clients_benchmarks::run(arguments, url).await;
    }
    let data = workspace.join(format!("kiln-{:?}", arguments.suite).to_lowercase());
    let server = serve::start(Config::load(server_arguments(&data, arguments))?).await?;
    let outcome =
        many_clients_benchmarks::run(arguments, &format!("postgresql://kiln@{}/kiln", server.pg_address())).await;
    server.stop().await;
    outcome
}

impl BenchArguments {
    /// Writes the measurements to the file of `--json`, if given.
    fn write_json(&self, measured: &serde_json::Value) -> anyhow::Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        std::fs::write(path, format!("{measured:#}\n")).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Removes the temporary folder, unless `--workspace` is given.
fn remove_temporary(arguments: &BenchArguments, temporary: &Path) -> anyhow::Result<()> {
    if arguments.workspace.is_none() {
        std::fs::remove_dir_all(temporary).with_context(|| format!("cannot remove {}", temporary.display()))?;
    }
    Ok(())
}

/// Returns the options for a server over `data` on free loopback ports.
fn server_arguments(data: &Path, arguments: &BenchArguments) -> ServeArguments {
    let free = Some(([127, 0, 0, 1], 0).into());
    // This benchmark flushes rows itself.
    let settle_rows = (arguments.suite == SuiteName::Unsettled).then_some(usize::MAX);
    ServeArguments {
        data: Some(data.to_owned()),
        listen: free,
        http: free,
        settle_rows,
        memory_mb: arguments.memory_mb,
        ..ServeArguments::default()
    }
}

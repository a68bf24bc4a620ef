//! `kiln bench`: starts a server on a folder of its own, or takes a running one, and drives the benchmark.

mod clients;
mod process;
mod queries;
mod recovery;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use bench::Suite;
use clap::{Args, ValueEnum};
use clients::ClientArguments;
use server_config::{Config, ServeArguments};
use types::{Random, SystemRandom};

use crate::serve;

/// The options of `kiln bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Which benchmark
    #[arg(value_enum)]
    suite: SuiteName,

    /// Scale factor, in gigabytes roughly
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    sf: f64,

    /// Timed runs of each query, after one full scan of every table
    #[arg(long, default_value_t = 3, value_name = "R")]
    runs: usize,

    /// Only these queries, by number
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    queries: Vec<usize>,

    /// Peers to run in turn with Kiln: duckdb, datafusion, clickhouse (from PyPI, into a private environment)
    #[arg(long, value_delimiter = ',', value_name = "PEERS")]
    against: Vec<String>,

    /// Write all times to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Folder for the server's data and the peers' files; kept, so that a second run need not load [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// A running server to measure instead of one of its own, as postgresql://user@host:port/database
    #[arg(long, value_name = "URL")]
    connect: Option<String>,

    /// Megabytes of memory for a server of its own, and for DuckDB [default: each one's own]
    #[arg(long, value_name = "MB")]
    memory_mb: Option<u64>,

    /// Print the first rows of each answer
    #[arg(long)]
    show: bool,

    /// tpch, tpcds: each run of a query on a server that has just started, peers on the Parquet files themselves
    #[arg(long, conflicts_with_all = ["streams", "load", "plans"])]
    cold: bool,

    /// tpch, tpcds: all queries in this many streams at once beside one stream, and a short query among heavy ones; takes --seconds. Of several
    /// numbers, as 1,2,4,8: what each gets done
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", conflicts_with_all = ["load", "plans"])]
    streams: Vec<usize>,

    /// tpch, tpcds: each query on a cluster of this many worker processes beside the server alone; of --clusters, the workers of each
    #[arg(long, value_name = "WORKERS", conflicts_with_all = ["cold", "load", "plans"])]
    cluster: Option<usize>,

    /// tpch, tpcds: the streams on this many clusters, one after the other
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", requires = "streams")]
    clusters: Vec<usize>,

    /// tpch, tpcds: tables are distributed by the keys on which they are joined; usual where each query runs on a cluster
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", conflicts_with = "load")]
    distributed: Option<bool>,

    /// Draw what several numbers of streams got done to this file, as SVG
    #[arg(long, value_name = "FILE", requires = "streams")]
    plot: Option<PathBuf>,

    /// tpch, tpcds: only how long the tables take to load from CSV and from Parquet files
    #[arg(long, conflicts_with = "plans")]
    load: bool,

    /// tpch, tpcds: only how long queries take to be planned: their EXPLAIN
    #[arg(long)]
    plans: bool,

    #[command(flatten)]
    clients: ClientArguments,
}

impl BenchArguments {
    /// Whether tables are distributed by the keys on which they are joined.
    fn is_distributed(&self) -> bool {
        self.distributed.unwrap_or_else(|| self.cluster.is_some() && self.streams.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SuiteName {
    Tpch,
    Tpcds,
    /// The same few queries over TPC-H's lineitem again and again, with the cache of fragments and without
    Dashboard,
    /// Many clients that read and write rows by key; drives any server that speaks PostgreSQL's protocol
    Ycsb,
    /// Many clients that order, pay, deliver; drives any server that speaks PostgreSQL's protocol
    Tpcc,
    /// Rows that come in, in several ways; drives any server that speaks PostgreSQL's protocol
    Ingest,
    /// What fresh rows cost a scan, as a ratio to a table that has settled
    Unsettled,
    /// How long statements take that are long or deep, by their size
    Planning,
    /// How soon a server that was killed answers again; `--sf` says how many gigabytes it holds
    Recovery,
}

/// Runs the benchmark; fails when a peer's answer differs.
pub(crate) async fn bench(arguments: BenchArguments) -> anyhow::Result<ExitCode> {
    let temporary = std::env::temp_dir().join(format!("kiln-bench-{:08x}", SystemRandom.next_u64() as u32));
    let workspace = arguments.workspace.clone().unwrap_or_else(|| temporary.clone());
    std::fs::create_dir_all(&workspace).with_context(|| format!("cannot make {}", workspace.display()))?;

    let outcome = match arguments.suite {
        SuiteName::Tpch | SuiteName::Dashboard => queries::run(&arguments, Suite::Tpch, workspace).await,
        SuiteName::Tpcds => queries::run(&arguments, Suite::Tpcds, workspace).await,
        SuiteName::Recovery => recovery::run(&workspace.join("kiln-recovery"), arguments.sf).await,
        SuiteName::Ycsb | SuiteName::Tpcc | SuiteName::Ingest | SuiteName::Unsettled | SuiteName::Planning => {
            many_clients(&arguments, &workspace).await
        }
    };
    remove(&arguments, &temporary)?;
    outcome
}

/// Measures a server with many clients: the one that is named, or one of its own.
async fn many_clients(arguments: &BenchArguments, workspace: &Path) -> anyhow::Result<ExitCode> {
    if let Some(url) = &arguments.connect {
        return clients::run(arguments, url).await;
    }
    let data = workspace.join(format!("kiln-{:?}", arguments.suite).to_lowercase());
    let server = serve::start(Config::load(own_server(&data, arguments))?).await?;
    let outcome = clients::run(arguments, &format!("postgresql://kiln@{}/kiln", server.pg_address())).await;
    server.stop().await;
    outcome
}

impl BenchArguments {
    /// Writes all that was measured to the file that was named.
    fn write_json(&self, measured: &serde_json::Value) -> anyhow::Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        std::fs::write(path, format!("{measured:#}\n")).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Removes the folder that this run made, where no other was named.
fn remove(arguments: &BenchArguments, temporary: &Path) -> anyhow::Result<()> {
    if arguments.workspace.is_none() {
        std::fs::remove_dir_all(temporary).with_context(|| format!("cannot remove {}", temporary.display()))?;
    }
    Ok(())
}

/// A server on free loopback ports over `data`.
fn own_server(data: &Path, arguments: &BenchArguments) -> ServeArguments {
    let free = Some(([127, 0, 0, 1], 0).into());
    // Rows settle when the benchmark says so.
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

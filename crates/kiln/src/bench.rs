//! `kiln bench`: starts a server on a folder of its own, or takes a running one, and drives the benchmark.

mod clients;
mod recovery;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bench::{Options, Suite};
use clap::{Args, ValueEnum};
use clients::ClientArguments;
use types::{Random, SystemClock, SystemRandom};

use crate::config::{Config, ServeArguments};
use crate::serve;
use crate::sql::connect::{self, Target};

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

    /// Print the first rows of each answer
    #[arg(long)]
    show: bool,

    #[command(flatten)]
    clients: ClientArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SuiteName {
    Tpch,
    Tpcds,
    /// Many clients that read and write rows by key; drives any server that speaks PostgreSQL's protocol
    Ycsb,
    /// Many clients that order, pay, deliver; drives any server that speaks PostgreSQL's protocol
    Tpcc,
    /// Rows that come in, in several ways; drives any server that speaks PostgreSQL's protocol
    Ingest,
    /// What fresh rows cost a scan, as a ratio to a table that has settled
    Unsettled,
    /// How soon a server that was killed answers again; `--sf` says how many gigabytes it holds
    Recovery,
}

/// Runs the benchmark; fails when a peer's answer differs.
#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
pub(crate) async fn bench(arguments: BenchArguments) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::new();
    let temporary = std::env::temp_dir().join(format!("kiln-bench-{:08x}", SystemRandom.next_u64() as u32));
    let workspace = arguments.workspace.clone().unwrap_or_else(|| temporary.clone());
    std::fs::create_dir_all(&workspace).with_context(|| format!("cannot make {}", workspace.display()))?;

    let suite = match arguments.suite {
        SuiteName::Tpch => Some(Suite::Tpch),
        SuiteName::Tpcds => Some(Suite::Tpcds),
        SuiteName::Ycsb | SuiteName::Tpcc | SuiteName::Ingest | SuiteName::Unsettled | SuiteName::Recovery => None,
    };
    let data = workspace.join(match suite {
        Some(suite) => format!("kiln-{suite}-{}", arguments.sf),
        None => format!("kiln-{:?}", arguments.suite).to_lowercase(),
    });
    if arguments.suite == SuiteName::Recovery {
        let outcome = recovery::run(&data, arguments.sf).await;
        remove(&arguments, &temporary)?;
        return outcome;
    }
    let loaded_mark = data.join("loaded");
    let (server, url) = match &arguments.connect {
        Some(url) => (None, url.clone()),
        None => {
            let server = serve::start(Config::load(own_server(&data, arguments.suite))?).await?;
            let url = format!("postgresql://kiln@{}/kiln", server.pg_address());
            (Some(server), url)
        }
    };
    let Some(suite) = suite else {
        let outcome = clients::run(&arguments, &url).await;
        if let Some(server) = server {
            server.stop().await;
        }
        remove(&arguments, &temporary)?;
        return outcome;
    };
    let client = connect::connect(&Target::from_url(&url)?).await?.client;

    let options = Options {
        suite,
        scale: arguments.sf,
        runs: arguments.runs,
        against: arguments.against.clone(),
        queries: arguments.queries.clone(),
        workspace,
        loaded: loaded_mark.exists(),
        show_rows: if arguments.show { 3 } else { 0 },
    };
    let report = bench::run(&client, &options, &clock, &mut |line| println!("{line}")).await?;
    if server.is_some() {
        std::fs::write(&loaded_mark, "").with_context(|| format!("cannot write {}", loaded_mark.display()))?;
    }
    println!("{}", report.summary());
    if let Some(path) = &arguments.json {
        std::fs::write(path, format!("{:#}\n", report.json()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(server) = server {
        server.stop().await;
    }
    remove(&arguments, &temporary)?;
    let differences = report.differences().count();
    if 0 < differences {
        println!("{differences} queries differ from a peer");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the folder that this run made, where no other was named.
fn remove(arguments: &BenchArguments, temporary: &std::path::Path) -> anyhow::Result<()> {
    if arguments.workspace.is_none() {
        std::fs::remove_dir_all(temporary).with_context(|| format!("cannot remove {}", temporary.display()))?;
    }
    Ok(())
}

/// A server on free loopback ports over `data`.
fn own_server(data: &std::path::Path, suite: SuiteName) -> ServeArguments {
    let free = Some(([127, 0, 0, 1], 0).into());
    // Rows settle when the benchmark says so.
    let settle_rows = (suite == SuiteName::Unsettled).then_some(usize::MAX);
    ServeArguments { data: Some(data.to_owned()), listen: free, http: free, settle_rows, ..ServeArguments::default() }
}

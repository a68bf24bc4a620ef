//! TPC-H and TPC-DS: warm, cold, in concurrent streams, on clusters, or only loading or planning; and the dashboard
//! over the tables of TPC-H.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench::concurrent_streams::ThroughputSweep;
use bench::measure::server_connection::Server;
use bench::measure::{self, MeasurementTime};
use bench::query_report::QueryReport;
use bench::{
    QueryOptions, Suite, cold_cache_benchmark, concurrent_streams, dashboard_benchmark, load_files_benchmark,
    planning_time, svg_plot, worker_clusters,
};
use server_config::Config;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use super::server_process::ServerProcess;
use super::{BenchArguments, SuiteName, server_arguments};
use crate::serve;

/// Runs the benchmark in `workspace`. The exit code is a failure if a result differs from another system's.
#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
pub(super) async fn run(arguments: &BenchArguments, suite: Suite, workspace: PathBuf) -> anyhow::Result<ExitCode> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut say = |line: &str| println!("{line}");
    let purpose = if arguments.load { "load" } else { "kiln" };
    let layout = if arguments.is_distributed() { "-distributed" } else { "" };
    let data = workspace.join(format!("{purpose}-{suite}-{}{layout}", arguments.sf));
    let loaded_mark = data.join("loaded");
    if arguments.load && arguments.connect.is_none() {
        // Dropped tables of an earlier run would take up space in the storage until their retention ends.
        remove_folder(&data)?;
    }
    let (server, url) = match &arguments.connect {
        Some(_) if arguments.cold => anyhow::bail!("--cold starts its own servers and cannot be used with --connect"),
        Some(url) => (None, url.clone()),
        None => {
            let server = serve::start(Config::load(server_arguments(&data, arguments))?).await?;
            let url = format!("postgresql://kiln@{}/kiln", server.pg_address());
            (Some(server), url)
        }
    };
    let options = QueryOptions {
        suite,
        scale: arguments.sf,
        runs: arguments.runs,
        compared_systems: arguments.against.clone(),
        queries: arguments.queries.clone(),
        workspace,
        loaded: loaded_mark.exists(),
        distributed: arguments.is_distributed(),
        memory_mb: arguments.memory_mb,
        show_rows: if arguments.show { 3 } else { 0 },
    };
    let client = sql_client::connect(&url).await?;
    let mark_loaded =
        || std::fs::write(&loaded_mark, "").with_context(|| format!("cannot write {}", loaded_mark.display()));
    if arguments.load {
        let report = load_files_benchmark::run(&client, &options, &*clock, &mut say).await?;
        if let Some(server) = server {
            server.stop().await;
            remove_folder(&data)?;
        }
        return print_measurement_report(arguments, &report);
    }
    if !arguments.streams.is_empty() || arguments.cluster.is_some() {
        bench::prepare(&client, &options, &*clock, &mut say).await?;
        if server.is_some() {
            mark_loaded()?;
        }
        let measured = Server::connect_to(&url).await?;
        let report = run_streams(arguments, &measured, &options, &clock, &mut say).await?;
        if let Some(server) = server {
            server.stop().await;
        }
        return print_measurement_report(arguments, &report);
    }
    if arguments.suite == SuiteName::Dashboard {
        let report = dashboard_benchmark::run(&client, &options, &*clock, &mut say).await?;
        if let Some(server) = server {
            mark_loaded()?;
            server.stop().await;
        }
        return print_measurement_report(arguments, &report);
    }
    if arguments.plans {
        bench::prepare(&client, &options, &*clock, &mut say).await?;
        let report = planning_time::run(&client, &options, &*clock, &mut say).await?;
        if let Some(server) = server {
            mark_loaded()?;
            server.stop().await;
        }
        return print_measurement_report(arguments, &report);
    }
    if arguments.cold {
        bench::prepare(&client, &options, &*clock, &mut say).await?;
        mark_loaded()?;
        if let Some(server) = server {
            server.stop().await;
        }
        // Without a disk cache, so that a restarted server does not find the columns of an earlier one.
        let memory = arguments.memory_mb.map(|megabytes| format!("--memory-mb={megabytes}"));
        let serving = memory.into_iter().chain(["--cache-disk-mb=0".to_owned()]).collect();
        let mut processes = ServerProcesses { data_folder: data, server_options: serving, running_process: None };
        let report = cold_cache_benchmark::run(&mut processes, &options, &*clock, &mut say).await?;
        return print_query_report(arguments, &report);
    }
    let report = bench::run(&client, &options, &*clock, &mut say).await?;
    if let Some(server) = server {
        mark_loaded()?;
        server.stop().await;
    }
    print_query_report(arguments, &report)
}

/// Measures concurrent streams, or a cluster in comparison with the server alone.
async fn run_streams(
    arguments: &BenchArguments,
    server: &Server,
    options: &QueryOptions,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<measure::MeasurementReport> {
    match arguments.streams.as_slice() {
        [] => Ok(worker_clusters::compare_with_server(server, options, arguments.cluster.unwrap_or(1), &**clock, say)
            .await?),
        [count] if arguments.clusters.is_empty() => {
            let given = &arguments.clients;
            let span = MeasurementTime {
                warm_up: Duration::from_secs(given.warm),
                measured: Duration::from_secs(given.seconds.max(1)),
            };
            Ok(concurrent_streams::run(server, options, (*count).max(1), span, clock, say).await?)
        }
        several => {
            let workers = arguments.cluster.unwrap_or(1);
            let sweep = ThroughputSweep { streams: several.to_vec(), clusters: arguments.clusters.clone(), workers };
            let (report, lines) = concurrent_streams::measure_throughput(server, options, &sweep, clock, say).await?;
            if let Some(path) = &arguments.plot {
                let title = format!("{} at scale {}", options.suite, options.scale);
                let picture = svg_plot::render_svg(&title, "streams", "queries an hour", &lines);
                std::fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))?;
            }
            Ok(report)
        }
    }
}

#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
fn print_query_report(arguments: &BenchArguments, report: &QueryReport) -> anyhow::Result<ExitCode> {
    println!("{}", report.summary());
    arguments.write_json(&report.json())?;
    let differences = report.differences().count();
    if 0 < differences {
        println!("{differences} results differ from another system's");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
fn print_measurement_report(
    arguments: &BenchArguments,
    report: &measure::MeasurementReport,
) -> anyhow::Result<ExitCode> {
    report.violations.iter().for_each(|violation| println!("{violation}"));
    arguments.write_json(&report.json())?;
    Ok(if report.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn remove_folder(folder: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Server processes over one folder, started one at a time.
struct ServerProcesses {
    data_folder: PathBuf,
    server_options: Vec<String>,
    running_process: Option<ServerProcess>,
}

impl cold_cache_benchmark::ServerStarter for ServerProcesses {
    async fn start(&mut self) -> Result<Client, bench::Error> {
        self.stop().await?;
        let (process, client) =
            ServerProcess::start(&self.data_folder, &self.server_options).await.map_err(server_process_error)?;
        self.running_process = Some(process);
        Ok(client)
    }

    async fn stop(&mut self) -> Result<(), bench::Error> {
        match self.running_process.take() {
            Some(mut running) => running.kill().await.map_err(server_process_error),
            None => Ok(()),
        }
    }
}

fn server_process_error(error: anyhow::Error) -> bench::Error {
    bench::Error::ComparedSystem { system: "kiln".to_owned(), reason: format!("{error:#}") }
}

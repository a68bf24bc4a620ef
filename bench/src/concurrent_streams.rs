//! Measures concurrent queries: throughput of several streams, and latency of a short query under heavy load.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use tokio_postgres::Client;
use types::Clock;

use crate::measure::server_connection::Server;
use crate::measure::{self, CompletedOperation, MeasurementReport, MeasurementTime, run_clients};
use crate::query_benchmark::{disable_fragment_cache, run_query, run_timed, selected_queries};
use crate::result_comparison::{self, Row};
use crate::svg_plot::ChartLine;
use crate::worker_clusters::{Clusters, set_default_clusters};
use crate::{Error, QueryOptions};

/// Number of clients that run long queries beside the short one.
const HEAVY_CLIENTS: usize = 8;

/// Query with its time and answer in a single stream.
struct BaselineQuery {
    sql: &'static str,
    number: usize,
    time: Duration,
    answer: Vec<Row>,
}

/// Runs all queries in one stream and in `streams` concurrent ones, each in a different order, then the shortest
/// query beside the longest ones.
pub async fn run(
    server: &Server,
    options: &QueryOptions,
    streams: usize,
    span: MeasurementTime,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let setting = format!("{} at scale {}, {streams} streams", options.suite, options.scale);
    let mut report = new_report(server, setting);
    let known = run_single_stream(server, options, clock).await?;
    let alone: Duration = known.iter().map(|query| query.time).sum();
    let (together, wrong) = run_streams(server, &known, streams, clock).await?;
    report.violations.extend(wrong);
    let per_hour = |passes: usize, time: Duration| (passes * known.len()) as f64 * 3600.0 / time.as_secs_f64();
    let (one, all) = (per_hour(1, alone), per_hour(streams, together));
    say(&format!("1 stream    {:>9.2} s{one:>12.0} queries an hour", alone.as_secs_f64()));
    say(&format!("{streams} streams {:>9.2} s{all:>12.0} queries an hour   {:.2}x", together.as_secs_f64(), all / one));
    report.figures.push(("queries an hour, one stream".to_owned(), one));
    report.figures.push((format!("queries an hour, {streams} streams"), all));
    measure_short_under_load(server, known, span, clock, &mut report, say).await?;
    Ok(report)
}

/// Numbers of streams and clusters to measure.
#[derive(Debug, Clone)]
pub struct ThroughputSweep {
    /// Numbers of concurrent streams, one measurement each.
    pub streams: Vec<usize>,
    /// Numbers of clusters among which the streams are distributed, one chart line each; if empty, the role's default
    /// is used.
    pub clusters: Vec<usize>,
    /// Worker processes of each cluster.
    pub workers: usize,
}

/// Measures the throughput of each number of streams on each number of clusters; returns a report and the lines of a
/// chart.
///
/// # Errors
/// Server errors.
pub async fn measure_throughput(
    server: &Server,
    options: &QueryOptions,
    sweep: &ThroughputSweep,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<(MeasurementReport, Vec<ChartLine>), Error> {
    let setting = format!("{} at scale {}, {:?} streams", options.suite, options.scale, sweep.streams);
    let mut report = new_report(server, setting);
    let known = run_single_stream(server, options, clock).await?;
    let usual = [0];
    let counts = if sweep.clusters.is_empty() { usual.as_slice() } else { sweep.clusters.as_slice() };
    let client = server.connect().await?;
    let mut lines = Vec::new();
    for count in counts {
        let clusters = match count {
            0 => None,
            _ => Some(Clusters::create(&client, *count, sweep.workers, &**clock).await?),
        };
        set_default_clusters(&client, clusters.as_ref().map_or(&[], Clusters::names)).await?;
        let name = match count {
            0 => "the server".to_owned(),
            1 => format!("1 cluster of {}", sweep.workers),
            _ => format!("{count} clusters of {}", sweep.workers),
        };
        // Warms the caches of the new clusters.
        run_streams(server, &known, 1, clock).await?;
        let mut points = Vec::new();
        for streams in &sweep.streams {
            let (took, wrong) = run_streams(server, &known, (*streams).max(1), clock).await?;
            report.violations.extend(wrong);
            let per_hour = ((*streams).max(1) * known.len()) as f64 * 3600.0 / took.as_secs_f64();
            say(&format!(
                "{name:<18}{streams:>4} streams{:>10.2} s{per_hour:>12.0} queries an hour",
                took.as_secs_f64()
            ));
            report.figures.push((format!("queries an hour, {name}, {streams} streams"), per_hour));
            points.push((*streams as f64, per_hour));
        }
        lines.push(ChartLine { name, points });
        if let Some(clusters) = clusters {
            set_default_clusters(&client, &[]).await?;
            clusters.drop(&client).await?;
        }
    }
    Ok((report, lines))
}

fn new_report(server: &Server, setting: String) -> MeasurementReport {
    MeasurementReport {
        benchmark: "streams",
        server: server.version.clone(),
        setting,
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    }
}

/// Opens a connection with the fragment cache disabled.
async fn connect(server: &Server) -> Result<Client, Error> {
    let client = server.connect().await?;
    disable_fragment_cache(&client).await?;
    Ok(client)
}

/// Runs each query twice in one stream and records the second run.
async fn run_single_stream(
    server: &Server,
    options: &QueryOptions,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<BaselineQuery>, Error> {
    let client = connect(server).await?;
    let numbers = selected_queries(options);
    let mut known = Vec::with_capacity(numbers.len());
    for number in numbers {
        let sql = options.suite.queries()[number - 1];
        run_timed(&client, number, sql, &**clock).await?;
        let (time, answer) = run_timed(&client, number, sql, &**clock).await?;
        known.push(BaselineQuery { sql, number, time, answer });
    }
    Ok(known)
}

/// Runs all streams concurrently; returns the elapsed time and the answers that differ from those of a single stream.
async fn run_streams(
    server: &Server,
    known: &[BaselineQuery],
    streams: usize,
    clock: &Arc<dyn Clock>,
) -> Result<(Duration, Vec<String>), Error> {
    let clients = try_join_all((0..streams).map(|_| connect(server))).await?;
    let start = clock.monotonic();
    let streams = clients.len();
    let running = clients.iter().enumerate().map(|(stream, client)| async move {
        let mut wrong = Vec::new();
        // Streams start at positions evenly spread over the list of queries.
        let first = stream * known.len() / streams;
        for query in known.iter().cycle().skip(first).take(known.len()) {
            let (_, answer) = run_timed(client, query.number, query.sql, &**clock).await?;
            if let Err(difference) = result_comparison::compare(&query.answer, &answer) {
                wrong.push(format!("query {} in stream {stream}: {difference}", query.number));
            }
        }
        Ok::<_, Error>(wrong)
    });
    let wrong = try_join_all(running).await?;
    Ok((clock.monotonic() - start, wrong.into_iter().flatten().collect()))
}

/// Measures the shortest query alone, then while other clients run the longest ones.
async fn measure_short_under_load(
    server: &Server,
    mut known: Vec<BaselineQuery>,
    span: MeasurementTime,
    clock: &Arc<dyn Clock>,
    report: &mut MeasurementReport,
    say: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    known.sort_by_key(|query| query.time);
    let Some(short) = known.first() else { return Ok(()) };
    let (short, number) = (short.sql, short.number);
    let heavy: Vec<&'static str> = known.iter().rev().take(HEAVY_CLIENTS).map(|query| query.sql).collect();
    let mut p99 = Vec::new();
    for (name, count) in [("alone", 0), ("among heavy ones", HEAVY_CLIENTS)] {
        let mut clients =
            vec![QueryLoop { client: connect(server).await?, kind: "short", queries: vec![short], next: 0 }];
        for first in 0..count {
            let client = connect(server).await?;
            clients.push(QueryLoop { client, kind: "heavy", queries: heavy.clone(), next: first });
        }
        let outcome = run_clients(clients, span, clock).await;
        let name = format!("q{number:02} {name}");
        say(&MeasurementReport::table(&name, &outcome));
        let time = outcome.operations.get("short").map_or(Duration::ZERO, |kind| kind.latencies.percentile(0.99));
        report.figures.push((format!("{name}, p99 ms"), time.as_secs_f64() * 1e3));
        p99.push(time);
        report.measurements.push((name, outcome));
    }
    if let [alone, among] = p99.as_slice() {
        let ratio = among.as_secs_f64() / alone.as_secs_f64().max(1e-9);
        say(&format!("p99 of the short query among {HEAVY_CLIENTS} heavy ones: {ratio:.2}x of it alone"));
        report.figures.push(("p99 of the short query, ratio".to_owned(), ratio));
    }
    Ok(())
}

/// Client that runs its queries in a loop.
struct QueryLoop {
    client: Client,
    kind: &'static str,
    queries: Vec<&'static str>,
    next: usize,
}

impl measure::BenchmarkClient for QueryLoop {
    async fn run_operation(&mut self) -> Result<CompletedOperation, Error> {
        let sql = self.queries[self.next % self.queries.len()];
        self.next += 1;
        let failed = |source| Error::Server { action: format!("a {} query", self.kind), source };
        run_query(&self.client, sql).await.map_err(failed)?;
        Ok(CompletedOperation::single_row(self.kind))
    }
}

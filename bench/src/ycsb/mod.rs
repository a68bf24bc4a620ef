//! YCSB, the Yahoo! Cloud Serving Benchmark: workloads A to F on rows of ten fields of a hundred characters.

mod client;
mod load;
mod workload;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use types::Clock;

pub use workload::Workload;

use self::client::YcsbClient;
use crate::Error;
use crate::measure::server_connection::{Server, Storage};
use crate::measure::{MeasurementReport, MeasurementTime, run_clients};
use crate::random::ZipfDistribution;

/// Options of the YCSB benchmark.
#[derive(Debug, Clone)]
pub struct YcsbOptions {
    pub rows: u64,
    pub clients: usize,
    /// Warm-up and measured time of each workload.
    pub duration: MeasurementTime,
    pub workloads: Vec<Workload>,
    pub storage: Storage,
}

/// State shared by the clients of all workloads.
#[derive(Debug)]
struct SharedState {
    rows: u64,
    /// Number of the next row to insert.
    next_row: AtomicU64,
    zipf: ZipfDistribution,
}

/// Loads the tables and runs the workloads one after the other; `say` receives progress lines.
pub async fn run(
    server: &Server,
    options: &YcsbOptions,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let mut report = MeasurementReport {
        benchmark: "ycsb",
        server: server.version.clone(),
        setting: format!("{} rows, {} clients, storage {:?}", options.rows, options.clients, options.storage),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    // Rows inserted by earlier workloads remain; each workload continues after them.
    let shared = Arc::new(SharedState {
        rows: options.rows,
        next_row: AtomicU64::new(options.rows),
        zipf: ZipfDistribution::new(options.rows),
    });
    let start = clock.monotonic();
    load::load(server, options).await?;
    say(&format!("loaded {} rows twice in {:.1} s", options.rows, elapsed_since(clock, start).as_secs_f64()));
    for (position, &workload) in options.workloads.iter().enumerate() {
        let mut clients = Vec::with_capacity(options.clients);
        for number in 0..options.clients {
            let seed = (position * options.clients + number) as u64;
            clients.push(YcsbClient::connect(server, workload, &shared, seed).await?);
        }
        let outcome = run_clients(clients, options.duration, clock).await;
        say(&MeasurementReport::table(&format!("workload {workload:?}"), &outcome));
        report.figures.push((format!("{workload:?}"), outcome.per_second(None)));
        report.measurements.push((format!("{workload:?}"), outcome));
    }
    Ok(report)
}

fn elapsed_since(clock: &Arc<dyn Clock>, start: Duration) -> Duration {
    clock.monotonic() - start
}

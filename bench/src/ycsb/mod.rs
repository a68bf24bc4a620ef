//! YCSB, the Yahoo! Cloud Serving Benchmark: workloads A to F on rows of ten fields of a hundred characters.

mod client;
mod load;
mod workload;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use types::Clock;

pub use workload::Workload;

use self::client::User;
use crate::Error;
use crate::chance::Zipf;
use crate::measure::server::{Server, Storage};
use crate::measure::{Report, Span, drive};

/// Options of the YCSB benchmark.
#[derive(Debug, Clone)]
pub struct Options {
    pub rows: u64,
    pub clients: usize,
    /// Warm-up and measured time of each workload.
    pub span: Span,
    pub workloads: Vec<Workload>,
    pub storage: Storage,
}

/// State shared by the clients of all workloads.
#[derive(Debug)]
struct Shared {
    rows: u64,
    /// Number of the next row to insert.
    next: AtomicU64,
    zipf: Zipf,
}

/// Loads the tables and runs the workloads one after the other; `say` receives progress lines.
pub async fn run(
    server: &Server,
    options: &Options,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<Report, Error> {
    let mut report = Report {
        benchmark: "ycsb",
        server: server.version.clone(),
        setting: format!("{} rows, {} clients, storage {:?}", options.rows, options.clients, options.storage),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    // Rows inserted by earlier workloads remain; each workload continues after them.
    let shared =
        Arc::new(Shared { rows: options.rows, next: AtomicU64::new(options.rows), zipf: Zipf::new(options.rows) });
    let start = clock.monotonic();
    load::load(server, options).await?;
    say(&format!("loaded {} rows twice in {:.1} s", options.rows, since(clock, start).as_secs_f64()));
    for (position, &workload) in options.workloads.iter().enumerate() {
        let mut clients = Vec::with_capacity(options.clients);
        for number in 0..options.clients {
            let seed = (position * options.clients + number) as u64;
            clients.push(User::connect(server, workload, &shared, seed).await?);
        }
        let outcome = drive(clients, options.span, clock).await;
        say(&Report::table(&format!("workload {workload:?}"), &outcome));
        report.figures.push((format!("{workload:?}"), outcome.per_second(None)));
        report.measurements.push((format!("{workload:?}"), outcome));
    }
    Ok(report)
}

fn since(clock: &Arc<dyn Clock>, start: Duration) -> Duration {
    clock.monotonic() - start
}

//! Drives concurrent clients for a fixed time and collects latencies and errors.

mod latency_histogram;
mod measurement_report;
pub mod server_connection;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use types::Clock;

pub use latency_histogram::LatencyHistogram;
pub use measurement_report::MeasurementReport;

use crate::Error;

/// Time after the end when clients that still wait for the server are aborted.
const ABORT_DELAY: Duration = Duration::from_secs(30);

/// Consecutive failures after which a client gives up.
const FAILURES_MAX: u32 = 100;

/// Client of a server.
pub trait BenchmarkClient: Send + 'static {
    /// Runs one operation to completion.
    fn run_operation(&mut self) -> impl Future<Output = Result<CompletedOperation, Error>> + Send;
}

/// Completed operation.
#[derive(Debug, Clone, Copy)]
pub struct CompletedOperation {
    pub kind: &'static str,
    /// Number of retries.
    pub retries: u64,
    /// Rows read or written.
    pub rows: u64,
}

impl CompletedOperation {
    /// Creates the result of an operation on one row that succeeded at the first attempt.
    #[must_use]
    pub fn single_row(kind: &'static str) -> Self {
        Self { kind, retries: 0, rows: 1 }
    }
}

/// Duration of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct MeasurementTime {
    /// Warm-up time, before the measured time.
    pub warm_up: Duration,
    pub measured: Duration,
}

/// Results of all clients in the measured time.
#[derive(Debug, Clone, Default)]
pub struct MeasurementOutcome {
    pub measured: Duration,
    pub operations: BTreeMap<&'static str, OperationStats>,
    /// Numbers of failures by error message.
    pub errors: BTreeMap<String, u64>,
    /// Number of clients that were aborted because the server no longer answered.
    pub aborted_clients: usize,
}

/// Operations of one kind.
#[derive(Debug, Clone, Default)]
pub struct OperationStats {
    pub latencies: LatencyHistogram,
    pub retries: u64,
    pub rows: u64,
}

impl MeasurementOutcome {
    /// Returns operations per second, of one kind or of all.
    #[must_use]
    pub fn per_second(&self, kind: Option<&str>) -> f64 {
        self.sum_per_operation(kind, |kind| kind.latencies.count()) / self.measured.as_secs_f64().max(1e-9)
    }

    /// Returns rows per second.
    #[must_use]
    pub fn rows_per_second(&self) -> f64 {
        self.sum_per_operation(None, |kind| kind.rows) / self.measured.as_secs_f64().max(1e-9)
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn sum_per_operation(&self, wanted: Option<&str>, of: impl Fn(&OperationStats) -> u64) -> f64 {
        let kinds = self.operations.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == **name));
        kinds.map(|(_, kind)| of(kind)).sum::<u64>() as f64
    }

    /// Returns true if an operation failed or none completed.
    fn has_failures(&self) -> bool {
        !self.errors.is_empty() || self.aborted_clients > 0 || self.operations.is_empty()
    }

    fn merge(&mut self, other: MeasurementOutcome) {
        for (name, kind) in other.operations {
            let own = self.operations.entry(name).or_default();
            own.latencies.merge(&kind.latencies);
            own.retries += kind.retries;
            own.rows += kind.rows;
        }
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
    }
}

/// Runs all clients concurrently for the warm-up and the measured time.
///
/// Returns at the latest `ABORT_DELAY` after the end, even if the server hangs.
pub async fn run_clients<C: BenchmarkClient>(
    clients: Vec<C>,
    duration: MeasurementTime,
    clock: &Arc<dyn Clock>,
) -> MeasurementOutcome {
    let begin = clock.monotonic() + duration.warm_up;
    let end = begin + duration.measured;
    let tasks: Vec<_> =
        clients.into_iter().map(|client| tokio::spawn(run(client, begin, end, Arc::clone(clock)))).collect();
    let mut outcome = MeasurementOutcome { measured: duration.measured, ..MeasurementOutcome::default() };
    for task in tasks {
        let left = (end + ABORT_DELAY).saturating_sub(clock.monotonic());
        match select(task, clock.sleep(left)).await {
            Either::Left((Ok(done), _)) => outcome.merge(done),
            Either::Left((Err(_), _)) => *outcome.errors.entry("a client panicked".to_owned()).or_default() += 1,
            Either::Right(((), task)) => {
                task.abort();
                outcome.aborted_clients += 1;
            }
        }
    }
    outcome
}

async fn run<C: BenchmarkClient>(
    mut client: C,
    begin: Duration,
    end: Duration,
    clock: Arc<dyn Clock>,
) -> MeasurementOutcome {
    let mut outcome = MeasurementOutcome::default();
    let mut failures = 0;
    loop {
        let start = clock.monotonic();
        if end <= start {
            return outcome;
        }
        let done = client.run_operation().await;
        let now = clock.monotonic();
        match done {
            Ok(done) => {
                failures = 0;
                if begin <= now && now < end {
                    let kind = outcome.operations.entry(done.kind).or_default();
                    kind.latencies.record(now - start);
                    kind.retries += done.retries;
                    kind.rows += done.rows;
                }
            }
            Err(error) => {
                *outcome.errors.entry(error.to_string()).or_default() += 1;
                failures += 1;
                if failures == FAILURES_MAX {
                    *outcome.errors.entry("a client gave up".to_owned()).or_default() += 1;
                    return outcome;
                }
            }
        }
    }
}

//! Counters of `/metrics`.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Metrics of connections and statements; cheap to update from anywhere.
#[derive(Debug)]
pub struct Metrics {
    pub connections: Gauge,
    pub connections_total: Counter,
    pub connections_refused: Counter,
    /// Query threads that the watchdog reports.
    pub stalled_threads: Gauge,
    pub failing_services: Gauge,
    statements: Family<StatementLabels, Counter>,
    statement_seconds: Family<KindLabel, Histogram, fn() -> Histogram>,
    /// Counter and histogram of each kind and outcome, looked up once.
    by_kind_and_outcome: [[OnceLock<(Counter, Histogram)>; Outcome::COUNT]; StatementKind::COUNT],
    pub rows_out: Counter,
    pub rows_in: Counter,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
}

/// Labels of the counter of statements.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatementLabels {
    kind: StatementKind,
    outcome: Outcome,
}

/// Label of the histogram of statement times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: StatementKind,
}

/// Kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum StatementKind {
    Query,
    Write,
    Copy,
    Define,
    Session,
    /// Statement that failed before its kind was known.
    Unknown,
}

impl StatementKind {
    const COUNT: usize = 6;
}

impl Outcome {
    const COUNT: usize = 3;
}

/// Outcome of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Outcome {
    Done,
    Failed,
    Cancelled,
}

impl Default for Metrics {
    /// Returns metrics that are all zero.
    fn default() -> Self {
        Self {
            connections: Gauge::default(),
            connections_total: Counter::default(),
            connections_refused: Counter::default(),
            stalled_threads: Gauge::default(),
            failing_services: Gauge::default(),
            statements: Family::default(),
            statement_seconds: Family::new_with_constructor(latency_histogram),
            by_kind_and_outcome: Default::default(),
            rows_out: Counter::default(),
            rows_in: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
        }
    }
}

impl Metrics {
    /// Counts a statement that has ended, with the time it took.
    pub fn count_statement(&self, kind: StatementKind, outcome: Outcome, took: Duration) {
        let (count, seconds) = self.by_kind_and_outcome[kind as usize][outcome as usize].get_or_init(|| {
            let count = self.statements.get_or_create(&StatementLabels { kind, outcome }).clone();
            (count, self.statement_seconds.get_or_create(&KindLabel { kind }).clone())
        });
        count.inc();
        seconds.observe(took.as_secs_f64());
    }

    /// Returns a registry with the prefix `kiln`; other crates' metrics may be added to it.
    #[must_use]
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("kiln");
        registry.register("connections", "Open PostgreSQL connections", self.connections.clone());
        registry.register("connections_opened", "PostgreSQL connections accepted", self.connections_total.clone());
        registry.register(
            "connections_refused",
            "PostgreSQL connections refused: too many, or not authenticated",
            self.connections_refused.clone(),
        );
        registry.register(
            "standing_query_threads",
            "Query threads that have been in one step of a query for 5 s or longer",
            self.stalled_threads.clone(),
        );
        registry.register(
            "failing_services",
            "Background services that fail or wait to be restarted",
            self.failing_services.clone(),
        );
        registry.register("statements", "Statements by kind and outcome", self.statements.clone());
        registry.register_with_unit(
            "statement_duration",
            "Time from a statement's arrival to its last row",
            Unit::Seconds,
            self.statement_seconds.clone(),
        );
        registry.register("rows_returned", "Rows sent to clients", self.rows_out.clone());
        registry.register("rows_written", "Rows written by INSERT, CREATE TABLE AS and COPY", self.rows_in.clone());
        registry.register_with_unit("received", "Bytes from clients", Unit::Bytes, self.bytes_in.clone());
        registry.register_with_unit("sent", "Bytes to clients", Unit::Bytes, self.bytes_out.clone());
        registry
    }
}

/// Creates a histogram with buckets from 0.1 ms to about half an hour.
fn latency_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 13))
}

//! Reports measurements as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::MeasurementOutcome;

/// Measurements of one server.
#[derive(Debug, Clone)]
pub struct MeasurementReport {
    pub benchmark: &'static str,
    /// Output of `version()`.
    pub server: String,
    /// Parameters of the run, as text.
    pub setting: String,
    pub measurements: Vec<(String, MeasurementOutcome)>,
    /// Further figures by name, such as `tpmC`.
    pub figures: Vec<(String, f64)>,
    /// Violated consistency conditions and wrong answers.
    pub violations: Vec<String>,
}

impl MeasurementReport {
    /// Formats one measurement: a line for each kind of operation, then the errors.
    #[must_use]
    pub fn table(name: &str, outcome: &MeasurementOutcome) -> String {
        let mut text = format!(
            "{name:<24}{:>12}{:>12}{:>10}{:>10}{:>10}{:>10}{:>9}\n",
            "operations", "per second", "p50 ms", "p95 ms", "p99 ms", "max ms", "retries"
        );
        for (kind, done) in &outcome.operations {
            let times = &done.latencies;
            writeln!(
                text,
                "  {kind:<22}{:>12}{:>12.1}{}{}{}{}{:>9}",
                times.count(),
                outcome.per_second(Some(kind)),
                millis(times.percentile(0.5)),
                millis(times.percentile(0.95)),
                millis(times.percentile(0.99)),
                millis(times.max()),
                done.retries
            )
            .expect("strings grow");
        }
        if outcome.operations.values().any(|kind| kind.rows != kind.latencies.count()) {
            writeln!(text, "  {:<22}{:>24.0}", "rows per second", outcome.rows_per_second()).expect("strings grow");
        }
        for (error, count) in &outcome.errors {
            writeln!(text, "  {count} x {error}").expect("strings grow");
        }
        if outcome.aborted_clients > 0 {
            writeln!(text, "  {} clients got no answer any more", outcome.aborted_clients).expect("strings grow");
        }
        text.trim_end().to_owned()
    }

    /// Returns true if an operation failed or a condition is violated.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        !self.violations.is_empty() || self.measurements.iter().any(|(_, outcome)| outcome.has_failures())
    }

    /// Returns the report as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let measurements = self.measurements.iter().map(|(name, outcome)| {
            let kinds: Map<String, Value> = outcome
                .operations
                .iter()
                .map(|(kind, done)| {
                    let times = &done.latencies;
                    let value = json!({
                        "operations": times.count(),
                        "per_second": outcome.per_second(Some(kind)),
                        "p50_ms": times.percentile(0.5).as_secs_f64() * 1e3,
                        "p95_ms": times.percentile(0.95).as_secs_f64() * 1e3,
                        "p99_ms": times.percentile(0.99).as_secs_f64() * 1e3,
                        "max_ms": times.max().as_secs_f64() * 1e3,
                        "mean_ms": times.mean().as_secs_f64() * 1e3,
                        "retries": done.retries,
                        "rows": done.rows,
                    });
                    ((*kind).to_owned(), value)
                })
                .collect();
            json!({
                "name": name,
                "seconds": outcome.measured.as_secs_f64(),
                "per_second": outcome.per_second(None),
                "rows_per_second": outcome.rows_per_second(),
                "kinds": kinds,
                "errors": outcome.errors,
                "stuck": outcome.aborted_clients,
            })
        });
        json!({
            "benchmark": self.benchmark,
            "server": self.server,
            "setting": self.setting,
            "measurements": measurements.collect::<Vec<_>>(),
            "figures": self.figures.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "violations": self.violations,
        })
    }
}

fn millis(time: Duration) -> String {
    format!("{:>10.3}", time.as_secs_f64() * 1e3)
}

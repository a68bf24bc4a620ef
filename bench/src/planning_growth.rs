//! Measures how planning time grows with the size of long and deep statements, which read only two rows.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;
use types::Clock;

use crate::Error;
use crate::measure::MeasurementReport;
use crate::measure::server_connection::{Server, Value, run_statements};
use crate::statement_shapes::{SETUP, StatementShape, shapes};

/// Runs per statement; the fastest counts.
const RUN_COUNT: usize = 3;
/// A statement that takes longer than this is not run at twice the size.
const PLANNING_TIME_MAX: Duration = Duration::from_secs(10);
/// Shorter times are too noisy to measure growth.
const GROWTH_TIME_MIN: Duration = Duration::from_millis(20);

/// Allowed growth of planning time: doubling the size multiplies the time by at most [`Growth::time_factor_max`].
#[derive(Debug, Clone, Copy)]
enum Growth {
    Linear,
    /// For plans of quadratic size, and for nested calls, which DataFusion hashes once per enclosing call.
    Quadratic,
}

impl Growth {
    /// Returns the largest allowed factor: the exact one plus a tolerance for noise.
    const fn time_factor_max(self) -> f64 {
        match self {
            Self::Linear => 2.5,
            Self::Quadratic => 4.5,
        }
    }
}

/// Measured shapes: name, first and last size, time limit in seconds for the last size, and allowed growth.
const STATEMENT_CASES: [(&str, usize, usize, Option<f64>, Growth); 16] = [
    ("parameters", 1_024, 65_535, Some(0.5), Growth::Linear),
    ("or", 3_125, 100_000, Some(2.0), Growth::Linear),
    ("and", 3_125, 100_000, None, Growth::Linear),
    ("union all", 625, 10_000, Some(5.0), Growth::Linear),
    ("union", 625, 10_000, None, Growth::Linear),
    ("scalar subquery", 15, 60, Some(0.1), Growth::Linear),
    ("exists", 15, 60, Some(0.1), Growth::Linear),
    ("in", 15, 60, Some(0.1), Growth::Linear),
    ("subquery in FROM", 15, 60, Some(0.1), Growth::Linear),
    // Each of n filters compares a sum of up to n terms.
    ("subquery of a table in FROM", 15, 60, None, Growth::Quadratic),
    ("with chain of filters", 50, 400, None, Growth::Quadratic),
    ("with read twice", 5, 20, None, Growth::Linear),
    ("simple case", 15, 60, None, Growth::Linear),
    ("sum", 50, 800, None, Growth::Quadratic),
    ("concatenation", 50, 800, None, Growth::Linear),
    ("not in of expressions", 625, 10_000, None, Growth::Linear),
];

/// Runs all shapes; exceeded time limits and too fast growth are violations.
pub async fn run(
    server: &Server,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let client = server.connect().await?;
    run_statements(&client, "dropping the table", "DROP TABLE IF EXISTS t").await?;
    for sql in SETUP {
        run_statements(&client, "making the table", sql).await?;
    }
    let mut report = MeasurementReport {
        benchmark: "planning",
        server: server.version.clone(),
        setting: "two rows".to_owned(),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    say(&format!("{:<30}{:>9}{:>12}{:>9}", "statement", "size", "seconds", "growth"));
    for (name, first, last, most, allowed) in STATEMENT_CASES {
        let shape = shapes().into_iter().find(|shape| shape.name == name);
        let (mut size, mut before) = (first, None);
        loop {
            let time = match fastest_run(&client, shape, size, clock).await {
                Ok(time) => time,
                Err(error) => {
                    say(&format!("{name:<30}{size:>9}   {error}"));
                    if most.is_some() {
                        report.violations.push(format!("{name} of {size} is not answered: {error}"));
                    }
                    break;
                }
            };
            let growth = before.map(|before: Duration| time.as_secs_f64() / before.as_secs_f64());
            let shown = growth.map_or_else(String::new, |growth| format!("{growth:.2}"));
            say(&format!("{name:<30}{size:>9}{:>12.4}{shown:>9}", time.as_secs_f64()));
            report.figures.push((format!("{name} {size}"), time.as_secs_f64()));
            if growth.is_some_and(|growth| growth > allowed.time_factor_max())
                && before.is_some_and(|before| before >= GROWTH_TIME_MIN)
            {
                report.violations.push(format!("{name} of {size} takes {shown} times as long as half of it"));
            }
            if let Some(most) = most.filter(|most| size == last && time.as_secs_f64() > *most) {
                report.violations.push(format!("{name} of {size} takes {:.3} s, more than {most}", time.as_secs_f64()));
            }
            if size >= last || time > PLANNING_TIME_MAX {
                break;
            }
            before = Some(time);
            size = if size * 2 > last { last } else { size * 2 };
        }
    }
    Ok(report)
}

/// Returns the fastest of [`RUN_COUNT`] runs; without a shape, of an IN list of `size` parameters.
async fn fastest_run(
    client: &Client,
    shape: Option<StatementShape>,
    size: usize,
    clock: &Arc<dyn Clock>,
) -> Result<Duration, Error> {
    let mut least = Duration::MAX;
    let values: Vec<i32> = (0..i32::try_from(size).unwrap_or(i32::MAX)).collect();
    for run in 0..RUN_COUNT {
        // The text differs in each run, so that no cached plan is used.
        let sql = match shape {
            Some(shape) => (shape.build)(size).replacen(' ', &format!(" /* {run} */ "), 1),
            None => {
                let list = (1..=size).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
                format!("select /* {run} */ count(*) from t where i in ({list})")
            }
        };
        let begun = clock.monotonic();
        match shape {
            Some(shape) => run_statements(client, shape.name, &sql).await?,
            None => {
                let values: Vec<&(dyn Value + Sync)> = values.iter().map(|value| value as _).collect();
                let action = || format!("an IN list of {size} parameters");
                client.query(&sql, &values).await.map_err(|source| Error::Server { action: action(), source })?;
            }
        }
        least = least.min(clock.monotonic() - begun);
    }
    Ok(least)
}

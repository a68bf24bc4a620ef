//! Measures planning time as the time of EXPLAIN, on Kiln and on the compared systems.

use std::time::Duration;

use tokio_postgres::Client;
use types::Clock;

use crate::Error;
use crate::compared_systems::SystemMode;
use crate::measure::MeasurementReport;
use crate::query_benchmark::{QueryOptions, run_timed, selected_queries, start_compared_systems};
use crate::result_comparison::Row;
use crate::score::geometric_mean;

/// Explains each query as often as it would be run; the fastest run counts.
pub async fn run(
    client: &Client,
    options: &QueryOptions,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    // Prevents the use of a cached plan after the first run.
    let anew = "SET plan_cache_mode = force_custom_plan";
    client.batch_execute(anew).await.map_err(|source| Error::Server { action: anew.to_owned(), source })?;
    let mut systems = start_compared_systems(options, SystemMode::LoadedTables, say);
    let mut own = Vec::new();
    let mut theirs = vec![Vec::new(); systems.len()];
    let mut phases = PlanningPhases::default();
    for number in selected_queries(options) {
        let sql = format!("EXPLAIN {}", options.suite.queries()[number - 1]);
        let mut times = Vec::with_capacity(options.runs);
        for _ in 0..options.runs.max(1) {
            times.push(run_timed(client, number, &sql, clock).await?.0);
        }
        phases.measure(client, options, number, clock).await?;
        let least = times.into_iter().min().unwrap_or_default();
        let mut line = format!("q{number:02}{}", millis(least));
        own.push(least);
        for (system, theirs) in systems.iter_mut().zip(&mut theirs) {
            // Plans of different engines cannot be compared.
            let ran = system.run(number, &sql, options.runs.max(1), |_| Ok(()));
            match (ran.runs.into_iter().min(), ran.problem) {
                (Some(time), None) => {
                    line.push_str(&format!("   {}{}", system.name(), millis(time)));
                    theirs.push((least, time));
                }
                (_, problem) => {
                    let problem = problem.unwrap_or_else(|| "did not run".to_owned());
                    line.push_str(&format!("   {} {problem}", system.name()));
                }
            }
        }
        say(&line);
    }
    let mut report = MeasurementReport {
        benchmark: "plans",
        server: String::new(),
        setting: format!("{} at scale {}", options.suite, options.scale),
        measurements: Vec::new(),
        figures: report_percentiles("kiln", own, say),
        violations: Vec::new(),
    };
    report.figures.extend(phases.medians(say));
    for (system, pairs) in systems.iter().zip(theirs) {
        report.figures.extend(report_percentiles(
            system.name(),
            pairs.iter().map(|(_, theirs)| *theirs).collect(),
            say,
        ));
        let ratios = pairs.iter().map(|(own, theirs)| own.as_secs_f64() / theirs.as_secs_f64().max(1e-9));
        let ratio = geometric_mean(ratios).unwrap_or(f64::NAN);
        say(&format!("kiln/{} geometric mean {ratio:.2}", system.name()));
        report.figures.push((format!("kiln/{}, geometric mean", system.name()), ratio));
    }
    Ok(report)
}

/// Planning phases in order, each with the shortest time of every query in milliseconds, as the server reports them.
#[derive(Default)]
struct PlanningPhases(Vec<(String, Vec<f64>)>);

impl PlanningPhases {
    async fn measure(
        &mut self,
        client: &Client,
        options: &QueryOptions,
        number: usize,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let query = &options.suite.queries()[number - 1];
        let sql = format!("EXPLAIN (COSTS OFF, SUMMARY, VERBOSE, FORMAT JSON) {query}");
        let mut least: Vec<(String, f64)> = Vec::new();
        for _ in 0..options.runs.max(1) {
            let (_, answer) = run_timed(client, number, &sql, clock).await?;
            for (phase, time) in parse_phases(&answer) {
                match least.iter_mut().find(|(known, _)| *known == phase) {
                    Some((_, known)) => *known = known.min(time),
                    None => least.push((phase, time)),
                }
            }
        }
        for (phase, time) in least {
            match self.0.iter_mut().find(|(known, _)| *known == phase) {
                Some((_, times)) => times.push(time),
                None => self.0.push((phase, vec![time])),
            }
        }
        Ok(())
    }

    fn medians(self, say: &mut dyn FnMut(&str)) -> Vec<(String, f64)> {
        let median = |(phase, mut times): (String, Vec<f64>)| {
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            say(&format!("{phase:<12}{median:>9.3} ms at the median"));
            (format!("kiln {phase}, median, ms"), median)
        };
        self.0.into_iter().map(median).collect()
    }
}

/// Parses the planning phases from EXPLAIN's JSON; empty for a server that does not report them.
fn parse_phases(answer: &[Row]) -> Vec<(String, f64)> {
    let text = answer.first().and_then(|row| row.first()?.as_deref());
    let document = text.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let phases = document.as_ref().and_then(|document| document.get(0)?.get("Planning Phases")?.as_object());
    let phases = phases.into_iter().flatten();
    phases.filter_map(|(phase, time)| Some((phase.clone(), time.as_f64()?))).collect()
}

/// Reports the median, the 90th percentile and the maximum of the times.
fn report_percentiles(name: &str, mut times: Vec<Duration>, say: &mut dyn FnMut(&str)) -> Vec<(String, f64)> {
    times.sort();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1))).copied();
    let known = [("median", at(50)), ("p90", at(90)), ("longest", at(100))];
    let known = known.map(|(what, time)| (what, time.unwrap_or_default()));
    let words = known.map(|(what, time)| format!("{what}{}", millis(time)));
    say(&format!("{name}: {}", words.join(", ")));
    known.map(|(what, time)| (format!("{name} {what}, ms"), time.as_secs_f64() * 1e3)).into()
}

fn millis(time: Duration) -> String {
    format!("{:>9.2} ms", time.as_secs_f64() * 1e3)
}

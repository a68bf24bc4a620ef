//! Reports a query benchmark as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Suite;
use crate::score::{geometric_mean, score};
use crate::table_load::LoadedTable;

/// Results of a query benchmark.
#[derive(Debug, Clone)]
pub struct QueryReport {
    pub suite: Suite,
    pub scale: f64,
    pub tables: Vec<LoadedTable>,
    pub compared_systems: Vec<String>,
    pub entries: Vec<QueryResult>,
}

/// Results of one query on Kiln and on the compared systems.
#[derive(Debug, Clone)]
pub struct QueryResult {
    /// Number of the query, from 1.
    pub query: usize,
    /// Kiln's timed runs, in order.
    pub kiln: Vec<Duration>,
    pub rows: usize,
    pub compared_systems: Vec<SystemResult>,
}

/// Results of one query on one system.
#[derive(Debug, Clone)]
pub struct SystemResult {
    pub system: String,
    pub runs: Vec<Duration>,
    /// Difference from Kiln's answer, or the error.
    pub problem: Option<String>,
}

impl QueryResult {
    /// Adds a system's runs.
    pub(crate) fn add_system_result(&mut self, ran: SystemResult) {
        match self.compared_systems.iter_mut().find(|runs| runs.system == ran.system) {
            Some(runs) => {
                runs.runs.extend(ran.runs);
                runs.problem = runs.problem.take().or(ran.problem);
            }
            None => self.compared_systems.push(ran),
        }
    }

    /// Returns the fastest run, the least disturbed by other load.
    fn fastest_run(&self) -> Option<Duration> {
        self.kiln.iter().min().copied()
    }

    /// Formats a table line: query, rows, Kiln's fastest time, each system's and the ratio of Kiln to system.
    #[must_use]
    pub fn format_line(&self) -> String {
        let mut line = format!("q{:02}{:>9} rows{}", self.query, self.rows, format_seconds(self.fastest_run()));
        for system in &self.compared_systems {
            let theirs = system.runs.iter().min().copied();
            match (self.fastest_run(), theirs, &system.problem) {
                (Some(ours), Some(theirs), None) => {
                    let ratio = ours.as_secs_f64() / theirs.as_secs_f64().max(1e-9);
                    write!(line, "   {}{}{ratio:>8.2}x", system.system, format_seconds(Some(theirs)))
                        .expect("strings grow");
                }
                (_, _, problem) => {
                    let problem = problem.as_deref().unwrap_or("did not run");
                    write!(line, "   {} DIFFERS: {problem}", system.system).expect("strings grow");
                }
            }
        }
        line
    }
}

impl QueryReport {
    /// Formats totals, scores (geometric mean without the slowest third) and the geometric means of the ratios.
    #[must_use]
    pub fn summary(&self) -> String {
        let best: Vec<Duration> = self.entries.iter().filter_map(QueryResult::fastest_run).collect();
        let every: Vec<Duration> = self.entries.iter().flat_map(|entry| entry.kiln.iter().copied()).collect();
        let total: Duration = best.iter().sum();
        let mut text = format!(
            "kiln {} sf {}: total{}, figure{}",
            self.suite,
            self.scale,
            format_seconds(Some(total)),
            format_seconds(score(&every))
        );
        for system in &self.compared_systems {
            let pairs: Vec<(Duration, Duration)> =
                self.entries.iter().filter_map(|entry| self.fastest_pair(entry, system)).collect();
            let theirs: Vec<Duration> = self.system_runs(system).collect();
            let total: Duration = pairs.iter().map(|(_, theirs)| *theirs).sum();
            let ratio =
                geometric_mean(pairs.iter().map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64().max(1e-9)));
            let worst = pairs
                .iter()
                .map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64().max(1e-9))
                .fold(0.0, f64::max);
            write!(
                text,
                "\n{system}: total{} over {} agreeing queries, figure{}, kiln/{system} geometric mean {:.2}, worst {worst:.2}",
                format_seconds(Some(total)),
                pairs.len(),
                format_seconds(score(&theirs)),
                ratio.unwrap_or(f64::NAN),
            )
            .expect("strings grow");
        }
        text
    }

    /// Returns all times as JSON, in seconds.
    #[must_use]
    pub fn json(&self) -> Value {
        let times = |runs: &[Duration]| runs.iter().map(Duration::as_secs_f64).collect::<Vec<_>>();
        json!({
            "suite": self.suite.to_string(),
            "scale": self.scale,
            "load": self.tables.iter().map(|table| json!({
                "table": table.table, "rows": table.rows, "bytes": table.bytes, "seconds": table.elapsed.as_secs_f64(),
            })).collect::<Vec<_>>(),
            "queries": self.entries.iter().map(|entry| json!({
                "query": entry.query,
                "rows": entry.rows,
                "kiln": times(&entry.kiln),
                "peers": entry.compared_systems.iter().map(|system| json!({
                    "peer": system.system, "seconds": times(&system.runs), "problem": system.problem,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }

    /// Returns queries that failed on a system or whose answers differ.
    pub fn differences(&self) -> impl Iterator<Item = &QueryResult> {
        self.entries.iter().filter(|entry| entry.compared_systems.iter().any(|system| system.problem.is_some()))
    }

    fn fastest_pair(&self, entry: &QueryResult, system: &str) -> Option<(Duration, Duration)> {
        let theirs = entry.compared_systems.iter().find(|runs| runs.system == system && runs.problem.is_none())?;
        Some((entry.fastest_run()?, theirs.runs.iter().min().copied()?))
    }

    fn system_runs(&self, system: &str) -> impl Iterator<Item = Duration> {
        let runs =
            self.entries.iter().flat_map(|entry| &entry.compared_systems).filter(move |runs| runs.system == system);
        runs.flat_map(|runs| runs.runs.iter().copied())
    }
}

fn format_seconds(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "        –".to_owned(), |duration| format!("{:>8.3} s", duration.as_secs_f64()))
}

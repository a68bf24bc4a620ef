//! Reports a query benchmark as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Suite;
use crate::load::LoadedTable;
use crate::score::{geometric_mean, score};

/// Results of a query benchmark.
#[derive(Debug, Clone)]
pub struct QueryReport {
    pub suite: Suite,
    pub scale: f64,
    pub tables: Vec<LoadedTable>,
    pub peers: Vec<String>,
    pub entries: Vec<QueryResult>,
}

/// Results of one query on Kiln and its peers.
#[derive(Debug, Clone)]
pub struct QueryResult {
    /// Number of the query, from 1.
    pub query: usize,
    /// Kiln's timed runs, in order.
    pub kiln: Vec<Duration>,
    pub rows: usize,
    pub peers: Vec<PeerResult>,
}

/// Results of one query on one peer.
#[derive(Debug, Clone)]
pub struct PeerResult {
    pub peer: String,
    pub runs: Vec<Duration>,
    /// Difference from Kiln's answer, or the error.
    pub problem: Option<String>,
}

impl QueryResult {
    /// Adds a peer's runs.
    pub(crate) fn add(&mut self, ran: PeerResult) {
        match self.peers.iter_mut().find(|runs| runs.peer == ran.peer) {
            Some(runs) => {
                runs.runs.extend(ran.runs);
                runs.problem = runs.problem.take().or(ran.problem);
            }
            None => self.peers.push(ran),
        }
    }

    /// Returns the fastest run, the least disturbed by other load.
    fn best(&self) -> Option<Duration> {
        self.kiln.iter().min().copied()
    }

    /// Formats a table line: query, rows, Kiln's fastest time, each peer's and the ratio of Kiln to peer.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("q{:02}{:>9} rows{}", self.query, self.rows, format_seconds(self.best()));
        for peer in &self.peers {
            let theirs = peer.runs.iter().min().copied();
            match (self.best(), theirs, &peer.problem) {
                (Some(ours), Some(theirs), None) => {
                    let ratio = ours.as_secs_f64() / theirs.as_secs_f64().max(1e-9);
                    write!(line, "   {}{}{ratio:>8.2}x", peer.peer, format_seconds(Some(theirs)))
                        .expect("strings grow");
                }
                (_, _, problem) => {
                    let problem = problem.as_deref().unwrap_or("did not run");
                    write!(line, "   {} DIFFERS: {problem}", peer.peer).expect("strings grow");
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
        let best: Vec<Duration> = self.entries.iter().filter_map(QueryResult::best).collect();
        let every: Vec<Duration> = self.entries.iter().flat_map(|entry| entry.kiln.iter().copied()).collect();
        let total: Duration = best.iter().sum();
        let mut text = format!(
            "kiln {} sf {}: total{}, figure{}",
            self.suite,
            self.scale,
            format_seconds(Some(total)),
            format_seconds(score(&every))
        );
        for peer in &self.peers {
            let pairs: Vec<(Duration, Duration)> =
                self.entries.iter().filter_map(|entry| self.pair(entry, peer)).collect();
            let theirs: Vec<Duration> = self.peer_runs(peer).collect();
            let total: Duration = pairs.iter().map(|(_, theirs)| *theirs).sum();
            let ratio =
                geometric_mean(pairs.iter().map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64().max(1e-9)));
            let worst = pairs
                .iter()
                .map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64().max(1e-9))
                .fold(0.0, f64::max);
            write!(
                text,
                "\n{peer}: total{} over {} agreeing queries, figure{}, kiln/{peer} geometric mean {:.2}, worst {worst:.2}",
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
                "peers": entry.peers.iter().map(|peer| json!({
                    "peer": peer.peer, "seconds": times(&peer.runs), "problem": peer.problem,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }

    /// Returns queries that failed on a peer or whose answers differ.
    pub fn differences(&self) -> impl Iterator<Item = &QueryResult> {
        self.entries.iter().filter(|entry| entry.peers.iter().any(|peer| peer.problem.is_some()))
    }

    fn pair(&self, entry: &QueryResult, peer: &str) -> Option<(Duration, Duration)> {
        let theirs = entry.peers.iter().find(|runs| runs.peer == peer && runs.problem.is_none())?;
        Some((entry.best()?, theirs.runs.iter().min().copied()?))
    }

    fn peer_runs(&self, peer: &str) -> impl Iterator<Item = Duration> {
        let runs = self.entries.iter().flat_map(|entry| &entry.peers).filter(move |runs| runs.peer == peer);
        runs.flat_map(|runs| runs.runs.iter().copied())
    }
}

fn format_seconds(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "        –".to_owned(), |duration| format!("{:>8.3} s", duration.as_secs_f64()))
}

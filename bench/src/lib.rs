//! Benchmark driver: generates and loads TPC-H and TPC-DS data, runs the queries on Kiln and its peers, and compares
//! the answers; drives any PostgreSQL-compatible server with concurrent clients for YCSB, TPC-C and ingestion.
//!
//! Never measures without checking answers, and never starts a server: it connects to an address.
//!
//! - `run.rs`: one query benchmark, from data to score; `suite.rs` has the tables and queries, `figure.rs` the score.
//! - Variants: `cold.rs` (cold caches), `streams.rs` (concurrent streams), `clusters.rs` (worker processes),
//!   `dashboard.rs` (repeated queries, fragment cache), `unsettled.rs` (scans of unflushed rows), `loads.rs` (loading
//!   files), `plans.rs` (planning time of the suites' queries), `planning.rs` (planning time of the long and deep
//!   statements of `shapes.rs`).
//! - `measure/mod.rs`: concurrent clients; `ycsb/`, `tpcc/` and `ingest.rs` use it.

pub mod answers;
mod chance;
pub mod clusters;
pub mod cold;
pub mod dashboard;
pub mod figure;
pub mod generate;
pub mod ingest;
pub mod load;
pub mod loads;
pub mod measure;
pub mod peers;
pub mod planning;
pub mod plans;
pub mod plot;
pub mod report;
pub mod run;
pub mod shapes;
pub mod streams;
pub mod suite;
pub mod tpcc;
pub mod unsettled;
pub mod ycsb;

pub use run::{Options, prepare, run};
pub use suite::Suite;

/// Error of a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{doing} failed: {}", server_message(.source))]
    Server { doing: String, source: tokio_postgres::Error },
    #[error("cannot make the data of {table} at scale {scale}: {reason}")]
    Data { table: String, scale: f64, reason: String },
    #[error("{peer}: {reason}")]
    Peer { peer: String, reason: String },
    #[error("{wanted} rows were expected, {found} came")]
    Rows { wanted: usize, found: usize },
    #[error("cannot write {path}")]
    File { path: String, source: std::io::Error },
}

/// Returns the server's message and SQLSTATE if there are any: `tokio_postgres::Error` alone displays only "db
/// error".
fn server_message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        None => error.to_string(),
    }
}

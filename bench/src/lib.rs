//! Benchmark driver: generates and loads TPC-H and TPC-DS data, runs the queries on Kiln and its peers, and compares
//! the answers; drives any PostgreSQL-compatible server with concurrent clients for YCSB, TPC-C and ingestion.
//!
//! Never measures without checking answers, and never starts a server: it connects to an address.
//!
//! - `run.rs`: one query benchmark, from data to score; `suite.rs` has the tables and queries, `score.rs` the score.
//! - Variants: `cold.rs` (cold caches), `streams.rs` (concurrent streams), `clusters.rs` (worker processes),
//!   `dashboard.rs` (repeated queries, fragment cache), `unflushed.rs` (scans of unflushed rows), `load_files.rs` (loading
//!   files), `explain.rs` (planning time of the suites' queries), `planning_growth.rs` (planning time of the long and deep
//!   statements of `shapes.rs`).
//! - `measure/mod.rs`: concurrent clients; `ycsb/`, `tpcc/` and `ingest.rs` use it.

pub mod answers;
pub mod clusters;
pub mod cold;
pub mod dashboard;
pub mod explain;
pub mod generate;
pub mod ingest;
pub mod load;
pub mod load_files;
pub mod measure;
pub mod peers;
pub mod planning_growth;
pub mod plot;
mod random;
pub mod report;
pub mod run;
pub mod score;
pub mod shapes;
pub mod streams;
pub mod suite;
pub mod tpcc;
pub mod unflushed;
pub mod ycsb;

pub use run::{QueryOptions, prepare, run};
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

//! Benchmark driver: generates and loads TPC-H and TPC-DS data, runs the queries on Kiln and on the compared systems, and
//! compares the answers; drives any PostgreSQL-compatible server with concurrent clients for YCSB, TPC-C and ingestion.
//!
//! Never measures without checking answers, and never starts a server: it connects to an address.
//!
//! - `query_benchmark.rs`: one query benchmark, from data to score; `query_suite.rs` has the tables and queries,
//!   `score.rs` the score, `result_comparison.rs` the check of the answers, `compared_systems.rs` the other systems.
//! - Variants of it:
//!   - `cold_cache_benchmark.rs`: cold caches
//!   - `concurrent_streams.rs`: concurrent streams
//!   - `worker_clusters.rs`: worker processes
//!   - `dashboard_benchmark.rs`: repeated queries with the fragment cache
//!   - `unflushed_scan.rs`: scans of unflushed rows
//!   - `load_files_benchmark.rs`: loading files
//!   - `planning_time.rs`: planning time of the suites' queries
//!   - `planning_growth.rs`: planning time of the long and deep statements of `statement_shapes.rs`
//! - `measure/mod.rs`: concurrent clients; `ycsb/`, `tpcc/` and `ingest_benchmark.rs` use it.

pub mod cold_cache_benchmark;
pub mod compared_systems;
pub mod concurrent_streams;
pub mod dashboard_benchmark;
pub mod generate;
pub mod ingest_benchmark;
pub mod load_files_benchmark;
pub mod measure;
pub mod planning_growth;
pub mod planning_time;
pub mod query_benchmark;
pub mod query_report;
pub mod query_suite;
mod random;
pub mod result_comparison;
pub mod score;
pub mod statement_shapes;
pub mod svg_plot;
pub mod table_load;
pub mod tpcc;
pub mod unflushed_scan;
pub mod worker_clusters;
pub mod ycsb;

pub use query_benchmark::{QueryOptions, prepare, run};
pub use query_suite::Suite;

/// Error of a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the benchmarked server failed ({action}): {}", server_message(.source))]
    Server { action: String, source: tokio_postgres::Error },
    #[error("cannot generate benchmark rows for table {table} at scale factor {scale}: {reason}")]
    Data { table: String, scale: f64, reason: String },
    #[error("{system} failed in the benchmark: {reason}")]
    ComparedSystem { system: String, reason: String },
    #[error("a benchmark query returned or changed {found} rows instead of {expected}")]
    Rows { expected: usize, found: usize },
    #[error("cannot write the benchmark's output file {path}")]
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

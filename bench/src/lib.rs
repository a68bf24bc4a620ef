//! The benchmark driver: makes TPC-H and TPC-DS data, loads it over the wire, runs the queries on Kiln and its peers, and compares;
//! and drives any server of PostgreSQL's protocol with many clients at once: YCSB, TPC-C, ingestion.
//!
//! Never measures without checking answers, and never starts a server: it is given an address.
//!
//! Start at `run.rs` for one benchmark of queries from data to figure, `suite.rs` has the tables and queries; `cold.rs` runs them on servers that
//! remember nothing, `streams.rs` many at once, `clusters.rs` on clusters of processes, `dashboard.rs` the same again and again, `loads.rs` measures how the tables come in, `plans.rs` how long queries take to be planned, `planning.rs` how long those that are long or deep (`shapes.rs`); at `measure/mod.rs` for how clients are driven.

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

/// What can go wrong in a benchmark.
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

/// The server's own words where there are any: `tokio_postgres::Error` alone says only "db error".
fn server_message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        None => error.to_string(),
    }
}
